//! Exact fractions.

use std::str::FromStr;

use crate::v1::Fraction;

impl Fraction {
    /// A fraction from its text, `num` or `num/den`, and the same as a float.
    pub fn new(exact: impl Into<String>, value: f64) -> Self {
        Self { exact: exact.into(), value }
    }
}

/// Access to a fraction that may be unset.
pub trait Exact {
    /// Its text; empty if it is unset.
    fn exact(&self) -> &str;

    /// The number that its text stands for; `None` if it is unset or not such a number.
    fn read<T: FromStr>(&self) -> Option<T> {
        self.exact().parse().ok()
    }
}

impl Exact for Option<Fraction> {
    fn exact(&self) -> &str {
        self.as_ref().map_or("", |fraction| &fraction.exact)
    }
}

impl Exact for Fraction {
    fn exact(&self) -> &str {
        &self.exact
    }
}
