//! Uses of plans: counted in memory, saved now and then.

use std::sync::atomic::Ordering;

use canopy_planner::PlanKey;

use super::{PlanSummary, Records, StoreError};

/// Plans whose uses are remembered before they are written down.
const USES_MAX: usize = 1024;
/// Longest time that uses are remembered before the next one writes them down, in milliseconds.
const USES_AGE_MAX_MS: u64 = 60_000;

impl Records {
    /// Counts a use of a plan.
    ///
    /// # Errors
    /// The engine failed while earlier uses were written down.
    pub fn note_use(&self, key: &PlanKey) -> Result<(), StoreError> {
        if self.count_use(key) { self.write_back() } else { Ok(()) }
    }

    /// Notes that a plan was sent in place of another one, in memory only, as uses are.
    pub fn note_stand_in(&self, key: &PlanKey, wanted: &PlanKey) {
        self.shared.uses.lock().entry(*key).or_default().stood_in_for = Some(*wanted);
    }

    /// The id of the plan that this one was last sent in place of, if that is there by now.
    ///
    /// # Errors
    /// The engine failed.
    pub fn successor(&self, summary: &PlanSummary) -> Result<Option<String>, StoreError> {
        let Some(wanted) = summary.stood_in_for() else { return Ok(None) };
        Ok(self.summary(&wanted)?.map(|found| found.id))
    }

    /// Counts a use of a plan in memory only, and says whether it is time for [`Records::write_back`].
    pub fn count_use(&self, key: &PlanKey) -> bool {
        let now = (self.shared.options.now_ms)();
        let mut all = self.shared.uses.lock();
        let uses = all.entry(*key).or_default();
        uses.count += 1;
        uses.last_ms = uses.last_ms.max(now);
        let many = all.len() > USES_MAX;
        drop(all);
        many || now.saturating_sub(self.shared.written_ms.load(Ordering::Relaxed)) > USES_AGE_MAX_MS
    }
}
