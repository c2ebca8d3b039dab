//! The best of many prices: which of those that a search passes prove the most time.
//!
//! Floats compare here; what the best prove is added up elsewhere, in integers.

use crate::matrix::Matrix;
use crate::paths::{Links, Paths};
use crate::prices::Prices;
use crate::tiers::Tiers;

/// Prices after which their mean is tried, and the part of the latest in it.
const MEAN_EVERY: usize = 8;
const FADING: f64 = 0.1;

/// Prices after which the best are tried in rough numbers.
const ROUGH_EVERY: usize = 20;

/// The largest price of rough ones.
const ROUGH_MAX: u32 = 6;

/// The largest whole price.
const PRICE_MAX: f64 = (1 << 20) as f64;

/// Prices that have been offered.
pub(crate) struct Proof<'a> {
    tiers: &'a Tiers,
    matrix: &'a Matrix,
    rates: Vec<f64>,
    best: (f64, Option<Vec<f64>>),
    mean: Vec<f64>,
    count: usize,
}

impl<'a> Proof<'a> {
    /// `least`: seconds that are proven otherwise.
    pub(crate) fn new(tiers: &'a Tiers, matrix: &'a Matrix, least: f64) -> Self {
        let rates = Links::new(tiers).rates();
        let mean = vec![0.0; rates.len()];
        Self { tiers, matrix, rates, best: (least, None), mean, count: 0 }
    }

    /// Proven seconds.
    pub(crate) const fn best(&self) -> f64 {
        self.best.0
    }

    /// Tries prices, infinite on dead links, with their cheapest routes; and the mean of prices, in the proportion of
    /// what all links take, from time to time. Returns looks at networks of NICs.
    pub(crate) fn offer(&mut self, lengths: &[f64], paths: &Paths<'_>) -> usize {
        self.count += 1;
        let takes = self.takes(lengths);
        for (mean, length) in self.mean.iter_mut().zip(lengths) {
            *mean = if length.is_finite() { *mean + FADING * (length / takes - *mean) } else { *length };
        }
        self.try_one(lengths, paths);
        let looks = self.tiers.ranks() * self.tiers.ranks() * self.tiers.hubs() + paths.work();
        if self.count.is_multiple_of(ROUGH_EVERY) {
            self.try_rough();
            return (1 + ROUGH_MAX as usize) * looks;
        }
        if self.count.is_multiple_of(MEAN_EVERY) {
            let mean = self.mean.clone();
            self.try_one(&mean, &Paths::new(self.tiers, mean.clone()));
            return 2 * looks;
        }
        looks
    }

    /// Tries the best in few different prices, which is often the very best.
    fn try_rough(&mut self) {
        let Some(lengths) = self.best.1.clone() else { return };
        for most in 1..=ROUGH_MAX {
            let scale = scale(&lengths, f64::from(most));
            let rough: Vec<f64> = lengths
                .iter()
                .map(|length| if length.is_finite() { (length * scale).round() } else { *length })
                .collect();
            self.try_one(&rough, &Paths::new(self.tiers, rough.clone()));
        }
    }

    fn try_one(&mut self, lengths: &[f64], paths: &Paths<'_>) {
        let mut pays = 0.0;
        for from in 0..self.tiers.ranks() {
            let row = self.matrix.row(from).iter().enumerate().filter(|&(to, &bytes)| bytes > 0 && to != from);
            pays += row.map(|(to, &bytes)| paths.distance(from, to).0 * bytes as f64).sum::<f64>();
        }
        let value = pays / self.takes(lengths);
        if value > self.best.0 {
            self.best = (value, Some(lengths.to_vec()));
        }
    }

    /// What all links take in a second.
    fn takes(&self, lengths: &[f64]) -> f64 {
        let products = lengths.iter().zip(&self.rates);
        products.map(|(length, rate)| if *rate > 0.0 { length * rate } else { 0.0 }).sum()
    }

    /// The best in whole numbers, finely and roughly, where they prove more than was known. Those of dead links, which count
    /// nowhere, are 0.
    pub(crate) fn prices(self) -> Vec<Prices> {
        let Some(lengths) = self.best.1.as_ref() else { return Vec::new() };
        std::iter::once(PRICE_MAX).chain((1..=ROUGH_MAX).map(f64::from)).map(|most| self.whole(lengths, most)).collect()
    }

    /// Lengths in whole numbers of which the greatest is `most`.
    fn whole(&self, lengths: &[f64], most: f64) -> Prices {
        let scale = scale(lengths, most);
        let mut whole = lengths.iter().map(|length| whole(length * scale));
        let ranks = self.tiers.ranks();
        let mut of_ranks = || whole.by_ref().take(ranks).collect();
        let (inner_out, inner_in, outer_out, outer_in) = (of_ranks(), of_ranks(), of_ranks(), of_ranks());
        Prices { inner_out, inner_in, outer_out, outer_in, pairs: whole.collect() }
    }
}

/// What makes `most` of the greatest length.
fn scale(lengths: &[f64], most: f64) -> f64 {
    let finite = lengths.iter().copied().filter(|length| length.is_finite());
    most / finite.fold(f64::MIN_POSITIVE, f64::max)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the largest price")]
fn whole(price: f64) -> u32 {
    if price.is_finite() { price.round() as u32 } else { 0 }
}
