//! The fault log of one network: which elements count as faulty now, given late, duplicate and contradictory reports.
//!
//! * **A fault counts at once.** Of several sources the worst counts; a source clears only what it said itself.
//! * **A clear counts after a while** without new trouble ([`Policy::debounce_ms`]), so that jobs do not return to a
//!   flapping link. An element that changed too often lately is *held*: it counts as at its worst until it was quiet
//!   for longer ([`Policy::hold_down_ms`]).
//! * **Replaying changes nothing.** Of a source and element only what was observed later counts, and an event id counts once.
//! * **Memory is bounded** by [`Policy`], and so is each [`Record`]: a server stores each under a key of its own, and makes
//!   the log again from them.
//!
//! The log has no clock. Times are arguments and never go back: an earlier one counts as the latest given. The owner
//! calls [`FaultLog::tick`] at [`FaultLog::next_wake`]; a late call only delays the result.

mod record;

use std::collections::{BTreeMap, BTreeSet};

pub use self::record::{Record, Word};
use crate::event::{Event, EventError};
use crate::remaining::Remaining;
use crate::target::{Loss, Target};

/// Delays and limits of the log. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Time after its last change at which a recovered element counts as healthy.
    pub debounce_ms: u64,
    /// Number of changes within `window_ms` after which an element is held, 2 to 64.
    pub transitions: usize,
    /// Time for which a change counts towards `transitions`.
    pub window_ms: u64,
    /// Time without a change after which a held element is released.
    pub hold_down_ms: u64,
    /// Time for which reports about a healthy element are kept, to recognise replays.
    pub memory_ms: u64,
    /// Most by which an observation may be ahead of the log's time, for clocks that differ.
    pub skew_ms: u64,
    /// Most elements, including healthy ones with kept reports.
    pub elements_max: usize,
    /// Most sources per element.
    pub sources_max: usize,
    /// Most event ids kept per source and element.
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

    /// Checks the policy.
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

/// A value of a policy that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}; use {least} to {most}")]
#[expect(missing_docs, reason = "the message names every field")]
pub struct PolicyError {
    pub field: &'static str,
    pub found: usize,
    pub least: usize,
    pub most: usize,
}

/// Errors of entering an event. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FaultLogError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("observed_ms is {ahead_ms} ms ahead of the server's clock, over the limit of {limit}; set the clock")]
    Future { ahead_ms: u64, limit: u64 },
    #[error(
        "{limit} elements of the topology are already faulty, the limit of elements_max; clear some, or report \
             whole hosts"
    )]
    TooManyElements { limit: usize },
    #[error("{limit} sources already report {target}, the limit of sources_max; report it under one of their names")]
    TooManySources { target: Target, limit: usize },
    #[error(
        "source {source_name} reported {target} {limit} times in one millisecond, the limit of ids_max; send only the \
         last report, or the time of each"
    )]
    TooManyIds { source_name: String, target: Target, limit: usize },
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The element was healthy and now counts as faulty.
    New,
    /// The element was faulty and still is, maybe with another remaining fraction.
    Updated,
    /// The event is a duplicate. Nothing changed.
    Repeated,
    /// The source has made a later report, or the element was cleared since. Nothing changed.
    Stale,
    /// All sources report the element healthy, but the debounce time has not passed.
    ClearPending,
    /// The element counts as healthy.
    Cleared,
    /// The event is entered, and the element is held because it changed too often.
    Held,
    /// The element counted as healthy and still does.
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

/// The fault log of one network.
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
    /// An empty log.
    pub fn new(policy: Policy) -> Self {
        Self::rebuilt(policy, 0, [])
    }

    /// Restores a log from records and a version. O(records · log records).
    ///
    /// If several records have one element, the last counts. Limits apply to new events only.
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
    /// the log treats two names as two elements.
    ///
    /// A clear is kept like a fault, and makes earlier reports of the source stale, even if they arrive later.
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

    /// Clears all reports about an element, from every source: it counts as healthy at once.
    pub fn clear(&mut self, target: &Target, now_ms: u64) -> Outcome {
        self.clear_of(target, |_| true, now_ms)
    }

    /// Clears the reports of some sources about an element. Where no other source reports it, it counts as healthy at once,
    /// unless it is held; else what the others say counts.
    pub fn clear_of(&mut self, target: &Target, is_meant: impl Fn(&str) -> bool, now_ms: u64) -> Outcome {
        let now_ms = self.advance(now_ms);
        let Some(entry) = self.elements.get(target) else { return Outcome::NothingToClear };
        let mut record = entry.record.clone();
        record.settle(&self.policy, now_ms);
        let was_well = record.counts_as().is_whole();
        if !record.clear_of(is_meant, &self.policy, now_ms) {
            return Outcome::NothingToClear;
        }
        record.settle(&self.policy, now_ms);
        let is_well = record.counts_as().is_whole();
        self.replace(record);
        match (was_well, is_well) {
            (true, _) => Outcome::NothingToClear,
            (false, true) => Outcome::Cleared,
            (false, false) => Outcome::Updated,
        }
    }

    /// Advances the time: faults expire, clears count, held elements are released, and old healthy elements are
    /// forgotten. O(log elements) for each that changes.
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

    /// The next time at which [`FaultLog::tick`] has work.
    pub fn next_wake(&self) -> Option<u64> {
        let wake = self.wakes.first().map(|(wake, _)| *wake);
        let forget = self.well.first().map(|(since, _)| since.saturating_add(self.policy.memory_ms));
        wake.into_iter().chain(forget).min()
    }

    /// The elements that count as faulty, in the order of targets, at the latest time given to [`FaultLog::tick`] or
    /// [`FaultLog::report`].
    pub fn active(&self) -> Vec<Loss> {
        let loss = |(target, remaining): (&Target, &Remaining)| Loss { target: target.clone(), remaining: *remaining };
        self.active.iter().map(loss).collect()
    }

    /// A version that grows with each change of [`FaultLog::active`].
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// All records, in the order of targets.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.elements.values().map(|entry| &entry.record)
    }

    /// The record of an element.
    pub fn record(&self, target: &Target) -> Option<&Record> {
        self.elements.get(target).map(|entry| &entry.record)
    }

    /// The elements whose records changed since the last call: to be stored, or deleted if there is no record.
    pub fn take_unsaved(&mut self) -> Vec<(Target, Option<&Record>)> {
        let unsaved = std::mem::take(&mut self.unsaved);
        unsaved.into_iter().map(|target| (target.clone(), self.record(&target))).collect()
    }

    /// Takes the change of an element from one record to another back, unless it has changed again since; `None`: no record.
    /// O(log elements).
    pub fn take_back(&mut self, target: &Target, before: Option<Record>, after: Option<&Record>) {
        if self.record(target) != after {
            return;
        }
        self.take_out(target);
        match before {
            Some(record) => self.put(record),
            None => self.version += u64::from(self.active.remove(target).is_some()),
        }
        self.unsaved.insert(target.clone());
    }

    /// Takes over what is known of an element elsewhere, in place of what is known here; `None`: nothing. It is saved there.
    /// O(log elements).
    pub fn learn(&mut self, target: &Target, record: Option<Record>) {
        self.take_out(target);
        match record {
            Some(record) => {
                self.now_ms = self.now_ms.max(record.changed_ms());
                self.put(record);
            }
            None => self.version += u64::from(self.active.remove(target).is_some()),
        }
        self.unsaved.remove(target);
    }

    /// Whether the record of an element has changed or gone since somebody asked for what is unsaved.
    pub fn is_unsaved(&self, target: &Target) -> bool {
        self.unsaved.contains(target)
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
