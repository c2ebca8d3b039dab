//! Jobs that survive the end of the process: those that wait for their plan to be made, and those it is made for.
//!
//! | event | what is written down |
//! |---|---|
//! | a caller is about to be told that a job goes on without callers | its order |
//! | a job is about to enter the line for planning | the same |
//! | its topology is about to be read | one more start, if it is written down |
//! | that has gone well | the start is taken back |
//! | a worker takes it | one more start, before anything is computed |
//! | it ends, well or badly | nothing is left |
//! | the end of the server ends it | its start is taken back: that was no fault of the job |
//! | the same, but nobody had read it | its order, if it was to go on without its callers |
//!
//! The first three and what a worker takes are on the disk before anything goes on; the others follow soon, on a thread of the journal's
//! own, since jobs end where nobody may wait for a disk, and are tried again until they can be written. A crash in between costs a job
//! that is begun again and finds its plan in the store. A store that fails costs durability, not the job, but nobody is told that a job
//! goes on alone which is not on the disk.

mod progress;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use canopy_planner::{Making, PlanKey, chain};
use canopy_wire::{EntryCaller, Priority, decode_entry, encode_entry};
use parking_lot::{Condvar, Mutex};

use self::progress::{Progress, encode_progress};
use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::job::{Job, JobState, Unfinished, Written};
use crate::quota::Bill;
use crate::store::{
    DamagedRecord, Durability, SpaceOf, Store, StoreError, Stored, Summarised, decode_message, decode_record,
    encode_record,
};

/// A job that was begun so often and never ended is taken to be what ends the process.
pub(crate) const STARTS_MAX: u32 = 2;
/// Longest time between two attempts at what cannot be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The journal, in the space of jobs.
pub(crate) struct Journal {
    store: SpaceOf<Unfinished>,
    noted: Mutex<Noted>,
    ready: Condvar,
}

/// What is yet to be written.
struct Noted {
    open: bool,
    ends: BTreeMap<PlanKey, End>,
}

/// What the end of a job leaves.
enum End {
    /// Nothing.
    Struck,
    /// Its record with this summary.
    Kept(Vec<u8>),
    /// It has not ended: its record, with what there is to be said of it by then.
    Stands(Arc<Job>),
    /// All of it, which is not written down yet.
    Left(Arc<Job>),
}

/// The record of a job.
pub(crate) fn record_of(job: &Job, priority: Priority) -> Vec<u8> {
    let caller = job.bill.as_ref().map(caller_of);
    encode_record(&encode_entry(job.number, &job.order, priority, job.arrived_unix_ms, caller))
}

/// Whose accounts a job counts against.
pub(crate) fn caller_of(bill: &Bill) -> EntryCaller {
    EntryCaller { identity: bill.identity().to_owned(), tenant: bill.tenant().to_owned() }
}

impl Journal {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let store = SpaceOf::new(store);
        Self { store, noted: Mutex::new(Noted { open: true, ends: BTreeMap::new() }), ready: Condvar::new() }
    }

    /// Writes a job down that is about to wait for its plan, or to be left alone; returns once that survives a crash.
    /// Nothing happens to one that is written down already, or has ended.
    ///
    /// # Errors
    /// The engine failed: the job is not written down, and what has come of the attempt is removed when that can be done.
    pub(crate) fn enter(&self, job: &Arc<Job>) -> Result<(), StoreError> {
        if job.order.making == Making::Repaired {
            // Quicker made anew than written down, and of use only while somebody waits.
            return Ok(());
        }
        let _writing = job.writing.lock();
        let mut ties = job.ties.lock();
        if ties.phase.is_end() || ties.written.is_some() {
            return Ok(());
        }
        ties.written = Some(Written::default());
        let (priority, starts) = (ties.priority, Written::default().starts_with(ties.is_being_read));
        drop(ties);
        let key = PlanKey::numbered(job.number);
        let record = record_of(job, priority);
        let written = self.store.put(&key, &record, &encode_progress(starts, &job.key));
        if written.is_err() {
            job.ties.lock().written = None;
            self.note(key, End::Struck);
        } else {
            self.note_end(job);
        }
        written
    }

    /// Counts the reading of a job that is written down as a start; returns once that survives a crash.
    pub(crate) fn begin_reading(&self, job: &Arc<Job>) {
        let _writing = job.writing.lock();
        let mut ties = job.ties.lock();
        ties.is_being_read = true;
        let ended = ties.phase.is_end();
        let Some(written) = ties.written.filter(|_| !ended) else { return };
        let summary = encode_progress(written.starts_with(true), &job.key);
        drop(ties);
        let written = self.store.set_summaries(&[(PlanKey::numbered(job.number), summary)], Durability::Synced);
        self.after_writing(job, written);
    }

    /// The reading of a job has gone well: it does not count any more, which is written down soon. Does not block.
    pub(crate) fn end_reading(&self, job: &Arc<Job>) {
        let mut ties = job.ties.lock();
        ties.is_being_read = false;
        let is_written = ties.written.is_some() && !ties.phase.is_end();
        drop(ties);
        if is_written {
            self.note(PlanKey::numbered(job.number), End::Stands(Arc::clone(job)));
        }
    }

    /// Counts a start of a job that is written down; returns once that survives a crash.
    pub(crate) fn start(&self, job: &Arc<Job>) {
        let _writing = job.writing.lock();
        let mut ties = job.ties.lock();
        let ended = ties.phase.is_end();
        let Some(written) = ties.written.as_mut().filter(|written| !written.started_here && !ended) else { return };
        (written.starts, written.started_here) = (written.starts.saturating_add(1), true);
        let summary = encode_progress(written.starts, &job.key);
        drop(ties);
        let written = self.store.set_summaries(&[(PlanKey::numbered(job.number), summary)], Durability::Synced);
        self.after_writing(job, written);
    }

    /// The job may have ended while it was written down, and its end may have been written before.
    fn after_writing(&self, job: &Arc<Job>, written: Result<(), StoreError>) {
        if let Err(error) = written {
            let operation = job.operation();
            tracing::error!(
                operation,
                error = chain(&error),
                "the start of a job could not be saved; if the job kills the server, this attempt is not counted"
            );
        }
        self.note_end(job);
    }

    /// Has the end of a job written down soon, if it has ended. Does not block.
    pub(crate) fn note_end(&self, job: &Arc<Job>) {
        let JobState::Done(outcome) = job.state() else { return };
        let drained = matches!(&outcome, Err(failure) if matches!(**failure, PlanFailure::Draining));
        let ties = job.ties.lock();
        let (written, detached) = (ties.written, ties.detached);
        drop(ties);
        let end = match written {
            None if drained && detached => End::Left(Arc::clone(job)),
            None => return,
            Some(Written { starts, started_here }) if drained => {
                End::Kept(encode_progress(starts.saturating_sub(u32::from(started_here)), &job.key))
            }
            Some(_) => End::Struck,
        };
        self.note(PlanKey::numbered(job.number), end);
    }

    fn note(&self, key: PlanKey, end: End) {
        self.noted.lock().ends.insert(key, end);
        self.ready.notify_one();
    }

    /// Writes down what is noted, until the journal is closed and nothing is left that can be written.
    pub(crate) fn run(&self) {
        let mut noted = self.noted.lock();
        loop {
            let ends = mem::take(&mut noted.ends);
            if !ends.is_empty() {
                drop(noted);
                let failed = self.write(ends);
                noted = self.noted.lock();
                if failed.is_empty() {
                    continue;
                }
                if !noted.open {
                    return;
                }
                for (key, end) in failed {
                    // What was noted since is newer.
                    noted.ends.entry(key).or_insert(end);
                }
                let until = clock::now() + RETRY_INTERVAL;
                while noted.open && !self.ready.wait_until(&mut noted, until).timed_out() {}
            } else if noted.open {
                self.ready.wait(&mut noted);
            } else {
                return;
            }
        }
    }

    /// Lets [`Journal::run`] return when nothing is left to write.
    pub(crate) fn close(&self) {
        self.noted.lock().open = false;
        self.ready.notify_all();
    }

    /// Writes down what has become of jobs; returns what could not be written.
    fn write(&self, ends: BTreeMap<PlanKey, End>) -> BTreeMap<PlanKey, End> {
        let (mut struck, mut kept, mut failed) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (key, end) in ends {
            match end {
                End::Struck => struck.push(key),
                End::Kept(summary) => kept.push((key, summary)),
                End::Stands(job) => {
                    if let Err(error) = self.write_standing(&key, &job) {
                        tracing::error!(
                            operation = job.operation(),
                            error = chain(&error),
                            "a job could not be migrated"
                        );
                        failed.insert(key, End::Stands(job));
                    }
                }
                End::Left(job) => {
                    let priority = job.ties.lock().priority;
                    let record = record_of(&job, priority);
                    if let Err(error) = self.store.put(&key, &record, &encode_progress(0, &job.key)) {
                        tracing::error!(operation = job.operation(), error = chain(&error), "a job is lost");
                        failed.insert(key, End::Left(job));
                    }
                }
            }
        }
        let removed = if struck.is_empty() { Ok(()) } else { self.store.remove(&struck) };
        let changed = if kept.is_empty() { Ok(()) } else { self.store.set_summaries(&kept, Durability::Synced) };
        for error in [&removed, &changed].into_iter().filter_map(|written| written.as_ref().err()) {
            tracing::error!(
                error = chain(error),
                "ended jobs could not be removed; they would start again at the next start of the server"
            );
        }
        if removed.is_err() {
            failed.extend(struck.into_iter().map(|key| (key, End::Struck)));
        }
        if changed.is_err() {
            failed.extend(kept.into_iter().map(|(key, summary)| (key, End::Kept(summary))));
        }
        failed
    }

    /// Writes down how often a job was begun that has not ended.
    fn write_standing(&self, key: &PlanKey, job: &Job) -> Result<(), StoreError> {
        // Whoever counts a start meanwhile waits, and writes the newer number.
        let _writing = job.writing.lock();
        let ties = job.ties.lock();
        let ended = ties.phase.is_end();
        let Some(written) = ties.written.filter(|_| !ended) else { return Ok(()) };
        let summary = encode_progress(written.starts_with(ties.is_being_read), &job.key);
        drop(ties);
        self.store.set_summaries(&[(*key, summary)], Durability::Synced)
    }

    /// Hands out every job that an earlier process left unfinished, in the order of their numbers. What cannot be
    /// read goes into quarantine, or is left where it is if the engine cannot read it. One job is held in memory at a
    /// time.
    ///
    /// # Errors
    /// The engine could not list them.
    pub(crate) fn for_each_unfinished(&self, mut each: impl FnMut(Unfinished)) -> Result<(), StoreError> {
        let progress = self.progress()?;
        for key in self.store.all_keys() {
            let key = key?;
            let starts = match progress.get(&key) {
                Some(Some(starts)) => *starts,
                // Its end is all that is missing.
                Some(None) => {
                    self.noted.lock().ends.insert(key, End::Struck);
                    continue;
                }
                None => 0,
            };
            match self.store.get(&key) {
                Ok(entry) => entry.found().into_iter().for_each(|unfinished| each(Unfinished { starts, ..unfinished })),
                Err(error) => tracing::error!(%key, error = chain(&error), "an unfinished job cannot be read"),
            }
        }
        Ok(())
    }

    /// What the summaries say: how often each job was begun, and none for those that must have ended, since another
    /// one was made for the same request later.
    fn progress(&self) -> Result<BTreeMap<PlanKey, Option<u32>>, StoreError> {
        let (mut progress, mut latest) = (BTreeMap::new(), BTreeMap::new());
        for entry in self.store.summaries() {
            let (key, Some(found)) = entry? else { continue };
            if let Some(earlier) = latest.insert(found.request, key) {
                progress.insert(earlier, None);
            }
            progress.insert(key, Some(found.starts));
        }
        Ok(progress)
    }
}

impl Stored for Unfinished {
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        let entry = decode_entry(decode_record(&record)?).filter(|entry| PlanKey::numbered(entry.number) == *key);
        entry.map(|entry| Self { entry, starts: 0 }).ok_or(DamagedRecord::Payload)
    }

    fn log_damage(key: &PlanKey, _: &DamagedRecord) {
        tracing::error!(%key, "an unfinished job cannot be read; it was quarantined");
    }
}

impl Summarised for Unfinished {
    type Summary = Progress;

    fn decode_summary(_: &PlanKey, summary: &[u8]) -> Result<Progress, DamagedRecord> {
        decode_message(summary)
    }
}

#[cfg(test)]
mod tests;
