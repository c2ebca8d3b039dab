//! Jobs that wait in the table of all servers, and those that this one makes for all.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use canopy_database::Wanted;
use canopy_planner::chain;
use canopy_wire::Priority;
use parking_lot::MutexGuard;

use super::lines::Lines;
use super::{BESIDE, Queue, SEARCHES, end_phase};
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::job::{Awaited, Job, JobState, Outcome, Phase, Read, Status};
use crate::jobs::slices::Slice;
use crate::jobs::table::{Claimed, JobTable};
use crate::store::StoreError;

/// Time between two looks at a job that is being read.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// What a worker is to do.
pub(crate) enum Task {
    /// A job of this server alone.
    Own(Arc<Job>),
    /// One of all servers.
    Shared(Box<Claimed>),
    /// A slice of a question, of this server alone.
    Slice(Arc<Slice>),
}

/// Which workers ask for something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Those that search.
    Planning,
    /// Those that make plans beside the searches of others, and repairs.
    Beside,
    /// Those that make plans that need next to no time.
    Quick,
}

impl Queue {
    /// What these workers do next, for this server or for all; waits for it, and until there is memory for it. None once the queue is
    /// closed and no caller waits for a worker. When the memory is free again, whoever took a job calls [`Queue::vacate`] or
    /// [`Queue::vacate_shared`], and whoever took a slice [`Queue::vacate_slice`].
    pub(crate) fn next_task(&self, lane: Lane) -> Option<Task> {
        let Some(table) = self.table().filter(|_| lane != Lane::Quick) else {
            if lane == Lane::Quick {
                return self.next_quick().map(Task::Own);
            }
            let ready = &self.shared.planning_ready;
            return self.next(ready, |lines| self.take_own(lines, lane), Lines::is_over);
        };
        let mut lines = self.shared.lines.lock();
        loop {
            if let Some(task) = self.take_own(&mut lines, lane) {
                return Some(task);
            }
            if !lines.open && lines.is_over() {
                return None;
            }
            let (news, place) = (lines.sharing.news, usize::from(lane == Lane::Beside));
            if lines.sharing.looked[place] < news
                && let Some(memory) = self.memory_left(&lines, lane)
            {
                let claimed;
                (lines, claimed) = self.claim(lines, &table, lane, memory);
                match claimed {
                    Ok(Some(claimed)) => return Some(Task::Shared(Box::new(claimed))),
                    Ok(None) => lines.sharing.looked[place] = news,
                    Err(error) => {
                        tracing::debug!(%error, "no job could be taken");
                        lines.sharing.looked[place] = news;
                    }
                }
                continue;
            }
            self.shared.planning_ready.wait(&mut lines);
        }
    }

    /// What waits at this server alone. Jobs and slices take turns.
    fn take_own(&self, lines: &mut Lines, lane: Lane) -> Option<Task> {
        if lane == Lane::Beside {
            return self.take_first(lines, BESIDE).map(Task::Own);
        }
        if lines.slices.take_turn()
            && let Some(slice) = self.take_slice(lines)
        {
            return Some(Task::Slice(slice));
        }
        if let Some(job) = self.take_first(lines, SEARCHES) {
            lines.slices.give_turn();
            return Some(Task::Own(job));
        }
        self.take_slice(lines).map(Task::Slice)
    }

    /// Free bytes of memory for a job of all servers; `None` if all of it is taken.
    fn memory_left(&self, lines: &Lines, lane: Lane) -> Option<u64> {
        let limit = self.shared.limits.memory_bytes_max;
        // A repair may exceed the limit by an eighth.
        let limit = if lane == Lane::Beside { limit.saturating_add(limit / 8) } else { limit };
        Some(limit.saturating_sub(lines.planning_bytes)).filter(|left| *left > 0)
    }

    /// Takes a job of all servers. Meanwhile nobody else here takes any of the memory that it may need.
    fn claim<'a>(
        &'a self,
        mut lines: MutexGuard<'a, Lines>,
        table: &JobTable,
        lane: Lane,
        memory: u64,
    ) -> (MutexGuard<'a, Lines>, Result<Option<Claimed>, StoreError>) {
        let wanted = Wanted {
            memory,
            memory_max: self.shared.limits.memory_bytes_max,
            is_beside: lane == Lane::Beside,
            own_only: !lines.open,
        };
        lines.planning_bytes = lines.planning_bytes.saturating_add(memory);
        drop(lines);
        let claimed = table.claim(wanted);
        let mut lines = self.shared.lines.lock();
        lines.planning_bytes = lines.planning_bytes.saturating_sub(memory);
        if let Ok(Some(claimed)) = &claimed {
            lines.planning_bytes = lines.planning_bytes.saturating_add(claimed.memory_bytes);
        }
        self.shared.planning_ready.notify_all();
        (lines, claimed)
    }

    /// The table of all servers, if they share one.
    pub(crate) fn table(&self) -> Option<Arc<JobTable>> {
        self.shared.lines.lock().sharing.table.clone()
    }

    /// Has a job that has been read wait for one in the table. It holds its network from now on.
    ///
    /// # Errors
    /// As [`Queue::promote`].
    pub(crate) fn await_shared(&self, job: &Arc<Job>, read: Read, awaited: Awaited) -> Result<(), PlanFailure> {
        let weight = read.prepared.weight_bytes();
        let mut lines = self.shared.lines.lock();
        let held = if job.ties.lock().phase.is_end() { Ok(()) } else { lines.hold(job, weight, self.shared.limits) };
        if held.is_err() || job.ties.lock().phase.is_end() || job.read.set(read).is_err() {
            let may_go_on = job.ties.lock().may_go_on;
            lines.sharing.leave_unless_awaited(awaited.job, may_go_on);
            return held;
        }
        job.ties.lock().awaited = Some(awaited);
        lines.advance(job, Phase::Queued);
        lines.sharing.awaited.entry(awaited.job).or_default().push(Arc::clone(job));
        self.note_shared_news(&mut lines);
        Ok(())
    }

    /// The same for a job that waits already, and waits for another one now.
    fn await_other(&self, job: &Arc<Job>, awaited: Awaited) {
        let mut lines = self.shared.lines.lock();
        let mut ties = job.ties.lock();
        if ties.phase.is_end() {
            drop(ties);
            lines.sharing.leave_unless_awaited(awaited.job, true);
            return;
        }
        let before = ties.awaited.replace(awaited).map(|before| before.job);
        drop(ties);
        if before != Some(awaited.job) {
            if let Some(before) = before {
                lines.sharing.stop_awaiting(before, job, true);
            }
            lines.sharing.awaited.entry(awaited.job).or_default().push(Arc::clone(job));
        }
        self.note_shared_news(&mut lines);
    }

    /// Something may have become of jobs of all servers: workers look.
    pub(crate) fn hear_of_shared(&self) {
        self.note_shared_news(&mut self.shared.lines.lock());
    }

    pub(super) fn note_shared_news(&self, lines: &mut Lines) {
        lines.sharing.news += 1;
        self.shared.planning_ready.notify_all();
    }

    /// Tells the table what callers here have changed: jobs that are wanted sooner, or not any more.
    ///
    /// # Errors
    /// The database failed; the rest is told next time.
    pub(crate) fn tell_table(&self, table: &JobTable) -> Result<(), StoreError> {
        let take = || {
            let mut lines = self.shared.lines.lock();
            (std::mem::take(&mut lines.sharing.changed), std::mem::take(&mut lines.sharing.left))
        };
        let (mut changed, mut left) = take();
        while let Some(job) = changed.pop() {
            if let Err(error) = self.enter_again(table, &job) {
                changed.push(job);
                let mut lines = self.shared.lines.lock();
                lines.sharing.changed.append(&mut changed);
                lines.sharing.left.append(&mut left);
                return Err(error);
            }
        }
        while let Some((job, may_go_on)) = left.pop() {
            let is_awaited = || {
                let lines = self.shared.lines.lock();
                lines.sharing.awaited.contains_key(&job) || lines.slices.awaits(job)
            };
            if let Err(error) = table.leave(job, may_go_on, is_awaited) {
                left.push((job, may_go_on));
                self.shared.lines.lock().sharing.left.append(&mut left);
                return Err(error);
            }
        }
        self.enter_slices_again(table)
    }

    /// Returns once a job that is to go on alone waits in the table, or its end is written down.
    pub(super) fn write_down_shared(&self, table: &JobTable, job: &Arc<Job>) -> Result<(), StoreError> {
        loop {
            if let JobState::Done(outcome) = job.state() {
                return match &outcome {
                    Ok(delivery) if !delivery.is_stored() => Err(StoreError::Unkept),
                    Err(failure) => match &**failure {
                        // This says nothing of the plan: whoever asks is to ask again, not to find it as the end of an operation.
                        PlanFailure::Jobs(StoreError::Away { reason }) => {
                            Err(StoreError::Away { reason: reason.clone() })
                        }
                        PlanFailure::Jobs(error) => Err(StoreError::Away { reason: chain(error) }),
                        _ => table.note_end(job, &outcome),
                    },
                    Ok(_) => table.note_end(job, &outcome),
                };
            }
            if job.ties.lock().awaited.is_some() {
                // It may have been entered before it was to go on alone.
                return self.enter_again(table, job);
            }
            let phase = job.ties.lock().phase;
            if job.is_for_all() && matches!(phase, Phase::Queued | Phase::Following | Phase::Planning) {
                // It is made here alone while the table is out of reach, and would end with this server.
                return Err(StoreError::Away { reason: "jobs cannot go on alone without it".to_owned() });
            }
            // It is being read, or made here in next to no time.
            thread::sleep(LOOK_INTERVAL);
        }
    }

    fn enter_again(&self, table: &JobTable, job: &Arc<Job>) -> Result<(), StoreError> {
        let Some(read) = job.read.get() else { return Ok(()) };
        if job.ties.lock().phase.is_end() {
            return Ok(());
        }
        let _entering = table.entering();
        match table.enter(job, read) {
            Ok(awaited) => self.await_other(job, awaited),
            Err(PlanFailure::Jobs(error)) => return Err(error),
            Err(refused) => self.finish(job, Err(Arc::new(refused))),
        }
        Ok(())
    }

    /// Has these jobs of this server entered again, or all: what they wait for is gone.
    pub(crate) fn enter_all_again(&self, of: Option<i64>) {
        let mut lines = self.shared.lines.lock();
        lines.slices.enter_again(of);
        let sharing = &mut lines.sharing;
        let gone = sharing.awaited.iter().filter(|(number, _)| of.is_none_or(|of| of == **number));
        let gone: Vec<_> = gone.flat_map(|(_, waiting)| waiting).map(Arc::clone).collect();
        sharing.changed.extend(gone);
    }

    /// The jobs in the table that somebody here waits for.
    pub(crate) fn awaited(&self) -> Vec<i64> {
        let lines = self.shared.lines.lock();
        lines.sharing.awaited.keys().copied().chain(lines.slices.awaited()).collect()
    }

    /// A worker of some server has begun with a job, and is so far.
    pub(crate) fn shared_runs(&self, number: i64, status: Option<&Status>) {
        let mut lines = self.shared.lines.lock();
        let waiting = lines.sharing.waiting(number);
        for job in &waiting {
            if lines.advance(job, Phase::Planning) {
                job.ties.lock().began = Some(clock::now());
            }
        }
        drop(lines);
        for (job, status) in waiting.iter().zip(status.into_iter().cycle()) {
            job.update(|known| known.clone_from(status));
        }
    }

    /// Ends the jobs of this server that wait for one that has ended, each as `outcome` says.
    pub(crate) fn settle_shared(&self, number: i64, outcome: impl Fn(&Job, Awaited) -> Outcome) {
        let waiting = {
            let mut lines = self.shared.lines.lock();
            lines.sharing.awaited.remove(&number).unwrap_or_default()
        };
        for job in waiting {
            let Some(awaited) = job.ties.lock().awaited.take() else { continue };
            let outcome = outcome(&job, awaited);
            if end_phase(&outcome) == Phase::Succeeded {
                // It may have run so shortly that nobody saw it.
                self.shared.lines.lock().advance(&job, Phase::Planning);
            }
            self.finish(&job, outcome);
        }
    }

    /// Ends one operation alone of those that wait for a job.
    pub(crate) fn end_alone(&self, number: i64, operation: u64) {
        let waiting = self.shared.lines.lock().sharing.waiting(number);
        waiting
            .into_iter()
            .filter(|job| job.number == operation)
            .for_each(|job| self.finish(&job, Err(Arc::new(PlanFailure::CancelledByOperator))));
    }

    /// This server makes a job of all servers.
    pub(crate) fn begin_shared(&self, number: i64, job: &Arc<Job>) {
        job.ties.lock().phase = Phase::Planning;
        self.shared.lines.lock().sharing.making.insert(number, Arc::clone(job));
        self.shared_runs(number, None);
    }

    /// This server is done with a job of all servers, however it ended; its memory is free.
    pub(crate) fn vacate_shared(&self, claimed: &Claimed) {
        let mut lines = self.shared.lines.lock();
        lines.sharing.making.remove(&claimed.right.job);
        lines.slices.ended(claimed.right.job);
        lines.planning_bytes = lines.planning_bytes.saturating_sub(claimed.memory_bytes);
        self.note_shared_news(&mut lines);
    }

    /// What this server makes of all servers' jobs, and how far it is.
    pub(crate) fn making(&self) -> Vec<(i64, Arc<Job>, Option<Status>)> {
        let making = self.shared.lines.lock().sharing.making.clone();
        let status = |job: &Job| match job.state() {
            JobState::Working(status) => Some(status),
            JobState::Done(_) => None,
        };
        making.into_iter().map(|(number, job)| (number, Arc::clone(&job), status(&job))).collect()
    }

    /// Stops what this server makes of these jobs, or of all.
    pub(crate) fn stop_making(&self, of: Option<&[i64]>) {
        let lines = self.shared.lines.lock();
        let stopped = lines.sharing.making.iter().filter(|(number, _)| of.is_none_or(|of| of.contains(number)));
        stopped.for_each(|(_, job)| job.cancel());
        lines.slices.stop(of);
    }

    /// Whether a job of another server, and no prefetch, waits for a worker.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.lines.lock().sharing.is_wanted
    }

    pub(crate) fn hear_whether_wanted(&self, is_wanted: bool) {
        self.shared.lines.lock().sharing.is_wanted = is_wanted;
    }

    /// Whether what is being made is to be given back.
    pub(crate) fn is_aborted(&self) -> bool {
        self.shared.lines.lock().sharing.is_aborted
    }

    /// Stops what this server makes, for others to make.
    pub(super) fn abort_shared(&self) {
        self.shared.lines.lock().sharing.is_aborted = true;
        self.stop_making(None);
    }
}

impl Lines {
    /// Jobs that this server makes for all, by priority.
    pub(super) fn made_for_all(&self) -> impl Iterator<Item = Priority> {
        self.sharing.making.values().map(|job| job.ties.lock().priority)
    }
}
