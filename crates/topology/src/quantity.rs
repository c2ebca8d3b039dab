//! Rates and times as people write them: `25GB/s`, `200Gbps`, `700ns`; in documents also an integer in base units.
//!
//! All arithmetic is exact: a text that is not a whole number of bytes per second (or nanoseconds) is refused, never
//! rounded. A text without a unit is refused, too, because `25` may mean any unit; only 0 is equal in all of them.

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

/// Errors of reading a rate or a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum QuantityError {
    #[error("`{text}` is not a {what}; write a number without sign or exponent, then a unit, such as `{example}`")]
    NotANumber { what: &'static str, text: String, example: &'static str },
    #[error("`{text}` has no unit; write `{text}{first}` or `{text}{second}`")]
    NoUnit { text: String, first: &'static str, second: &'static str },
    #[error("`{text}`: `{unit}` is not a unit of {what}; use {units}")]
    Unit { what: &'static str, text: String, unit: String, units: &'static str },
    #[error("`{text}` can be bits or bytes; write `{number}{prefix}b/s` for bits or `{number}{prefix}B/s` for bytes")]
    BitsOrBytes { text: String, number: String, prefix: &'static str },
    #[error("`{text}` is not a whole number of {base}; round it")]
    NotWhole { text: String, base: &'static str },
    #[error("`{text}` is zero; leave out links that carry nothing")]
    Zero { text: String },
    #[error("`{text}` exceeds 18446744073709551615 {base}; use a smaller number")]
    TooLarge { text: String, base: &'static str },
}

/// One kind of quantity: its name, base unit and the units it may be written in.
struct Scale {
    what: &'static str,
    base: &'static str,
    example: &'static str,
    /// The two units that are most often meant, for a number without one.
    common: [&'static str; 2],
    /// Units to choose from, for messages.
    names: &'static str,
    /// Numerator and denominator of a unit's size in base units.
    size: fn(&str) -> Option<(u64, u64)>,
}

const RATES: Scale = Scale {
    what: "bandwidth",
    base: "bytes/s",
    example: "25GB/s",
    common: ["GB/s", "Gb/s"],
    names: "GB/s or MB/s for bytes, Gb/s or Gbps for bits (also k, T, Ki, Mi, Gi)",
    size: rate_unit,
};

const TIMES: Scale = Scale {
    what: "latency",
    base: "nanoseconds",
    example: "700ns",
    common: ["ns", "us"],
    names: "ns, us, ms or s",
    size: time_unit,
};

/// Prefixes of units of rates.
const PREFIXES: [(&str, u64); 10] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// `GB/s`, `GBps`, `Gb/s`, `Gbps`, `Gbit/s` and the like: a prefix, bits or bytes, per second.
fn rate_unit(unit: &str) -> Option<(u64, u64)> {
    let amount = ["/s", "/sec", "ps"].iter().find_map(|per_second| unit.strip_suffix(per_second))?;
    let bits = |prefix| (prefix, 8);
    let bytes = |prefix| (prefix, 1);
    let (prefix, denominator) =
        None.or_else(|| ["bits", "bit", "b"].iter().find_map(|word| amount.strip_suffix(word)).map(bits)).or_else(
            || ["bytes", "byte", "Bytes", "Byte", "B"].iter().find_map(|word| amount.strip_suffix(word)).map(bytes),
        )?;
    PREFIXES.iter().find(|(name, _)| *name == prefix).map(|&(_, factor)| (factor, denominator))
}

/// `ns`, `us` (also with a micro sign), `ms`, `s` and their long forms.
fn time_unit(unit: &str) -> Option<(u64, u64)> {
    let nanos = match unit {
        "ns" | "nsec" => 1,
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        _ => return None,
    };
    Some((nanos, 1))
}

/// The prefix of what may be meant as bits or as bytes: `400G`, `400gb/s`.
fn ambiguous_prefix(unit: &str) -> Option<&'static str> {
    let lower = unit.to_ascii_lowercase();
    let prefix = match lower.as_str() {
        "k" | "kb/s" => "k",
        "m" | "mb/s" => "M",
        "g" | "gb/s" | "gbps" => "G",
        "t" | "tb/s" => "T",
        _ => return None,
    };
    Some(prefix)
}

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
            let [first, second] = self.common;
            let no_unit = || QuantityError::NoUnit { text: text.to_owned(), first, second };
            return if is_zero { Ok(0) } else { Err(no_unit()) };
        }
        let (numerator, denominator) = (self.size)(unit).ok_or_else(|| match ambiguous_prefix(unit) {
            Some(prefix) if self.base == RATES.base => {
                QuantityError::BitsOrBytes { text: shown(), number: number.to_owned(), prefix }
            }
            _ => QuantityError::Unit { what: self.what, text: shown(), unit: unit.to_owned(), units: self.names },
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
