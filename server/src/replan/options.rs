//! The operator's settings for replanning.

use std::num::NonZeroUsize;
use std::time::Duration;

use canopy_faults::Policy;

use super::replan_queue::Pace;

/// When plans are made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplanOptions {
    /// Shortest time between two plans anew for one lease.
    pub window: Duration,
    /// Most plans that are begun anew in a second.
    pub per_second: NonZeroUsize,
    /// How long an element must be sound before it counts as such.
    pub debounce: Duration,
    /// How long one that comes and goes must be quiet.
    pub hold_down: Duration,
    /// Whether plans are made for faults that have not happened.
    pub plans_ahead: bool,
    /// Most pinned plans that nobody holds a lease on for which such plans are made.
    pub pinned_ahead: usize,
}

impl ReplanOptions {
    /// Five seconds, a hundred, ten seconds, a minute; ahead, also of 64 pinned plans.
    pub const STANDARD: Self = Self {
        window: Duration::from_secs(5),
        per_second: NonZeroUsize::new(100).expect("100 is not zero"),
        debounce: Duration::from_secs(10),
        hold_down: Duration::from_secs(60),
        plans_ahead: true,
        pinned_ahead: 64,
    };

    pub(super) fn policy(&self) -> Policy {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Policy { debounce_ms: millis(self.debounce), hold_down_ms: millis(self.hold_down), ..Policy::STANDARD }
    }

    pub(super) fn pace(&self) -> Pace {
        let window_ms = u64::try_from(self.window.as_millis()).unwrap_or(u64::MAX);
        Pace { window_ms, per_second: self.per_second.get() }
    }
}
