//! The work for one request, shared by all equal requests.

mod describe;
mod phase;

use std::borrow::Cow;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use canopy_access::Quota;
use canopy_planner::{Making, PlanKey, Puncture, Request as Order, RequestKey, ScheduleKey, Warning};
use canopy_synth::Stop;
use canopy_wire::{Entry, Priority, StoredPlan};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::call;
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::planner::Prepared;
use crate::quota::{Bill, OverQuota, Used};
use crate::trace::JobTrace;

pub(crate) use self::describe::{Made, Operation, State, operation_name};
pub(crate) use self::phase::Phase;

/// A job: the order, who waits for it, and how far it is.
pub(crate) struct Job {
    /// 1, 2, 3 … in the order of arrival.
    pub(crate) number: u64,
    pub(crate) key: RequestKey,
    pub(crate) order: Order,
    pub(crate) goal: Goal,
    pub(crate) arrived: Instant,
    /// The same by the clock on the wall, in milliseconds since 1970 UTC.
    pub(crate) arrived_unix_ms: u64,
    pub(crate) read: OnceLock<Read>,
    pub(crate) trace: JobTrace,
    /// Whose quotas it counts against; none for what the server does by itself.
    pub(crate) bill: Option<Bill>,
    state: watch::Sender<JobState>,
    cancelled: AtomicBool,
    pub(crate) ties: Mutex<Ties>,
    wanted: Mutex<Wanted>,
    /// Held by who writes it down, so that whoever finds it written can rely on that.
    pub(crate) writing: Mutex<()>,
}

/// The plan that was asked for, which others may be sent in place of.
#[derive(Debug)]
enum Wanted {
    /// Not known before the topology has been read, and the plans that were sent in its place.
    Unknown(Vec<PlanKey>),
    Known(PlanKey),
}

/// What is known of a job once its topology has been read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) prepared: Prepared,
    pub(crate) queue_ms: f64,
    pub(crate) canonical_ms: f64,
    /// Where the schedule will be kept once it is found, if it will.
    pub(crate) schedule: Option<ScheduleKey>,
    /// When it began to wait for a planning worker.
    pub(crate) queued: Instant,
}

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Goal {
    /// A plan, made if need be.
    Plan,
    /// Only what is in the store.
    Lookup,
}

/// What one call asks of a job besides its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Which of two waiting jobs goes first.
    pub(crate) priority: Priority,
    /// The job goes on when the last call has left.
    pub(crate) detached: bool,
    /// Who makes its plan.
    pub(crate) worker: Worker,
}

/// Who makes the plan of a job whose order is not quick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worker {
    /// The first planning worker that is free.
    Planner,
    /// One that makes plans beside the searches of others, so that neither waits for the other.
    Beside,
}

/// Where a job stands and who holds on to it. Changed only under the lock of the queue, which is always taken first.
pub(crate) struct Ties {
    /// Where it stands.
    pub(crate) phase: Phase,
    /// The highest priority that anybody who waits for it asked for.
    pub(crate) priority: Priority,
    /// Whether it goes on without waiters.
    pub(crate) detached: bool,
    /// Who makes its plan; a planner as soon as anybody wants it for itself.
    pub(crate) worker: Worker,
    /// When a planning worker began with it.
    pub(crate) began: Option<Instant>,
    /// When it ended, in milliseconds since 1970 UTC.
    pub(crate) ended_unix_ms: Option<u64>,
    /// Calls that wait for it, and followers.
    pub(crate) waiters: usize,
    /// Bytes counted against the budget of the queue.
    pub(crate) held_bytes: usize,
    /// Its place among the jobs that its tenant and caller may have.
    pub(crate) used: Option<Used>,
    /// Jobs of other requests that turned out to need the same plan.
    pub(crate) followers: Vec<Arc<Job>>,
    /// The job that makes the plan, when it is not this one.
    pub(crate) leader: Option<Arc<Job>>,
    /// What the journal says of it; none if it says nothing.
    pub(crate) written: Option<Written>,
    /// Whether its topology is being read, or its plan made from what is known.
    pub(crate) is_being_read: bool,
    /// What it waits for in the table of all servers, if it does.
    pub(crate) awaited: Option<Awaited>,
    /// Whether that may go on without callers, if it was to.
    pub(crate) may_go_on: bool,
}

/// What a job of this server waits for in the table of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// The number of the job there.
    pub(crate) job: i64,
    /// Whether that one is for this one first.
    pub(crate) is_first: bool,
}

/// What is written down of a job that must survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// How often a worker has begun to make its plan, in earlier processes and in this one.
    pub(crate) starts: u32,
    /// Whether one of the starts was in this process.
    pub(crate) started_here: bool,
}

impl Written {
    /// The starts to write down: what kills the process while it is read has been begun, too.
    pub(crate) const fn starts_with(self, is_being_read: bool) -> u32 {
        if is_being_read && !self.started_here { self.starts.saturating_add(1) } else { self.starts }
    }
}

/// A job that an earlier process left unfinished.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unfinished {
    /// Its request, its number and when it came.
    pub(crate) entry: Entry,
    /// How often a worker has begun to make its plan.
    pub(crate) starts: u32,
}

/// What those who wait for a job see of it: any number of steps within `Working`, then one to `Done`.
#[derive(Clone, Debug)]
pub(crate) enum JobState {
    Working(Status),
    Done(Outcome),
}

/// How a job ended.
pub(crate) type Outcome = Result<Delivery, Arc<PlanFailure>>;

/// What everybody who waits for a job is told while it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Status {
    pub(crate) stage: Cow<'static, str>,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) bound: String,
    pub(crate) incumbent: String,
}

/// Where a plan comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// It was stored, or made of what was.
    Hit,
    /// It was searched for.
    Miss,
    /// Another call had it searched for.
    Joined,
}

/// How long the stages of a job took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Timings {
    pub(crate) queue_ms: f64,
    /// Reading the topology and bringing it into canonical order.
    pub(crate) canonical_ms: f64,
    pub(crate) planned: canopy_planner::Timings,
}

/// A plan on its way to those who wait.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) plan: Arc<StoredPlan>,
    pub(crate) cache: Cache,
    pub(crate) timings: Timings,
    /// Beside those of the plan.
    pub(crate) warnings: Vec<Warning>,
    /// What its network is the rest of.
    pub(crate) puncture: Option<Arc<Puncture>>,
}

impl Job {
    pub(crate) fn new(number: u64, key: RequestKey, order: Order, goal: Goal, terms: Terms, held_bytes: usize) -> Self {
        let waiting = Status { stage: "queue".into(), ..Status::default() };
        let ties = Ties {
            phase: Phase::Arrived,
            priority: terms.priority,
            detached: terms.detached,
            worker: terms.worker,
            began: None,
            ended_unix_ms: None,
            waiters: 0,
            held_bytes,
            used: None,
            followers: Vec::new(),
            leader: None,
            written: None,
            is_being_read: false,
            awaited: None,
            may_go_on: true,
        };
        Self {
            number,
            key,
            order,
            goal,
            arrived: clock::now(),
            arrived_unix_ms: clock::unix_ms(),
            read: OnceLock::new(),
            trace: JobTrace::begin(),
            bill: call::bill(),
            state: watch::Sender::new(JobState::Working(waiting)),
            cancelled: AtomicBool::new(false),
            ties: Mutex::new(ties),
            wanted: Mutex::new(Wanted::Unknown(Vec::new())),
            writing: Mutex::new(()),
        }
    }

    /// A job that an earlier process left unfinished: nobody waits for it, and it goes on without.
    pub(crate) fn resumed(entry: Entry, bill: Option<Bill>, starts: u32, held_bytes: usize) -> Self {
        let Entry { number, request: order, priority, arrived_unix_ms, .. } = entry;
        let terms = Terms { priority, detached: true, worker: Worker::Planner };
        let job = Self::new(number, RequestKey::of(&order), order, Goal::Plan, terms, held_bytes);
        job.ties.lock().written = Some(Written { starts, started_here: false });
        Self { arrived_unix_ms, bill, ..job }
    }

    /// The name of its operation. Numbers of one server go on behind those of jobs that an earlier one left unfinished, and else
    /// begin anew; the digits of the request keep a name from meaning another request then. Servers that share a database give no
    /// number twice.
    pub(crate) fn operation(&self) -> String {
        operation_name(&self.key, self.number)
    }

    /// Learns which plan was asked for; returns those that were sent in its place before that was known.
    pub(crate) fn is_for(&self, wanted: PlanKey) -> Vec<PlanKey> {
        match mem::replace(&mut *self.wanted.lock(), Wanted::Known(wanted)) {
            Wanted::Unknown(sent) => sent,
            Wanted::Known(_) => Vec::new(),
        }
    }

    /// Which plan was asked for, in whose place another is sent; while that is not known, the other is remembered.
    pub(crate) fn stood_in_by(&self, plan: PlanKey) -> Option<PlanKey> {
        match &mut *self.wanted.lock() {
            Wanted::Known(wanted) => Some(*wanted),
            Wanted::Unknown(sent) => {
                if !sent.contains(&plan) {
                    sent.push(plan);
                }
                None
            }
        }
    }

    /// Bytes of memory that making its plan takes, roughly; 0 while not known.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.read.get().map_or(0, |read| read.prepared.memory_bytes)
    }

    /// The schedule that its plan is made of, where that is kept; none while not known.
    pub(crate) fn schedule(&self) -> Option<ScheduleKey> {
        self.read.get().and_then(|read| read.schedule)
    }

    /// The tenant whose turn it takes; empty for none.
    pub(crate) fn tenant(&self) -> &str {
        self.bill.as_ref().map_or("", Bill::tenant)
    }

    /// Whether all servers share it, where they share any: what takes next to no time, and is of use only at once, is made where it
    /// is asked for.
    pub(crate) fn is_for_all(&self) -> bool {
        self.goal == Goal::Plan && !self.order.is_quick() && self.order.making == Making::Searched
    }

    /// The share of planning workers of its tenant.
    pub(crate) fn weight(&self) -> u64 {
        self.bill.as_ref().map_or(1, Bill::weight)
    }

    /// Whether what is charged when a plan has been made is not used up.
    ///
    /// # Errors
    /// Its tenant has used up its time, or has stored too much.
    pub(crate) fn require_quota(&self) -> Result<(), OverQuota> {
        let charged_later = [Quota::PlanningSecondsPerHour, Quota::StoredBytesPerHour];
        charged_later.into_iter().try_for_each(|quota| self.bill.as_ref().map_or(Ok(()), |bill| bill.require(quota)))
    }

    pub(crate) fn state(&self) -> JobState {
        self.state.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<JobState> {
        self.state.subscribe()
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
        for follower in &self.ties.lock().followers {
            apply(follower);
        }
    }

    /// Ends the job, unless it has ended.
    pub(crate) fn settle(&self, outcome: Outcome) {
        self.trace.end();
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
