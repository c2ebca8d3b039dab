//! What steps take together, as a fraction.

use num_bigint::BigUint;

/// A number of steps, and the sum of their times for chunks of one byte as a fraction that need not be reduced.
pub(super) struct Seconds {
    pub(super) count: u32,
    pub(super) numerator: BigUint,
    pub(super) denominator: BigUint,
}
