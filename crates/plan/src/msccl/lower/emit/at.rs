//! Where a step of a rank is.

/// A step of this rank: block and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) block: usize,
    pub(super) step: u32,
}
