//! Stops long computations early. The caller owns the clock and the reason.

/// Returns whether a computation should stop.
///
/// Kernels ask often: at least every few milliseconds of work, so [`is_requested`](Self::is_requested) should cost no
/// more than an atomic load and, at times, a look at a clock.
pub trait Stop: Sync {
    /// Whether to stop now. Once true it should stay true.
    fn is_requested(&self) -> bool;
}

/// Never stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Never;

impl Stop for Never {
    fn is_requested(&self) -> bool {
        false
    }
}

impl<F: Fn() -> bool + Sync> Stop for F {
    fn is_requested(&self) -> bool {
        self()
    }
}

/// The computation was asked to stop before it had a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped before a result was found")]
pub struct Stopped;

/// Asks a [`Stop`] once per so many units of work.
///
/// A unit is one arc looked at, some nanoseconds; [`Self::STRIDE`] of them take well below a millisecond even when
/// every one misses the cache.
pub(crate) struct Meter<'a> {
    stop: &'a dyn Stop,
    left: u32,
}

impl<'a> Meter<'a> {
    /// Units between two questions.
    const STRIDE: u32 = 1 << 14;

    /// Asks at once, so that a request that stands already is seen before any work.
    pub(crate) fn new(stop: &'a dyn Stop) -> Self {
        Self { stop, left: 0 }
    }

    /// Accounts for `units` of work and asks when due.
    pub(crate) fn spend(&mut self, units: u32) -> Result<(), Stopped> {
        if units < self.left {
            self.left -= units;
            return Ok(());
        }
        self.left = Self::STRIDE;
        if self.stop.is_requested() { Err(Stopped) } else { Ok(()) }
    }

    /// [`spend`](Self::spend) for a length.
    pub(crate) fn spend_many(&mut self, units: usize) -> Result<(), Stopped> {
        self.spend(u32::try_from(units).unwrap_or(u32::MAX))
    }
}
