//! The threads that do the work: readers, who look into the store, and planners, who make what is not there.
//!
//! They are plain threads, not tasks: the async runtime never waits for a computation or a disk. A job that panics
//! fails alone.

mod watch;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::{io, mem};

use canopy_planner::{PlanKey, Rejection, chain};
use canopy_service::asked;
use canopy_synth::Stop;
use canopy_wire::{Entry, StoredPlan};
use parking_lot::Mutex;
use rayon::ThreadPoolBuilder;

pub(super) use self::watch::JobWatch;
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::computing::Computing;
use crate::jobs::job::{Cache, Delivery, Goal, Job, Outcome, Read, Timings};
use crate::jobs::journal::Journal;
use crate::jobs::planner::{Planner, Prepared, Produced, Recall};
use crate::jobs::queue::{Lane, Queue, Task};
use crate::jobs::refusals::Refusals;
use crate::jobs::reproducers::{Refused, Reproducers};
use crate::jobs::slices::Questions;
use crate::jobs::table::JobTable;
use crate::jobs::threads::{own_pool, panic_text, step_back};
use crate::metrics::Metrics;
use crate::quota::{Accounts, Bill};
use crate::reading::STACK_BYTES;
use crate::store::{Durability, Lookup, Records, Request};

/// Threads that read topologies and look into the store. Some wait for the disk, where a job is written down: the
/// others see to it that an answer that is there does not.
const READER_COUNT: usize = 4;
/// From this estimate on, plans that need no search are made one at a time.
const LARGE_BYTES: u64 = 256 << 20;
/// Finds the accounts of an identity and a tenant.
pub(crate) type BillOf = Box<dyn Fn(&str, &str) -> Bill + Send + Sync>;

/// What the workers share.
pub(crate) struct Jobs {
    pub(crate) queue: Queue,
    pub(crate) planner: Arc<dyn Planner>,
    pub(crate) records: Records,
    /// Plans that are known not to be.
    pub(crate) refusals: Refusals,
    /// Where jobs that must survive a crash are written down.
    pub(crate) journal: Option<Arc<Journal>>,
    /// Where they wait that all servers share.
    pub(crate) table: Option<Arc<JobTable>>,
    /// Whether plans are made here alone while the table is out of reach; else they are refused.
    pub(crate) computes_alone: bool,
    /// Whether searches step back for other threads: a server inside a command has nobody to stand back for.
    pub(crate) steps_back: bool,
    /// The accounts of an identity and a tenant.
    pub(crate) bill_of: BillOf,
    /// All of them.
    pub(crate) accounts: Accounts,
    /// Where plans that a check refused are kept for a person, if there is a data directory.
    pub(crate) reproducers: Option<Arc<Reproducers>>,
    /// Where the times that jobs wait are counted.
    pub(crate) metrics: Metrics,
    /// Syntheses that were started.
    pub(crate) synthesis_count: AtomicU64,
    /// Held while a large plan is made from what is known.
    pub(crate) large_recalls: Mutex<()>,
    /// Networks that questions are about.
    pub(crate) questions: Questions,
    /// Where calls compute what no job makes.
    pub(crate) computing: Computing,
}

/// All worker threads. They end when the queue is closed and empty; dropping this ends every job and, soon, them.
pub(crate) struct Workers {
    threads: Vec<JoinHandle<()>>,
    queue: Queue,
    journal: Option<(Arc<Journal>, JoinHandle<()>)>,
    reproducers: Option<(Arc<Reproducers>, JoinHandle<()>)>,
    /// Those that follow the jobs of all servers, and what ends them.
    followers: (Arc<AtomicBool>, Vec<JoinHandle<()>>),
}

impl Workers {
    /// Starts the readers, `planner_count` planning threads, two for plans that may have to stand in for others, one of
    /// which makes only what takes next to no time, and one each for the journal and the reproducers if there are any.
    pub(crate) fn start(jobs: &Arc<Jobs>, planner_count: usize) -> io::Result<Self> {
        let (queue, followers) = (jobs.queue.clone(), (Arc::default(), Vec::new()));
        let mut workers = Self { threads: Vec::new(), queue, journal: None, reproducers: None, followers };
        workers.follow_table(jobs)?;
        if let Some(journal) = &jobs.journal {
            let (journal, writer) = (Arc::clone(journal), Arc::clone(journal));
            let builder = thread::Builder::new().name("canopy-journal".to_owned());
            workers.journal = Some((journal, builder.spawn(move || writer.run())?));
        }
        if let Some(reproducers) = &jobs.reproducers {
            let (reproducers, writer) = (Arc::clone(reproducers), Arc::clone(reproducers));
            // It reads topologies, as readers do.
            let builder = thread::Builder::new().name("canopy-reproducers".to_owned()).stack_size(STACK_BYTES);
            workers.reproducers = Some((reproducers, builder.spawn(move || writer.run())?));
        }
        for number in 0..READER_COUNT {
            let jobs = Arc::clone(jobs);
            let builder = thread::Builder::new().name(format!("canopy-reader-{number}")).stack_size(STACK_BYTES);
            workers.threads.push(builder.spawn(move || {
                while let Some(job) = jobs.queue.next_to_read() {
                    jobs.guard(&job, || jobs.read(&job));
                }
            })?);
        }
        let stands_back = jobs.steps_back;
        if stands_back {
            // Else threads of the pool that searches share would stand as far back as its first caller does. Another
            // server in this process may have made it already.
            let _is_there = ThreadPoolBuilder::new().start_handler(|_| step_back()).build_global();
        }
        for number in 0..planner_count {
            let jobs = Arc::clone(jobs);
            let builder = thread::Builder::new().name(format!("canopy-planner-{number}")).stack_size(STACK_BYTES);
            workers.threads.push(builder.spawn(move || {
                if stands_back {
                    step_back();
                }
                jobs.plan_all(Lane::Planning);
            })?);
        }
        let quick = Arc::clone(jobs);
        let builder = thread::Builder::new().name("canopy-quick".to_owned()).stack_size(STACK_BYTES);
        workers.threads.push(builder.spawn(move || {
            let _pool = own_pool();
            quick.plan_all(Lane::Quick);
        })?);
        if planner_count == 0 {
            // Others search, and make plans beside their searches.
            return Ok(workers);
        }
        let beside = Arc::clone(jobs);
        let builder = thread::Builder::new().name("canopy-beside".to_owned()).stack_size(STACK_BYTES);
        workers.threads.push(builder.spawn(move || {
            if stands_back {
                step_back();
            }
            beside.plan_all(Lane::Beside);
        })?);
        Ok(workers)
    }

    /// Starts the threads that follow the jobs of all servers, if they share any.
    fn follow_table(&mut self, jobs: &Arc<Jobs>) -> io::Result<()> {
        let Some(table) = &jobs.table else { return Ok(()) };
        let (ends, threads) = &mut self.followers;
        let mut follow = |name: &str, work: fn(&Jobs, &JobTable, &AtomicBool)| {
            let (jobs, table, ends) = (Arc::clone(jobs), Arc::clone(table), Arc::clone(ends));
            let thread = thread::Builder::new().name(name.to_owned()).spawn(move || work(&jobs, &table, &ends))?;
            threads.push(thread);
            Ok(())
        };
        follow("canopy-followers", Jobs::follow_table)?;
        follow("canopy-signs", Jobs::stay_in_table)
    }

    /// Waits until every thread has ended. The queue must have been closed.
    pub(crate) fn join(mut self) {
        for thread in mem::take(&mut self.threads) {
            // Threads catch the panics of their jobs, so an error here says nothing new.
            let _ended = thread.join();
        }
        let (ends, followers) = mem::take(&mut self.followers);
        ends.store(true, Ordering::Relaxed);
        for thread in followers {
            let _ended = thread.join();
        }
        if let Some((journal, thread)) = self.journal.take() {
            // Jobs have ended for good, so this writes the last of it.
            journal.close();
            let _ended = thread.join();
        }
        if let Some((reproducers, thread)) = self.reproducers.take() {
            reproducers.close();
            let _ended = thread.join();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.abort();
        self.followers.0.store(true, Ordering::Relaxed);
        if let Some((journal, _)) = &self.journal {
            journal.close();
        }
        if let Some((reproducers, _)) = &self.reproducers {
            reproducers.close();
        }
    }
}

impl Jobs {
    /// Gets ready to serve: learns what is stored, and puts the jobs in line that an earlier process left unfinished.
    /// A store that fails at this is no reason not to serve. O(stored plans).
    pub(crate) fn warm_up(&self) {
        for name in ["canopy_plans_not_stored_total", "canopy_journal_write_failures_total"] {
            self.metrics.none_yet(name, &[]);
        }
        let started = clock::now();
        match self.records.usage() {
            Ok(usage) => {
                let (plans, bytes, quarantined) = (usage.records, usage.bytes, usage.quarantined);
                let total_ms = clock::millis_since(started);
                tracing::info!(plans, bytes, quarantined, total_ms, "the store is known");
            }
            Err(error) => tracing::error!(error = chain(&error), "the store could not be read"),
        }
        let Some(journal) = &self.journal else { return };
        let mut resumed = 0_usize;
        let read = journal.for_each_unfinished(|unfinished| {
            let number = unfinished.entry.number;
            let bill = self.bill_of_entry(&unfinished.entry);
            match self.queue.resume(unfinished, bill) {
                Ok(()) => resumed += 1,
                Err(failure) => tracing::error!(number, failure = chain(&*failure), "a job was not resumed"),
            }
        });
        if let Err(error) = read {
            tracing::error!(error = chain(&error), "unfinished jobs could not be read; some were not resumed");
        }
        if resumed > 0 {
            tracing::info!(resumed, "unfinished jobs were resumed");
        }
    }

    /// The accounts of whoever asked for what is written down.
    pub(super) fn bill_of_entry(&self, entry: &Entry) -> Option<Bill> {
        entry.caller.as_ref().map(|caller| (self.bill_of)(&caller.identity, &caller.tenant))
    }

    /// Runs one step of a job and settles the job if the step ends it, by whatever means.
    fn guard(&self, job: &Arc<Job>, step: impl FnOnce() -> Option<Outcome>) {
        let priority = job.ties.lock().priority;
        let _in_trace = job.trace.enter(priority, &self.metrics);
        let outcome = catch_unwind(AssertUnwindSafe(step))
            .unwrap_or_else(|panic| Some(Err(Arc::new(self.panicked(job, panic.as_ref())))));
        if let Some(outcome) = outcome {
            self.queue.finish(job, outcome);
        }
    }

    /// Reports a job that panicked.
    pub(super) fn panicked(&self, job: &Job, panic: &(dyn Any + Send)) -> PlanFailure {
        let panic = panic_text(panic);
        // One that panicked before its topology was read has no plan to make again.
        let read = job.read.get();
        let file = read.and_then(|read| self.reproducer(job, &read.prepared.key, own(job, "panic", panic)));
        tracing::error!(request = %job.key, panic, reproducer = file, "a job panicked");
        PlanFailure::Panicked { request: job.key }
    }

    /// Reads the topology and looks into the store. None: the job waits for a planning thread.
    fn read(&self, job: &Arc<Job>) -> Option<Outcome> {
        let started = clock::now();
        let queue_ms = clock::millis(started.duration_since(job.arrived));
        if let Some(journal) = &self.journal {
            journal.begin_reading(job);
        }
        job.update(|status| status.stage = "read".into());
        let prepared = match self.planner.prepare(&job.order, job.as_ref()) {
            Ok(prepared) => prepared,
            Err(failure) => return Some(Err(Arc::new(failure))),
        };
        for plan in job.is_for(prepared.key) {
            self.records.note_stand_in(&plan, &prepared.key);
        }
        let canonical_ms = clock::millis_since(started);
        if let Some(plan) = self.stored(job, &prepared.key) {
            let timings = Timings { queue_ms, canonical_ms, ..Timings::default() };
            let Prepared { warnings, puncture, .. } = prepared;
            return Some(Ok(Delivery { plan, cache: Cache::Hit, timings, warnings, puncture }));
        }
        if job.goal == Goal::Plan
            && let Some(known) = self.refusals.find(&prepared.key, clock::now())
        {
            return Some(Err(Arc::new(known)));
        }
        if let Err(failure) = self.queue.check_memory(prepared.memory_bytes) {
            return Some(Err(Arc::new(failure)));
        }
        let mut read = Read { prepared, schedule: None, queue_ms, canonical_ms, queued: clock::now() };
        match self.recall(job, &read) {
            Ok(Recall::Made(produced)) => return Some(Ok(self.kept(job, &read, queue_ms, *produced))),
            Ok(Recall::Unknown(schedule)) => {
                read.schedule = schedule;
                read.canonical_ms = clock::millis_since(started);
                read.queued = clock::now();
            }
            Err(failure) => return Some(Err(self.failed(job, &read, failure))),
        }
        if job.goal == Goal::Lookup {
            return Some(Err(Arc::new(PlanFailure::NotCached)));
        }
        if let Some(journal) = &self.journal {
            journal.end_reading(job);
            if let Err(error) = journal.enter(job) {
                let operation = job.operation();
                self.metrics.count("canopy_journal_write_failures_total", &[]);
                tracing::error!(
                    operation,
                    error = chain(&error),
                    "a job could not be saved; it would not survive a crash"
                );
            }
        }
        job.update(|status| status.stage = "queue".into());
        job.trace.wait();
        if let Some(table) = self.table.as_ref().filter(|_| job.is_for_all()) {
            return self.wait_in_table(table, job, read);
        }
        self.queue.promote(job, read).err().map(|failure| Err(Arc::new(failure)))
    }

    /// Makes the plans of the jobs of a lane, until there are no more.
    fn plan_all(&self, lane: Lane) {
        while let Some(task) = self.queue.next_task(lane) {
            match (task, &self.table) {
                (Task::Own(job), _) => {
                    let began = clock::now();
                    self.guard(&job, || self.plan(&job));
                    self.queue.vacate(&job, clock::now().duration_since(began));
                }
                (Task::Slice(slice), _) => {
                    let began = clock::now();
                    self.answer(&slice);
                    self.queue.vacate_slice(&slice, clock::now().duration_since(began));
                }
                (Task::Shared(claimed), Some(table)) => self.make_for_all(table, *claimed),
                (Task::Shared(_), None) => unreachable!("it was taken from the table"),
            }
        }
    }

    /// Makes the plan and stores it.
    fn plan(&self, job: &Arc<Job>) -> Option<Outcome> {
        let read = job.read.get().expect("only jobs that have been read are in the second line");
        let queue_ms = read.queue_ms + clock::millis_since(read.queued);
        // Its twin may have ended between this job's look into the store and its entry into the line.
        if let Some(plan) = self.stored(job, &read.prepared.key) {
            let timings = Timings { queue_ms, canonical_ms: read.canonical_ms, ..Timings::default() };
            let (warnings, puncture) = (read.prepared.warnings.clone(), read.prepared.puncture.clone());
            return Some(Ok(Delivery { plan, cache: Cache::Hit, timings, warnings, puncture }));
        }
        if job.is_requested() {
            return Some(Err(Arc::new(PlanFailure::Stopped)));
        }
        if let Some(journal) = &self.journal {
            journal.start(job);
        }
        if read.schedule.is_some_and(|schedule| self.planner.is_known(&schedule)) {
            // A job of the same shape has ended meanwhile: what is left takes no search, and nobody need wait for it.
            self.queue.land(job);
        } else {
            self.synthesis_count.fetch_add(1, Ordering::Relaxed);
        }
        let produced = self.planner.produce(
            &job.order,
            &read.prepared,
            job.as_ref(),
            &JobWatch::new(self, job, &read.prepared.key),
        );
        Some(match produced {
            Ok(produced) => Ok(self.kept(job, read, queue_ms, produced)),
            Err(failure) => Err(self.failed(job, read, failure)),
        })
    }

    /// Makes the plan from what is known of the shape of the network, on the thread that read it: others may search for
    /// hours. Of large plans one at a time.
    fn recall(&self, job: &Job, read: &Read) -> Result<Recall, PlanFailure> {
        if job.ties.lock().written.is_some_and(|written| written.starts > 0) {
            // It may be what ended an earlier process: it waits for a planner, who counts how often it was begun.
            return Ok(Recall::Unknown(None));
        }
        let is_large = read.prepared.memory_bytes > LARGE_BYTES;
        let _alone = is_large.then(|| self.large_recalls.lock());
        self.planner.recall(&job.order, &read.prepared, job, &JobWatch::new(self, job, &read.prepared.key))
    }

    /// Has a plan kept that was refused. Returns the file, for the log; `None` if none is kept.
    fn reproducer(&self, job: &Job, plan: &PlanKey, rejection: Rejection) -> Option<String> {
        let Rejection { algorithm, reason, problem } = rejection;
        let (order, request) = (job.order.clone(), job.key);
        let refused = Refused { order, request, plan: *plan, algorithm, reason, problem };
        self.reproducers.as_ref()?.note(refused).map(|file| file.display().to_string())
    }

    /// Remembers that there is no such plan, and reports a job that failed through a bug.
    pub(super) fn failed(&self, job: &Job, read: &Read, failure: PlanFailure) -> Arc<PlanFailure> {
        if let Some((check, fault)) = failure.failed_check().zip(failure.fault()) {
            let (request, plan) = (job.key, read.prepared.key);
            let reproducer = self.reproducer(job, &plan, own(job, check, &fault));
            tracing::error!(%request, %plan, fault, reproducer, "a job failed because of a bug; its plan was not released");
        }
        let failure = Arc::new(failure);
        self.refusals.learn(&read.prepared.key, &failure, clock::now());
        failure
    }

    /// Stores a plan, and gives it to those who wait.
    fn kept(&self, job: &Job, read: &Read, queue_ms: f64, produced: Produced) -> Delivery {
        // What was made without a search can be made again: its schedule survives crashes of the machine.
        let durability = if produced.is_recalled { Durability::Lazy } else { Durability::Synced };
        let mut delivery = self.delivery(job, read, queue_ms, produced);
        match self.records.put_asked(&read.prepared.key, &delivery.plan, self.request_of(job, read), durability) {
            Ok(size_bytes) => job.bill.iter().for_each(|bill| bill.charge_stored(size_bytes)),
            Err(error) => {
                tracing::error!(plan = %read.prepared.key, error = chain(&error), "a plan could not be stored");
                self.metrics.count("canopy_plans_not_stored_total", &[]);
                delivery.note_not_stored();
            }
        }
        delivery
    }

    /// A plan that has been made, for those who wait.
    pub(super) fn delivery(&self, job: &Job, read: &Read, queue_ms: f64, produced: Produced) -> Delivery {
        let Produced { mut plan, timings, is_recalled } = produced;
        plan.plan.provenance.get_or_insert_default().request_key = job.key.to_string();
        job.update(|status| (status.stage, status.done, status.total) = ("store".into(), 0, 1));
        let timings = Timings { queue_ms, canonical_ms: read.canonical_ms, planned: timings };
        let cache = if is_recalled { Cache::Hit } else { Cache::Miss };
        let (warnings, puncture) = (read.prepared.warnings.clone(), read.prepared.puncture.clone());
        Delivery { plan: Arc::new(plan), cache, timings, warnings, puncture }
    }

    /// What a plan was asked for by, to be kept with it.
    pub(super) fn request_of(&self, job: &Job, read: &Read) -> Request {
        asked::kept(&job.order, &read.prepared)
    }

    /// The stored plan. A store that fails costs a computation, not the answer.
    pub(super) fn stored(&self, job: &Job, key: &PlanKey) -> Option<Arc<StoredPlan>> {
        match self.records.get(key) {
            Ok(Lookup::Found(plan)) => Some(plan),
            Ok(Lookup::Missing) => None,
            Ok(Lookup::Quarantined(damage)) => {
                tracing::error!(plan = %key, %damage, "a stored plan was damaged and was quarantined");
                None
            }
            Err(error) => {
                tracing::error!(request = %job.key, plan = %key, error = chain(&error), "the store could not be read");
                None
            }
        }
    }
}

/// What was wrong with the plan of a job as a whole.
fn own(job: &Job, reason: &'static str, problem: &str) -> Rejection {
    Rejection { algorithm: job.order.algorithm.name(), reason, problem: problem.to_owned() }
}

#[cfg(test)]
pub(in crate::jobs) mod tests;
