//! Numbers that look random and are the same for the same seed.

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 15,
/// with the constants of java.util.SplittableRandom.
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The numbers of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` > 0; its bias is below `bound` / 2³².
    pub fn below(&mut self, bound: u32) -> u32 {
        let scaled = ((self.next() >> 32) * u64::from(bound)) >> 32;
        u32::try_from(scaled).expect("the high half of a product of two u32 is a u32")
    }

    /// Puts entries into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, entries: &mut [T]) {
        for count in (2..=entries.len()).rev() {
            let other = self.below(u32::try_from(count).expect("fewer than 2³² entries are shuffled"));
            entries.swap(count - 1, other as usize);
        }
    }
}
