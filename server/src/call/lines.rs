//! How many calls have a line in the log.

use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Code;

/// Status codes of gRPC: 0 to 16.
const CODES: usize = 17;

/// Keeps the log from growing with the load: the first lines of each second are written, then one in many. Calls that ended
/// with another status are counted by themselves, so that rare failures are seen among many others. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineLimit(Arc<[Mutex<LineCount>; CODES]>);

#[derive(Debug, Default)]
struct LineCount {
    second: u64,
    count: u64,
    skipped: u64,
}

impl LineLimit {
    /// Lines of each second, and status, that are written in any case.
    const LINES_MAX: u64 = 10;
    /// Beyond that, one line of this number is written.
    const ONE_IN: u64 = 10_000;

    /// Whether a call that ended with this code may have its line: none if not, else how many had to go without since the
    /// last one.
    pub(super) fn admit(&self, code: Code, now_ms: u64) -> Option<u64> {
        let mut lines = self.0.get(code as usize)?.lock();
        if lines.second != now_ms / 1000 {
            (lines.second, lines.count) = (now_ms / 1000, 0);
        }
        lines.count += 1;
        if lines.count > Self::LINES_MAX && !lines.count.is_multiple_of(Self::ONE_IN) {
            lines.skipped += 1;
            return None;
        }
        Some(std::mem::take(&mut lines.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_in_one_second_are_thinned_out_and_the_rest_is_counted() {
        let lines = LineLimit::default();
        let of =
            |code, now_ms, count: usize| (0..count).filter_map(|_| lines.admit(code, now_ms)).collect::<Vec<u64>>();
        assert_eq!(of(Code::Ok, 5_000, 10), [0; 10]);
        assert_eq!(of(Code::Ok, 5_999, 19_990), [9_989, 9_999]);
        assert_eq!(of(Code::Ok, 6_000, 15), [0; 10]);
        assert_eq!(of(Code::Ok, 8_000, 1), [5]);
        // Those that fail are counted by themselves, each kind.
        assert_eq!(of(Code::NotFound, 8_000, 50), [0; 10]);
        assert_eq!(of(Code::NotFound, 9_000, 1), [40]);
    }

    #[test]
    fn every_status_has_its_lines() {
        let lines = LineLimit::default();
        for code in (0..=i32::try_from(CODES).unwrap()).map(Code::from_i32) {
            assert!(lines.admit(code, 1).is_some(), "{code:?}");
        }
    }
}
