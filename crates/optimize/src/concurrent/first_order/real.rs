//! The two widths of floating point that flows are kept in: single where a gap of a thousandth is asked for, which halves the
//! memory that every step passes over, and double below that.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A floating-point number.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + 'static
{
    const ZERO: Self;
    const INFINITY: Self;
    /// Distance from one to the next number.
    const EPSILON: Self;

    /// The nearest one.
    fn of(value: f64) -> Self;

    /// The same number.
    fn wide(self) -> f64;

    /// The number, or zero if it is less.
    fn positive(self) -> Self {
        self.greater(Self::ZERO)
    }

    /// The greater of two.
    fn greater(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// The lesser of two.
    fn lesser(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;
    const EPSILON: Self = Self::EPSILON;

    fn of(value: f64) -> Self {
        value
    }

    fn wide(self) -> f64 {
        self
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;
    const EPSILON: Self = Self::EPSILON;

    #[expect(clippy::cast_possible_truncation, reason = "rounding to single width is what it is for")]
    fn of(value: f64) -> Self {
        value as Self
    }

    fn wide(self) -> f64 {
        self.into()
    }
}

/// The sum over all lanes, in an order that short vectors add in.
pub(super) fn lane_sum<R: Real, const L: usize>(mut values: [R; L]) -> R {
    let mut width = L;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            values[lane] += values[lane + width];
        }
    }
    values[0]
}
