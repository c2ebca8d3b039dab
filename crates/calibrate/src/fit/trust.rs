//! How much a run counts, by how far it is from the model.

use super::NOISE_LEAST;
use crate::solve::{median, spread};

/// Deviations, in standard deviations, from which on runs count less.
const HUBER: f64 = 1.345;
/// The same from which on they do not count at all.
pub(super) const TUKEY: f64 = 4.685;

/// What runs far off still count.
#[derive(Clone, Copy)]
pub(super) enum Trust {
    /// The further off, the less (Huber): that leads from anywhere to the right place, or near it.
    Less,
    /// From some distance on nothing (Tukey): there, that takes off what outliers still pull.
    None,
}

impl Trust {
    /// By time.
    pub(super) fn weights(self, residuals: &[f64]) -> Vec<f64> {
        let middle = median(residuals.iter().copied()).unwrap_or(0.0);
        let spread = spread(residuals.iter().copied(), middle).max(NOISE_LEAST);
        let weight = |off: &f64| {
            let deviations = (off - middle).abs() / spread;
            match self {
                Self::Less => (HUBER / deviations.max(f64::MIN_POSITIVE)).min(1.0),
                Self::None => (1.0 - (deviations / TUKEY).powi(2)).max(0.0).powi(2),
            }
        };
        residuals.iter().map(weight).collect()
    }
}
