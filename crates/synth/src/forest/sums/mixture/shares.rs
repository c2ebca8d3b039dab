//! How much of all trees leaves out the switches of which box.

use canopy_optimize::Fraction;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::boxes::{Around, Boxes};

/// Parts of all trees.
pub(super) struct Divided {
    /// What they all weigh.
    pub(super) rate: Fraction,
    /// Of those that span all switches first, then of those without a box, in order.
    pub(super) of_kinds: Vec<Fraction>,
}

/// The best mixture of trees that span all switches and trees that leave out those of some boxes, the thinnest ones first;
/// `None` where none is faster than `least`.
///
/// If boxes with trees of weight c are left out by x − c of all trees, trees of x − Σ(x − c) span all switches. On no lane may
/// all kinds together take more than there is, which bounds x by a linear inequality for each set of boxes that
/// lanes touch. O(boxes² · such sets).
pub(super) fn divide(boxes: &Boxes<'_>, all: &Around, without: &[Around], least: Fraction) -> Option<Divided> {
    let whole = big(all.rate);
    let weights: Vec<BigRational> =
        without.iter().map(|around| around.left_out.map(|of_box| big(boxes.weight(of_box)))).collect::<Option<_>>()?;
    let touched = boxes.touched();
    let mut best: Option<(BigRational, usize)> = None;
    for count in 1..=without.len() {
        let (some, sum) = (&without[..count], weights[..count].iter().sum::<BigRational>());
        let mut bounds: Vec<BigRational> = weights.get(count).cloned().into_iter().collect();
        let others = BigRational::from_integer(BigInt::from(count) - 1);
        if count > 1 {
            bounds.push(&sum / &others);
        }
        for touched in &touched {
            let (mut slope, mut fixed) = (-others.clone(), &whole - &sum);
            for (around, weight) in some.iter().zip(&weights) {
                let part = if touched.contains(&around.left_out) { BigRational::one() } else { big(around.others) };
                let taken = &whole * part / big(around.rate);
                fixed += &taken * weight;
                slope += taken;
            }
            if slope.is_positive() {
                bounds.push(fixed / slope);
            }
        }
        let Some(rate) = bounds.into_iter().min().filter(|rate| *rate > weights[count - 1]) else { continue };
        if best.as_ref().is_none_or(|(known, _)| rate > *known) {
            best = Some((rate, count));
        }
    }
    let (rate, count) = best.filter(|(rate, _)| *rate > big(least))?;
    let mut parts = vec![BigRational::zero(); without.len()];
    for (part, weight) in parts.iter_mut().zip(&weights).take(count) {
        *part = (&rate - weight) / &rate;
    }
    let spanning = BigRational::one() - parts.iter().sum::<BigRational>();
    let of_kinds = std::iter::once(spanning).chain(parts).map(|part| small(&part)).collect::<Option<_>>()?;
    Some(Divided { rate: small(&rate)?, of_kinds })
}

fn big(fraction: Fraction) -> BigRational {
    BigRational::new(fraction.numerator.into(), fraction.denominator.into())
}

fn small(ratio: &BigRational) -> Option<Fraction> {
    Fraction::new(ratio.numer().to_u128()?, ratio.denom().to_u128()?)
}
