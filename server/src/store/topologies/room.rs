//! The stored topologies, their size, and the order in which they are removed.

use std::collections::{BTreeMap, BTreeSet};

use canopy_planner::PlanKey;

/// What is used last is never removed: whoever has just been given it may be about to hold a lease or a fault on it.
const RECENT: usize = 128;
/// What part of the room is for leases and faults alone.
const RESERVE_SHARE: u64 = 8;

/// What a topology is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Somebody has put it, to name it.
    Named,
    /// A lease or a fault is on it.
    Held,
}

/// The topologies that are there.
#[derive(Debug, Default)]
pub(super) struct Room {
    entries: BTreeMap<PlanKey, Entry>,
    /// By when they were used last.
    by_use: BTreeSet<(u64, PlanKey)>,
    bytes: u64,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    size_bytes: u64,
    used: u64,
    purpose: Purpose,
}

/// Most topologies, and most bytes of their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) count: usize,
    pub(super) bytes: u64,
}

impl Limits {
    /// What of it may be used for this.
    pub(super) fn of(self, purpose: Purpose) -> Self {
        match purpose {
            Purpose::Held => self,
            Purpose::Named => {
                let share = usize::try_from(RESERVE_SHARE).unwrap_or(usize::MAX);
                Self { count: self.count - self.count / share, bytes: self.bytes - self.bytes / RESERVE_SHARE }
            }
        }
    }
}

impl Room {
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the record under this key, if it is there.
    pub(super) fn size_of(&self, key: &PlanKey) -> Option<u64> {
        self.entries.get(key).map(|entry| entry.size_bytes)
    }

    pub(super) fn purpose_of(&self, key: &PlanKey) -> Option<Purpose> {
        self.entries.get(key).map(|entry| entry.purpose)
    }

    /// The first key in a range.
    pub(super) fn first_in(&self, range: std::ops::RangeInclusive<PlanKey>) -> Option<PlanKey> {
        self.entries.range(range).next().map(|(key, _)| *key)
    }

    /// Enters a record in place of an earlier one, as the one that is used last.
    pub(super) fn enter(&mut self, key: PlanKey, size_bytes: u64, purpose: Purpose) {
        self.strike(&key);
        self.uses += 1;
        self.entries.insert(key, Entry { size_bytes, used: self.uses, purpose });
        self.by_use.insert((self.uses, key));
        self.bytes += size_bytes;
    }

    pub(super) fn strike(&mut self, key: &PlanKey) -> Option<u64> {
        let entry = self.entries.remove(key)?;
        self.by_use.remove(&(entry.used, *key));
        self.bytes -= entry.size_bytes;
        Some(entry.size_bytes)
    }

    /// Notes a use; false: it is not there.
    pub(super) fn touch(&mut self, key: &PlanKey) -> bool {
        let Some(Entry { size_bytes, purpose, .. }) = self.entries.get(key).copied() else { return false };
        self.enter(*key, size_bytes, purpose);
        true
    }

    /// Those that go so that a new record of so many bytes has room within these limits: of those that nothing uses the ones that leases
    /// and faults have left behind, and then those that were put, first those that were used first. Not all that would be needed, where the
    /// others stay. O(topologies).
    pub(super) fn victims(
        &self,
        needed: u64,
        limits: Limits,
        in_use: impl FnOnce() -> BTreeSet<PlanKey>,
    ) -> Vec<PlanKey> {
        let (mut count, mut bytes) = (self.count() + 1, self.bytes.saturating_add(needed));
        let fits = |count: usize, bytes: u64| count <= limits.count && bytes <= limits.bytes;
        if fits(count, bytes) {
            return Vec::new();
        }
        let (in_use, old) = (in_use(), self.count().saturating_sub(RECENT));
        let mut victims = Vec::new();
        for purpose in [Purpose::Held, Purpose::Named] {
            for (_, key) in self.by_use.iter().take(old) {
                let Some(entry) = self.entries.get(key).filter(|entry| entry.purpose == purpose) else { continue };
                if fits(count, bytes) {
                    return victims;
                }
                if !in_use.contains(key) {
                    victims.push(*key);
                    (count, bytes) = (count - 1, bytes - entry.size_bytes);
                }
            }
        }
        victims
    }
}
