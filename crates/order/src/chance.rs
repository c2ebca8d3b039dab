//! Numbers that look like chance.

/// A walk of numbers that repeats itself late, the same each time.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Where it usually starts.
    pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The next number, below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }

    /// The next number as a place in a list of so many.
    pub(crate) fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }
}
