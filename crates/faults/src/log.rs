//! The log of one network's faults: what counts as broken now, of all that was said, late, twice, and in circles.
//!
//! * **A fault counts at once.** Of several sources the worst counts; a source clears only what it said itself.
//! * **A clear counts after a while** without new trouble ([`Policy::debounce_ms`]), so that nobody goes back to a link that
//!   comes and goes. An element that changed too often lately is *held*: it counts as at its worst until it was quiet for
//!   longer ([`Policy::hold_down_ms`]).
//! * **Replaying changes nothing.** Of a source and element only what was observed later counts, and an event id counts once.
//! * **Memory is bounded** by [`Policy`], and so is each [`Record`]: a server stores each under a key of its own, and makes
//!   the log again from them.
//!
//! The log has no clock. Times are arguments and never go back: an earlier one counts as the latest given. Whoever keeps
//! the log calls [`FaultLog::tick`] when [`FaultLog::next_wake`] says; being late changes nothing but when it is known.

mod record;

use std::collections::{BTreeMap, BTreeSet};

pub use self::record::{Record, Word};
use crate::event::{Event, EventError};
use crate::remaining::Remaining;
use crate::target::{Loss, Target};

/// When clears count, and how much is remembered. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long after its last change an element that got better counts as better.
    pub debounce_ms: u64,
    /// How many changes within `window_ms` get an element held, 2 to 64.
    pub transitions: usize,
    /// How long a change is remembered for that.
    pub window_ms: u64,
    /// How long a held element must not change to be let go.
    pub hold_down_ms: u64,
    /// How long what was said of an element that is well is remembered, to know replays by.
    pub memory_ms: u64,
    /// How far ahead of the time here an observation may be, for clocks that differ.
    pub skew_ms: u64,
    /// Most elements, well ones that are remembered included.
    pub elements_max: usize,
    /// Most sources that speak of one element.
    pub sources_max: usize,
    /// Most event ids remembered of each source and element.
    pub ids_max: usize,
}

impl Policy {
    /// Ten seconds of debounce; three changes in a minute hold an element for a minute; a day's memory.
    pub const STANDARD: Self = Self {
        debounce_ms: 10_000,
        transitions: 3,
        window_ms: 60_000,
        hold_down_ms: 60_000,
        memory_ms: 86_400_000,
        skew_ms: 300_000,
        elements_max: 100_000,
        sources_max: 16,
        ids_max: 16,
    };

    /// The policy, if elements can be held by it and remembered.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn checked(self) -> Result<Self, PolicyError> {
        let ranges = [
            ("transitions", self.transitions, 2, 64),
            ("elements_max", self.elements_max, 1, 10_000_000),
            ("sources_max", self.sources_max, 1, 64),
            ("ids_max", self.ids_max, 1, 64),
        ];
        match ranges.into_iter().find(|(_, found, least, most)| !(least..=most).contains(&found)) {
            Some((field, found, least, most)) => Err(PolicyError { field, found, least, most }),
            None => Ok(self),
        }
    }
}

/// Why a policy is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}; use {least} to {most}")]
#[expect(missing_docs, reason = "the message names every field")]
pub struct PolicyError {
    pub field: &'static str,
    pub found: usize,
    pub least: usize,
    pub most: usize,
}

/// Why an event was not entered. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FaultLogError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(
        "observed_ms is {ahead_ms} ms ahead of the time here, over the {limit} that clocks may differ; set the clock"
    )]
    Future { ahead_ms: u64, limit: u64 },
    #[error("{limit} elements of the topology are faulty, the limit of elements_max; clear some, or report the hosts")]
    TooManyElements { limit: usize },
    #[error(
        "{limit} sources say that {target} is faulty, the limit of sources_max; report it under one of their names"
    )]
    TooManySources { target: Target, limit: usize },
    #[error(
        "source {source_name} said {limit} things about {target} at the same millisecond, the limit of ids_max; say only \
         the last, with the time of each"
    )]
    TooManyIds { source_name: String, target: Target, limit: usize },
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The element counted as well and counts as faulty.
    New,
    /// It counted as faulty and still does, maybe otherwise than before.
    Updated,
    /// The event was entered before. Nothing changed.
    Repeated,
    /// The same source said something later, or the element was cleared since. Nothing changed.
    Stale,
    /// All sources say that the element is well, but that is too short ago to count.
    ClearPending,
    /// It counts as well.
    Cleared,
    /// Entered; the element is held, because it changed too often.
    Held,
    /// It counted as well and does, for all that this event says.
    NothingToClear,
}

/// An element of the log and when it wants to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    record: Record,
    /// Under which time it is in `wakes`.
    wake: Option<u64>,
    /// Under which time it is in `well`.
    well_since: Option<u64>,
}

/// The faults of one network.
#[derive(Clone, Debug)]
pub struct FaultLog {
    policy: Policy,
    elements: BTreeMap<Target, Entry>,
    /// What counts as faulty.
    active: BTreeMap<Target, Remaining>,
    /// When elements change by themselves.
    wakes: BTreeSet<(u64, Target)>,
    /// Elements that are well and only remembered, by when they last were not.
    well: BTreeSet<(u64, Target)>,
    /// Elements whose records changed or went since somebody asked.
    unsaved: BTreeSet<Target>,
    version: u64,
    now_ms: u64,
}

impl FaultLog {
    /// A log with nothing in it.
    pub fn new(policy: Policy) -> Self {
        Self::rebuilt(policy, 0, [])
    }

    /// The log of these records, going on from a version. O(records · log records).
    ///
    /// Of several records of one element the last counts. Limits are for what is entered, not for what was.
    pub fn rebuilt(policy: Policy, version: u64, records: impl IntoIterator<Item = Record>) -> Self {
        let mut log = Self {
            policy,
            elements: BTreeMap::new(),
            active: BTreeMap::new(),
            wakes: BTreeSet::new(),
            well: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            version,
            now_ms: 0,
        };
        for record in records {
            log.now_ms = log.now_ms.max(record.changed_ms());
            log.take_out(&record.target().clone());
            log.put(record);
        }
        log.version = version;
        log
    }

    /// Enters an event at a time. The target should be canonical ([`Directory::canonical`](crate::Directory::canonical)):
    /// the log takes two names for two elements.
    ///
    /// A clear is remembered like a fault, and makes stale what the source said before, even if that comes later.
    ///
    /// # Errors
    /// See [`FaultLogError`].
    ///
    /// O(log elements + sources + ids of the element).
    pub fn report(&mut self, event: Event, now_ms: u64) -> Result<Outcome, FaultLogError> {
        let event = event.checked()?;
        let now_ms = self.advance(now_ms);
        let ahead_ms = event.observed_ms.saturating_sub(now_ms);
        if ahead_ms > self.policy.skew_ms {
            return Err(FaultLogError::Future { ahead_ms, limit: self.policy.skew_ms });
        }
        if !self.elements.contains_key(&event.target) {
            self.make_room()?;
        }
        let mut record = known_or_new(self.elements.get(&event.target), &event.target, now_ms);
        record.settle(&self.policy, now_ms);
        let outcome = record.enter(event, &self.policy, now_ms)?;
        if !matches!(outcome, Outcome::Repeated | Outcome::Stale) {
            self.replace(record);
        }
        Ok(outcome)
    }

    /// Takes back all that was said about an element until now, whoever said it: it counts as well at once.
    pub fn clear(&mut self, target: &Target, now_ms: u64) -> Outcome {
        let now_ms = self.advance(now_ms);
        let Some(entry) = self.elements.get(target) else { return Outcome::NothingToClear };
        let mut record = entry.record.clone();
        record.settle(&self.policy, now_ms);
        let was_well = record.counts_as().is_whole();
        record.clear(now_ms);
        self.replace(record);
        if was_well { Outcome::NothingToClear } else { Outcome::Cleared }
    }

    /// Lets the time pass: faults expire, clears count, held elements are let go, and what was well for long is forgotten.
    /// O(log elements) for each that changes.
    pub fn tick(&mut self, now_ms: u64) {
        let now_ms = self.advance(now_ms);
        while let Some((_, target)) = self.wakes.first().filter(|(wake, _)| *wake <= now_ms) {
            let target = target.clone();
            let Some(entry) = self.elements.get(&target) else { break };
            let mut record = entry.record.clone();
            record.settle(&self.policy, now_ms);
            self.replace(record);
        }
        while let Some((_, target)) = self.well.first().filter(|(since, _)| self.is_forgotten(*since, now_ms)) {
            let target = target.clone();
            self.take_out(&target);
            self.unsaved.insert(target);
        }
    }

    /// When [`FaultLog::tick`] has something to do next.
    pub fn next_wake(&self) -> Option<u64> {
        let wake = self.wakes.first().map(|(wake, _)| *wake);
        let forget = self.well.first().map(|(since, _)| since.saturating_add(self.policy.memory_ms));
        wake.into_iter().chain(forget).min()
    }

    /// What counts as faulty, in the order of targets. Takes no time into account that was not given to
    /// [`FaultLog::tick`] or [`FaultLog::report`].
    pub fn active(&self) -> Vec<Loss> {
        let loss = |(target, remaining): (&Target, &Remaining)| Loss { target: target.clone(), remaining: *remaining };
        self.active.iter().map(loss).collect()
    }

    /// Counts the changes of [`FaultLog::active`].
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// All that is remembered, in the order of targets.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.elements.values().map(|entry| &entry.record)
    }

    /// What is remembered of an element.
    pub fn record(&self, target: &Target) -> Option<&Record> {
        self.elements.get(target).map(|entry| &entry.record)
    }

    /// The elements whose records are other than when this was last called: to be stored, or forgotten where there is none.
    pub fn take_unsaved(&mut self) -> Vec<(Target, Option<&Record>)> {
        let unsaved = std::mem::take(&mut self.unsaved);
        unsaved.into_iter().map(|target| (target.clone(), self.record(&target))).collect()
    }

    fn advance(&mut self, now_ms: u64) -> u64 {
        self.now_ms = self.now_ms.max(now_ms);
        self.now_ms
    }

    const fn is_forgotten(&self, well_since: u64, now_ms: u64) -> bool {
        well_since.saturating_add(self.policy.memory_ms) <= now_ms
    }

    /// Forgets what was well for longest if there is no room for one more.
    fn make_room(&mut self) -> Result<(), FaultLogError> {
        if self.elements.len() < self.policy.elements_max {
            return Ok(());
        }
        let full = FaultLogError::TooManyElements { limit: self.policy.elements_max };
        let (_, target) = self.well.first().cloned().ok_or(full)?;
        self.take_out(&target);
        self.unsaved.insert(target);
        Ok(())
    }

    /// Puts a changed record in the place of the one before.
    fn replace(&mut self, record: Record) {
        let target = record.target().clone();
        self.take_out(&target);
        self.put(record);
        self.unsaved.insert(target);
    }

    fn take_out(&mut self, target: &Target) {
        let Some(entry) = self.elements.remove(target) else { return };
        if let Some(wake) = entry.wake {
            self.wakes.remove(&(wake, target.clone()));
        }
        if let Some(since) = entry.well_since {
            self.well.remove(&(since, target.clone()));
        }
    }

    fn put(&mut self, record: Record) {
        let target = record.target().clone();
        let counts_as = record.counts_as();
        let before = match counts_as.is_whole() {
            true => self.active.remove(&target),
            false => self.active.insert(target.clone(), counts_as),
        };
        if before.unwrap_or(Remaining::WHOLE) != counts_as {
            self.version += 1;
        }
        let wake = record.next_wake(&self.policy);
        if let Some(wake) = wake {
            self.wakes.insert((wake, target.clone()));
        }
        let well_since = record.well_since();
        if let Some(since) = well_since {
            self.well.insert((since, target.clone()));
        }
        self.elements.insert(target, Entry { record, wake, well_since });
    }
}

/// The record of an element, or an empty one.
fn known_or_new(known: Option<&Entry>, target: &Target, now_ms: u64) -> Record {
    known.map_or_else(|| Record::new(target.clone(), now_ms), |entry| entry.record.clone())
}

#[cfg(test)]
mod tests;
