//! Plans that were read lately, in memory, so that an answer from the cache needs neither disk nor decoder.

use std::sync::Arc;

use canopy_planner::{self as planner, MemoryUsage, PlanKey};
use canopy_wire::StoredPlan;
use parking_lot::Mutex;

use super::Records;

/// What any decoded plan takes beside the bytes of its record, which its files share; a guess on the safe side. One with
/// a large proof takes more.
const OVERHEAD_BYTES: u64 = 4096;

/// Plans in memory; those that have not been asked for the longest leave first.
///
/// It never holds what the store does not: whoever changes the store forgets the plan here afterwards, and what was
/// read before such a change is not taken in after it.
#[derive(Debug)]
pub(super) struct Recent {
    plans: Mutex<Plans>,
}

/// A point between two changes of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(u64);

#[derive(Debug)]
struct Plans {
    by_key: planner::Recent<PlanKey, Arc<StoredPlan>>,
    change_count: u64,
}

impl Recent {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { plans: Mutex::new(Plans { by_key: planner::Recent::new(bytes_max), change_count: 0 }) }
    }

    /// The present, to be taken before the store is read.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.plans.lock().change_count)
    }

    /// The plan, if it is here. O(1).
    pub(super) fn get(&self, key: &PlanKey) -> Option<Arc<StoredPlan>> {
        self.plans.lock().by_key.get(key)
    }

    /// Takes in a plan that was read from a record of so many bytes, unless the store has changed since `read`.
    pub(super) fn keep(&self, key: &PlanKey, plan: &Arc<StoredPlan>, record_bytes: usize, read: Moment) {
        let bytes = (record_bytes as u64).saturating_add(OVERHEAD_BYTES.max(plan.memory_bytes() as u64));
        let mut plans = self.plans.lock();
        if plans.change_count == read.0 {
            plans.by_key.keep(*key, Arc::clone(plan), bytes);
        }
    }

    /// The store has changed under these keys.
    pub(super) fn changed(&self, keys: &[PlanKey]) {
        if keys.is_empty() {
            return;
        }
        let mut plans = self.plans.lock();
        plans.change_count += 1;
        for key in keys {
            plans.by_key.forget(key);
        }
    }

    pub(super) fn usage(&self) -> MemoryUsage {
        self.plans.lock().by_key.usage()
    }
}

impl Records {
    /// The plan under this key if it is in memory. Counts no use, and never touches the disk.
    pub fn remembered(&self, key: &PlanKey) -> Option<Arc<StoredPlan>> {
        self.shared.recent.get(key)
    }

    /// How much is in memory.
    pub fn memory_usage(&self) -> MemoryUsage {
        self.shared.recent.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PlanKey {
        PlanKey::from_bytes([byte; 32])
    }

    fn plan(byte: u8) -> Arc<StoredPlan> {
        let mut stored = StoredPlan::default();
        stored.plan.content_key = key(byte).to_string();
        Arc::new(stored)
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
