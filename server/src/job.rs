//! One request's work, shared by everybody who asked the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use canopy_proto::v1;
use canopy_synth::Stop;
use tokio::sync::watch;

use crate::clock;
use crate::failure::PlanFailure;
use crate::key::RequestKey;
use crate::order::Order;
use crate::planner::Prepared;
use crate::store::StoredPlan;

/// A job: the order, who waits for it, and how far it is.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: RequestKey,
    pub(crate) order: Order,
    pub(crate) arrived: Instant,
    pub(crate) read: OnceLock<Read>,
    state: watch::Sender<JobState>,
    cancelled: AtomicBool,
    ties: Mutex<Ties>,
}

/// What is known of a job once its topology has been read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) prepared: Prepared,
    pub(crate) queue_ms: f64,
    pub(crate) canonical_ms: f64,
    /// When it began to wait for a planning worker.
    pub(crate) queued: Instant,
}

/// Who holds on to a job. Changed only under the lock of the queue, which is always taken first.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    /// Calls that wait for it, and followers.
    pub(crate) waiters: usize,
    /// Whether it counts as waiting.
    pub(crate) waits: bool,
    /// Bytes counted against the budget of the queue.
    pub(crate) held_bytes: usize,
    /// Jobs of other requests that turned out to need the same plan.
    pub(crate) followers: Vec<Arc<Job>>,
    /// The job that makes the plan, when it is not this one.
    pub(crate) leader: Option<Arc<Job>>,
}

/// How far a job is. Allowed: any number of steps within `Working`, then one to `Done`, which is the end.
#[derive(Clone, Debug)]
pub(crate) enum JobState {
    Working(Status),
    Done(Outcome),
}

/// How a job ended.
pub(crate) type Outcome = Result<Delivery, Arc<PlanFailure>>;

/// What everybody who waits for a job is told while it runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) stage: &'static str,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) bound: String,
    pub(crate) incumbent: String,
}

/// A plan on its way to those who wait.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) plan: Arc<StoredPlan>,
    pub(crate) cache: v1::CacheOutcome,
    pub(crate) timings: v1::Timings,
    /// Beside those of the plan.
    pub(crate) warnings: Vec<v1::Warning>,
}

impl Job {
    pub(crate) fn new(key: RequestKey, order: Order, held_bytes: usize) -> Self {
        let waiting = Status { stage: "queue", done: 0, total: 0, bound: String::new(), incumbent: String::new() };
        Self {
            key,
            order,
            arrived: clock::now(),
            read: OnceLock::new(),
            state: watch::Sender::new(JobState::Working(waiting)),
            cancelled: AtomicBool::new(false),
            ties: Mutex::new(Ties { held_bytes, waits: true, ..Ties::default() }),
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<JobState> {
        self.state.subscribe()
    }

    pub(crate) fn ties(&self) -> MutexGuard<'_, Ties> {
        self.ties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Changes the status of a job that is not done, and of all that follow it.
    pub(crate) fn update(&self, change: impl Fn(&mut Status)) {
        let apply = |job: &Job| {
            job.state.send_if_modified(|state| match state {
                JobState::Working(status) => {
                    change(status);
                    true
                }
                JobState::Done(_) => false,
            });
        };
        apply(self);
        for follower in &self.ties().followers {
            apply(follower);
        }
    }

    /// Ends the job, unless it has ended.
    pub(crate) fn settle(&self, outcome: Outcome) {
        self.state.send_if_modified(|state| match state {
            JobState::Working(_) => {
                *state = JobState::Done(outcome);
                true
            }
            JobState::Done(_) => false,
        });
    }
}

/// Solvers ask whether anybody still waits.
impl Stop for Job {
    fn is_requested(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
