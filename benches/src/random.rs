//! Random numbers from a seed, the same on every machine.

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 15.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts from a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` > 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).expect("the high half of a product is below its factor")
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// One of some.
    pub fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// True one time in two.
    pub fn toss(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Puts entries in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, entries: &mut [T]) {
        for position in 0..entries.len() {
            let other = position + self.below(entries.len() - position);
            entries.swap(position, other);
        }
    }
}
