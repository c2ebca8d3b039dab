//! The memory that planning workers and computations of calls share.

use super::Queue;
use crate::failure::PlanFailure;

impl Queue {
    /// Refuses what would take more memory than there is for all.
    ///
    /// # Errors
    /// [`PlanFailure::JobMemory`].
    pub(crate) fn check_memory(&self, needed: u64) -> Result<(), PlanFailure> {
        let limit = self.shared.limits.memory_bytes_max;
        if needed > limit { Err(PlanFailure::JobMemory { needed, limit }) } else { Ok(()) }
    }

    /// Takes memory for the computation of a call; false if others hold too much of it. All of them together have
    /// half of
    /// it, or one of them more, so that they do not keep jobs waiting that need less.
    pub(crate) fn take_memory(&self, bytes: u64) -> bool {
        let limit = self.shared.limits.memory_bytes_max;
        let mut lines = self.shared.lines.lock();
        let of_calls = lines.computing_bytes.saturating_add(bytes);
        let of_all = lines.planning_bytes.saturating_add(bytes);
        if of_all > limit || (of_calls > limit / 2 && lines.computing_bytes > 0) {
            return false;
        }
        lines.computing_bytes = of_calls;
        lines.planning_bytes = of_all;
        true
    }

    /// Why so much memory could not be taken: it is held for others.
    pub(crate) fn no_memory(&self, wanted: u64) -> PlanFailure {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let held = size(self.shared.lines.lock().planning_bytes);
        PlanFailure::QueueBudget { held, found: size(wanted), limit: size(self.shared.limits.memory_bytes_max) }
    }

    /// The computation of a call gives memory back.
    pub(crate) fn give_memory_back(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut lines = self.shared.lines.lock();
        lines.computing_bytes = lines.computing_bytes.saturating_sub(bytes);
        lines.planning_bytes = lines.planning_bytes.saturating_sub(bytes);
        self.shared.planning_ready.notify_all();
    }
}
