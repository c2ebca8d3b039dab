//! The state of the queue: which job waits where. All of it is guarded by the queue's lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use canopy_planner::{PlanKey, RequestKey, ScheduleKey};
use canopy_wire::Priority;

use super::QueueLimits;
use super::history::History;
use super::line::Line;
use super::sliced::Slices;
use super::tabled::Sharing;
use super::turns::{EXPECTED, Turns};
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::job::{Goal, Job, Phase, Worker};
use crate::jobs::journal::Journal;
use crate::jobs::table::JobTable;

/// Every job that has not ended, and what is remembered of those that have.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) open: bool,
    /// Number of the latest job.
    pub(super) number: u64,
    pub(super) reading: Line,
    pub(super) planning: Line,
    /// Jobs that need next to no time: a worker of their own takes them.
    pub(super) quick: Line,
    /// Jobs whose plans stand in for others: a worker of their own takes them, too.
    pub(super) beside: Line,
    /// Unfinished jobs that new requests may join.
    pub(super) by_request: HashMap<(Goal, RequestKey), Arc<Job>>,
    /// Jobs in the second line or past it.
    pub(super) by_plan: HashMap<PlanKey, Arc<Job>>,
    /// Unfinished jobs that make plans, by number.
    pub(super) live: BTreeMap<u64, Arc<Job>>,
    /// Those that have ended.
    pub(super) history: History,
    pub(super) held_bytes: usize,
    /// Schedules that planning workers search for, and for which job: who else needs one waits for it.
    pub(super) sought: HashMap<ScheduleKey, u64>,
    /// Whose turn it is.
    pub(super) turns: Turns,
    /// Memory that planning workers and computations of calls take, by their estimates.
    pub(super) planning_bytes: u64,
    /// What of it computations of calls take.
    pub(super) computing_bytes: u64,
    /// Jobs that no planning worker has taken yet, those that are being read included; lookups not.
    pub(super) waiting: usize,
    /// Lookups that have not ended.
    pub(super) lookups: usize,
    /// Where jobs that must survive a crash are written down.
    pub(super) journal: Option<Arc<Journal>>,
    /// What waits in the table of all servers.
    pub(super) sharing: Sharing,
    pub(super) slices: Slices,
}

impl Lines {
    pub(super) fn new(journal: Option<Arc<Journal>>, table: Option<Arc<JobTable>>) -> Self {
        Self { open: true, journal, sharing: Sharing::of(table), ..Self::default() }
    }

    /// Whether callers wait for no planner.
    pub(super) fn is_over(&self) -> bool {
        self.waiting == 0 && !self.slices.are_awaited()
    }

    /// The number of the next job.
    pub(super) fn next_number(&mut self) -> Result<u64, PlanFailure> {
        if let Some(table) = &self.sharing.table {
            return table.next_number();
        }
        self.number += 1;
        Ok(self.number)
    }

    /// Whether there is room for one more job.
    pub(super) fn admit(
        &self,
        limits: QueueLimits,
        goal: Goal,
        priority: Priority,
        weight: usize,
    ) -> Result<(), PlanFailure> {
        let share = if priority == Priority::Prefetch { 2 } else { 1 };
        let (waiting, limit) = match goal {
            Goal::Plan => (self.waiting, limits.length_max.div_ceil(share)),
            Goal::Lookup => (self.lookups, limits.length_max),
        };
        if waiting >= limit {
            return Err(PlanFailure::QueueFull { waiting, limit });
        }
        let (held, limit) = (self.held_bytes, limits.bytes_max / share);
        if held.saturating_add(weight) > limit {
            return Err(PlanFailure::QueueBudget { held, found: weight, limit });
        }
        Ok(())
    }

    /// Counts what a job holds beside its request. One that is alone may hold what it likes: its network is within
    /// limits of its own.
    pub(super) fn hold(&mut self, job: &Job, weight: usize, limits: QueueLimits) -> Result<(), PlanFailure> {
        let (held, limit) = (self.held_bytes, limits.bytes_max);
        let mut ties = job.ties.lock();
        if held > ties.held_bytes && held.saturating_add(weight) > limit {
            return Err(PlanFailure::QueueBudget { held, found: weight, limit });
        }
        self.held_bytes += weight;
        ties.held_bytes += weight;
        Ok(())
    }

    /// Puts a new job into the first line.
    pub(super) fn enter(&mut self, job: &Arc<Job>, weight: usize) {
        self.held_bytes += weight;
        match job.goal {
            Goal::Plan => {
                self.waiting += 1;
                self.live.insert(job.number, Arc::clone(job));
            }
            Goal::Lookup => self.lookups += 1,
        }
        self.by_request.insert((job.goal, job.key), Arc::clone(job));
        self.reading.push(Arc::clone(job));
    }

    /// Has a planning worker begin with a job: it takes memory, and nobody else searches for its schedule.
    pub(super) fn begin(&mut self, job: &Arc<Job>) {
        self.planning_bytes = self.planning_bytes.saturating_add(job.memory_bytes());
        self.sought.extend(job.schedule().map(|schedule| (schedule, job.number)));
        self.turns.begin(job.tenant(), job.weight(), EXPECTED);
        job.ties.lock().began = Some(clock::now());
        self.advance(job, Phase::Planning);
    }

    /// Nobody searches for a schedule for this job any more.
    pub(super) fn land(&mut self, job: &Job) {
        if let Some(schedule) = job.schedule().filter(|schedule| self.sought.get(schedule) == Some(&job.number)) {
            self.sought.remove(&schedule);
        }
    }

    /// Moves a job on as the table of phases allows. False: it does not, and nothing has changed.
    pub(super) fn advance(&mut self, job: &Job, next: Phase) -> bool {
        let mut ties = job.ties.lock();
        if !ties.phase.may_become(next) {
            return false;
        }
        match job.goal {
            Goal::Plan => self.waiting = self.waiting + usize::from(next.waits()) - usize::from(ties.phase.waits()),
            Goal::Lookup => self.lookups -= usize::from(next.is_end()),
        }
        ties.phase = next;
        ties.ended_unix_ms = next.is_end().then(clock::unix_ms);
        true
    }

    /// Gives a job, and the one it follows, at least this priority, and the place in line that goes with it.
    pub(super) fn raise(&mut self, job: &Arc<Job>, priority: Priority) {
        if job.ties.lock().priority >= priority {
            return;
        }
        let in_reading = self.reading.remove(job);
        let in_planning = self.second_of(job).remove(job);
        job.ties.lock().priority = priority;
        self.sharing.note_change(job);
        if let Some(job) = in_reading {
            self.reading.push(job);
        }
        if let Some(job) = in_planning {
            self.second_of(&job).push(Arc::clone(&job));
        }
        let leader = job.ties.lock().leader.clone();
        if let Some(leader) = leader {
            self.raise(&leader, priority);
        }
    }

    /// The second line of a job.
    pub(super) fn second_of(&mut self, job: &Job) -> &mut Line {
        let worker = job.ties.lock().worker;
        match (job.order.is_quick(), worker) {
            (true, _) => &mut self.quick,
            (false, Worker::Planner) => &mut self.planning,
            (false, Worker::Beside) => &mut self.beside,
        }
    }

    /// Has a planner make the plan of a job, and of the one it follows, now that somebody wants it for itself.
    pub(super) fn take_over(&mut self, job: &Arc<Job>) {
        let waiting = self.second_of(job).remove(job);
        let before = std::mem::replace(&mut job.ties.lock().worker, Worker::Planner);
        if before != Worker::Planner {
            self.sharing.note_change(job);
        }
        if let Some(job) = waiting {
            self.second_of(&job).push(Arc::clone(&job));
        }
        let leader = job.ties.lock().leader.clone();
        if let Some(leader) = leader {
            self.take_over(&leader);
        }
    }

    /// Removes an ended job from every list of unfinished ones but `live`.
    pub(super) fn forget(&mut self, job: &Arc<Job>) {
        let is_job = |other: &Arc<Job>| Arc::ptr_eq(other, job);
        let request = (job.goal, job.key);
        if self.by_request.get(&request).is_some_and(is_job) {
            self.by_request.remove(&request);
        }
        if let Some(read) = job.read.get()
            && self.by_plan.get(&read.prepared.key).is_some_and(is_job)
        {
            self.by_plan.remove(&read.prepared.key);
        }
        self.reading.remove(job);
        self.second_of(job).remove(job);
        self.sharing.forget(job);
        let mut ties = job.ties.lock();
        self.held_bytes -= std::mem::take(&mut ties.held_bytes);
        ties.used = None;
    }

    /// Moves a settled job from the living to the history. What the store answered at once is not worth a place
    /// there, unless nobody else can have seen it.
    pub(super) fn archive(&mut self, job: &Arc<Job>) {
        if let Some(journal) = &self.journal {
            journal.note_end(job);
        }
        if self.live.remove(&job.number).is_some() && (job.read.get().is_some() || job.ties.lock().detached) {
            self.history.push(job);
        }
    }
}

/// One waiter fewer. The last one stops a job that is not detached, and lets go of the job that this one follows.
pub(super) fn release(lines: &mut Lines, job: &Arc<Job>) {
    let mut ties = job.ties.lock();
    ties.waiters -= 1;
    if ties.waiters > 0 || ties.detached || ties.phase.is_end() {
        return;
    }
    let leader = ties.leader.take();
    drop(ties);
    job.cancel();
    lines.advance(job, Phase::Cancelled);
    lines.forget(job);
    job.settle(Err(Arc::new(PlanFailure::Stopped)));
    lines.archive(job);
    if let Some(leader) = leader {
        leave(lines, job, &leader);
    }
}

/// An ended job follows no more.
pub(super) fn leave(lines: &mut Lines, job: &Arc<Job>, leader: &Arc<Job>) {
    leader.ties.lock().followers.retain(|follower| !Arc::ptr_eq(follower, job));
    release(lines, leader);
}
