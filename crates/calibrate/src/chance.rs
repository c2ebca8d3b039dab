//! Noise for tests.

/// Numbers that look like chance, the same for the same seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly between two numbers.
    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.next()
    }

    /// About normal, with this standard deviation.
    pub(crate) fn noise(&mut self, deviation: f64) -> f64 {
        ((0..12).map(|_| self.next()).sum::<f64>() - 6.0) * deviation
    }
}
