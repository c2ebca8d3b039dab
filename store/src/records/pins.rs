//! Pinned plans, which are never evicted.

use std::collections::BTreeSet;

use canopy_planner::PlanKey;

use super::{Records, Shared};
use crate::{Durability, PlanSummary, Store, StoreError};

/// No plan's key: says that all pins are there.
const APART: PlanKey = PlanKey::from_bytes([0xff; 32]);

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
        self.shared.decide(|ledger| {
            if !pinned {
                self.shared.pins.remove(&[*key])?;
            }
            let Some(mut summary) = self.shared.stored_summary(key)? else { return Ok(()) };
            if pinned {
                self.shared.keep_pin(key)?;
            }
            if summary.pinned != pinned {
                summary.pinned = pinned;
                let written = self.shared.store.set_summaries(&[(*key, summary.encode())], Durability::Synced);
                if written.is_err() && pinned {
                    // What is refused must not turn up after a restart.
                    self.shared.pins.remove(&[*key])?;
                }
                written?;
                ledger.enter(&summary);
            }
            Ok(())
        })?;
        self.summary(key)
    }

    /// The keys of all pins of a store that is copied, those included that an earlier build wrote into summaries alone.
    ///
    /// # Errors
    /// The engine failed.
    pub fn pins_of(plans: &dyn Store, pins: &dyn Store) -> Result<BTreeSet<PlanKey>, StoreError> {
        let mut pinned = pins.all_keys().collect::<Result<BTreeSet<PlanKey>, _>>()?;
        if !pinned.contains(&APART) {
            for entry in plans.all_summaries() {
                let (key, summary) = entry?;
                pinned.extend(PlanSummary::decode(&key, &summary).ok().filter(|it| it.pinned).map(|_| key));
            }
        }
        Ok(pinned)
    }

    /// The pinned plans that are used most, at most so many.
    ///
    /// # Errors
    /// The engine failed.
    pub fn pinned(&self, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.shared.decide(|ledger| Ok(ledger.pinned(limit)))
    }
}

impl Shared {
    /// Whether a plan is pinned, by what outlives its summary.
    pub(crate) fn is_pinned(&self, key: &PlanKey) -> Result<bool, StoreError> {
        Ok(self.pins.get(key)?.is_some())
    }

    /// Writes down that a plan is pinned; returns once that survives a crash.
    pub(crate) fn keep_pin(&self, key: &PlanKey) -> Result<(), StoreError> {
        if self.is_pinned(key)? { Ok(()) } else { self.pins.put(key, &[], &[]) }
    }

    /// Whether all pins are kept apart from the summaries. Of an older build's, the summaries alone say it.
    pub(crate) fn pins_are_apart(&self) -> Result<bool, StoreError> {
        self.is_pinned(&APART)
    }

    /// From now on, what a summary says of its pin counts no more.
    pub(crate) fn set_pins_apart(&self) -> Result<(), StoreError> {
        self.keep_pin(&APART)
    }

    /// A summary that says of its pin what is known: that of a damaged database may be older than the pin.
    pub(crate) fn agree_on_pin(&self, mut summary: PlanSummary, are_apart: bool) -> Result<PlanSummary, StoreError> {
        let is_pinned = self.is_pinned(&summary.key())?;
        if summary.pinned && !is_pinned && !are_apart {
            self.keep_pin(&summary.key())?;
        } else if summary.pinned != is_pinned {
            summary.pinned = is_pinned;
            self.store.set_summaries(&[(summary.key(), summary.encode())], Durability::Synced)?;
        }
        Ok(summary)
    }
}
