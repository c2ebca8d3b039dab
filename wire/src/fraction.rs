//! Exact fractions on the wire.

use std::cmp::Ordering::Less;
use std::fmt::Display;

use canopy_proto::v1;
use canopy_synth::Tolerance;
use canopy_topology::Ratio;

/// Longest text of a fraction in a request, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// How far the float of a request may be from its fraction, in parts of it.
const VALUE_ERROR_MAX: f64 = 1e-9;

/// Number on the wire, from its text `num` or `num/den`; `None` for any other text, such as an empty one.
pub fn fraction(number: &(impl Display + ?Sized)) -> Option<v1::Fraction> {
    let exact = number.to_string();
    let value = exact.parse::<Ratio>().ok()?.to_f64();
    Some(v1::Fraction::new(exact, value))
}

/// The fraction of two whole numbers on the wire, which need not be reduced.
pub fn fraction_of(numerator: u64, denominator: u64) -> v1::Fraction {
    v1::Fraction::new(format!("{numerator}/{denominator}"), numerator as f64 / denominator as f64)
}

/// Why a fraction cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The text is not a fraction.
    Text,
    /// The float is another number than the text.
    Value,
}

/// Reads a fraction.
pub(crate) fn read(stated: &v1::Fraction) -> Result<Ratio, Unread> {
    let read = Some(&stated.exact).filter(|text| text.len() <= TEXT_BYTES_MAX).and_then(|text| text.parse().ok());
    let read: Ratio = read.ok_or(Unread::Text)?;
    let exact = read.to_f64();
    let is_near = (stated.value - exact).abs().partial_cmp(&(exact * VALUE_ERROR_MAX)) == Some(Less);
    if stated.value == 0.0 || is_near { Ok(read) } else { Err(Unread::Value) }
}

/// Reads a fraction in numbers of 64 bits.
pub(crate) fn read_small(stated: &v1::Fraction) -> Result<(u64, u64), Unread> {
    let read = read(stated)?;
    let (numerator, denominator) = read.parts();
    u64::try_from(numerator).ok().zip(u64::try_from(denominator).ok()).ok_or(Unread::Text)
}

/// The caller's tolerance; `None` if it is not valid.
pub(crate) fn tolerance(numerator: u64, denominator: u64) -> Option<Tolerance> {
    Tolerance::new(u32::try_from(numerator).ok()?, u32::try_from(denominator).ok()?)
}

/// A fraction in the records of jobs, faults and leases.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct StoredRatio {
    #[prost(uint64, tag = "1")]
    numerator: u64,
    #[prost(uint64, tag = "2")]
    denominator: u64,
}

impl StoredRatio {
    pub(crate) fn of(tolerance: Tolerance) -> Self {
        let (numerator, denominator) = tolerance.parts();
        Self { numerator: numerator.into(), denominator: denominator.into() }
    }

    pub(crate) fn tolerance(self) -> Option<Tolerance> {
        tolerance(self.numerator, self.denominator)
    }

    /// Whether the record has it in this form.
    pub(crate) const fn is_stated(&self) -> bool {
        self.denominator > 0
    }

    pub(crate) fn fraction(self) -> v1::Fraction {
        fraction_of(self.numerator, self.denominator)
    }
}
