//! What the queue knows of the table of all servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::jobs::job::{Awaited, Job};
use crate::jobs::table::JobTable;

/// What the queue knows of the table.
#[derive(Default)]
pub(super) struct Sharing {
    pub(super) table: Option<Arc<JobTable>>,
    /// Unfinished jobs of this server by the jobs that they wait for.
    pub(super) awaited: BTreeMap<i64, Vec<Arc<Job>>>,
    /// Jobs that callers here have left, and whether they may go on alone.
    pub(super) left: Vec<(i64, bool)>,
    /// Jobs to enter again: somebody wants them sooner, or what they wait for has gone.
    pub(super) changed: Vec<Arc<Job>>,
    /// Jobs that this server makes.
    pub(super) making: BTreeMap<i64, Arc<Job>>,
    /// Counts what may have brought a job to take.
    pub(super) news: u64,
    /// Up to which news the workers of each kind found none.
    pub(super) looked: [u64; 2],
    /// Whether what is being made is to be given back.
    pub(super) is_aborted: bool,
    /// Whether a job that is no prefetch waits for a server.
    pub(super) is_wanted: bool,
}

impl Sharing {
    pub(super) fn of(table: Option<Arc<JobTable>>) -> Self {
        Self { table, ..Self::default() }
    }

    /// A job has ended here, or waits no more.
    pub(super) fn forget(&mut self, job: &Arc<Job>) {
        let (awaited, may_go_on) = {
            let mut ties = job.ties.lock();
            (ties.awaited.take(), ties.may_go_on)
        };
        if let Some(Awaited { job: number, .. }) = awaited {
            self.stop_awaiting(number, job, may_go_on);
        }
    }

    /// A job does not wait for this one any more.
    pub(super) fn stop_awaiting(&mut self, number: i64, job: &Arc<Job>, may_go_on: bool) {
        let Some(waiting) = self.awaited.get_mut(&number) else { return };
        waiting.retain(|other| !Arc::ptr_eq(other, job));
        if waiting.is_empty() {
            self.awaited.remove(&number);
            self.left.push((number, may_go_on));
        }
    }

    /// A job was entered for which it is too late: it is left, unless others here wait for it.
    pub(super) fn leave_unless_awaited(&mut self, number: i64, may_go_on: bool) {
        if !self.awaited.contains_key(&number) {
            self.left.push((number, may_go_on));
        }
    }

    /// Nobody here waits for these any more.
    pub(super) fn leave(&mut self, left: Vec<(i64, bool)>) {
        self.left.extend(left);
    }

    /// Whether what is being made is to be given back.
    pub(super) const fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// The jobs of this server that wait for this one.
    pub(super) fn waiting(&self, number: i64) -> Vec<Arc<Job>> {
        self.awaited.get(&number).cloned().unwrap_or_default()
    }

    /// A job that waits is wanted sooner, or in another way.
    pub(super) fn note_change(&mut self, job: &Arc<Job>) {
        if job.ties.lock().awaited.is_some() {
            self.changed.push(Arc::clone(job));
        }
    }
}
