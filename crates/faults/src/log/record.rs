//! One element of the log: the last report of each source, their sum, and the part that counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Severity};
use crate::log::{FaultLogError, Outcome, Policy};
use crate::remaining::Remaining;
use crate::target::Target;

/// The last report of a source about an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The remaining capacity that it reports.
    pub remaining: Remaining,
    /// Severity.
    pub severity: Severity,
    /// Time of the observation, in milliseconds since 1970.
    pub observed_ms: u64,
    /// Time at which it stops counting.
    pub expires_ms: Option<u64>,
    /// Whether it counts: capacity is missing, and the report is neither cleared nor expired.
    pub is_live: bool,
    /// Ids of its last events with the times they were observed, oldest first.
    recent: Vec<(String, u64)>,
}

/// The record of one element. The [`Policy`] bounds its size: some 40 KiB at most with the standard one, and some
/// hundred bytes for one source.
///
/// Invariant: the state that counts is no better than the reported one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    target: Target,
    sources: BTreeMap<String, Word>,
    /// The worst that any source says.
    said: Remaining,
    /// What counts.
    counts_as: Remaining,
    /// Since when that counts.
    since_ms: u64,
    /// When what is said last changed.
    changed_ms: u64,
    /// The changes that may get it held: when, and to what. Oldest first, fewer than get it held.
    transitions: Vec<(u64, Remaining)>,
    /// Whether it counts as at its worst until it is quiet.
    is_held: bool,
    /// What was observed until then counts no more.
    floor_ms: Option<u64>,
    /// Changes that made no difference because it was held.
    flaps_suppressed: u64,
}

impl Record {
    pub(super) fn new(target: Target, now_ms: u64) -> Self {
        Self {
            target,
            sources: BTreeMap::new(),
            said: Remaining::WHOLE,
            counts_as: Remaining::WHOLE,
            since_ms: now_ms,
            changed_ms: now_ms,
            transitions: Vec::new(),
            is_held: false,
            floor_ms: None,
            flaps_suppressed: 0,
        }
    }

    /// The element.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The last report of each source, by its name.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = (&str, &Word)> {
        self.sources.iter().map(|(name, word)| (name.as_str(), word))
    }

    /// The worst present report of any source.
    pub const fn said(&self) -> Remaining {
        self.said
    }

    /// The state that counts, which is no better.
    pub const fn counts_as(&self) -> Remaining {
        self.counts_as
    }

    /// Time since which it counts, in milliseconds since 1970.
    pub const fn since_ms(&self) -> u64 {
        self.since_ms
    }

    /// When what is said last changed, in milliseconds since 1970.
    pub const fn changed_ms(&self) -> u64 {
        self.changed_ms
    }

    /// Whether it changed too often and counts as at its worst until it is quiet.
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// How many changes made no difference because it was held.
    pub const fn flaps_suppressed(&self) -> u64 {
        self.flaps_suppressed
    }

    /// The worst severity of what counts; none where all is well.
    pub fn severity(&self) -> Option<Severity> {
        self.sources.values().filter(|word| word.is_live).map(|word| word.severity).max()
    }

    /// When it will count as better than now if nothing is heard of it; none where nothing is pending.
    pub fn better_at_ms(&self, policy: &Policy) -> Option<u64> {
        let quiet_ms = if self.is_held { policy.hold_down_ms.max(policy.debounce_ms) } else { policy.debounce_ms };
        (self.is_held || self.said > self.counts_as).then(|| self.changed_ms.saturating_add(quiet_ms))
    }

    /// When it changes by itself.
    pub(super) fn next_wake(&self, policy: &Policy) -> Option<u64> {
        let live = self.sources.values().filter(|word| word.is_live);
        live.filter_map(|word| word.expires_ms).chain(self.better_at_ms(policy)).min()
    }

    /// Since when it is well and only remembered.
    pub(super) fn well_since(&self) -> Option<u64> {
        let is_well = self.counts_as.is_whole() && !self.is_held && self.sources.values().all(|word| !word.is_live);
        is_well.then_some(self.changed_ms)
    }

    /// Goes through all that happens by itself until now, one thing after the other.
    pub(super) fn settle(&mut self, policy: &Policy, now_ms: u64) {
        // Each round ends a word, a hold or a wait, and starts none.
        while let Some(wake) = self.next_wake(policy).filter(|wake| *wake <= now_ms) {
            let mut ended = false;
            for word in self.sources.values_mut() {
                if word.is_live && word.expires_ms.is_some_and(|expires| expires <= wake) {
                    (word.is_live, ended) = (false, true);
                }
            }
            if ended {
                self.follow(policy, wake);
                continue;
            }
            if self.is_held {
                self.is_held = false;
                self.transitions.clear();
            }
            self.count(self.said, wake);
        }
    }

    /// Enters an event of this element after [`Record::settle`].
    pub(super) fn enter(&mut self, event: Event, policy: &Policy, now_ms: u64) -> Result<Outcome, FaultLogError> {
        if self.floor_ms.is_some_and(|floor| event.observed_ms <= floor) {
            return Ok(Outcome::Stale);
        }
        let mut recent = match self.sources.get(&event.source) {
            None => Vec::new(),
            Some(word) if word.recent.iter().any(|(id, _)| *id == event.event_id) => return Ok(Outcome::Repeated),
            Some(word) if event.observed_ms < word.observed_ms => return Ok(Outcome::Stale),
            Some(word) => word.recent.clone(),
        };
        if recent.len() >= policy.ids_max {
            // What was observed before the last is known by its time. Of the same time only ids tell.
            if recent.first().is_none_or(|(_, observed_ms)| *observed_ms == event.observed_ms) {
                let (source_name, target) = (event.source, self.target.clone());
                return Err(FaultLogError::TooManyIds { source_name, target, limit: policy.ids_max });
            }
            recent.remove(0);
        }
        if !self.sources.contains_key(&event.source) {
            self.make_room(policy)?;
        }
        let was_well = self.counts_as.is_whole();
        let Event { source, event_id, remaining, severity, observed_ms, expires_ms, cleared, .. } = event;
        recent.push((event_id, observed_ms));
        let is_live = !cleared && !remaining.is_whole() && expires_ms.is_none_or(|expires| expires > now_ms);
        self.sources.insert(source, Word { remaining, severity, observed_ms, expires_ms, is_live, recent });
        self.follow(policy, now_ms);
        self.settle(policy, now_ms);
        Ok(match (self.is_held, was_well, self.counts_as.is_whole()) {
            (true, ..) => Outcome::Held,
            (false, true, false) => Outcome::New,
            (false, true, true) => Outcome::NothingToClear,
            (false, false, true) => Outcome::Cleared,
            (false, false, false) if self.said.is_whole() => Outcome::ClearPending,
            (false, false, false) => Outcome::Updated,
        })
    }

    /// Takes all words back.
    pub(super) fn clear(&mut self, now_ms: u64) {
        self.sources.values_mut().for_each(|word| word.is_live = false);
        self.floor_ms = Some(now_ms);
        (self.is_held, self.said) = (false, Remaining::WHOLE);
        self.transitions.clear();
        self.changed_ms = now_ms;
        self.count(Remaining::WHOLE, now_ms);
    }

    /// Takes back the words of those sources that are meant. If no other says anything, and the element is not held, that
    /// counts at once. False: none of them has ever said anything.
    pub(super) fn clear_of(&mut self, is_meant: impl Fn(&str) -> bool, policy: &Policy, now_ms: u64) -> bool {
        let meant = self.sources.keys().filter(|name| is_meant(name)).count();
        if meant == self.sources.len() {
            self.clear(now_ms);
            return true;
        }
        let words = self.sources.iter_mut().filter(|(name, _)| is_meant(name));
        words.for_each(|(_, word)| (word.is_live, word.observed_ms) = (false, word.observed_ms.max(now_ms)));
        let is_said = self.sources.values().any(|word| word.is_live);
        if is_said || self.is_held || meant == 0 {
            self.follow(policy, now_ms);
        } else {
            (self.said, self.changed_ms) = (Remaining::WHOLE, now_ms);
            self.transitions.clear();
            self.count(Remaining::WHOLE, now_ms);
        }
        meant > 0
    }

    /// Forgets the source that took its word back longest ago if there is no room for one more. What it said stays stale:
    /// nothing that old counts any more, whoever says it.
    fn make_room(&mut self, policy: &Policy) -> Result<(), FaultLogError> {
        if self.sources.len() < policy.sources_max {
            return Ok(());
        }
        let done = self.sources.iter().filter(|(_, word)| !word.is_live);
        let oldest = done.min_by_key(|(_, word)| word.observed_ms).map(|(name, word)| (name.clone(), word.observed_ms));
        let full = || FaultLogError::TooManySources { target: self.target.clone(), limit: policy.sources_max };
        let (name, observed_ms) = oldest.ok_or_else(full)?;
        self.sources.remove(&name);
        self.floor_ms = self.floor_ms.max(Some(observed_ms));
        Ok(())
    }

    /// Adds up what is said, and what of it counts.
    fn follow(&mut self, policy: &Policy, at_ms: u64) {
        let live = self.sources.values().filter(|word| word.is_live);
        let said = live.map(|word| word.remaining).min().unwrap_or(Remaining::WHOLE);
        if said == self.said {
            return;
        }
        (self.said, self.changed_ms) = (said, at_ms);
        let before = self.counts_as;
        let mut worst = before.min(said);
        if !self.is_held {
            self.transitions.retain(|(then_ms, _)| then_ms.saturating_add(policy.window_ms) > at_ms);
            self.transitions.push((at_ms, said));
            if self.transitions.len() >= policy.transitions {
                self.is_held = true;
                worst = self.transitions.iter().map(|(_, said)| *said).fold(worst, Ord::min);
                self.transitions.clear();
            }
        }
        self.count(worst, at_ms);
        if self.is_held && self.counts_as == before {
            self.flaps_suppressed = self.flaps_suppressed.saturating_add(1);
        }
    }

    fn count(&mut self, counts_as: Remaining, at_ms: u64) {
        if self.counts_as != counts_as {
            (self.counts_as, self.since_ms) = (counts_as, at_ms);
        }
    }
}
