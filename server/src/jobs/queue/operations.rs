//! The queue as operators see it: every job that makes a plan is an operation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use canopy_wire::Priority;
use tokio::sync::watch;

use super::{Lines, Queue, QueueLimits};
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::job::{Job, JobState, Operation, Phase};

/// Most jobs that a look at the queue shows.
const SHOWN_MAX: usize = 1000;

/// What runs and what waits.
pub(crate) struct QueueCounts {
    pub(crate) limits: QueueLimits,
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) held_bytes: usize,
    /// Waiting and running jobs of each priority, the one that goes first first.
    pub(crate) priorities: Vec<(Priority, usize, usize)>,
    /// Unfinished jobs: those that run, then the others in the order in which they will.
    pub(crate) jobs: Vec<Arc<Job>>,
}

/// What jobs take of what is limited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) limits: QueueLimits,
    pub(crate) held_bytes: usize,
    /// Memory that planning workers take, by the estimates of their jobs.
    pub(crate) planning_bytes: u64,
}

/// An operation to wait for.
pub(crate) enum WaitedOperation {
    /// It has ended.
    Ended(Arc<Operation>),
    /// It has not: its job, and the state to watch. Watching does not keep the job alive.
    Live(Arc<Job>, watch::Receiver<JobState>),
}

impl WaitedOperation {
    /// The operation as it is now.
    pub(crate) fn describe(&self) -> Operation {
        match self {
            Self::Ended(operation) => Operation::clone(operation),
            Self::Live(job, _) => job.describe(),
        }
    }
}

impl Queue {
    /// The operation of this name.
    pub(crate) fn operation(&self, name: &str) -> Option<WaitedOperation> {
        self.shared.lines.lock().operation(name)
    }

    /// Every operation by number, those that have ended included. O(operations).
    pub(crate) fn operations(&self) -> BTreeMap<u64, Operation> {
        let lines = self.shared.lines.lock();
        let ended: Vec<_> = lines.history.iter().map(|(number, operation)| (number, Arc::clone(operation))).collect();
        let live: Vec<_> = lines.live.values().map(Arc::clone).collect();
        drop(lines);
        let ended = ended.into_iter().map(|(number, operation)| (number, Operation::clone(&operation)));
        ended.chain(live.into_iter().map(|job| (job.number, job.describe()))).collect()
    }

    /// Ends the job of an operation, and those that follow it. One that has ended stays as it is. None: there is no
    /// such operation.
    pub(crate) fn cancel(&self, name: &str) -> Option<Operation> {
        let operation = self.operation(name)?;
        if let WaitedOperation::Live(job, _) = &operation {
            job.cancel();
            self.finish(job, Err(Arc::new(PlanFailure::CancelledByOperator)));
        }
        Some(operation.describe())
    }

    /// Ends the jobs that a worker has planned for longer than this while no call waits for them: the names of their operations.
    pub(crate) fn end_overlong(&self, limit: Duration) -> Vec<String> {
        let now = clock::now();
        let is_overlong = |job: &&Arc<Job>| {
            let ties = job.ties.lock();
            let began = ties.began.filter(|_| ties.phase == Phase::Planning && ties.waiters == 0);
            began.is_some_and(|began| now.duration_since(began) > limit)
        };
        let overlong: Vec<_> = self.shared.lines.lock().live.values().filter(is_overlong).map(Arc::clone).collect();
        for job in &overlong {
            job.cancel();
            job.ties.lock().may_go_on = false;
            self.finish(job, Err(Arc::new(PlanFailure::RunLimit { limit })));
        }
        overlong.iter().map(|job| job.operation()).collect()
    }

    /// How much of what is limited is taken.
    pub(crate) fn room(&self) -> Room {
        let lines = self.shared.lines.lock();
        Room { limits: self.shared.limits, held_bytes: lines.held_bytes, planning_bytes: lines.planning_bytes }
    }

    /// How many jobs wait for a planning worker and how many have one, by priority. O(unfinished jobs).
    pub(crate) fn loads(&self) -> [(Priority, usize, usize); Priority::ALL.len()] {
        let mut loads = Priority::ALL.map(|priority| (priority, 0, 0));
        let lines = self.shared.lines.lock();
        for job in lines.live.values() {
            let ties = job.ties.lock();
            for (_, waiting, planning) in loads.iter_mut().filter(|(of, ..)| *of == ties.priority) {
                *waiting += usize::from(ties.phase.waits());
                *planning += usize::from(ties.phase == Phase::Planning && ties.awaited.is_none());
            }
        }
        for priority in lines.made_for_all() {
            loads.iter_mut().filter(|(of, ..)| *of == priority).for_each(|(.., planning)| *planning += 1);
        }
        loads
    }

    /// Jobs whose plans are not there, and are made or will be: not those that are looked for only. O(unfinished jobs).
    pub(crate) fn searches(&self) -> usize {
        let is_search =
            |job: &&Arc<Job>| matches!(job.ties.lock().phase, Phase::Queued | Phase::Following | Phase::Planning);
        self.shared.lines.lock().live.values().filter(is_search).count()
    }

    /// What runs and what waits. O(unfinished jobs).
    pub(crate) fn counts(&self) -> QueueCounts {
        let lines = self.shared.lines.lock();
        let mut jobs: Vec<(bool, Priority, Arc<Job>)> = Vec::with_capacity(lines.live.len());
        let mut priorities: Vec<_> = Priority::ALL.into_iter().map(|priority| (priority, 0, 0)).collect();
        for job in lines.live.values() {
            let ties = job.ties.lock();
            let (runs, priority) = (ties.phase.runs(), ties.priority);
            for (_, waiting, running) in priorities.iter_mut().filter(|(of, ..)| *of == priority) {
                *waiting += usize::from(!runs && !ties.phase.is_end());
                *running += usize::from(runs);
            }
            drop(ties);
            jobs.push((runs, priority, Arc::clone(job)));
        }
        // Stable: equal ones stay in the order of their arrival.
        jobs.sort_by_key(|&(runs, priority, _)| std::cmp::Reverse((runs, priority)));
        QueueCounts {
            limits: self.shared.limits,
            waiting: priorities.iter().map(|(_, waiting, _)| waiting).sum(),
            running: priorities.iter().map(|(.., running)| running).sum(),
            held_bytes: lines.held_bytes,
            priorities,
            jobs: jobs.into_iter().take(SHOWN_MAX).map(|(.., job)| job).collect(),
        }
    }
}

impl Lines {
    fn operation(&self, name: &str) -> Option<WaitedOperation> {
        let number = name.rsplit_once('-')?.1.parse().ok()?;
        let found = match self.live.get(&number) {
            Some(job) => WaitedOperation::Live(Arc::clone(job), job.watch()),
            None => WaitedOperation::Ended(Arc::clone(self.history.get(number)?)),
        };
        let is_named = match &found {
            WaitedOperation::Ended(operation) => operation.name == name,
            WaitedOperation::Live(job, _) => job.operation() == name,
        };
        is_named.then_some(found)
    }
}
