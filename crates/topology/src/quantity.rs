//! Rates and times as people write them: `25GB/s`, `200Gbps`, `700ns`; in documents also an integer in base units.
//!
//! All arithmetic is exact. A text that does not come out as a whole number of bytes per second (or nanoseconds) is
//! refused, never rounded. A text without a unit is refused, too, because `25` may be meant in any unit; only 0 is the
//! same in all of them. It knows nothing of the documents and expressions that hold the texts.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::units::{Capacity, Latency};

/// A rate or a time in a document: a whole number of base units, or text with a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes per second, or nanoseconds.
    Whole(u64),
    /// A number and its unit, not yet read.
    Text(String),
}

/// Why a text is not a rate or a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum QuantityError {
    #[error(
        "`{text}` is not a {what}; write a plain number without sign or exponent, then a unit, such as `{example}`"
    )]
    NotANumber { what: &'static str, text: String, example: &'static str },
    #[error("`{text}` has no unit; write `{text}{common}`, or use another unit of {units}")]
    NoUnit { text: String, common: &'static str, units: &'static str },
    #[error("`{text}` has the unit `{unit}`, which no {what} has; use one of {units}")]
    Unit { what: &'static str, text: String, unit: String, units: &'static str },
    #[error("`{text}` is not a whole number of {base}; choose a number that is")]
    NotWhole { text: String, base: &'static str },
    #[error("`{text}` is zero; a link that carries nothing is no link, leave it out")]
    Zero { text: String },
    #[error("`{text}` is more than 18446744073709551615 {base}; use a smaller number")]
    TooLarge { text: String, base: &'static str },
}

/// One kind of quantity: its name, base unit and the units it may be written in.
struct Scale {
    what: &'static str,
    base: &'static str,
    example: &'static str,
    /// The unit that is most often meant, for a number without one.
    common: &'static str,
    names: &'static str,
    /// Unit, then numerator and denominator of its size in base units.
    units: &'static [(&'static str, u64, u64)],
}

const RATES: Scale = Scale {
    what: "bandwidth",
    base: "bytes/s",
    example: "25GB/s",
    common: "GB/s",
    names: "B/s kB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s bps kbps Mbps Gbps Tbps",
    units: &[
        ("B/s", 1, 1),
        ("kB/s", 1_000, 1),
        ("MB/s", 1_000_000, 1),
        ("GB/s", 1_000_000_000, 1),
        ("TB/s", 1_000_000_000_000, 1),
        ("KiB/s", 1 << 10, 1),
        ("MiB/s", 1 << 20, 1),
        ("GiB/s", 1 << 30, 1),
        ("bps", 1, 8),
        ("kbps", 1_000, 8),
        ("Mbps", 1_000_000, 8),
        ("Gbps", 1_000_000_000, 8),
        ("Tbps", 1_000_000_000_000, 8),
    ],
};

const TIMES: Scale = Scale {
    what: "latency",
    base: "nanoseconds",
    example: "700ns",
    common: "us",
    names: "ns us ms s",
    units: &[("ns", 1, 1), ("us", 1_000, 1), ("ms", 1_000_000, 1), ("s", 1_000_000_000, 1)],
};

/// Longest text read as a quantity; the longest sensible one has some 25 characters.
const TEXT_MAX: usize = 64;

impl Scale {
    /// Exact value of `text` in base units.
    fn read(&self, text: &str) -> Result<u64, QuantityError> {
        let shown = || text.chars().take(TEXT_MAX).collect::<String>();
        let not_a_number = || QuantityError::NotANumber { what: self.what, text: shown(), example: self.example };
        let text = text.trim();
        if text.len() > TEXT_MAX {
            return Err(not_a_number());
        }
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(number_end);
        let (whole, decimals) = number.split_once('.').map_or((number, None), |(a, b)| (a, Some(b)));
        let malformed = |part: &str| part.is_empty() || part.contains('.');
        if malformed(whole) || decimals.is_some_and(malformed) {
            return Err(not_a_number());
        }
        // `1e9GB/s` would be read as the unit `e9GB/s`: say what is wrong with it instead.
        let unit = unit.trim_start();
        if unit.starts_with(['e', 'E']) && unit[1..].starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
        {
            return Err(not_a_number());
        }
        if unit.is_empty() {
            let is_zero = whole.bytes().chain(decimals.unwrap_or_default().bytes()).all(|digit| digit == b'0');
            let no_unit = || QuantityError::NoUnit { text: text.to_owned(), common: self.common, units: self.names };
            return if is_zero { Ok(0) } else { Err(no_unit()) };
        }
        let known = self.units.iter().find(|(name, ..)| *name == unit);
        let &(_, numerator, denominator) = known.ok_or_else(|| QuantityError::Unit {
            what: self.what,
            text: shown(),
            unit: unit.to_owned(),
            units: self.names,
        })?;
        let decimals = decimals.unwrap_or_default().trim_end_matches('0');
        let too_large = || QuantityError::TooLarge { text: shown(), base: self.base };
        let mut mantissa = 0_u128;
        for digit in whole.bytes().chain(decimals.bytes()) {
            let next = mantissa.checked_mul(10).and_then(|tens| tens.checked_add(u128::from(digit - b'0')));
            mantissa = next.ok_or_else(too_large)?;
        }
        let scaled = mantissa.checked_mul(u128::from(numerator)).ok_or_else(too_large)?;
        let decimal_places = u32::try_from(decimals.len()).map_err(|_| too_large())?;
        let divisor = 10_u128.checked_pow(decimal_places).and_then(|power| power.checked_mul(u128::from(denominator)));
        match divisor {
            Some(divisor) if scaled.is_multiple_of(divisor) => u64::try_from(scaled / divisor).map_err(|_| too_large()),
            _ => Err(QuantityError::NotWhole { text: shown(), base: self.base }),
        }
    }
}

/// Reads `25GB/s`, `200Gbps` (= 25 GB/s) or `12.5GB/s`; exact.
///
/// # Errors
/// No number, no unit or another one, zero, or not a whole number of bytes per second within 64 bits.
impl FromStr for Capacity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let bytes_per_sec = RATES.read(text)?;
        Self::from_bytes_per_sec(bytes_per_sec).ok_or_else(|| QuantityError::Zero { text: text.to_owned() })
    }
}

/// Writes `25GB/s` or `12.5GB/s` where at most three decimals of the largest unit up to GB/s are exact, else bytes.
impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.bytes_per_sec();
        let units = [("GB/s", 1_000_000_000_u64), ("MB/s", 1_000_000), ("kB/s", 1_000)];
        match units.into_iter().find(|(_, size)| value >= *size) {
            Some((unit, size)) if value.is_multiple_of(size / 1_000) => {
                let thousandths = format!("{:03}", value % size / (size / 1_000));
                let decimals = thousandths.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                write!(f, "{}{point}{decimals}{unit}", value / size)
            }
            _ => write!(f, "{value}B/s"),
        }
    }
}

/// Reads `700ns`, `1.5us`, or `0` in any unit or none; exact.
///
/// # Errors
/// No number, no unit or another one, or not a whole number of nanoseconds within 64 bits.
impl FromStr for Latency {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        TIMES.read(text).map(Self::from_nanos)
    }
}

/// Writes `700ns` or `5us`: the largest unit in which the number is whole.
impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos();
        let units = [("s", 1_000_000_000_u64), ("ms", 1_000_000), ("us", 1_000)];
        let exact = units.into_iter().find(|(_, size)| nanos >= *size && nanos.is_multiple_of(*size));
        let (unit, size) = exact.unwrap_or(("ns", 1));
        write!(f, "{}{unit}", nanos / size)
    }
}

impl Quantity {
    /// The quantity as a rate.
    ///
    /// # Errors
    /// As [`Capacity::from_str`].
    pub fn capacity(&self) -> Result<Capacity, QuantityError> {
        match self {
            Self::Text(text) => text.parse(),
            Self::Whole(bytes_per_sec) => Capacity::from_bytes_per_sec(*bytes_per_sec)
                .ok_or_else(|| QuantityError::Zero { text: bytes_per_sec.to_string() }),
        }
    }

    /// The quantity as a time.
    ///
    /// # Errors
    /// As [`Latency::from_str`].
    pub fn latency(&self) -> Result<Latency, QuantityError> {
        match self {
            Self::Text(text) => text.parse(),
            Self::Whole(nanos) => Ok(Latency::from_nanos(*nanos)),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Takes integers and text; everything else, floats included, is an error by default.
        struct WholeOrText;

        impl Visitor<'_> for WholeOrText {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a whole number of base units (bytes/s, ns) or text with a unit such as `25GB/s` or `700ns`",
                )
            }

            fn visit_u64<E>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity::Whole(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(WholeOrText)
    }
}

#[cfg(test)]
mod tests;
