//! The bounded queue of jobs, and which requests share one.
//!
//! A job passes two lines. In the first it waits for a reader, who reads its topology and looks into the store, so
//! that an answer that is there does not wait behind syntheses. Only what is not there enters the second line, for
//! the planning workers. Requests of equal text share a job from the start; requests that turn out to need the same
//! plan follow the first of them.
//!
//! Both lines together are bounded in length, and all unfinished jobs in the bytes they hold; beyond that, requests
//! are refused at once. A job nobody waits for leaves its line, or is asked to stop if it runs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use canopy_proto::v1::CacheOutcome;
use tokio::sync::watch;

use crate::failure::PlanFailure;
use crate::job::{Job, JobState, Outcome, Read};
use crate::key::{PlanKey, RequestKey};
use crate::order::Order;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    /// Most jobs that wait, in both lines together.
    pub(crate) length_max: usize,
    /// Most bytes of requests that unfinished jobs hold.
    pub(crate) bytes_max: usize,
}

/// A handle of the queue; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: QueueLimits,
    lines: Mutex<Lines>,
    reading_ready: Condvar,
    planning_ready: Condvar,
}

#[derive(Debug)]
struct Lines {
    open: bool,
    reading: VecDeque<Arc<Job>>,
    planning: VecDeque<Arc<Job>>,
    /// Unfinished jobs that new requests may join.
    by_request: HashMap<RequestKey, Arc<Job>>,
    /// Jobs in the second line or past it.
    by_plan: HashMap<PlanKey, Arc<Job>>,
    held_bytes: usize,
    /// Jobs that no planning worker has taken yet, those that are being read included.
    waiting: usize,
}

/// One call's interest in a job; dropping it may stop the job.
#[derive(Debug)]
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

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut lines = self.queue.lines();
        release(&mut lines, &self.job);
        self.queue.wake_if_over(&lines);
    }
}

impl Queue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let lines = Lines {
            open: true,
            reading: VecDeque::new(),
            planning: VecDeque::new(),
            by_request: HashMap::new(),
            by_plan: HashMap::new(),
            held_bytes: 0,
            waiting: 0,
        };
        let shared =
            Shared { limits, lines: Mutex::new(lines), reading_ready: Condvar::new(), planning_ready: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Joins the job of an equal request, or puts a new one in line.
    ///
    /// # Errors
    /// The queue is full, over its budget, or closed.
    pub(crate) fn submit(&self, key: RequestKey, order: Order) -> Result<Subscription, PlanFailure> {
        let mut lines = self.lines();
        if !lines.open {
            return Err(PlanFailure::Draining);
        }
        if let Some(job) = lines.by_request.get(&key) {
            let job = Arc::clone(job);
            return Ok(self.subscribe(job, true, 0));
        }
        let waiting = lines.waiting;
        if waiting >= self.shared.limits.length_max {
            return Err(PlanFailure::QueueFull { waiting });
        }
        let weight = order.topology.weight_bytes();
        let (held, limit) = (lines.held_bytes, self.shared.limits.bytes_max);
        if held.saturating_add(weight) > limit {
            return Err(PlanFailure::QueueBudget { held, found: weight, limit });
        }
        lines.held_bytes += weight;
        lines.waiting += 1;
        let job = Arc::new(Job::new(key, order, weight));
        lines.by_request.insert(key, Arc::clone(&job));
        lines.reading.push_back(Arc::clone(&job));
        self.shared.reading_ready.notify_one();
        Ok(self.subscribe(job, false, waiting))
    }

    /// The next job whose topology is to be read; waits for one. None once the queue is closed and the line empty.
    pub(crate) fn next_to_read(&self) -> Option<Arc<Job>> {
        self.next(&self.shared.reading_ready, |lines| lines.reading.pop_front(), |lines| lines.reading.is_empty())
    }

    /// The next job to plan; waits for one. None once the queue is closed and nothing waits, or is being read.
    pub(crate) fn next_to_plan(&self) -> Option<Arc<Job>> {
        let take = |lines: &mut Lines| {
            let job = lines.planning.pop_front()?;
            lines.leave_line(&job);
            Some(job)
        };
        self.next(&self.shared.planning_ready, take, |lines| lines.waiting == 0)
    }

    /// Puts a job that has been read into the second line, or behind the job that makes the same plan.
    pub(crate) fn promote(&self, job: &Arc<Job>, read: Read) {
        let key = read.prepared.key;
        let mut lines = self.lines();
        if job.read.set(read).is_err() || job.ties().waiters == 0 {
            return;
        }
        if let Some(leader) = lines.by_plan.get(&key).map(Arc::clone) {
            job.ties().leader = Some(Arc::clone(&leader));
            let mut ties = leader.ties();
            ties.waiters += 1;
            ties.followers.push(Arc::clone(job));
            drop(ties);
            lines.leave_line(job);
            self.wake_if_over(&lines);
            return;
        }
        lines.by_plan.insert(key, Arc::clone(job));
        lines.planning.push_back(Arc::clone(job));
        self.shared.planning_ready.notify_one();
    }

    /// Ends a job and all that follow it.
    pub(crate) fn finish(&self, job: &Arc<Job>, outcome: Outcome) {
        let mut lines = self.lines();
        lines.forget(job);
        let followers = std::mem::take(&mut job.ties().followers);
        for follower in &followers {
            lines.forget(follower);
            follower.ties().leader = None;
        }
        self.wake_if_over(&lines);
        drop(lines);
        for follower in followers {
            follower.settle(joined_outcome(&outcome, &follower));
        }
        job.settle(outcome);
    }

    /// Takes no more requests; what is in line is still worked on.
    pub(crate) fn close(&self) {
        self.lines().open = false;
        self.shared.reading_ready.notify_all();
        self.shared.planning_ready.notify_all();
    }

    /// Takes no more requests, and ends every job.
    pub(crate) fn abort(&self) {
        self.close();
        let jobs: Vec<Arc<Job>> = {
            let mut lines = self.lines();
            lines.reading.clear();
            lines.planning.clear();
            lines.by_request.values().chain(lines.by_plan.values()).map(Arc::clone).collect()
        };
        for job in jobs {
            job.cancel();
            self.finish(&job, Err(Arc::new(PlanFailure::Draining)));
        }
    }

    /// Number of jobs that no planning worker has taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.lines().waiting
    }

    /// Takes a job when there is one; gives up when the queue is closed and nothing more can come.
    fn next(
        &self,
        ready: &Condvar,
        take: impl Fn(&mut Lines) -> Option<Arc<Job>>,
        is_over: impl Fn(&Lines) -> bool,
    ) -> Option<Arc<Job>> {
        let mut lines = self.lines();
        loop {
            if let Some(job) = take(&mut lines) {
                return Some(job);
            }
            if !lines.open && is_over(&lines) {
                return None;
            }
            lines = ready.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the planning workers go home when the last job of a closed queue has ended without them.
    fn wake_if_over(&self, lines: &Lines) {
        if !lines.open && lines.waiting == 0 {
            self.shared.planning_ready.notify_all();
        }
    }

    fn subscribe(&self, job: Arc<Job>, joined: bool, position: usize) -> Subscription {
        job.ties().waiters += 1;
        Subscription { queue: self.clone(), state: job.watch(), job, joined, position }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// The job waits no longer.
    fn leave_line(&mut self, job: &Arc<Job>) {
        self.waiting -= usize::from(std::mem::take(&mut job.ties().waits));
    }

    /// Removes an ended job from every list.
    fn forget(&mut self, job: &Arc<Job>) {
        let is_job = |other: &Arc<Job>| Arc::ptr_eq(other, job);
        if self.by_request.get(&job.key).is_some_and(is_job) {
            self.by_request.remove(&job.key);
        }
        if let Some(read) = job.read.get()
            && self.by_plan.get(&read.prepared.key).is_some_and(is_job)
        {
            self.by_plan.remove(&read.prepared.key);
        }
        self.leave_line(job);
        self.reading.retain(|other| !is_job(other));
        self.planning.retain(|other| !is_job(other));
        self.held_bytes -= std::mem::take(&mut job.ties().held_bytes);
    }
}

/// One waiter fewer. The last one stops the job, and lets go of the job that this one follows.
fn release(lines: &mut Lines, job: &Arc<Job>) {
    let mut ties = job.ties();
    ties.waiters -= 1;
    if ties.waiters > 0 {
        return;
    }
    let leader = ties.leader.take();
    drop(ties);
    job.cancel();
    lines.forget(job);
    if let Some(leader) = leader {
        leader.ties().followers.retain(|follower| !Arc::ptr_eq(follower, job));
        release(lines, &leader);
    }
}

/// What a follower is told when its leader ends: the same plan, with the follower's own warnings and times.
fn joined_outcome(outcome: &Outcome, follower: &Job) -> Outcome {
    let mut delivery = outcome.clone()?;
    delivery.cache = CacheOutcome::Joined;
    if let Some(read) = follower.read.get() {
        delivery.warnings.clone_from(&read.prepared.warnings);
        delivery.timings.canonical = read.canonical_ms;
        delivery.timings.queue = read.queue_ms;
    }
    Ok(delivery)
}

#[cfg(test)]
mod tests;
