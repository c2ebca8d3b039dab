//! Jobs that all servers share, as one of them sees them: in a table of the database, beside the lines of its own queue.
//!
//! | event | what is written down |
//! |---|---|
//! | a job has been read, and its plan is not there | it waits for the job of that plan, which is made if there is none |
//! | a planning worker of some server is free | it takes the job whose turn it is, by a right |
//! | the plan is made | the plan and the end of the job, if the right is still worth something |
//! | a server stops, or is silent for long | its rights are worth nothing, and others take its jobs |
//! | an operation ends before it has a job, and its caller has gone | its end |

pub(crate) mod words;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_database::{
    Claimed as ClaimedRow, Heard, JobNews, JobNow, JobState, Jobs, NewJob, OperationNow, QuotaNow, QuotaUse, Right,
    ServerNow, Submitted, Wanted, Who,
};
use canopy_planner::{PLANNER_CLASS, PlanKey, RequestKey, ScheduleKey, chain};
use canopy_wire::{Entry, Priority, decode_entry, encode_entry};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use prost::Message as _;

use self::words::{Facts, Success, encode_report};
use crate::clock;
use crate::failure::{KeptFailure, PlanFailure, follows_from_request};
use crate::jobs::job::{Awaited, Job, Outcome, Read, Status, Worker};
use crate::jobs::journal::{caller_of, record_of};
use crate::jobs::slices::Slice;
use crate::quota::Bill;
use crate::store::{JobEnd, Others, StoreError, decode_record, encode_record, of_database};

/// A job that was begun so often and never ended is taken to be what ends servers.
pub(crate) const STARTS_MAX: u32 = 3;
/// Operations of others, and servers, that are listed at most.
const LISTED_MAX: u32 = 1000;
/// From how many numbers on more are asked for.
const NUMBERS_LOW: u64 = 1 << 16;

/// The table.
pub(crate) struct JobTable {
    jobs: Jobs,
    others: Others,
    /// Numbers of operations that are left, and those that come after them.
    numbers: Mutex<[Range<u64>; 2]>,
    /// How long refusals are remembered.
    refused_since: Duration,
    /// Held by those who enter a job until it is known here who waits for it, and by those who leave one until it is left.
    entering: RwLock<()>,
}

/// A job that this server is to make the plan of.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) right: Right,
    /// None: this build cannot read it.
    pub(crate) entry: Option<Entry>,
    /// The part of a question that is to be answered; none: a plan is to be made.
    pub(crate) slice: Option<Vec<u8>>,
    pub(crate) schedule: Option<ScheduleKey>,
    /// How often it was begun, this time included.
    pub(crate) starts: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) began: Instant,
}

impl JobTable {
    /// Takes part in the jobs of all servers, under a name for people and with a role.
    ///
    /// # Errors
    /// The database failed.
    pub(crate) fn open(
        others: &Others,
        (name, role): (String, String),
        refused_since: Duration,
    ) -> Result<Self, StoreError> {
        // Servers of one class make equal plans of equal requests, and read each other's.
        let class = format!("{PLANNER_CLASS} {}", env!("CARGO_PKG_VERSION"));
        Self::join(others, Who { name, class, role }, refused_since)
    }

    /// The same as a server of any class.
    pub(super) fn join(others: &Others, who: Who, refused_since: Duration) -> Result<Self, StoreError> {
        let jobs = others.join(who)?;
        let first = jobs.numbers().map_err(of_database)?;
        let numbers = Mutex::new([first, 0..0]);
        Ok(Self { jobs, others: others.clone(), numbers, refused_since, entering: RwLock::new(()) })
    }

    /// The number of the next operation of this server.
    ///
    /// # Errors
    /// There is none left, and the database cannot be asked for more.
    pub(crate) fn next_number(&self) -> Result<u64, PlanFailure> {
        let [now, then] = &mut *self.numbers.lock();
        if now.is_empty() {
            *now = std::mem::take(then);
        }
        let away = || StoreError::Away { reason: "there are no numbers left for operations".to_owned() };
        now.next().ok_or_else(|| PlanFailure::Jobs(away()))
    }

    /// Asks for more numbers if few are left.
    pub(crate) fn refill_numbers(&self) -> Result<(), StoreError> {
        let left = |numbers: &Range<u64>| numbers.end.saturating_sub(numbers.start);
        let is_low = {
            let numbers = self.numbers.lock();
            numbers.iter().map(left).sum::<u64>() < NUMBERS_LOW
        };
        if is_low {
            let more = self.jobs.numbers().map_err(of_database)?;
            self.numbers.lock()[1] = more;
        }
        Ok(())
    }

    /// While this is held, nobody leaves a job that somebody here enters.
    pub(crate) fn entering(&self) -> RwLockReadGuard<'_, ()> {
        self.entering.read()
    }

    /// Has a job of this server wait for the plan that it is for.
    ///
    /// # Errors
    /// The plan is known not to be, or the database failed.
    pub(crate) fn enter(&self, job: &Arc<Job>, read: &Read) -> Result<Awaited, PlanFailure> {
        let (priority, is_detached, worker) = {
            let ties = job.ties.lock();
            (ties.priority, ties.detached, ties.worker)
        };
        let new = NewJob {
            search: read.schedule.map(|schedule| *schedule.as_bytes()),
            priority: priority as i16,
            memory: read.prepared.memory_bytes,
            tenant: job.tenant().to_owned(),
            weight: job.weight(),
            is_detached,
            is_beside: worker == Worker::Beside,
            entry: record_of(job, priority),
            ..new_job(
                job,
                Facts::of(job, &read.prepared.warnings, read.prepared.puncture.as_deref()),
                read.prepared.key,
            )
        };
        let submitted =
            self.jobs.submit(&new, self.refused_since).map_err(|error| PlanFailure::Jobs(of_database(error)))?;
        match submitted {
            Submitted { refusal: Some(outcome), .. } => Err(KeptFailure::decode(&outcome)),
            Submitted { job, is_first, .. } => Ok(Awaited { job, is_first }),
        }
    }

    /// Has a slice of a question wait for a worker of some server; returns the number of its job.
    ///
    /// # Errors
    /// The database failed.
    pub(crate) fn enter_slice(&self, slice: &Slice) -> Result<i64, PlanFailure> {
        let Slice { part, priority, memory_bytes, bill, arrived_unix_ms, .. } = slice;
        let number = self.next_number()?;
        let caller = bill.as_ref().map(caller_of);
        let entry = encode_record(&encode_entry(number, &part.order, *priority, *arrived_unix_ms, caller));
        let new = NewJob {
            operation: i64::try_from(number).unwrap_or(i64::MAX),
            key: part.key(RequestKey::of(&part.order).as_bytes()),
            priority: *priority as i16,
            memory: *memory_bytes,
            tenant: bill.as_ref().map_or("", Bill::tenant).to_owned(),
            weight: bill.as_ref().map_or(1, Bill::weight),
            entry,
            slice: Some(part.written()),
            ..NewJob::default()
        };
        let submitted = self.jobs.submit(&new, self.refused_since);
        submitted.map(|submitted| submitted.job).map_err(|error| PlanFailure::Jobs(of_database(error)))
    }

    /// Writes down how an operation ended that never waited for a job.
    pub(crate) fn note_end(&self, job: &Job, outcome: &Outcome) -> Result<(), StoreError> {
        let facts = match outcome {
            Ok(delivery) => Facts::of(job, &delivery.warnings, delivery.puncture.as_deref()),
            Err(_) => Facts::of(job, &[], None),
        };
        let new = new_job(job, facts, PlanKey::from_bytes([0; 32]));
        let (state, outcome) = in_words(outcome);
        self.jobs.end_operation(&new, (state, &outcome)).map_err(of_database)
    }

    /// Takes the job whose turn it is, if there is memory for it.
    pub(crate) fn claim(&self, wanted: Wanted) -> Result<Option<Claimed>, StoreError> {
        let claimed = self.jobs.claim(wanted).map_err(of_database)?;
        Ok(claimed.map(|ClaimedRow { right, entry, slice, starts, memory, search, priority, .. }| {
            let decoded = decode_record(&entry).ok().and_then(decode_entry);
            let priority = Priority::ALL.into_iter().find(|one| *one as i16 == priority);
            let decoded = decoded.map(|entry| Entry { priority: priority.unwrap_or(entry.priority), ..entry });
            let schedule = search.map(ScheduleKey::from_bytes);
            Claimed { right, entry: decoded, slice, schedule, starts, memory_bytes: memory, began: clock::now() }
        }))
    }

    /// How a job that this server makes ends.
    pub(crate) fn end(&self, claimed: &Claimed, outcome: &Outcome) -> JobEnd {
        let is_lasting = outcome.as_ref().is_err_and(|failure| follows_from_request(failure));
        self.end_in_words(claimed, in_words(outcome), is_lasting)
    }

    /// The same in words for those who wait elsewhere.
    pub(crate) fn end_in_words(
        &self,
        claimed: &Claimed,
        (state, outcome): (JobState, Vec<u8>),
        is_lasting: bool,
    ) -> JobEnd {
        let took = clock::now().duration_since(claimed.began);
        JobEnd { jobs: self.jobs.clone(), right: claimed.right, state, outcome, is_lasting, took }
    }

    /// Others may search for the schedule of this job.
    pub(crate) fn land(&self, right: Right) {
        if let Err(error) = self.jobs.land(right) {
            tracing::debug!(error = chain(&error), "others wait for the end of a job whose schedule is known");
        }
    }

    /// Another server is to make the plan.
    pub(crate) fn give_back(&self, right: Right) {
        if let Err(error) = self.jobs.give_back(right) {
            tracing::warn!(
                error = chain(&error),
                "a job could not be given back; others make it once this server is silent"
            );
        }
    }

    /// Says how far a job is.
    pub(crate) fn report(&self, job: i64, status: &Status) -> Result<(), StoreError> {
        self.jobs.report(job, &encode_report(status)).map_err(of_database)
    }

    /// Nobody here waits for a job any more, unless somebody does by now.
    pub(crate) fn leave(&self, job: i64, may_go_on: bool, is_awaited: impl FnOnce() -> bool) -> Result<(), StoreError> {
        let _nobody_enters = self.entering.write();
        if is_awaited() { Ok(()) } else { self.jobs.leave(job, may_go_on).map_err(of_database) }
    }

    /// What has become of jobs; those that are remembered no more are left out.
    pub(crate) fn look(&self, jobs: &[i64]) -> Result<Vec<JobNow>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.jobs.look(jobs).map_err(of_database)
    }

    /// Waits until all that other servers have changed up to now is heard of.
    pub(crate) fn hear_of_all(&self) -> Result<(), StoreError> {
        self.others.hear_of_all()
    }

    /// What becomes of jobs from now on.
    pub(crate) fn news(&self) -> JobNews {
        self.jobs.news()
    }

    /// Says that this server is there.
    pub(crate) fn say_there(&self) -> Result<Heard, StoreError> {
        self.jobs.say_there().map_err(of_database)
    }

    /// Takes part again after it was taken for gone.
    pub(crate) fn join_again(&self) -> Result<(), StoreError> {
        self.jobs.join_again().map_err(of_database)
    }

    /// The servers that take part.
    pub(crate) fn servers(&self) -> Result<Vec<ServerNow>, StoreError> {
        self.jobs.servers(LISTED_MAX).map_err(of_database)
    }

    /// Has others do what silent servers were doing.
    pub(crate) fn bury(&self) -> Result<u64, StoreError> {
        let outcome = KeptFailure::encode(&PlanFailure::Abandoned { starts: STARTS_MAX });
        self.jobs.bury(STARTS_MAX, &outcome).map_err(of_database)
    }

    /// Leaves: whoever waited here may come back elsewhere.
    pub(crate) fn part(&self) -> Result<(), StoreError> {
        self.jobs.part().map_err(of_database)
    }

    /// The operation of this number at any server.
    pub(crate) fn operation(&self, number: u64) -> Result<Option<OperationNow>, StoreError> {
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        self.jobs.operation(number).map_err(of_database)
    }

    /// The latest operations of all servers.
    pub(crate) fn operations(&self) -> Result<Vec<OperationNow>, StoreError> {
        self.jobs.operations(LISTED_MAX).map_err(of_database)
    }

    /// Ends an operation of any server, and its job if that is for this operation first. Returns false if it has ended, or
    /// is unknown.
    pub(crate) fn cancel(&self, number: u64) -> Result<bool, StoreError> {
        let Ok(number) = i64::try_from(number) else { return Ok(false) };
        let outcome = KeptFailure::encode(&PlanFailure::CancelledByOperator);
        self.jobs.cancel(number, &outcome).map_err(of_database)
    }

    /// Tells what is used of quotas here, and learns what is used of them at all servers.
    pub(crate) fn share_quotas(&self, uses: &[QuotaUse]) -> Result<Vec<QuotaNow>, StoreError> {
        self.jobs.share_quotas(uses).map_err(of_database)
    }

    /// Forgets which plans are known not to be; returns how many.
    pub(crate) fn forget_refusals(&self) -> Result<u64, StoreError> {
        self.jobs.forget_refusals().map_err(of_database)
    }
}

fn new_job(job: &Job, facts: Facts, key: PlanKey) -> NewJob {
    // Numbers are given out by the database, which has no larger ones.
    let operation = i64::try_from(job.number).unwrap_or(i64::MAX);
    NewJob { operation, facts: facts.encode_to_vec(), key: *key.as_bytes(), ..NewJob::default() }
}

/// An outcome for those who wait elsewhere.
fn in_words(outcome: &Outcome) -> (JobState, Vec<u8>) {
    match outcome {
        Ok(delivery) => (JobState::Succeeded, Success::of(delivery).encode_to_vec()),
        Err(failure) => {
            let state = if failure.is_cancellation() { JobState::Cancelled } else { JobState::Failed };
            (state, KeptFailure::encode(failure))
        }
    }
}
