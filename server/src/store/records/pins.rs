//! Plans that are kept whatever room others need.

use super::Records;
use crate::key::PlanKey;
use crate::store::{Durability, PlanSummary, StoreError};

impl Records {
    /// Keeps a plan whatever happens; returns once that survives a crash. None: there is no such plan.
    ///
    /// # Errors
    /// The engine failed.
    pub fn pin(&self, key: &PlanKey) -> Result<Option<PlanSummary>, StoreError> {
        self.set_pinned(key, true)
    }

    /// Lets a plan be evicted again; returns once that survives a crash. None: there is no such plan.
    ///
    /// # Errors
    /// The engine failed.
    pub fn unpin(&self, key: &PlanKey) -> Result<Option<PlanSummary>, StoreError> {
        self.set_pinned(key, false)
    }

    fn set_pinned(&self, key: &PlanKey, pinned: bool) -> Result<Option<PlanSummary>, StoreError> {
        let mut guard = self.shared.lock_ledger();
        let ledger = self.shared.ledger_of(&mut guard)?;
        let Some(mut summary) = self.shared.stored_summary(key)? else { return Ok(None) };
        if summary.pinned != pinned {
            summary.pinned = pinned;
            self.shared.store.set_summaries(&[(*key, summary.encode())], Durability::Synced)?;
            ledger.enter(&summary);
        }
        drop(guard);
        self.summary(key)
    }

    /// The pinned plans that are used most, at most so many.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn pinned(&self, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let mut guard = self.shared.lock_ledger();
        Ok(self.shared.ledger_of(&mut guard)?.pinned(limit))
    }
}
