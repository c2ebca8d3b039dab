//! Exact units: capacities and latencies of links, and rates of schedules.

use std::fmt;
use std::num::NonZeroU64;

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};

/// Capacity of a directed link, in bytes per second.
///
/// An integer, because a bound is a quotient of sums of capacities and must be exact; never zero, because a link
/// that carries nothing is not a link. `u64` reaches 18 EB/s, some 10⁷ times today's fastest port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capacity(NonZeroU64);

impl Capacity {
    /// Wraps a rate in bytes per second; `None` for zero.
    pub const fn from_bytes_per_sec(bytes_per_sec: u64) -> Option<Self> {
        match NonZeroU64::new(bytes_per_sec) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// The rate in bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0.get()
    }
}

/// Latency of a directed link (α), in nanoseconds. `u64` reaches 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Latency(u64);

impl Latency {
    /// Wraps a time in nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

/// A rate in bytes per second as an exact, reduced, non-negative fraction: an algbw or a bound of one.
///
/// Arbitrary precision, because a bound multiplies rank counts with sums of capacities, and ratios of two rates
/// multiply once more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(BigRational);

impl Rate {
    /// `numerator / denominator` bytes per second; `None` when the denominator is zero.
    pub fn new(numerator: impl Into<BigUint>, denominator: impl Into<BigUint>) -> Option<Self> {
        let denominator = denominator.into();
        (!denominator.is_zero())
            .then(|| Self(BigRational::new(BigInt::from(numerator.into()), BigInt::from(denominator))))
    }

    /// The rate of a schedule that moves nothing.
    pub fn zero() -> Self {
        Self(BigRational::zero())
    }

    /// Whether the rate is zero.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// This rate divided by `other`; `None` when `other` is zero.
    pub fn ratio_to(&self, other: &Self) -> Option<Ratio> {
        (!other.is_zero()).then(|| Ratio(&self.0 / &other.0))
    }

    /// Numerator and denominator of the reduced fraction.
    pub fn parts(&self) -> (BigUint, BigUint) {
        (self.0.numer().magnitude().clone(), self.0.denom().magnitude().clone())
    }

    /// Giga (10⁹) bytes per second, for display only.
    pub fn gigabytes_per_sec(&self) -> f64 {
        self.0.to_f64().unwrap_or(f64::INFINITY) / 1e9
    }
}

/// Prints the reduced fraction, `num` or `num/den`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Error of reading a [`Rate`] or [`Ratio`] from text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a fraction; write `num` or `num/den` with den > 0")]
pub struct FractionError {
    /// What was found.
    pub text: String,
}

fn parse_fraction(text: &str) -> Result<BigRational, FractionError> {
    let error = || FractionError { text: text.chars().take(80).collect() };
    let digits = |part: &str| {
        let plain = !part.is_empty() && part.len() <= 4096 && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| BigInt::parse_bytes(part.as_bytes(), 10)).flatten()
    };
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let numerator = digits(numerator).ok_or_else(error)?;
    let denominator = digits(denominator).filter(|value| !value.is_zero()).ok_or_else(error)?;
    Ok(BigRational::new(numerator, denominator))
}

/// Reads what [`Display`](fmt::Display) writes; a fraction need not be reduced.
impl std::str::FromStr for Rate {
    type Err = FractionError;

    fn from_str(text: &str) -> Result<Self, FractionError> {
        parse_fraction(text).map(Self)
    }
}

/// A dimensionless exact fraction ≥ 0, such as achieved ÷ bound.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(BigRational);

impl Ratio {
    /// `numerator / denominator`, reduced; `None` when the denominator is zero.
    pub fn new(numerator: impl Into<BigUint>, denominator: impl Into<BigUint>) -> Option<Self> {
        Rate::new(numerator, denominator).map(|rate| Self(rate.0))
    }

    /// Numerator and denominator, reduced.
    pub fn parts(&self) -> (&BigUint, &BigUint) {
        (self.0.numer().magnitude(), self.0.denom().magnitude())
    }

    /// The part of `whole` missing from this ratio, `1 − self ÷ whole`; zero if nothing is missing.
    #[must_use]
    pub fn missing_of(&self, whole: &Self) -> Self {
        if *self >= *whole { Self(BigRational::zero()) } else { Self((&whole.0 - &self.0) / &whole.0) }
    }

    /// Whether the ratio is exactly one.
    pub fn is_one(&self) -> bool {
        self.0 == BigRational::from_integer(BigInt::from(1))
    }

    /// The ratio as a float, for display only.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().unwrap_or(f64::INFINITY)
    }
}

/// Prints `num/den`, with `/1` kept: `1/1` is how an optimal plan is recognised.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0.numer(), self.0.denom())
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl std::str::FromStr for Ratio {
    type Err = FractionError;

    fn from_str(text: &str) -> Result<Self, FractionError> {
        parse_fraction(text).map(Self)
    }
}
