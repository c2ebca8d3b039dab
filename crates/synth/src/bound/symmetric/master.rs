//! The linear program over ways to send everything: the greatest sum of rates with which they share the links of each orbit.
//!
//! A simplex method in fractions with one row for each orbit. Rows are few, and columns come one at a time.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

/// What came of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// It takes part, and lengths may have changed.
    Better,
    /// No way is better than those there are.
    Best,
    /// It uses nothing that is scarce: then something is wrong with it.
    Stuck,
}

/// The program, and its best solution so far.
pub(super) struct Master {
    /// By row: the variable it belongs to. The first ones are what orbits have left, the others are ways, in the order in which
    /// they came.
    basis: Vec<usize>,
    /// By row: what its variable is.
    values: Vec<BigRational>,
    /// By row and orbit: the inverse of the columns of the basis.
    inverse: Vec<Vec<BigRational>>,
    ways: usize,
}

impl Master {
    /// No ways yet, and all of the capacities, by orbit, left.
    pub(super) fn new(capacities: &[u128]) -> Self {
        let row = |own| (0..capacities.len()).map(|orbit| unit(orbit == own)).collect();
        Self {
            basis: (0..capacities.len()).collect(),
            values: capacities.iter().map(|&capacity| BigRational::from_integer(capacity.into())).collect(),
            inverse: (0..capacities.len()).map(row).collect(),
            ways: 0,
        }
    }

    /// By orbit, the length of its links that proves the solution to be the best of the ways there are, in whole numbers; `None` if
    /// they do not fit.
    pub(super) fn lengths(&self) -> Option<Vec<u64>> {
        let prices = self.prices();
        let common = prices.iter().fold(BigInt::one(), |common, price| num_integer::lcm(common, price.denom().clone()));
        let whole: Vec<BigInt> = prices.iter().map(|price| (price * &common).to_integer()).collect();
        let divisor = whole.iter().fold(BigInt::zero(), |divisor, length| num_integer::gcd(divisor, length.clone()));
        let divisor = if divisor.is_zero() { BigInt::one() } else { divisor };
        whole.into_iter().map(|length| (length / &divisor).to_u64()).collect()
    }

    /// Takes a way in that uses so many links of each orbit for one unit of rate, unless it is no better; the shortest by the
    /// [`lengths`](Self::lengths).
    pub(super) fn add(&mut self, uses: &[u128]) -> Round {
        let column: Vec<BigRational> = uses.iter().map(|&uses| BigRational::from_integer(uses.into())).collect();
        let length: BigRational = self.prices().iter().zip(&column).map(|(price, uses)| price * uses).sum();
        if length >= BigRational::one() {
            return Round::Best;
        }
        let way = self.basis.len() + self.ways;
        self.ways += 1;
        if !self.enter(way, &column) {
            return Round::Stuck;
        }
        // What is left over may be worth more than a way that came earlier. Each turn leads to a better solution or, by the
        // least numbers, to none seen before.
        while let Some(orbit) = self.prices().iter().position(BigRational::is_negative) {
            let column: Vec<BigRational> = (0..self.basis.len()).map(|other| unit(other == orbit)).collect();
            if !self.enter(orbit, &column) {
                return Round::Stuck;
            }
        }
        Round::Better
    }

    /// The sum of all rates, as a fraction.
    pub(super) fn rate(&self) -> (BigUint, BigUint) {
        let ways = self.basis.iter().zip(&self.values).filter(|(variable, _)| **variable >= self.basis.len());
        let sum: BigRational = ways.map(|(_, value)| value).sum();
        (sum.numer().magnitude().clone(), sum.denom().magnitude().clone())
    }

    /// By orbit, what one more of its capacity would be worth.
    fn prices(&self) -> Vec<BigRational> {
        let rows = || self.basis.iter().zip(&self.inverse).filter(|(variable, _)| **variable >= self.basis.len());
        (0..self.basis.len()).map(|orbit| rows().map(|(_, row)| &row[orbit]).sum()).collect()
    }

    /// Brings a variable into the basis; false if nothing limits it.
    fn enter(&mut self, variable: usize, column: &[BigRational]) -> bool {
        let changes: Vec<BigRational> =
            self.inverse.iter().map(|row| row.iter().zip(column).map(|(own, uses)| own * uses).sum()).collect();
        let limits = (0..changes.len()).filter(|&row| changes[row].is_positive());
        let least = limits.min_by_key(|&row| (&self.values[row] / &changes[row], self.basis[row]));
        let Some(pivot) = least else { return false };
        let factor = changes[pivot].recip();
        self.basis[pivot] = variable;
        self.values[pivot] *= &factor;
        self.inverse[pivot].iter_mut().for_each(|entry| *entry *= &factor);
        let (value, row) = (self.values[pivot].clone(), self.inverse[pivot].clone());
        for other in (0..changes.len()).filter(|&other| other != pivot) {
            self.values[other] -= &changes[other] * &value;
            let entries = self.inverse[other].iter_mut().zip(&row);
            entries.for_each(|(entry, pivoted)| *entry -= &changes[other] * pivoted);
        }
        true
    }
}

fn unit(is_one: bool) -> BigRational {
    if is_one { BigRational::one() } else { BigRational::zero() }
}
