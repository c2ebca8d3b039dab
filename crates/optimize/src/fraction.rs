//! Exact fractions of 128-bit integers, for ratios of weights to capacities.

use std::cmp::Ordering;
use std::fmt;

use num_integer::Integer;

/// A non-negative fraction in lowest terms; its denominator is never zero.
///
/// Compared exactly and without overflow, whatever the parts: by continued fractions instead of cross products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    /// Numerator of the reduced fraction.
    pub numerator: u128,
    /// Denominator of the reduced fraction, at least 1.
    pub denominator: u128,
}

impl Fraction {
    /// `numerator / denominator` in lowest terms; `None` when the denominator is zero.
    pub fn new(numerator: u128, denominator: u128) -> Option<Self> {
        let divisor = numerator.gcd(&denominator);
        (denominator != 0).then(|| Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// `0/1`.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };

    /// The sum in lowest terms; `None` where it does not fit 128 bits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let common = self.denominator.gcd(&other.denominator);
        let (left, right) = (other.denominator / common, self.denominator / common);
        let numerator = self.numerator.checked_mul(left)?.checked_add(other.numerator.checked_mul(right)?)?;
        Self::new(numerator, self.denominator.checked_mul(left)?)
    }

    /// The product in lowest terms; `None` where it does not fit 128 bits.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        // Reduced crosswise first, so that only what the result itself needs has to fit.
        let first = Self::new(self.numerator, other.denominator)?;
        let second = Self::new(other.numerator, self.denominator)?;
        let numerator = first.numerator.checked_mul(second.numerator)?;
        Self::new(numerator, first.denominator.checked_mul(second.denominator)?)
    }

    /// The nearest float, within one unit in the last place, for display.
    #[expect(clippy::cast_precision_loss, reason = "no float decides")]
    pub fn to_float(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The reciprocal; `None` for zero.
    #[must_use]
    pub fn inverse(self) -> Option<Self> {
        (self.numerator != 0).then_some(Self { numerator: self.denominator, denominator: self.numerator })
    }
}

impl Ord for Fraction {
    /// Compares whole parts; where they agree, the fraction with the larger remainder part is the larger one, that is
    /// the one whose reciprocal is smaller. O(log) steps, as Euclid's algorithm.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.numerator, self.denominator, other.numerator, other.denominator);
        let mut flipped = false;
        loop {
            let (whole_left, rest_left) = a.div_rem(&b);
            let (whole_right, rest_right) = c.div_rem(&d);
            let order = match whole_left.cmp(&whole_right) {
                Ordering::Equal if rest_left == 0 || rest_right == 0 => (rest_left != 0).cmp(&(rest_right != 0)),
                Ordering::Equal => {
                    (a, b, c, d) = (b, rest_left, d, rest_right);
                    flipped = !flipped;
                    continue;
                }
                unequal => unequal,
            };
            return if flipped { order.reverse() } else { order };
        }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Prints `num/den`.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(numerator: u128, denominator: u128) -> Fraction {
        Fraction::new(numerator, denominator).expect("denominator is not zero")
    }

    #[test]
    fn reduces_and_refuses_a_zero_denominator() {
        assert_eq!(fraction(6, 4), Fraction { numerator: 3, denominator: 2 });
        assert_eq!(fraction(0, 7), Fraction::ZERO);
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(Fraction::new(0, 0), None);
        assert_eq!(fraction(2, 3).inverse(), Some(fraction(3, 2)));
        assert_eq!(Fraction::ZERO.inverse(), None);
    }

    #[test]
    fn sums_are_reduced_and_never_overflow() {
        assert_eq!(fraction(1, 6).checked_add(fraction(1, 3)), Some(fraction(1, 2)));
        assert_eq!(Fraction::ZERO.checked_add(fraction(5, 7)), Some(fraction(5, 7)));
        assert_eq!(fraction(u128::MAX, 1).checked_add(fraction(1, 1)), None);
        assert_eq!(fraction(1, u128::MAX).checked_add(fraction(1, u128::MAX - 1)), None);
    }

    #[test]
    fn products_are_reduced_before_they_overflow() {
        assert_eq!(fraction(2, 3).checked_mul(fraction(9, 4)), Some(fraction(3, 2)));
        assert_eq!(Fraction::ZERO.checked_mul(fraction(5, 7)), Some(Fraction::ZERO));
        assert_eq!(fraction(u128::MAX, 7).checked_mul(fraction(7, u128::MAX)), Some(fraction(1, 1)));
        assert_eq!(fraction(u128::MAX, 1).checked_mul(fraction(2, 1)), None);
    }

    #[test]
    fn order_agrees_with_cross_products() {
        let all: Vec<Fraction> = (0..12).flat_map(|a| (1..12).map(move |b| fraction(a, b))).collect();
        for left in &all {
            for right in &all {
                let cross = (left.numerator * right.denominator).cmp(&(right.numerator * left.denominator));
                assert_eq!(left.cmp(right), cross, "{left} against {right}");
            }
        }
    }

    #[test]
    fn order_survives_parts_whose_products_overflow() {
        let smaller = Fraction { numerator: u128::MAX - 2, denominator: u128::MAX - 1 };
        let larger = Fraction { numerator: u128::MAX - 1, denominator: u128::MAX };
        assert!(smaller < larger);
        assert!(fraction(u128::MAX, 1) > fraction(u128::MAX, 2));
    }
}
