//! Jobs that wait for a worker: the highest priority first, and among equals the first to arrive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use canopy_planner::ScheduleKey;
use canopy_wire::Priority;

use crate::jobs::job::Job;

/// A line of jobs. The place of a job follows from its priority and its number alone.
#[derive(Default)]
pub(super) struct Line(BTreeMap<(Reverse<Priority>, u64), Arc<Job>>);

impl Line {
    /// Puts a job where its priority says.
    pub(super) fn push(&mut self, job: Arc<Job>) {
        let priority = job.ties.lock().priority;
        self.0.insert((Reverse(priority), job.number), job);
    }

    /// The first job whose schedule nobody searches for. O(jobs before it).
    pub(super) fn first(&self, sought: &HashMap<ScheduleKey, u64>) -> Option<Arc<Job>> {
        let is_sought = |job: &Job| job.schedule().is_some_and(|schedule| sought.contains_key(&schedule));
        self.0.values().find(|job| !is_sought(job)).map(Arc::clone)
    }

    /// Takes the first job.
    pub(super) fn pop(&mut self) -> Option<Arc<Job>> {
        self.0.pop_first().map(|(_, job)| job)
    }

    /// Takes a job out, if it is in the line. Before its priority changes, that is.
    pub(super) fn remove(&mut self, job: &Job) -> Option<Arc<Job>> {
        let priority = job.ties.lock().priority;
        self.0.remove(&(Reverse(priority), job.number))
    }

    /// Jobs that stand before a newcomer of this priority. O(their number).
    pub(super) fn ahead_of(&self, priority: Priority) -> usize {
        self.0.range(..=(Reverse(priority), u64::MAX)).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
