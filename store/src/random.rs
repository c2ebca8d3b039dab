//! Random numbers for tests that try many sequences of events.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests call it, and fail where it panics")]

/// xorshift64*, so that a seed is a run.
pub struct Random(pub u64);

impl Random {
    /// Below a limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let mut bits = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        self.0 = bits;
        usize::try_from((bits >> 33) % limit as u64).unwrap()
    }
}

/// The seeds of a test. `CANOPY_SEEDS` is their number, else `usual`; `CANOPY_SEED` is the first, else 1.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = |name, usual| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let first: u64 = asked("CANOPY_SEED", 1);
    first..first + asked("CANOPY_SEEDS", usual)
}
