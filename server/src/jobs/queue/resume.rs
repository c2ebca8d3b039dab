//! Jobs that an earlier process left unfinished.

use std::sync::Arc;

use canopy_wire::Priority;

use super::{Queue, end_phase};
use crate::failure::PlanFailure;
use crate::jobs::job::{Goal, Job, Unfinished};
use crate::jobs::journal::STARTS_MAX;
use crate::quota::Bill;

impl Queue {
    /// Puts a job at the end of the first line again, detached and under its old name; later jobs have greater
    /// numbers. It counts against the quotas of `bill`, which do not keep it out.
    ///
    /// # Errors
    /// It was begun too often, or there is no room. It is shown as failed, and struck from the journal.
    pub(crate) fn resume(&self, unfinished: Unfinished, bill: Option<Bill>) -> Result<(), Arc<PlanFailure>> {
        let Unfinished { entry, starts } = unfinished;
        let weight = entry.request.weight_bytes();
        let job = Arc::new(Job::resumed(entry, bill, starts, weight));
        let mut lines = self.shared.lines.lock();
        lines.number = lines.number.max(job.number);
        if lines.by_request.contains_key(&(Goal::Plan, job.key)) {
            // Two of one request are written down when the second was asked for while the end of the first was not.
            job.settle(Err(Arc::new(PlanFailure::Stopped)));
            lines.archive(&job);
            return Ok(());
        }
        // Whoever was let in once is not held to the share of prefetching again.
        let admitted = lines.admit(self.shared.limits, Goal::Plan, Priority::Repair, weight);
        let admitted = if starts >= STARTS_MAX { Err(PlanFailure::Abandoned { starts }) } else { admitted };
        lines.enter(&job, weight);
        let resumed = admitted.map_err(Arc::new);
        match &resumed {
            Ok(()) => {
                self.shared.reading_ready.notify_one();
            }
            Err(failure) => {
                // At once: nobody is to see it wait meanwhile, and no reader to take it.
                let outcome = Err(Arc::clone(failure));
                lines.advance(&job, end_phase(&outcome));
                lines.forget(&job);
                job.settle(outcome);
                lines.archive(&job);
            }
        }
        self.note_whether_idle(&lines);
        resumed
    }
}
