//! Budgets of a search, and how a caller stops it.

/// Units of work that suffice for every network the generators make, and that end within about a second.
pub const WORK_STANDARD: u64 = 1 << 27;

/// Units of work that suffice for every network the generators make of up to 4,096 nodes, and that end within about a
/// quarter of a second: for servers, where others wait, and whoever names topologies as they do.
pub const WORK_SERVED: u64 = 1 << 25;

/// The budget of a search.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Units of work, each about one link looked at (some nanoseconds). The same work is done for the same graph on every
    /// machine, so whether it suffices is reproducible.
    pub work_max: u64,
    /// Returns whether to stop; polled about every tenth of a millisecond.
    pub stop: &'a dyn Fn() -> bool,
}

/// The search was asked to stop before it had a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped before the symmetry was found")]
pub struct Stopped;

/// Why a search ends without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Spent,
    Stopped,
}

/// Counts work.
pub(crate) struct Meter<'a> {
    left: u64,
    until_ask: u64,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Meter<'a> {
    /// Units between two questions.
    const STRIDE: u64 = 1 << 14;

    /// Asks at once, so that a request that stands already is seen before any work.
    pub(crate) const fn new(budget: Budget<'a>) -> Self {
        Self { left: budget.work_max, until_ask: 0, stop: budget.stop }
    }

    /// A meter that only looks at the stop: for work that is bounded by the graph.
    pub(crate) const fn unlimited(budget: Budget<'a>) -> Self {
        Self { left: u64::MAX, until_ask: 0, stop: budget.stop }
    }

    /// Accounts for work, and asks when due.
    pub(crate) fn spend(&mut self, units: usize) -> Result<(), Ended> {
        let units = units as u64;
        if units >= self.until_ask {
            self.until_ask = Self::STRIDE;
            if (self.stop)() {
                return Err(Ended::Stopped);
            }
        } else {
            self.until_ask -= units;
        }
        self.left = self.left.checked_sub(units).ok_or(Ended::Spent)?;
        Ok(())
    }
}
