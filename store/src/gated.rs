//! A store for tests whose writes can be kept from the disk.

use std::sync::Arc;

use canopy_planner::PlanKey;

use super::{Durability, Store, StoreError};

/// A store before whose writes something is done, which is told their names and says whether they reach the disk.
pub struct Gated<F> {
    disk: Arc<dyn Store>,
    gate: F,
}

impl<F: Fn(&'static str) -> bool + Send + Sync + 'static> Gated<F> {
    /// A store over `disk`. `gate` is told the name of each write, and says whether it reaches the disk.
    pub fn over(disk: &Arc<dyn Store>, gate: F) -> Arc<dyn Store> {
        Arc::new(Self { disk: Arc::clone(disk), gate })
    }

    fn write(&self, name: &'static str, write: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        if (self.gate)(name) { write() } else { Err(StoreError::InUse { directory: "the process is dead".to_owned() }) }
    }
}

impl<F: Fn(&'static str) -> bool + Send + Sync + 'static> Store for Gated<F> {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.disk.get(key)
    }
    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.write("put", || self.disk.put(key, record, summary))
    }
    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        self.write("put_all", || self.disk.put_all(records))
    }
    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.write("remove", || self.disk.remove(keys))
    }
    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        self.write("quarantine", || self.disk.quarantine(key))
    }
    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.disk.summary(key)
    }
    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        self.write("set_summaries", || self.disk.set_summaries(summaries, durability))
    }
    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        self.disk.summaries(after, limit)
    }
    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.disk.keys(after, limit)
    }
    fn quarantined_count(&self) -> Result<usize, StoreError> {
        self.disk.quarantined_count()
    }
}
