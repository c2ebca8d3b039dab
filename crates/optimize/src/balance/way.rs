//! Arcs as programs have them.

/// An arc: both ends and its capacity.
pub(super) type Way = (u32, u32, u128);
