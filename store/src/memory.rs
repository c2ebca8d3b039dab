//! A store without a disk, for tests and for servers that need no persistence.

use std::collections::BTreeMap;
use std::ops::Bound;

use canopy_planner::PlanKey;
use parking_lot::Mutex;

use super::{Durability, Store, StoreError};

/// Keeps records in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    trees: Mutex<Trees>,
}

#[derive(Debug, Default)]
struct Trees {
    records: BTreeMap<PlanKey, Vec<u8>>,
    summaries: BTreeMap<PlanKey, Vec<u8>>,
    quarantined: BTreeMap<PlanKey, Vec<u8>>,
}

impl MemoryStore {}

impl Store for MemoryStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.trees.lock().records.get(key).cloned())
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let mut trees = self.trees.lock();
        trees.records.insert(*key, record.to_vec());
        trees.summaries.insert(*key, summary.to_vec());
        Ok(())
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let mut trees = self.trees.lock();
        for key in keys {
            trees.records.remove(key);
            trees.summaries.remove(key);
        }
        Ok(())
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let mut trees = self.trees.lock();
        trees.summaries.remove(key);
        if let Some(record) = trees.records.remove(key) {
            trees.quarantined.insert(*key, record);
        }
        Ok(())
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.trees.lock().summaries.get(key).cloned())
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], _: Durability) -> Result<(), StoreError> {
        self.trees.lock().summaries.extend(summaries.iter().cloned());
        Ok(())
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(*key));
        let trees = self.trees.lock();
        let found = trees.summaries.range((from, Bound::Unbounded)).take(limit);
        Ok(found.map(|(key, summary)| (*key, summary.clone())).collect())
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(*key));
        Ok(self.trees.lock().records.range((from, Bound::Unbounded)).take(limit).map(|(key, _)| *key).collect())
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        Ok(self.trees.lock().quarantined.len())
    }
}
