//! The time that all servers on a database go by: its time of day, but for what that was set by.
//!
//! A server asks for it once, goes on by the time since its machine was started, and compares both at every look. What differs a
//! little is brought in line bit by bit. What differs by more was set, and the first server that sees it writes down by how
//! much: the time of the servers goes on as if nothing had happened, also for those that start later.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What the time of day may differ by before it counts as set, in milliseconds.
const TOLERANCE_MS: i64 = 1000;
/// Longest time that an answer may take to be compared with.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// This share of a small difference is brought in line at a look.
const SHARE: i64 = 8;

/// The time of the servers as one of them knows it.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The time less that since the start of the machine, in milliseconds.
    base_ms: AtomicI64,
    /// The latest time that was told: it does not go back.
    told_ms: AtomicU64,
    /// How often this server saw that the time of day was set.
    jumps: AtomicU64,
}

/// What a look at the database said of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The time of day of the database, in milliseconds since 1970 UTC.
    pub(crate) day_ms: i64,
    /// What is added to it.
    pub(crate) shift_ms: i64,
    /// The time since the start of the machine when it was asked for, and when it was answered.
    pub(crate) asked_ms: i64,
    pub(crate) answered_ms: i64,
}

impl Answer {
    /// The time less that since the start of the machine, unless the answer took too long.
    fn base_ms(self) -> Option<i64> {
        let took = self.answered_ms.saturating_sub(self.asked_ms);
        let is_quick = u128::try_from(took).is_ok_and(|took| took <= ANSWER_LIMIT.as_millis());
        is_quick.then(|| self.day_ms + self.shift_ms - (self.asked_ms + took / 2))
    }
}

impl Clock {
    /// Begins with what the database says.
    pub(crate) fn begin(&self, answer: Answer) {
        let middle = middle(answer.asked_ms, answer.answered_ms);
        self.base_ms.store(answer.day_ms + answer.shift_ms - middle, Ordering::Relaxed);
    }

    /// Compares with what the database says; returns by how much its time of day was set, if it was.
    pub(crate) fn compare(&self, answer: Answer) -> Option<i64> {
        let before = self.base_ms.load(Ordering::Relaxed);
        let differs = answer.base_ms()? - before;
        if differs.abs() > TOLERANCE_MS {
            return Some(differs);
        }
        self.base_ms.store(before + differs / SHARE, Ordering::Relaxed);
        None
    }

    /// The time of day was set, which was written down.
    pub(crate) fn note_jump(&self) {
        self.jumps.fetch_add(1, Ordering::Relaxed);
    }

    /// How often this server saw first that the time of day was set.
    pub(crate) fn jump_count(&self) -> u64 {
        self.jumps.load(Ordering::Relaxed)
    }

    /// The time in milliseconds since about 1970 UTC.
    pub(crate) fn now_ms(&self) -> u64 {
        self.at(since_start_ms())
    }

    fn at(&self, since_start_ms: i64) -> u64 {
        let now = u64::try_from(self.base_ms.load(Ordering::Relaxed).saturating_add(since_start_ms)).unwrap_or(0);
        self.told_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

const fn middle(asked_ms: i64, answered_ms: i64) -> i64 {
    asked_ms + answered_ms.saturating_sub(asked_ms) / 2
}

/// Milliseconds since the machine was started, those that it slept included.
pub(crate) fn since_start_ms() -> i64 {
    let since = clock_gettime(ClockId::Boottime);
    since.tv_sec.saturating_mul(1000).saturating_add(since.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 3_600_000;

    fn answer(day_ms: i64, shift_ms: i64, at_ms: i64) -> Answer {
        Answer { day_ms, shift_ms, asked_ms: at_ms - 1, answered_ms: at_ms + 1 }
    }

    #[test]
    fn a_time_of_day_that_is_set_changes_nothing_once_it_is_written_down() {
        let clock = Clock::default();
        clock.begin(answer(5_000_000, 0, 100));
        assert_eq!(clock.at(100), 5_000_000);
        assert_eq!(clock.compare(answer(5_001_000, 0, 1_100)), None);
        let set = answer(5_002_000 - 8 * DAY_MS, 0, 2_100);
        assert_eq!(clock.compare(set), Some(-8 * DAY_MS));
        assert_eq!(clock.at(2_100), 5_002_000);
        // As it is written down.
        assert_eq!(clock.compare(Answer { shift_ms: 8 * DAY_MS, ..set }), None);
        assert_eq!(clock.at(2_100), 5_002_000);
        let late = Clock::default();
        late.begin(Answer { shift_ms: 8 * DAY_MS, ..set });
        assert_eq!(late.at(2_100), 5_002_000, "for who starts later, too");
    }

    #[test]
    fn a_small_difference_is_brought_in_line_and_the_time_never_goes_back() {
        let clock = Clock::default();
        clock.begin(answer(5_000_000, 0, 0));
        let mut last = 0;
        for look in 1..200 {
            assert_eq!(clock.compare(answer(5_000_000 + look * 1000 - 400, 0, look * 1000)), None);
            let now = clock.at(look * 1000);
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        assert!(last.abs_diff(5_198_600) < 10, "{last}");
    }

    #[test]
    fn an_answer_that_took_long_says_nothing() {
        let clock = Clock::default();
        clock.begin(answer(5_000_000, 0, 0));
        let slow = Answer { day_ms: 9_000_000, shift_ms: 0, asked_ms: 0, answered_ms: 600 };
        assert_eq!(clock.compare(slow), None);
        assert_eq!(clock.at(600), 5_000_600);
    }
}
