//! The remaining capacity of an element, as an exact fraction.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use canopy_topology::read_part;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::shown;

/// The fraction of its capacity that an element keeps, 0 (gone) to 1 (nothing is missing), in lowest terms.
///
/// Both parts fit 64 bits, so that a product with a capacity is exact in 128 bits. Smaller is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Remaining {
    numerator: u64,
    denominator: u64,
}

/// Errors of reading a remaining fraction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a remaining fraction; write what is left, such as 1/2, 0.5 or 50%")]
pub struct RemainingError {
    /// What was found, shortened.
    pub found: String,
}

impl Remaining {
    /// Nothing is left.
    pub const GONE: Self = Self { numerator: 0, denominator: 1 };
    /// Nothing is missing.
    pub const WHOLE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`, reduced.
    ///
    /// # Errors
    /// A denominator of zero, or more than the whole.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, RemainingError> {
        if denominator == 0 || numerator > denominator {
            return Err(RemainingError { found: format!("{numerator}/{denominator}") });
        }
        let divisor = num_integer::gcd(numerator, denominator);
        Ok(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Upper part, in lowest terms.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Lower part, in lowest terms; never zero.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Whether nothing is left.
    pub const fn is_gone(self) -> bool {
        self.numerator == 0
    }

    /// Whether nothing is missing.
    pub const fn is_whole(self) -> bool {
        self.numerator == self.denominator
    }
}

impl Ord for Remaining {
    fn cmp(&self, other: &Self) -> Ordering {
        let across = |a: u64, b: u64| u128::from(a) * u128::from(b);
        across(self.numerator, other.denominator).cmp(&across(other.numerator, self.denominator))
    }
}

impl PartialOrd for Remaining {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Prints `1/2`; nothing left is `0/1`, all is `1/1`.
impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// Reads `1/2`, `0.5` or `50%`; it need not be in lowest terms.
impl FromStr for Remaining {
    type Err = RemainingError;

    fn from_str(text: &str) -> Result<Self, RemainingError> {
        let read = read_part(text).and_then(|(numerator, denominator)| Self::new(numerator, denominator).ok());
        read.ok_or_else(|| RemainingError { found: shown(text) })
    }
}

impl Serialize for Remaining {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Remaining {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_reduced_compared_and_read_back() {
        let read = |text: &str| text.parse::<Remaining>();
        assert_eq!([read("2/4"), read("0.5"), read("50%")], std::array::from_fn(|_| Remaining::new(1, 2)));
        assert_eq!((read("0/7"), read("5/5")), (Ok(Remaining::GONE), Ok(Remaining::WHOLE)));
        assert!(read("1/3").unwrap() < read("2/5").unwrap());
        let greatest = Remaining::new(u64::MAX - 1, u64::MAX).unwrap();
        assert!(greatest < Remaining::WHOLE && greatest > Remaining::new(u64::MAX - 2, u64::MAX - 1).unwrap());
        assert_eq!(read(&greatest.to_string()), Ok(greatest));
        assert_eq!(serde_json::to_string(&greatest.min(Remaining::new(1, 2).unwrap())).unwrap(), "\"1/2\"");
    }

    #[test]
    fn what_is_no_fraction_is_refused_with_a_remedy() {
        for text in
            ["", "1", "1/0", "3/2", "-1/2", "+1/2", "1/2/3", "1/x", "/", "1.5", "150%", "99999999999999999999/1"]
        {
            let error = text.parse::<Remaining>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is not a remaining fraction; write")), "{error}");
            assert!(serde_json::from_str::<Remaining>(&format!("\"{text}\"")).is_err());
        }
    }
}
