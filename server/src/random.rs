//! Random numbers for tests that try many sequences of events.

/// xorshift64*, so that a seed is a run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Below a limit, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let mut bits = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        self.0 = bits;
        usize::try_from((bits >> 33) % limit as u64).unwrap()
    }
}
