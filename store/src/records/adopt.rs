//! Plans that come from another store.

use bytes::Bytes;
use canopy_planner::PlanKey;
use canopy_wire::StoredPlan;

use super::codec::request_of;
use super::{Records, Shared, decode_plan};
use crate::ledger::Ledger;
use crate::{DamagedRecord, Durability, PlanSummary, Space, StoreError};

/// A record of an archive, as the current version has it.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedRecord<'a> {
    /// Where it belongs: plans, topologies, what became of leases, faults or leases, in this order.
    pub space: Space,
    /// Its key.
    pub key: &'a PlanKey,
    /// The record, verified.
    pub record: &'a [u8],
    /// Its summary; that of anything but a plan may be empty.
    pub summary: &'a [u8],
}

impl ArchivedRecord<'_> {
    /// The plan in a record of plans.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn plan(&self) -> Result<StoredPlan, DamagedRecord> {
        decode_plan(self.key, Bytes::copy_from_slice(self.record))
    }

    /// What the plan in a record of plans was asked for by; empty where that was not kept.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn request(&self) -> Result<Vec<u8>, DamagedRecord> {
        request_of(self.record)
    }
}

impl Records {
    /// Stores a plan of an archive with its pin and its uses, in place of what was there under its key; a plan that is
    /// pinned here stays as it is, but for its uses. Evicts others where the limit asks for it, and returns once the plan survives a crash.
    ///
    /// # Errors
    /// As [`Records::put`].
    pub fn adopt(&self, archived: &ArchivedRecord<'_>) -> Result<(), StoreError> {
        self.shared.decide(|ledger| self.shared.adopt(ledger, archived))
    }
}

impl Shared {
    fn adopt(&self, ledger: &mut Ledger, archived: &ArchivedRecord<'_>) -> Result<(), StoreError> {
        let key = archived.key;
        let is_intact = |record: Vec<u8>| decode_plan(key, Bytes::from(record)).is_ok();
        if let Some(mut here) = self.stored_summary(key)?.filter(|summary| summary.pinned)
            && self.store.get(key)?.is_some_and(is_intact)
        {
            if let Ok(there) = PlanSummary::decode(key, archived.summary) {
                here.hits = here.hits.max(there.hits);
                here.last_used_ms = here.last_used_ms.max(there.last_used_ms);
                self.store.set_summaries(&[(*key, here.encode())], Durability::Synced)?;
                ledger.enter(&here);
            }
            return Ok(());
        }
        self.make_room(ledger, key, archived.record.len() as u64)?;
        if PlanSummary::decode(key, archived.summary).is_ok_and(|summary| summary.pinned) {
            self.keep_pin(key)?;
        }
        let stored = self.store.put(key, archived.record, archived.summary);
        self.recent.changed(&[*key]);
        stored?;
        ledger.strike(key);
        self.uses.lock().remove(key);
        // Read back as it is stored: the ledger must agree with the disk.
        self.stored_summary(key)?.iter().for_each(|summary| ledger.enter(summary));
        Ok(())
    }
}
