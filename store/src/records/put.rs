//! Storing plans.

use canopy_planner::PlanKey;
use canopy_wire::StoredPlan;

use super::codec::encode_plan;
use super::{Records, Request};
use crate::{Durability, JobEnd, PlanSummary, Store, StoreError};

impl Records {
    /// Stores a plan; returns once it survives a crash. Evicts others where the limit asks for it. A plan that was
    /// there under this key is replaced; its pin and its uses stay.
    ///
    /// # Errors
    /// [`StoreError::Full`] when it does not fit beside the pinned ones; otherwise the engine failed.
    pub fn put(&self, key: &PlanKey, plan: &StoredPlan) -> Result<(), StoreError> {
        self.put_with(key, plan, Durability::Synced)
    }

    /// The same; where the durability is lazy, a crash of the machine may lose the plan.
    ///
    /// # Errors
    /// As [`Records::put`].
    pub fn put_with(&self, key: &PlanKey, plan: &StoredPlan, durability: Durability) -> Result<(), StoreError> {
        self.put_asked(key, plan, Request::default(), durability).map(drop)
    }

    /// The same with what the plan was asked for by. Returns the bytes of its record.
    pub fn put_asked(
        &self,
        key: &PlanKey,
        plan: &StoredPlan,
        request: Request,
        durability: Durability,
    ) -> Result<u64, StoreError> {
        self.put_by(key, plan, request, |store, record, summary| match durability {
            Durability::Synced => store.put(key, record, summary),
            Durability::Lazy => store.put_lazily(key, record, summary),
        })
    }

    /// The same with the end of the job that made it, both or neither.
    pub fn put_ending(
        &self,
        key: &PlanKey,
        plan: &StoredPlan,
        request: Request,
        end: &dyn JobEnd,
    ) -> Result<u64, StoreError> {
        self.put_by(key, plan, request, |store, record, summary| store.put_ending(key, record, summary, end))
    }

    /// Makes room for a plan and has it stored by `put`, to which its record and summary are given.
    fn put_by(
        &self,
        key: &PlanKey,
        plan: &StoredPlan,
        Request { whole, asked }: Request,
        put: impl Fn(&dyn Store, &[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let record = encode_plan(plan, whole);
        let size_bytes = record.len() as u64;
        let fresh = PlanSummary::of(*key, plan, size_bytes, (self.shared.options.now_ms)());
        let fresh = PlanSummary { asked, ..fresh };
        self.shared.decide(|ledger| {
            let mut summary = fresh.clone();
            if let Some(old) = self.shared.stored_summary(key)? {
                summary = summary.with_history_of(&old);
            }
            // Its file may have been damaged, and its summary lost with it.
            summary.pinned |= self.shared.is_pinned(key)?;
            self.shared.make_room(ledger, key, size_bytes)?;
            let summary_bytes = summary.encode();
            let stored = put(&*self.shared.store, &record, &summary_bytes);
            self.shared.recent.changed(&[*key]);
            stored?;
            ledger.enter(&summary);
            Ok(size_bytes)
        })
    }
}
