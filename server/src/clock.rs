//! The one place that reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// The time of day in milliseconds since 1970 UTC, for the records of what happened when.
pub(crate) fn unix_ms() -> u64 {
    // A clock before 1970 is one that has not been set.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
