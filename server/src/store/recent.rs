//! Plans that were read lately, in memory, so that an answer from the cache needs neither disk nor decoder.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Records, StoredPlan};
use crate::key::PlanKey;

/// What a decoded plan takes beside the bytes of its record, which its files share; a guess on the safe side.
const OVERHEAD_BYTES: u64 = 4096;

/// Plans in memory; those that have not been asked for the longest leave first.
///
/// It never holds what the store does not: whoever changes the store forgets the plan here afterwards, and what was
/// read before such a change is not taken in after it.
#[derive(Debug)]
pub(super) struct Recent {
    bytes_max: u64,
    plans: Mutex<Plans>,
}

/// How much is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryUsage {
    /// Plans.
    pub(crate) records: usize,
    /// Their bytes, estimated.
    pub(crate) bytes: u64,
    /// Most bytes.
    pub(crate) bytes_max: u64,
    /// Plans that made room for others.
    pub(crate) evictions: u64,
}

/// A point between two changes of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(u64);

#[derive(Debug, Default)]
struct Plans {
    by_key: HashMap<PlanKey, Entry>,
    /// The order of last uses.
    by_use: BTreeMap<u64, PlanKey>,
    use_count: u64,
    bytes: u64,
    change_count: u64,
    evictions: u64,
}

#[derive(Debug)]
struct Entry {
    plan: Arc<StoredPlan>,
    bytes: u64,
    last_use: u64,
}

impl Recent {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, plans: Mutex::default() }
    }

    /// The present, to be taken before the store is read.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.lock().change_count)
    }

    /// The plan, if it is here. O(log plans).
    pub(super) fn get(&self, key: &PlanKey) -> Option<Arc<StoredPlan>> {
        let mut plans = self.lock();
        let plans = &mut *plans;
        let entry = plans.by_key.get_mut(key)?;
        plans.by_use.remove(&entry.last_use);
        plans.use_count += 1;
        entry.last_use = plans.use_count;
        plans.by_use.insert(entry.last_use, *key);
        Some(Arc::clone(&entry.plan))
    }

    /// Takes in a plan that was read from a record of so many bytes, unless the store has changed since `read`.
    /// Others make room for it; one that would take more than a quarter of the room is left out.
    pub(super) fn keep(&self, key: &PlanKey, plan: &Arc<StoredPlan>, record_bytes: usize, read: Moment) {
        let bytes = (record_bytes as u64).saturating_add(OVERHEAD_BYTES);
        let mut plans = self.lock();
        if bytes > self.bytes_max / 4 || plans.change_count != read.0 {
            return;
        }
        plans.forget(key);
        while plans.bytes.saturating_add(bytes) > self.bytes_max {
            let Some((_, oldest)) = plans.by_use.pop_first() else { break };
            plans.forget(&oldest);
            plans.evictions += 1;
        }
        plans.use_count += 1;
        let last_use = plans.use_count;
        plans.by_use.insert(last_use, *key);
        plans.bytes += bytes;
        plans.by_key.insert(*key, Entry { plan: Arc::clone(plan), bytes, last_use });
    }

    /// The store has changed under these keys.
    pub(super) fn changed(&self, keys: &[PlanKey]) {
        let mut plans = self.lock();
        plans.change_count += 1;
        for key in keys {
            plans.forget(key);
        }
    }

    pub(super) fn usage(&self) -> MemoryUsage {
        let plans = self.lock();
        let (records, bytes, evictions) = (plans.by_key.len(), plans.bytes, plans.evictions);
        MemoryUsage { records, bytes, bytes_max: self.bytes_max, evictions }
    }

    fn lock(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// The plan under this key if it is in memory. Counts no use, and never touches the disk.
    pub(crate) fn remembered(&self, key: &PlanKey) -> Option<Arc<StoredPlan>> {
        self.shared.recent.get(key)
    }

    /// How much is in memory.
    pub(crate) fn memory_usage(&self) -> MemoryUsage {
        self.shared.recent.usage()
    }
}

impl Plans {
    fn forget(&mut self, key: &PlanKey) {
        if let Some(entry) = self.by_key.remove(key) {
            self.by_use.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::Plan;

    use super::*;

    fn key(byte: u8) -> PlanKey {
        PlanKey::from_bytes([byte; 32])
    }

    fn plan(byte: u8) -> Arc<StoredPlan> {
        let plan = Plan { content_key: key(byte).to_string(), ..Plan::default() };
        Arc::new(StoredPlan { plan, warnings: Vec::new() })
    }

    /// Room for four plans whose records have no bytes.
    fn room_for_four() -> Recent {
        Recent::new(4 * OVERHEAD_BYTES)
    }

    #[test]
    fn the_one_asked_for_longest_ago_makes_room() {
        let recent = room_for_four();
        for byte in 0..4 {
            recent.keep(&key(byte), &plan(byte), 0, recent.moment());
        }
        assert!(recent.get(&key(0)).is_some());
        recent.keep(&key(4), &plan(4), 0, recent.moment());
        let there: Vec<bool> = (0..5).map(|byte| recent.get(&key(byte)).is_some()).collect();
        assert_eq!(there, [true, false, true, true, true]);
        let full = MemoryUsage { records: 4, bytes: 4 * OVERHEAD_BYTES, bytes_max: 4 * OVERHEAD_BYTES, evictions: 1 };
        assert_eq!(recent.usage(), full);
    }

    #[test]
    fn what_was_read_before_a_change_is_not_taken_in_after_it() {
        let recent = room_for_four();
        let read = recent.moment();
        recent.changed(&[key(1)]);
        recent.keep(&key(1), &plan(1), 0, read);
        assert_eq!(recent.get(&key(1)), None);
        recent.keep(&key(1), &plan(1), 0, recent.moment());
        assert!(recent.get(&key(1)).is_some());
        recent.changed(&[key(1)]);
        assert_eq!((recent.get(&key(1)), recent.usage().bytes), (None, 0));
    }

    #[test]
    fn a_plan_kept_twice_counts_once_and_a_large_one_not_at_all() {
        let recent = room_for_four();
        for _ in 0..2 {
            recent.keep(&key(1), &plan(1), 0, recent.moment());
        }
        recent.keep(&key(2), &plan(2), 1, recent.moment());
        assert_eq!((recent.usage().records, recent.usage().bytes), (1, OVERHEAD_BYTES));
    }
}
