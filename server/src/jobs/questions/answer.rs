//! Answering slices, for callers of this server and of others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use canopy_database::JobState;
use canopy_optimize::Stop;
use canopy_planner::RequestKey;
use canopy_wire::Entry;

use crate::clock;
use crate::failure::{KeptFailure, PlanFailure};
use crate::jobs::slices::{Part, Slice, SliceOutcome, encode_answer};
use crate::jobs::table::{Claimed, JobTable};
use crate::jobs::threads::panic_text;
use crate::jobs::workers::Jobs;

impl Jobs {
    /// Answers a slice of this server alone.
    pub(in crate::jobs) fn answer(&self, slice: &Slice) {
        let began = clock::now();
        let outcome = self.weigh(&slice.part, slice);
        if let Some(bill) = &slice.bill {
            bill.charge_planning(clock::now().duration_since(began));
        }
        slice.settle(outcome);
    }

    /// Answers a slice of all servers, and ends its job, unless that has been given to another server.
    pub(in crate::jobs) fn answer_for_all(&self, table: &JobTable, claimed: &Claimed, entry: Entry, faults: &[u8]) {
        let bill = self.bill_of_entry(&entry);
        let stop = self.queue.begin_slice(claimed.right.job);
        let is_stopped = || stop.load(Ordering::Relaxed);
        let outcome = match Part::read(entry.request, faults) {
            Some(part) => self.weigh(&part, &is_stopped),
            None => Err(Arc::new(PlanFailure::Unreadable)),
        };
        if let Some(bill) = bill {
            bill.charge_planning(clock::now().duration_since(claimed.began));
        }
        if self.end_slice(table, claimed, &outcome, &stop) {
            self.queue.settle_slices(claimed.right.job, &outcome);
        }
    }

    /// Writes the end of a slice down; false: it has no outcome yet.
    fn end_slice(&self, table: &JobTable, claimed: &Claimed, outcome: &SliceOutcome, stop: &AtomicBool) -> bool {
        let is_stopped = stop.load(Ordering::Relaxed) && outcome.as_ref().is_err_and(|error| error.is_cancellation());
        if is_stopped && self.queue.is_aborted() {
            table.give_back(claimed.right);
            return false;
        }
        let in_words = match outcome {
            Ok(answer) => (JobState::Succeeded, encode_answer(answer)),
            // Nobody waited any more when it was stopped. Who waits by now has it answered after all.
            Err(_) if is_stopped => (JobState::Cancelled, Vec::new()),
            Err(failure) => (JobState::Failed, KeptFailure::encode(failure)),
        };
        self.write_down_end(claimed.right.job, &table.end_in_words(claimed, in_words, false)) && !is_stopped
    }

    fn weigh(&self, part: &Part, stop: &dyn Stop) -> SliceOutcome {
        let weigh = || {
            let what_if = self.what_if(&part.order, stop)?;
            let directory = what_if.directory();
            let left = |loss| what_if.left(&directory, loss, stop).map_err(PlanFailure::from);
            part.losses.iter().map(left).collect()
        };
        let found: Result<_, PlanFailure> = catch_unwind(AssertUnwindSafe(weigh)).unwrap_or_else(|panic| {
            let request = RequestKey::of(&part.order);
            tracing::error!(%request, panic = panic_text(panic.as_ref()), "a slice of a question panicked");
            Err(PlanFailure::Panicked { request })
        });
        found.map_err(Arc::new)
    }
}
