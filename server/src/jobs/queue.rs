//! The bounded queue of jobs, and which requests share one.
//!
//! A job passes two lines. In the first it waits for a reader, who reads its topology and looks into the store, so
//! that an answer that is there does not wait behind syntheses. Only what is not there enters the second line, for
//! the planning workers. Requests of equal text share a job from the start; requests that turn out to need the same
//! plan follow the first of them. In both lines repairs go first. Else tenants take turns by their weights (`turns.rs`),
//! and within a tenant the highest priority goes first; a job that is shared has the highest one that was asked for.
//!
//! Both lines together are bounded in length, and all unfinished jobs in the bytes they hold; beyond that, requests
//! are refused at once. Prefetching may use half of either, so that it cannot keep out those who wait. A job nobody
//! waits for leaves its line, or is asked to stop if it runs, unless it is detached.
//!
//! Lookups pass the first line only. They count for themselves: a queue full of syntheses refuses none.

mod history;
mod line;
mod lines;
mod memory;
mod operations;
mod resume;
mod sharing;
mod sliced;
mod slices;
mod tabled;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use canopy_access::Quota;
use canopy_planner::{Request as Order, RequestKey};
use canopy_wire::Priority;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use self::line::Line;
use self::lines::{Lines, leave, release};
use self::turns::EXPECTED;
use crate::call;
use crate::failure::PlanFailure;
use crate::jobs::job::{Cache, Goal, Job, JobState, Outcome, Phase, Read, Terms, Worker};
use crate::jobs::journal::Journal;
use crate::jobs::table::JobTable;
use crate::quota::Bill;
use crate::store::StoreError;

pub(crate) use self::operations::{QueueCounts, WaitedOperation};
pub(crate) use self::sharing::{Lane, Task};
pub(crate) use self::turns::Turns;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    /// Most jobs that wait, in both lines together.
    pub(crate) length_max: usize,
    /// Most bytes of requests, and of networks once they have been read, that unfinished jobs hold.
    pub(crate) bytes_max: usize,
    /// Most bytes of memory that running syntheses take together, by their estimates.
    pub(crate) memory_bytes_max: u64,
}

impl QueueLimits {
    /// Whether there is memory to plan this job beside jobs that take `planning_bytes`. A repair may exceed the limit by an
    /// eighth: a job with broken links does not wait for searches to give their memory back.
    fn have_room(&self, planning_bytes: u64, job: &Job) -> bool {
        let is_repair = job.ties.lock().priority >= Priority::Repair;
        let limit = self.memory_bytes_max.saturating_add(if is_repair { self.memory_bytes_max / 8 } else { 0 });
        planning_bytes == 0 || planning_bytes.saturating_add(job.memory_bytes()) <= limit
    }
}

/// A handle of the queue; clones share it.
#[derive(Clone)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    limits: QueueLimits,
    lines: Mutex<Lines>,
    reading_ready: Condvar,
    planning_ready: Condvar,
    /// Whether no job that makes a plan is unfinished.
    idle: watch::Sender<bool>,
}

/// A line that jobs are taken from, and the least priority of those.
type From = (fn(&mut Lines) -> &mut Line, Option<Priority>);

/// Where those who search take jobs from.
const SEARCHES: &[From] = &[(|lines| &mut lines.planning, None)];

/// Where those who make plans beside the searches of others take them from.
const BESIDE: &[From] = &[(|lines| &mut lines.beside, None), (|lines| &mut lines.planning, Some(Priority::Repair))];

/// One call's interest in a job; dropping it may stop the job.
pub(crate) struct Subscription {
    queue: Queue,
    job: Arc<Job>,
    /// The job's state; only the latest is kept.
    pub(crate) state: watch::Receiver<JobState>,
    /// Whether the job was there already.
    pub(crate) joined: bool,
    /// Jobs that stood before it.
    pub(crate) position: usize,
}

impl Subscription {
    /// The job.
    pub(crate) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Waits for the end of the job.
    pub(crate) async fn ended(&mut self) -> Outcome {
        match self.state.wait_for(|state| matches!(state, JobState::Done(_))).await.map(|state| state.clone()) {
            Ok(JobState::Done(outcome)) => outcome,
            // The sender of an unfinished job goes away only when its queue does.
            Ok(JobState::Working(_)) | Err(_) => Err(PlanFailure::Draining.into()),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut lines = self.queue.shared.lines.lock();
        release(&mut lines, &self.job);
        self.queue.wake_planners(&lines);
        self.queue.note_whether_idle(&lines);
    }
}

impl Queue {
    /// An empty queue. What waits for a plan is written down in `journal`, if there is one.
    pub(crate) fn new(limits: QueueLimits, journal: Option<Arc<Journal>>) -> Self {
        Self::with(limits, journal, None)
    }

    /// An empty queue beside the table of all servers.
    pub(crate) fn beside(limits: QueueLimits, table: Arc<JobTable>) -> Self {
        Self::with(limits, None, Some(table))
    }

    fn with(limits: QueueLimits, journal: Option<Arc<Journal>>, table: Option<Arc<JobTable>>) -> Self {
        let shared = Shared {
            limits,
            lines: Mutex::new(Lines::new(journal, table)),
            reading_ready: Condvar::new(),
            planning_ready: Condvar::new(),
            idle: watch::Sender::new(true),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Joins the job of an equal request, or puts a new one in line.
    ///
    /// # Errors
    /// The queue is full, over its budget, or closed.
    pub(crate) fn submit(
        &self,
        key: RequestKey,
        order: Order,
        goal: Goal,
        terms: Terms,
    ) -> Result<Subscription, PlanFailure> {
        let mut lines = self.shared.lines.lock();
        if !lines.open {
            return Err(PlanFailure::Draining);
        }
        if let Some(job) = lines.by_request.get(&(goal, key)).map(Arc::clone) {
            lines.raise(&job, terms.priority);
            if terms.worker == Worker::Planner {
                lines.take_over(&job);
            }
            self.wake_planners(&lines);
            job.ties.lock().detached |= terms.detached;
            return Ok(self.subscribe(job, true, 0));
        }
        let weight = order.weight_bytes();
        lines.admit(self.shared.limits, goal, terms.priority, weight)?;
        let bill = call::bill();
        // Plans that stand in for others, and those that need next to no time, are not counted as jobs.
        let counts = goal == Goal::Plan && terms.worker == Worker::Planner && !order.is_quick();
        let used = bill.as_ref().filter(|_| counts).map(|bill| bill.take(Quota::Jobs)).transpose()?;
        let tenant = bill.as_ref().map_or("", Bill::tenant);
        let position = lines.reading.ahead_of(tenant, terms.priority)
            + if order.is_quick() { &lines.quick } else { &lines.planning }.ahead_of(tenant, terms.priority);
        let number = lines.next_number()?;
        let job = Arc::new(Job::new(number, key, order, goal, terms, weight));
        job.ties.lock().used = used;
        lines.enter(&job, weight);
        self.note_whether_idle(&lines);
        self.shared.reading_ready.notify_one();
        Ok(self.subscribe(job, false, position))
    }

    /// Writes a job down that is to go on alone, if there is a journal; returns once it survives a crash.
    ///
    /// # Errors
    /// The engine failed: the job ends with its waiters, as nobody is told that it would go on. Or it has ended, and its plan could not be
    /// stored.
    pub(crate) fn write_down(&self, job: &Arc<Job>) -> Result<(), StoreError> {
        if let Some(table) = self.table() {
            return self.write_down_shared(&table, job);
        }
        let journal = self.shared.lines.lock().journal.clone();
        let written = journal.map_or(Ok(()), |journal| journal.enter(job));
        if written.is_err() {
            job.ties.lock().detached = false;
        }
        match job.state() {
            JobState::Done(Ok(delivery)) if !delivery.is_stored() => Err(StoreError::Unkept),
            JobState::Done(_) | JobState::Working(_) => written,
        }
    }

    /// The next job whose topology is to be read; waits for one. None once the queue is closed and the line empty.
    pub(crate) fn next_to_read(&self) -> Option<Arc<Job>> {
        let take = |lines: &mut Lines| {
            let job = lines.reading.pop(&lines.turns)?;
            lines.advance(&job, Phase::Reading);
            Some(job)
        };
        self.next(&self.shared.reading_ready, take, |lines| lines.reading.is_empty())
    }

    /// The first job, of at least the priority, of the first of these lines, if there is memory for it.
    ///
    /// The first in line is never passed by for want of memory: others would keep a large one waiting for ever. While
    /// another worker searches for its schedule, it is: two searches would find the same.
    fn take_first(&self, lines: &mut Lines, from: &[From]) -> Option<Arc<Job>> {
        let limits = self.shared.limits;
        let (sought, turns) = (std::mem::take(&mut lines.sought), std::mem::take(&mut lines.turns));
        let planning_bytes = lines.planning_bytes;
        let first = from.iter().find_map(|(line, least)| {
            let job = line(lines).first(&sought, &turns, *least)?;
            limits.have_room(planning_bytes, &job).then_some((line, job))
        });
        (lines.sought, lines.turns) = (sought, turns);
        let (line, job) = first?;
        line(lines).remove(&job);
        lines.begin(&job);
        Some(job)
    }

    /// The next job that needs next to no time, as [`Queue::next_task`]; it does not wait for memory.
    fn next_quick(&self) -> Option<Arc<Job>> {
        let take = |lines: &mut Lines| {
            let job = lines.quick.pop(&lines.turns)?;
            lines.begin(&job);
            Some(job)
        };
        self.next(&self.shared.planning_ready, take, Lines::is_over)
    }

    /// The memory of a job of this server alone is free: its worker is done with it after this time, however it
    /// ended.
    pub(crate) fn vacate(&self, job: &Job, took: Duration) {
        if let Some(bill) = &job.bill {
            bill.charge_planning(took);
        }
        let mut lines = self.shared.lines.lock();
        lines.turns.end(job.tenant(), job.weight(), EXPECTED, took);
        lines.planning_bytes = lines.planning_bytes.saturating_sub(job.memory_bytes());
        lines.land(job);
        self.shared.planning_ready.notify_all();
    }

    /// Nothing is searched for, for this job: others that need its schedule may begin.
    pub(crate) fn land(&self, job: &Job) {
        self.shared.lines.lock().land(job);
        self.shared.planning_ready.notify_all();
    }

    /// Puts a job that has been read into the second line, or behind the job that makes the same plan. It holds its
    /// network from now on: a few words may have asked for a large one.
    ///
    /// # Errors
    /// [`PlanFailure::QueueBudget`] when others hold so much that there is no room for it; those of [`Job::require_quota`].
    pub(crate) fn promote(&self, job: &Arc<Job>, read: Read) -> Result<(), PlanFailure> {
        let (key, weight) = (read.prepared.key, read.prepared.weight_bytes());
        job.require_quota()?;
        let mut lines = self.shared.lines.lock();
        if job.ties.lock().phase.is_end() {
            return Ok(());
        }
        lines.hold(job, weight, self.shared.limits)?;
        if job.read.set(read).is_err() {
            return Ok(());
        }
        if let Some(leader) = lines.by_plan.get(&key).map(Arc::clone) {
            lines.advance(job, Phase::Following);
            let priority = job.ties.lock().priority;
            let worker = job.ties.lock().worker;
            job.ties.lock().leader = Some(Arc::clone(&leader));
            lines.raise(&leader, priority);
            if worker == Worker::Planner {
                lines.take_over(&leader);
            }
            let mut ties = leader.ties.lock();
            ties.waiters += 1;
            ties.followers.push(Arc::clone(job));
            drop(ties);
            self.wake_planners(&lines);
            return Ok(());
        }
        lines.advance(job, Phase::Queued);
        lines.by_plan.insert(key, Arc::clone(job));
        lines.second_of(job).push(Arc::clone(job));
        // Whoever waits may be waiting for the other kind.
        self.shared.planning_ready.notify_all();
        Ok(())
    }

    /// Ends a job and all that follow it. Does nothing to a job that has ended.
    pub(crate) fn finish(&self, job: &Arc<Job>, outcome: Outcome) {
        let end = end_phase(&outcome);
        let mut lines = self.shared.lines.lock();
        if !lines.advance(job, end) {
            return;
        }
        lines.forget(job);
        let leader = job.ties.lock().leader.take();
        if let Some(leader) = leader {
            leave(&mut lines, job, &leader);
        }
        let followers = std::mem::take(&mut job.ties.lock().followers);
        for follower in &followers {
            lines.advance(follower, end);
            lines.forget(follower);
            follower.ties.lock().leader = None;
        }
        self.wake_planners(&lines);
        drop(lines);
        for follower in &followers {
            follower.settle(joined_outcome(&outcome, follower));
        }
        job.settle(outcome);
        let mut lines = self.shared.lines.lock();
        followers.iter().chain([job]).for_each(|ended| lines.archive(ended));
        self.note_whether_idle(&lines);
    }

    /// Takes no more requests; what is in line is still worked on.
    pub(crate) fn close(&self) {
        self.shared.lines.lock().open = false;
        self.shared.reading_ready.notify_all();
        self.shared.planning_ready.notify_all();
    }

    /// Ends the jobs that nobody waits for and no planning worker has begun, where a journal keeps them for the next
    /// server: it takes them up under their names. The queue must have been closed.
    pub(crate) fn set_aside(&self) {
        let is_unattended = |job: &&Arc<Job>| {
            let ties = job.ties.lock();
            let is_kept = ties.awaited.is_some() || ties.phase != Phase::Planning;
            ties.detached && ties.waiters == 0 && !ties.phase.is_end() && is_kept
        };
        loop {
            let jobs: Vec<Arc<Job>> = {
                let lines = self.shared.lines.lock();
                let is_kept = lines.journal.is_some() || lines.sharing.table.is_some();
                let live = lines.live.values().filter(|_| is_kept);
                live.filter(is_unattended).map(Arc::clone).collect()
            };
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                job.cancel();
                // A job that only this one waited for is found in the next round.
                self.finish(&job, Err(Arc::new(PlanFailure::Draining)));
            }
        }
    }

    /// Takes no more requests, and ends every job.
    pub(crate) fn abort(&self) {
        self.close();
        self.abort_shared();
        let jobs: Vec<Arc<Job>> = {
            let mut lines = self.shared.lines.lock();
            lines.reading.clear();
            lines.planning.clear();
            lines.quick.clear();
            lines.beside.clear();
            for slice in lines.slices.take_all() {
                slice.settle(Err(Arc::new(PlanFailure::Draining)));
            }
            lines.by_request.values().map(Arc::clone).collect()
        };
        for job in jobs {
            job.cancel();
            self.finish(&job, Err(Arc::new(PlanFailure::Draining)));
        }
    }

    /// Number of jobs that no planning worker has taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lines.lock().waiting
    }

    /// Takes a job when there is one; gives up when the queue is closed and nothing more can come.
    fn next<T>(
        &self,
        ready: &Condvar,
        take: impl Fn(&mut Lines) -> Option<T>,
        is_over: impl Fn(&Lines) -> bool,
    ) -> Option<T> {
        let mut lines = self.shared.lines.lock();
        loop {
            if let Some(taken) = take(&mut lines) {
                return Some(taken);
            }
            if !lines.open && is_over(&lines) {
                return None;
            }
            ready.wait(&mut lines);
        }
    }

    /// Waits until no job that makes a plan is unfinished.
    pub(crate) async fn idle(&self) {
        // This handle owns the sender, so there is always one.
        let mut idle = self.shared.idle.subscribe();
        let _idle = idle.wait_for(|&idle| idle).await.map(|_| ());
    }

    /// Lets the planning workers look again when the line has changed without them: the last job of a closed queue may
    /// have ended, and another job be the first, for which there is memory.
    fn wake_planners(&self, lines: &Lines) {
        if (!lines.open && lines.is_over()) || !lines.planning.is_empty() || !lines.beside.is_empty() {
            self.shared.planning_ready.notify_all();
        }
    }

    fn note_whether_idle(&self, lines: &Lines) {
        self.shared
            .idle
            .send_if_modified(|idle| std::mem::replace(idle, lines.live.is_empty()) != lines.live.is_empty());
    }

    fn subscribe(&self, job: Arc<Job>, joined: bool, position: usize) -> Subscription {
        job.ties.lock().waiters += 1;
        Subscription { queue: self.clone(), state: job.watch(), job, joined, position }
    }
}

/// The phase of a job that ends like this.
fn end_phase(outcome: &Outcome) -> Phase {
    match outcome {
        Ok(_) => Phase::Succeeded,
        Err(failure) if failure.is_cancellation() => Phase::Cancelled,
        Err(_) => Phase::Failed,
    }
}

/// What a follower is told when its leader ends: the same plan, with the follower's own warnings and times.
fn joined_outcome(outcome: &Outcome, follower: &Job) -> Outcome {
    let mut delivery = outcome.clone()?;
    delivery.cache = Cache::Joined;
    if let Some(read) = follower.read.get() {
        delivery.warnings.clone_from(&read.prepared.warnings);
        delivery.puncture.clone_from(&read.prepared.puncture);
        delivery.timings.canonical_ms = read.canonical_ms;
        delivery.timings.queue_ms = read.queue_ms;
    }
    Ok(delivery)
}

#[cfg(test)]
mod tests;
