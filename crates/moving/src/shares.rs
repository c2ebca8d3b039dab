//! How rails divide the traffic of each pair of boxes, as far as NICs go.

use crate::matrix::{Sums, whole};
use crate::tiers::Tiers;

/// Weights of NICs: the bytes of a pair of boxes are divided in proportion to the products of both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    leaves: Vec<f64>,
    enters: Vec<f64>,
}

impl Weights {
    /// For networks without rails.
    pub(crate) const fn none() -> Self {
        Self { leaves: Vec::new(), enters: Vec::new() }
    }

    /// In proportion to the rates of NICs, which is right where these are equal.
    fn by_rate(tiers: &Tiers) -> Self {
        let greatest = |rates: &[u64]| rates.iter().copied().max().unwrap_or(1).max(1) as f64;
        let weights = |rates: &[u64]| rates.iter().map(|&rate| rate as f64 / greatest(rates)).collect();
        Self { leaves: weights(&tiers.rates().outer_out), enters: weights(&tiers.rates().outer_in) }
    }

    /// Takes over those of the last matrix for NICs that were alive and are.
    fn warmed(&mut self, last: &Self) {
        if last.leaves.len() != self.leaves.len() {
            return;
        }
        let pairs = self.leaves.iter_mut().zip(&last.leaves).chain(self.enters.iter_mut().zip(&last.enters));
        for (weight, &last) in pairs {
            if *weight > 0.0 && last > 0.0 {
                *weight = last;
            }
        }
    }
}

/// Rounds after which the best shares found are taken: by their work on pairs of boxes and rails, within limits.
const WORK_MAX: usize = 600_000;
const ROUNDS_MIN: usize = 16;
const ROUNDS_MAX: usize = 300;

/// How much longer than demanded a NIC may take.
const EXCESS: f64 = 1e-5;

/// Bytes of each pair of boxes by rail, `(from·boxes + to)·rails + rail`, and the weights that they come from.
///
/// Of all divisions that keep each NIC within its time, the one of greatest entropy has the form of [`Weights`]: an
/// overloaded NIC's weight shrinks by its excess, first those that send, then those that receive, as in Bregman's
/// method for inequalities.
///
/// * **In.** Sums whose boxes have live NICs on a rail; `time`: seconds that each NIC has. **Out.** Whole bytes; some
///   NICs may take longer.
/// * **Cost.** O(boxes²·rails) for each of 16 to 300 rounds, one if all NICs have one rate.
pub(crate) fn shares(tiers: &Tiers, sums: &Sums, time: f64, last: Option<&Weights>) -> (Vec<u64>, Weights) {
    let mut weights = Weights::by_rate(tiers);
    let limits = weights.clone();
    if let Some(last) = last {
        weights.warmed(last);
    }
    let mut best = (f64::INFINITY, weights.clone());
    for round in 0..(WORK_MAX / sums.boxes.len() / tiers.box_size()).clamp(ROUNDS_MIN, ROUNDS_MAX) {
        let (leave, enter) = used(tiers, sums, time, &weights);
        let worst = leave.iter().chain(&enter).fold(0.0, |worst: f64, &used| worst.max(used));
        if worst < best.0 {
            best = (worst, weights.clone());
        }
        if worst <= 1.0 + EXCESS {
            break;
        }
        let is_out = leave.iter().any(|&used| used > 1.0 + EXCESS)
            && (round.is_multiple_of(2) || enter.iter().all(|&used| used <= 1.0 + EXCESS));
        let (ours, used, limits) = if is_out {
            (&mut weights.leaves, leave, &limits.leaves)
        } else {
            (&mut weights.enters, enter, &limits.enters)
        };
        for ((weight, used), limit) in ours.iter_mut().zip(used).zip(limits) {
            if used > 0.0 {
                *weight = (*weight / used).min(*limit);
            }
        }
    }
    (whole_shares(tiers, sums, &best.1), best.1)
}

/// Parts of the time that NICs use, as they send and as they receive.
fn used(tiers: &Tiers, sums: &Sums, time: f64, weights: &Weights) -> (Vec<f64>, Vec<f64>) {
    let (size, boxes) = (tiers.box_size(), tiers.boxes());
    let (mut leave, mut enter) = (vec![0.0; tiers.ranks()], vec![0.0; tiers.ranks()]);
    let mut products = vec![0.0; size];
    for (from, leave) in leave.chunks_mut(size).enumerate() {
        let leaves = &weights.leaves[from * size..(from + 1) * size];
        let entering = weights.enters.chunks(size).zip(enter.chunks_mut(size));
        for ((enters, enter), &bytes) in entering.zip(&sums.boxes[from * boxes..]) {
            if bytes == 0 {
                continue;
            }
            let mut sum = 0.0;
            for ((product, out), into) in products.iter_mut().zip(leaves).zip(enters) {
                *product = out * into;
                sum += *product;
            }
            let each = bytes as f64 / sum;
            for ((product, leave), enter) in products.iter().zip(leave.iter_mut()).zip(enter) {
                *leave += product * each;
                *enter += product * each;
            }
        }
    }
    let fraction = |(used, &rate): (&mut f64, &u64)| {
        *used = if rate == 0 || time <= 0.0 { 0.0 } else { *used / (time * rate as f64) };
    };
    leave.iter_mut().zip(&tiers.rates().outer_out).for_each(fraction);
    enter.iter_mut().zip(&tiers.rates().outer_in).for_each(fraction);
    (leave, enter)
}

/// The shares in whole bytes. What rounding leaves goes over live rails in turn, from another one for each pair.
fn whole_shares(tiers: &Tiers, sums: &Sums, weights: &Weights) -> Vec<u64> {
    let (size, boxes) = (tiers.box_size(), tiers.boxes());
    let mut shares = vec![0_u64; boxes * boxes * size];
    for (pair, (shares, &bytes)) in shares.chunks_mut(size).zip(&sums.boxes).enumerate() {
        let (from, to) = (pair / boxes, pair % boxes);
        let products = |rail: usize| weights.leaves[from * size + rail] * weights.enters[to * size + rail];
        let sum: f64 = (0..size).map(products).sum();
        if bytes == 0 || sum <= 0.0 {
            continue;
        }
        let mut left = bytes;
        for (rail, share) in shares.iter_mut().enumerate() {
            *share = whole(bytes as f64 * (products(rail) / sum)).min(left);
            left -= *share;
        }
        let live: Vec<usize> = (0..size).filter(|&rail| products(rail) > 0.0).collect();
        let count = live.len() as u64;
        for (turn, rail) in live.iter().cycle().skip((from + to) % live.len()).take(live.len()).enumerate() {
            shares[*rail] += left / count + u64::from((turn as u64) < left % count);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::tiers::{Fabric, Rates};

    /// Three boxes of four, one NIC dead and one slow; box 0 sends to both others, and they to it.
    fn case() -> (Tiers, Sums) {
        let all = |rate: u64| vec![rate; 12];
        let mut nics = all(4);
        nics[5] = 0;
        nics[10] = 2;
        let rates = Rates { inner_out: all(99), inner_in: all(99), outer_out: nics.clone(), outer_in: nics };
        let tiers = Tiers::new(Fabric::Rails, 4, rates).unwrap();
        let matrix = Matrix::new(12, (0..144).map(|entry| 1_000 * (1 + entry % 5)).collect()).unwrap();
        let sums = Sums::new(&tiers, &matrix);
        (tiers, sums)
    }

    #[test]
    fn shares_add_up_and_leave_dead_nics_out() {
        let (tiers, sums) = case();
        let time = crate::cuts::least(&tiers, &sums).to_float();
        let (shares, weights) = shares(&tiers, &sums, time, None);
        for (pair, shares) in shares.chunks(4).enumerate() {
            assert_eq!(shares.iter().sum::<u64>(), sums.boxes[pair]);
            assert!(shares[1] == 0 || (pair / 3 != 1 && pair % 3 != 1));
        }
        let (leave, enter) = used(&tiers, &sums, time, &weights);
        assert!(leave.iter().chain(&enter).all(|used| *used <= 1.0 + 2.0 * EXCESS), "{leave:?} {enter:?}");
    }

    /// Weights with which all NICs keep their time are kept as they are.
    #[test]
    fn a_second_matrix_starts_where_the_first_ended() {
        let (tiers, sums) = case();
        let time = crate::cuts::least(&tiers, &sums).to_float();
        let (first, weights) = shares(&tiers, &sums, time, None);
        assert_eq!(shares(&tiers, &sums, time, Some(&weights)), (first, weights));
    }
}
