//! Integer types of flows.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An integer type for capacities and flows: `i64` where everything fits, else `i128`. Sealed.
pub trait FlowUnit:
    Copy + Ord + Debug + Send + Sync + Add<Output = Self> + AddAssign + Sub<Output = Self> + SubAssign + private::Sealed
{
    /// Nothing.
    const ZERO: Self;
    /// The largest value: as a capacity or supply it means unlimited, as a limit it means none if flows are smaller.
    const MAX: Self;

    /// The value as this type; `None` when it does not fit.
    fn try_from_u128(value: u128) -> Option<Self>;

    /// The value, which must not be negative, as an unsigned integer.
    ///
    /// # Panics
    /// The value is negative.
    fn to_u128(self) -> u128;

    /// The sum, or [`Self::MAX`] where it would overflow.
    #[must_use]
    fn saturating_add(self, other: Self) -> Self;

    /// The sum; `None` where it would overflow.
    #[must_use]
    fn checked_add(self, other: Self) -> Option<Self>;
}

macro_rules! flow_unit {
    ($name:ident) => {
        impl FlowUnit for $name {
            const ZERO: Self = 0;
            const MAX: Self = $name::MAX;

            fn try_from_u128(value: u128) -> Option<Self> {
                Self::try_from(value).ok()
            }

            fn to_u128(self) -> u128 {
                u128::try_from(self).expect("capacities and flows are never negative")
            }

            fn saturating_add(self, other: Self) -> Self {
                $name::saturating_add(self, other)
            }

            fn checked_add(self, other: Self) -> Option<Self> {
                $name::checked_add(self, other)
            }
        }
    };
}

flow_unit!(i64);
flow_unit!(i128);

mod private {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for i128 {}
}
