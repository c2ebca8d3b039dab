//! The one place that reads the clock.

use std::time::{Duration, Instant};

/// The present, for measuring how long something takes.
#[expect(clippy::disallowed_methods, reason = "this module is the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A duration in milliseconds, for display.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Time since `start` in milliseconds, for display.
pub(crate) fn millis_since(start: Instant) -> f64 {
    millis(now().duration_since(start))
}
