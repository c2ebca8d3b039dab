//! A store that is watched.

use std::sync::Arc;

use canopy_planner::PlanKey;

use crate::clock;
use crate::metrics::Metrics;
use canopy_store::JobEnd;

use crate::store::{Durability, Store, StoreError};
use crate::trace::stage_span;

/// Counts and times reads and writes, and traces those of records.
pub(crate) struct ObservedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Metrics,
}

impl ObservedStore {
    fn watched<T>(&self, op: &'static str, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let started = clock::now();
        let result = work();
        let outcome = if result.is_ok() { "ok" } else { "error" };
        let labels = [("op", op.into()), ("outcome", outcome.into())];
        self.metrics.count("canopy_store_operations_total", &labels);
        let time = clock::now().duration_since(started);
        self.metrics.took("canopy_store_operation_duration_seconds", &labels[..1], time);
        result
    }
}

impl Store for ObservedStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        stage_span!("lookup").in_scope(|| self.watched("get", || self.inner.get(key)))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        stage_span!("store").in_scope(|| self.watched("put", || self.inner.put(key, record, summary)))
    }

    fn put_lazily(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        stage_span!("store").in_scope(|| self.watched("put", || self.inner.put_lazily(key, record, summary)))
    }

    fn put_ending(&self, key: &PlanKey, record: &[u8], summary: &[u8], end: &dyn JobEnd) -> Result<(), StoreError> {
        stage_span!("store").in_scope(|| self.watched("put", || self.inner.put_ending(key, record, summary, end)))
    }

    fn put_next(&self, number: u64, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.watched("put", || self.inner.put_next(number, record, summary))
    }

    fn last_number(&self) -> Result<u64, StoreError> {
        self.inner.last_number()
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        self.watched("put_all", || self.inner.put_all(records))
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.watched("remove", || self.inner.remove(keys))
    }

    fn remove_of_all(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.watched("remove", || self.inner.remove_of_all(keys))
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        self.watched("quarantine", || self.inner.quarantine(key))
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.watched("summary", || self.inner.summary(key))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        self.watched("set_summaries", || self.inner.set_summaries(summaries, durability))
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        self.watched("summaries", || self.inner.summaries(after, limit))
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.watched("keys", || self.inner.keys(after, limit))
    }

    fn catch_up(&self) -> Vec<PlanKey> {
        self.inner.catch_up()
    }

    fn room_bytes(&self) -> Option<u64> {
        self.inner.room_bytes()
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        self.watched("quarantined_count", || self.inner.quarantined_count())
    }
}
