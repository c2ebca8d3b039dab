//! The share of a server in the jobs of all: it makes plans for whoever waits, and hears what has become of what its own callers
//! wait for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use canopy_database::{JobNow, JobState};
use canopy_planner::{PlanKey, Warning, chain};
use canopy_service::NOT_STORED;
use canopy_synth::Stop as _;
use canopy_wire::{Entry, StoredPlan};

use super::job::{Awaited, Cache, Delivery, Job, Outcome, Read, Status};
use super::planner::Produced;
use super::slices::decode_answer;
use super::table::words::{Success, decode_report};
use super::table::{Claimed, JobTable};
use super::workers::{JobWatch, Jobs};
use crate::clock;
use crate::failure::{KeptFailure, PlanFailure};
use crate::store::{JobEnd, Lookup, Records, StoreError};

/// How a plan is read: with a count of its use, or without.
type Reading = fn(&Records, &PlanKey) -> Result<Lookup<Arc<StoredPlan>>, StoreError>;

/// Longest time between two looks at what has become of jobs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at what callers here have changed.
const TELL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two signs of life.
const SIGN_INTERVAL: Duration = Duration::from_secs(3);
/// Time between two attempts at what the database did not take.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Jobs that are looked at in one question.
const LOOKED_MAX: usize = 1000;

impl Jobs {
    /// Has a job that has been read wait in the table. None: it waits.
    pub(super) fn wait_in_table(&self, table: &JobTable, job: &Arc<Job>, read: Read) -> Option<Outcome> {
        let key = read.prepared.key;
        let _entering = table.entering();
        let entered = match job.require_quota().map_err(PlanFailure::from).and_then(|()| table.enter(job, &read)) {
            Ok(awaited) => self.queue.await_shared(job, read, awaited),
            Err(PlanFailure::Jobs(error)) if self.computes_alone => {
                tracing::warn!(error = chain(&error), "a plan is made here alone, and perhaps elsewhere as well");
                self.queue.promote(job, read)
            }
            Err(failure) => Err(failure),
        };
        entered.err().map(|failure| {
            let failure = Arc::new(failure);
            self.refusals.learn(&key, &failure, clock::now());
            Err(failure)
        })
    }

    /// Does a job of all servers: makes its plan, or answers its slice, and ends it, unless it has been given to another server.
    pub(super) fn make_for_all(&self, table: &JobTable, mut claimed: Claimed) {
        match (claimed.entry.take(), claimed.slice.take()) {
            (Some(entry), Some(faults)) => self.answer_for_all(table, &claimed, entry, &faults),
            (Some(entry), None) => self.make_plan_for_all(table, &claimed, entry),
            (None, _) => {
                let unreadable = table.end(&claimed, &Err(Arc::new(PlanFailure::Unreadable)));
                self.write_down_end(claimed.right.job, &unreadable);
            }
        }
        self.queue.vacate_shared(&claimed);
    }

    fn make_plan_for_all(&self, table: &JobTable, claimed: &Claimed, entry: Entry) {
        let number = claimed.right.job;
        let bill = self.bill_of_entry(&entry);
        let job = Arc::new(Job::resumed(entry, bill, claimed.starts.saturating_sub(1), 0));
        self.queue.begin_shared(number, &job);
        let outcome = Making { jobs: self, table, job: &job, claimed }.outcome();
        if let Some(bill) = &job.bill {
            bill.charge_planning(clock::now().duration_since(claimed.began));
        }
        if let Some(outcome) = outcome {
            self.settle(number, &outcome);
        }
        job.settle(Err(Arc::new(PlanFailure::Stopped)));
    }

    /// Gives those who wait here for a job its outcome.
    fn settle(&self, number: i64, outcome: &Outcome) {
        self.queue.settle_shared(number, |job, awaited| {
            if let Err(failure) = outcome
                && let Some(read) = job.read.get()
            {
                self.refusals.learn(&read.prepared.key, failure, clock::now());
            }
            outcome_for(outcome, job, awaited)
        });
    }

    /// Hears what becomes of jobs that callers here wait for, and tells the table what they change, until `ends`.
    pub(super) fn follow_table(&self, table: &JobTable, ends: &AtomicBool) {
        let mut news = table.news();
        let mut looked = clock::now();
        let mut told = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            let is_news = news.wait(TELL_INTERVAL);
            let is_due = is_news || clock::now().duration_since(looked) >= LOOK_INTERVAL;
            let mut heard = self.queue.tell_table(table);
            self.pass_on_progress();
            if is_due {
                looked = clock::now();
                self.queue.hear_of_shared();
                heard = heard.and_then(|()| self.look_into(table)).and_then(|()| self.report(table, &mut told));
                heard = heard.and_then(|()| table.refill_numbers()).and_then(|()| self.share_quotas(table));
            }
            if let Err(error) = heard {
                tracing::debug!(error = chain(&error), "the jobs of all servers cannot be looked at now");
            }
        }
        let _told = self.queue.tell_table(table);
    }

    /// Shows how far what is made here is to those who wait here.
    fn pass_on_progress(&self) {
        for (number, _, status) in self.queue.making() {
            self.queue.shared_runs(number, status.as_ref());
        }
    }

    /// Says how far what is made here is, for those who wait elsewhere.
    fn report(&self, table: &JobTable, told: &mut Vec<(i64, Status)>) -> Result<(), StoreError> {
        let making = self.queue.making();
        told.retain(|(number, _)| making.iter().any(|(other, ..)| other == number));
        for (number, _, status) in making {
            let Some(status) = status.filter(|status| !told.contains(&(number, status.clone()))) else { continue };
            table.report(number, &status)?;
            told.retain(|(other, _)| *other != number);
            told.push((number, status));
        }
        Ok(())
    }

    /// Tells what is used of quotas here, and learns what is used of them elsewhere.
    fn share_quotas(&self, table: &JobTable) -> Result<(), StoreError> {
        let uses = self.accounts.uses_here(clock::now());
        if uses.is_empty() {
            return Ok(());
        }
        let asked = clock::now();
        let learned = table.share_quotas(&uses).map(|all| self.accounts.learn(&all, asked));
        if learned.is_err() {
            self.accounts.take_back(&uses);
        }
        learned
    }

    /// Learns what has become of all that callers here wait for.
    fn look_into(&self, table: &JobTable) -> Result<(), StoreError> {
        let awaited = self.queue.awaited();
        for numbers in awaited.chunks(LOOKED_MAX) {
            let found = table.look(numbers)?;
            for number in numbers {
                match found.iter().find(|now| now.job == *number) {
                    Some(now) => self.hear(now)?,
                    // It ended long ago, or the database is an older one.
                    None => self.queue.enter_all_again(Some(*number)),
                }
            }
        }
        Ok(())
    }

    fn hear(&self, now: &JobNow) -> Result<(), StoreError> {
        for &operation in &now.cancelled {
            self.queue.end_alone(now.job, operation.unsigned_abs());
        }
        let words = now.outcome.as_deref().unwrap_or_default();
        if now.state.is_end() && self.queue.awaits_slice(now.job) {
            self.hear_of_slice(now, words);
            return Ok(());
        }
        match now.state {
            JobState::Queued => {}
            JobState::Running => {
                self.queue.shared_runs(now.job, now.report.as_deref().map(decode_report).as_ref());
            }
            JobState::Succeeded => {
                let success = Success::read(words);
                let key = success.plan().unwrap_or(PlanKey::from_bytes(now.key));
                match self.plan_of_another(&key, Records::get)? {
                    Some(plan) => {
                        let (cache, timings) = (success.cache(true), success.timings());
                        let delivery = Delivery { plan, cache, timings, warnings: Vec::new(), puncture: None };
                        self.settle(now.job, &Ok(delivery));
                    }
                    // It was evicted at once.
                    None => self.queue.enter_all_again(Some(now.job)),
                }
            }
            // Nobody wanted it any more when it ended; somebody does again.
            JobState::Cancelled if words.is_empty() => self.queue.enter_all_again(Some(now.job)),
            JobState::Failed | JobState::Cancelled => {
                self.settle(now.job, &Err(Arc::new(KeptFailure::decode(words))));
            }
        }
        Ok(())
    }

    fn hear_of_slice(&self, now: &JobNow, words: &[u8]) {
        let outcome = match now.state {
            JobState::Succeeded => decode_answer(words).ok_or_else(|| Arc::new(PlanFailure::Unreadable)),
            // Nobody wanted it any more when it ended; somebody does again.
            _ if words.is_empty() => return self.queue.enter_all_again(Some(now.job)),
            _ => Err(Arc::new(KeptFailure::decode(words))),
        };
        self.queue.settle_slices(now.job, &outcome);
    }

    /// A plan that another server has stored, once this one has heard of it.
    pub(super) fn plan_of_another(&self, key: &PlanKey, read: Reading) -> Result<Option<Arc<StoredPlan>>, StoreError> {
        self.records.follow()?;
        if let Some(plan) = read(&self.records, key)?.found() {
            return Ok(Some(plan));
        }
        self.table.as_ref().map_or(Ok(()), |table| table.hear_of_all())?;
        self.records.follow()?;
        Ok(read(&self.records, key)?.found())
    }

    /// Writes the end of a job down; false: another server does it.
    pub(super) fn write_down_end(&self, job: i64, end: &JobEnd) -> bool {
        match write_end(end, &|| self.queue.is_aborted()) {
            Ok(()) => true,
            Err(StoreError::Fenced) => {
                self.note_late(job);
                false
            }
            Err(error) => {
                tracing::error!(
                    job,
                    error = chain(&error),
                    "the end of a job could not be written down; others make it again"
                );
                false
            }
        }
    }

    fn note_late(&self, job: i64) {
        self.metrics.count("canopy_job_results_refused_total", &[]);
        tracing::warn!(job, "another server does this job by now; what was made here is not used");
    }

    /// Says that this server is there and has others do what silent ones were doing, until `ends`.
    pub(super) fn stay_in_table(&self, table: &JobTable, ends: &AtomicBool) {
        let (mut said, mut forgettings) = (None::<Instant>, None);
        while !ends.load(Ordering::Relaxed) {
            if said.is_none_or(|said| clock::now().duration_since(said) >= SIGN_INTERVAL) {
                said = Some(clock::now());
                if let Err(error) = self.say_there(table, &mut forgettings) {
                    tracing::debug!(error = chain(&error), "other servers do not hear that this one is there");
                }
            }
            thread::sleep(TELL_INTERVAL);
        }
        if let Err(error) = table.part() {
            tracing::warn!(
                error = chain(&error),
                "other servers take up the jobs of this one only when it has been silent for long"
            );
        }
    }

    fn say_there(&self, table: &JobTable, forgettings: &mut Option<i64>) -> Result<(), StoreError> {
        let heard = table.say_there()?;
        if forgettings.replace(heard.forgettings).is_some_and(|before| before != heard.forgettings) {
            self.refusals.clear();
        }
        if heard.was_given_up {
            tracing::warn!("this server was silent for so long that others took its jobs; it takes part again");
            self.queue.stop_making(None);
            table.join_again()?;
            self.queue.enter_all_again(None);
        }
        self.queue.stop_making(Some(&heard.unwanted));
        self.queue.hear_whether_wanted(heard.is_wanted);
        let again = table.bury()?;
        if again > 0 {
            (0..again).for_each(|_| self.metrics.count("canopy_jobs_redelivered_total", &[]));
            tracing::warn!(again, "jobs of a server that is silent are made again");
        }
        Ok(())
    }
}

/// A job of all servers that is made here.
struct Making<'a> {
    jobs: &'a Jobs,
    table: &'a JobTable,
    job: &'a Arc<Job>,
    claimed: &'a Claimed,
}

impl Making<'_> {
    /// Makes the plan, and ends the job for all. None: another server makes it.
    fn outcome(&self) -> Option<Outcome> {
        let priority = self.job.ties.lock().priority;
        let _in_trace = self.job.trace.enter(priority, &self.jobs.metrics);
        catch_unwind(AssertUnwindSafe(|| self.plan()))
            .unwrap_or_else(|panic| self.fail(Arc::new(self.jobs.panicked(self.job, panic.as_ref()))))
    }

    fn plan(&self) -> Option<Outcome> {
        let Self { jobs, table, job, claimed } = *self;
        let started = clock::now();
        // By the clocks on the walls of two machines, perhaps.
        let queue_ms = clock::unix_ms().saturating_sub(job.arrived_unix_ms) as f64;
        let prepared = match jobs.planner.prepare(&job.order, job.as_ref()) {
            Ok(prepared) => prepared,
            Err(failure) => return self.fail(Arc::new(failure)),
        };
        let canonical_ms = clock::millis_since(started);
        // Another server may have stored it between the look of who asked and the entry into the table.
        if let Err(error) = table.hear_of_all().and_then(|()| jobs.records.follow()) {
            tracing::debug!(error = chain(&error), "the plan is made whether another server has it or not");
        }
        if let Some(plan) = jobs.stored(job, &prepared.key) {
            let timings = super::job::Timings { queue_ms, canonical_ms, ..Default::default() };
            let (warnings, puncture) = (prepared.warnings, prepared.puncture);
            let outcome = Ok(Delivery { plan, cache: Cache::Hit, timings, warnings, puncture });
            return self.end(&table.end(claimed, &outcome)).then_some(outcome);
        }
        let read = Read { prepared, schedule: claimed.schedule, queue_ms, canonical_ms, queued: started };
        let read = job.read.get_or_init(|| read);
        if read.schedule.is_some_and(|schedule| jobs.planner.is_known(&schedule)) {
            table.land(claimed.right);
        } else {
            jobs.synthesis_count.fetch_add(1, Ordering::Relaxed);
        }
        let watch = JobWatch::new(jobs, job, &read.prepared.key);
        match jobs.planner.produce(&job.order, &read.prepared, job.as_ref(), &watch) {
            Ok(produced) => self.keep(read, produced),
            Err(failure) => self.fail(jobs.failed(job, read, failure)),
        }
    }

    /// Stores the plan with the end of the job.
    fn keep(&self, read: &Read, produced: Produced) -> Option<Outcome> {
        let Self { jobs, table, job, claimed } = *self;
        let mut delivery = jobs.delivery(job, read, read.queue_ms, produced);
        let key = read.prepared.key;
        loop {
            let end = table.end(claimed, &Ok(delivery.clone()));
            let request = jobs.request_of(job, read);
            match jobs.records.put_ending(&key, &delivery.plan, request, &end) {
                Ok(size_bytes) => {
                    job.bill.iter().for_each(|bill| bill.charge_stored(size_bytes));
                    return Some(Ok(delivery));
                }
                Err(StoreError::Fenced) => {
                    jobs.note_late(claimed.right.job);
                    return None;
                }
                Err(StoreError::Away { .. } | StoreError::Overtaken) if !self.is_over() => {
                    thread::sleep(RETRY_INTERVAL)
                }
                // This server stops. Another one makes the plan for those who wait elsewhere.
                Err(StoreError::Away { .. } | StoreError::Overtaken) => {
                    table.give_back(claimed.right);
                    delivery.note_not_stored();
                    return Some(Ok(delivery));
                }
                Err(error) => {
                    tracing::error!(plan = %key, error = chain(&error), "a plan could not be stored");
                    jobs.metrics.count("canopy_plans_not_stored_total", &[]);
                    delivery.note_not_stored();
                    // Those who wait here get it all the same.
                    let elsewhere = Err(Arc::new(PlanFailure::Jobs(error)));
                    return self.end(&table.end(claimed, &elsewhere)).then_some(Ok(delivery));
                }
            }
        }
    }

    /// Ends a job that has no plan, or gives it back.
    fn fail(&self, failure: Arc<PlanFailure>) -> Option<Outcome> {
        let Self { jobs, table, job, claimed } = *self;
        let is_stopped = failure.is_cancellation() && job.is_requested();
        if is_stopped && jobs.queue.is_aborted() {
            table.give_back(claimed.right);
            return None;
        }
        let outcome = Err(failure);
        let mut end = table.end(claimed, &outcome);
        if is_stopped {
            // Nobody waited any more when it was stopped. Who waits by now has it made after all.
            end.outcome.clear();
            self.end(&end);
            return None;
        }
        self.end(&end).then_some(outcome)
    }

    /// Writes the end down; false: another server makes it.
    fn end(&self, end: &JobEnd) -> bool {
        self.jobs.write_down_end(self.claimed.right.job, end)
    }

    fn is_over(&self) -> bool {
        self.jobs.queue.is_aborted()
    }
}

/// Writes the end of a job down, again and again while the database is away, until this server stops.
fn write_end(end: &JobEnd, is_over: &dyn Fn() -> bool) -> Result<(), StoreError> {
    loop {
        match end.make(None) {
            Err(StoreError::Away { .. } | StoreError::Overtaken) if !is_over() => thread::sleep(RETRY_INTERVAL),
            done => return done,
        }
    }
}

/// What somebody who waits for a job learns of its end: with the own warnings and times.
fn outcome_for(outcome: &Outcome, job: &Job, awaited: Awaited) -> Outcome {
    let mut delivery = outcome.clone()?;
    if !awaited.is_first && delivery.cache == Cache::Miss {
        delivery.cache = Cache::Joined;
    }
    if let Some(read) = job.read.get() {
        let lost: Vec<Warning> = delivery.warnings.into_iter().filter(|warning| warning.code == NOT_STORED).collect();
        delivery.warnings = read.prepared.warnings.iter().cloned().chain(lost).collect();
        delivery.puncture.clone_from(&read.prepared.puncture);
        delivery.timings.canonical_ms = read.canonical_ms;
    }
    Ok(delivery)
}

#[cfg(test)]
mod tests;
