//! The one place that reads the clock.

mod steady;

use std::path::Path;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::steady::Mark;

pub use self::steady::Steady;

/// The clock of this process that nobody sets, and when it was started.
static STEADY: LazyLock<(Steady, Instant)> = LazyLock::new(|| (Steady::beginning_at(unix_ms()), now()));

/// The present, for measuring how long something takes.
#[expect(clippy::disallowed_methods, reason = "this module is the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// A duration in milliseconds, for display.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Time since `start` in milliseconds, for display.
pub fn millis_since(start: Instant) -> f64 {
    millis(now().duration_since(start))
}

/// Time since the clock was first asked in milliseconds, for measuring how long something takes.
pub fn elapsed_millis() -> f64 {
    millis_since(STEADY.1)
}

/// The time that the servers go by that share a store, if this is one of them.
static SHARED: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>> = OnceLock::new();

/// The time by a clock that nobody sets, in milliseconds since about 1970 UTC: for all that ends after a time.
pub fn steady_ms() -> u64 {
    SHARED.get().map_or_else(|| STEADY.0.now_ms(elapsed_ms()), |shared| shared())
}

/// Has the clock go by that of the servers that share a store; the first one in a process decides.
pub fn share(now_ms: impl Fn() -> u64 + Send + Sync + 'static) {
    let _known_already = SHARED.set(Box::new(now_ms));
}

/// A time of that clock as the time of day, for people.
pub fn shown_ms(steady_ms: u64) -> u64 {
    observe();
    STEADY.0.shown_ms(steady_ms)
}

/// A time of day, as somebody states it, as a time of that clock.
pub fn meant_ms(unix_ms: u64) -> u64 {
    observe();
    STEADY.0.meant_ms(unix_ms)
}

/// Notices whether the time of day was set.
pub fn observe() {
    if let Some(shared) = SHARED.get() {
        STEADY.0.go_on_at(shared(), elapsed_ms());
    }
    if let Some(by_ms) = STEADY.0.observe(unix_ms(), elapsed_ms()) {
        tracing::warn!(by_ms, "the system clock was set; leases and faults are not affected");
    }
}

/// How often the time of day was set.
pub fn jump_count() -> u64 {
    STEADY.0.jump_count()
}

/// Has the clock go on where the process was that had this data directory before; the first one in a process decides.
pub fn resume(data_dir: &Path) {
    static RESUMED: LazyLock<parking_lot::Mutex<bool>> = LazyLock::new(parking_lot::Mutex::default);
    let mut resumed = RESUMED.lock();
    if let Some(mark) = Mark::read(data_dir).filter(|_| !*resumed) {
        STEADY.0.resume(&mark, (unix_ms(), elapsed_ms()), steady::boot().as_ref());
    }
    *resumed = true;
}

/// Writes down what the clock says, for the next process that has this data directory.
///
/// # Errors
/// The directory cannot be written.
pub fn write_down(data_dir: &Path) -> std::io::Result<()> {
    observe();
    let steady_ms = steady_ms();
    Mark { steady_ms, wall_ms: STEADY.0.shown_ms(steady_ms), boot: steady::boot() }.write(data_dir)
}

/// Time since the clock was first asked.
fn elapsed_ms() -> u64 {
    u64::try_from(now().saturating_duration_since(STEADY.1).as_millis()).unwrap_or(u64::MAX)
}

/// The time of day in milliseconds since 1970 UTC, for the records of what happened when.
pub fn unix_ms() -> u64 {
    // A clock before 1970 is one that has not been set.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
