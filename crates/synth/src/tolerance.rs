//! The part of the rate that a plan may give up to be found sooner.

use canopy_optimize::Fraction;

/// Part of the best rate that may be missing from a plan, between 0 and 1 exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tolerance {
    numerator: u32,
    denominator: u32,
}

impl Tolerance {
    /// `numerator / denominator`, reduced; `None` unless it lies between 0 and 1.
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        let common = num_integer::gcd(numerator, denominator).max(1);
        let (numerator, denominator) = (numerator / common, denominator / common);
        (0 < numerator && numerator < denominator).then_some(Self { numerator, denominator })
    }

    /// Numerator and denominator of the reduced fraction.
    pub const fn parts(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }

    /// The time of a plan that just keeps to it, `time / (1 − t)`, and of one that lacks only half as much; `None` where
    /// one does not fit 128 bits.
    pub(crate) fn stretched(self, time: Fraction) -> Option<Stretched> {
        let (numerator, denominator) = (u128::from(self.numerator), u128::from(self.denominator));
        let times = |factor: u128, divisor: u128| {
            // The largest factors go first, so that what fits when reduced is found.
            let (a, b) = (num_integer::gcd(time.numerator, divisor), num_integer::gcd(factor, time.denominator));
            let numerator = (time.numerator / a).checked_mul(factor / b)?;
            Fraction::new(numerator, (time.denominator / b).checked_mul(divisor / a)?)
        };
        let all = times(denominator, denominator - numerator)?;
        let half = times(2 * denominator, 2 * denominator - numerator)?;
        Some(Stretched { half, all })
    }
}

/// Times of plans within a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretched {
    /// Of one that lacks half of what it may.
    pub(crate) half: Fraction,
    /// Of one that lacks all of it.
    pub(crate) all: Fraction,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(numerator: u128, denominator: u128) -> Fraction {
        Fraction::new(numerator, denominator).unwrap()
    }

    #[test]
    fn only_what_lies_between_nothing_and_all_is_a_tolerance() {
        assert_eq!(Tolerance::new(2, 128).map(Tolerance::parts), Some((1, 64)));
        for (numerator, denominator) in [(0, 1), (0, 0), (1, 0), (1, 1), (2, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(Tolerance::new(numerator, denominator), None, "{numerator}/{denominator}");
        }
    }

    #[test]
    fn times_are_stretched_so_that_rates_lack_just_as_much() {
        let quarter = Tolerance::new(1, 4).unwrap();
        let expected = Stretched { half: fraction(8, 7), all: fraction(4, 3) };
        assert_eq!(quarter.stretched(fraction(1, 1)), Some(expected));
        // Reduced before it is multiplied.
        let large = quarter.stretched(fraction(21, u128::MAX - 1)).unwrap();
        assert_eq!(large.all, fraction(14, (u128::MAX - 1) / 2));
        assert_eq!(quarter.stretched(fraction(u128::MAX, 1)), None);
    }
}
