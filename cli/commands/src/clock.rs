//! The one place that reads the clock and asks for chance.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use canopy_client::Jitter;

/// The present moment.
#[expect(clippy::disallowed_methods, reason = "every other part of the client asks here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A generator of chance that no other process and no other task has.
pub(crate) fn jitter() -> Jitter {
    // The standard library seeds it from the operating system.
    Jitter::seeded(RandomState::new().hash_one(std::process::id()))
}

/// A moment after which an answer is of no more use; or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// That long from now; never where no limit is given, or one too far away to be a moment.
    pub(crate) fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| now().checked_add(limit)))
    }

    /// This moment, or the one that long from now if it comes first.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        let Self(moment) = Self::after(Some(limit));
        Self(match (self.0, moment) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// Whether the moment has passed.
    pub(crate) fn is_past(self) -> bool {
        self.0.is_some_and(|moment| now() >= moment)
    }

    /// What is left until then, at least a millisecond; `None` where there is no limit.
    pub(crate) fn remaining(self) -> Option<Duration> {
        let moment = self.0?;
        Some(moment.saturating_duration_since(now()).max(Duration::from_millis(1)))
    }
}

/// The time of day, in milliseconds since 1970; zero on a machine whose clock is before that.
pub(crate) fn since_1970_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Nanoseconds of the machine's steady clock, which all processes share.
pub(crate) fn monotonic_ns() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// Nanoseconds of processor time that this process took.
pub(crate) fn processor_ns() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

/// A time of these clocks, which is never negative.
fn nanos(time: rustix::time::Timespec) -> u64 {
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
}
