//! Plans in a store: whole, checked records or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use canopy_proto::v1::{Plan, PlanReply, Warning};
use prost::Message as _;

use super::{DamagedRecord, Store, StoreError, decode_record, encode_record};
use crate::key::PlanKey;

/// Reads and writes plans as records. A record that fails its check is quarantined, counted and never served.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    corruptions: Arc<AtomicU64>,
}

/// A plan as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPlan {
    /// The plan, with the content of all its artifacts.
    pub plan: Plan,
    /// What everybody who gets it should know.
    pub warnings: Vec<Warning>,
}

/// What a look into the store found.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// A plan.
    Found(Arc<StoredPlan>),
    /// Nothing.
    Missing,
    /// A damaged record, which is in quarantine now.
    Quarantined(DamagedRecord),
}

impl Records {
    /// Wraps a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, corruptions: Arc::default() }
    }

    /// The plan under this key.
    ///
    /// # Errors
    /// The engine failed.
    pub fn get(&self, key: &PlanKey) -> Result<Lookup, StoreError> {
        let Some(record) = self.store.get(key)? else {
            return Ok(Lookup::Missing);
        };
        match decode_plan(key, Bytes::from(record)) {
            Ok(plan) => Ok(Lookup::Found(Arc::new(plan))),
            Err(damage) => {
                self.corruptions.fetch_add(1, Ordering::Relaxed);
                self.store.quarantine(key)?;
                Ok(Lookup::Quarantined(damage))
            }
        }
    }

    /// Stores a plan; returns once it survives a crash.
    ///
    /// # Errors
    /// The engine failed.
    pub fn put(&self, key: &PlanKey, plan: &StoredPlan) -> Result<(), StoreError> {
        // A reply is a plan and its warnings; what belongs to one request is left out.
        let StoredPlan { plan, warnings } = plan.clone();
        let payload = PlanReply { plan: Some(plan), warnings, ..PlanReply::default() };
        self.store.put(key, &encode_record(&payload.encode_to_vec()))
    }

    /// Damaged records met since the start.
    pub fn corruption_count(&self) -> u64 {
        self.corruptions.load(Ordering::Relaxed)
    }

    /// Number of records. O(records).
    ///
    /// # Errors
    /// The engine failed.
    pub fn count(&self) -> Result<usize, StoreError> {
        self.store.count()
    }
}

/// Reads a record that must hold the plan of this key.
fn decode_plan(key: &PlanKey, record: Bytes) -> Result<StoredPlan, DamagedRecord> {
    let payload = record.slice_ref(decode_record(&record)?);
    let PlanReply { plan, warnings, .. } = PlanReply::decode(payload).map_err(|_| DamagedRecord::Payload)?;
    let plan = plan.ok_or(DamagedRecord::Payload)?;
    // An intact record under the wrong key would be a wrong answer.
    let complete = plan.artifacts.iter().all(|artifact| artifact.content.is_some());
    if plan.content_key == key.to_string() && complete {
        Ok(StoredPlan { plan, warnings })
    } else {
        Err(DamagedRecord::Payload)
    }
}
