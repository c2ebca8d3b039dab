//! Ranges of message sizes.

use std::fmt;

/// Message sizes from `min` up to but not including `end`, in bytes of the whole message, which is what runtimes count: the
/// vector of all shares; the message of broadcast and reduce; one rank's blocks for all in all-to-all. Never empty, never
/// with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    min: u64,
    end: u64,
}

impl ByteRange {
    /// The sizes `min ≤ bytes < end`; `None` if the range is empty or contains 0.
    pub const fn new(min: u64, end: u64) -> Option<Self> {
        if min > 0 && min < end { Some(Self { min, end }) } else { None }
    }

    /// Smallest size in bytes.
    pub const fn first(self) -> u64 {
        self.min
    }

    /// First size in bytes that is too large.
    pub const fn end(self) -> u64 {
        self.end
    }

    /// Largest size in bytes.
    pub const fn last(self) -> u64 {
        self.end - 1
    }

    /// Whether a size is among them.
    pub const fn contains(self, bytes: u64) -> bool {
        self.min <= bytes && bytes < self.end
    }

    /// Whether some size is in both.
    pub const fn overlaps(self, other: Self) -> bool {
        self.min < other.end && other.min < self.end
    }

    /// Whether its largest size is less than twice its smallest.
    pub const fn is_narrow(self) -> bool {
        self.last() < self.min.saturating_mul(2)
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.min, self.end)
    }
}

/// A range and the plan that is to serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanRange {
    /// Which of the candidates.
    pub candidate: usize,
    /// The sizes.
    pub range: ByteRange,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_first_size_and_not_its_end() {
        let range = ByteRange::new(4, 8).unwrap();
        assert_eq!([3, 4, 7, 8].map(|bytes| range.contains(bytes)), [false, true, true, false]);
        assert_eq!((range.last(), range.is_narrow()), (7, true));
        assert!(!ByteRange::new(4, 9).unwrap().is_narrow());
        for (min, end) in [(0, 8), (8, 8), (9, 8)] {
            assert_eq!(ByteRange::new(min, end), None);
        }
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let range = |min, end| ByteRange::new(min, end).unwrap();
        assert!(!range(1, 4).overlaps(range(4, 8)) && !range(4, 8).overlaps(range(1, 4)));
        assert!(range(1, 5).overlaps(range(4, 8)) && range(4, 8).overlaps(range(1, 5)));
        assert!(range(1, 9).overlaps(range(4, 8)));
    }
}
