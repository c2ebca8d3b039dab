//! Plans that come from another store.

use bytes::Bytes;

use super::{Records, decode_plan};
use crate::store::{ArchivedRecord, Durability, PlanSummary, StoreError};

impl Records {
    /// Stores a plan of an archive with its pin and its uses, in place of what was there under its key; a plan that is
    /// pinned here stays as it is, but for its uses. Evicts others where the limit asks for it, and returns once the plan survives a crash.
    ///
    /// # Errors
    /// As [`Records::put`].
    pub fn adopt(&self, archived: &ArchivedRecord<'_>) -> Result<(), StoreError> {
        let key = archived.key;
        let mut guard = self.shared.ledger.lock();
        let ledger = self.shared.ledger_of(&mut guard)?;
        let is_intact = |record: Vec<u8>| decode_plan(key, Bytes::from(record)).is_ok();
        if let Some(mut here) = self.shared.stored_summary(key)?.filter(|summary| summary.pinned)
            && self.shared.store.get(key)?.is_some_and(is_intact)
        {
            if let Ok(there) = PlanSummary::decode(key, archived.summary) {
                here.hits = here.hits.max(there.hits);
                here.last_used_ms = here.last_used_ms.max(there.last_used_ms);
                self.shared.store.set_summaries(&[(*key, here.encode())], Durability::Synced)?;
                ledger.enter(&here);
            }
            return Ok(());
        }
        self.shared.make_room(ledger, key, archived.record.len() as u64)?;
        if PlanSummary::decode(key, archived.summary).is_ok_and(|summary| summary.pinned) {
            self.shared.keep_pin(key)?;
        }
        let stored = self.shared.store.put(key, archived.record, archived.summary);
        self.shared.recent.changed(&[*key]);
        stored?;
        ledger.strike(key);
        self.shared.uses.lock().remove(key);
        // Read back as it is stored: the ledger must agree with the disk.
        self.shared.stored_summary(key)?.iter().for_each(|summary| ledger.enter(summary));
        Ok(())
    }
}
