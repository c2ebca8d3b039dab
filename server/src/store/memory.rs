//! A store without a disk, for tests and for servers that need not remember.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Store, StoreError};
use crate::key::PlanKey;

/// Keeps records in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    trees: Mutex<Trees>,
}

#[derive(Debug, Default)]
struct Trees {
    records: BTreeMap<PlanKey, Vec<u8>>,
    quarantined: BTreeMap<PlanKey, Vec<u8>>,
}

impl MemoryStore {
    /// Number of records in quarantine.
    pub fn quarantined_count(&self) -> usize {
        self.lock().quarantined.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().records.get(key).cloned())
    }

    fn put(&self, key: &PlanKey, record: &[u8]) -> Result<(), StoreError> {
        self.lock().records.insert(*key, record.to_vec());
        Ok(())
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let mut trees = self.lock();
        if let Some(record) = trees.records.remove(key) {
            trees.quarantined.insert(*key, record);
        }
        Ok(())
    }

    fn count(&self) -> Result<usize, StoreError> {
        Ok(self.lock().records.len())
    }
}
