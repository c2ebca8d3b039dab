//! Limits the lines of refused calls, of each caller and of all together, so that they do not push out other lines.

use std::collections::HashMap;

/// Lines that a caller has at once, and the milliseconds after which it has one more.
const OF_CALLER: Limit = Limit { at_once: 60, each_ms: 1000 };
/// The same of all callers together.
const OF_ALL: Limit = Limit { at_once: 1000, each_ms: 10 };
/// Callers that are told apart.
const CALLERS_MAX: usize = 10_000;

#[derive(Clone, Copy)]
struct Limit {
    at_once: u64,
    each_ms: u64,
}

/// Lines that come back one by one.
#[derive(Default)]
struct Lines {
    /// When all have come back.
    full_at_ms: u64,
}

impl Lines {
    /// Whether one is left.
    fn has_one(&self, limit: Limit, now_ms: u64) -> bool {
        self.full_at_ms.saturating_sub(now_ms) <= limit.each_ms * (limit.at_once - 1)
    }

    fn take(&mut self, limit: Limit, now_ms: u64) {
        self.full_at_ms = self.full_at_ms.max(now_ms) + limit.each_ms;
    }
}

#[derive(Default)]
struct Caller {
    lines: Lines,
    /// Calls without a line since its last one.
    skipped: u64,
}

/// The lines that refused calls may have.
#[derive(Default)]
pub(super) struct RefusedLines {
    callers: HashMap<String, Caller>,
    all: Lines,
    /// Calls without a line of callers that are no longer told apart.
    skipped: u64,
}

impl RefusedLines {
    /// Whether a refused call has a line, and how many before it had none.
    pub(super) fn admit(&mut self, caller: &str, now_ms: u64) -> Option<u64> {
        if self.callers.len() >= CALLERS_MAX && !self.callers.contains_key(caller) {
            let forgotten = &mut self.skipped;
            self.callers.retain(|_, caller| {
                let is_kept = caller.lines.full_at_ms > now_ms;
                *forgotten += if is_kept { 0 } else { caller.skipped };
                is_kept
            });
            if self.callers.len() >= CALLERS_MAX {
                self.skipped += 1;
                return None;
            }
        }
        let of_caller = self.callers.entry(caller.to_owned()).or_default();
        if !of_caller.lines.has_one(OF_CALLER, now_ms) || !self.all.has_one(OF_ALL, now_ms) {
            of_caller.skipped += 1;
            return None;
        }
        of_caller.lines.take(OF_CALLER, now_ms);
        self.all.take(OF_ALL, now_ms);
        Some(std::mem::take(&mut of_caller.skipped) + std::mem::take(&mut self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000;

    #[test]
    fn a_caller_that_is_refused_without_end_has_a_line_a_second_and_all_calls_are_counted() {
        let mut lines = RefusedLines::default();
        let mut count = |caller: &str, calls: u64, now_ms| -> (usize, u64) {
            let told: Vec<u64> = (0..calls).filter_map(|_| lines.admit(caller, now_ms)).collect();
            (told.len(), told.iter().sum())
        };
        assert_eq!(count("mallory", 1000, START), (60, 0));
        assert_eq!(count("ann", 3, START), (3, 0), "others have theirs");
        assert_eq!(count("mallory", 10, START + 999), (0, 0));
        assert_eq!(count("mallory", 10, START + 1000), (1, 950));
        assert_eq!(count("mallory", 1000, START + 1_000_000), (60, 9), "no more than at first");
    }

    #[test]
    fn many_callers_together_have_a_hundred_lines_a_second() {
        let mut lines = RefusedLines::default();
        let mut count = |now_ms| (0..5000).filter_map(|number| lines.admit(&number.to_string(), now_ms)).count();
        assert_eq!((count(START), count(START), count(START + 1000)), (1000, 0, 100));
    }

    #[test]
    fn callers_are_forgotten_and_their_calls_are_not() {
        let mut lines = RefusedLines::default();
        let mut written = 0;
        for number in 0..CALLERS_MAX as u64 {
            written += u64::from(lines.admit(&number.to_string(), START).is_some());
        }
        let skipped = CALLERS_MAX as u64 - written;
        assert_eq!(lines.admit("ann", START + 3_600_000), Some(skipped));
        assert_eq!(lines.callers.len(), 1);
    }
}
