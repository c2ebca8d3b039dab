//! What several of the tests need.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod approved;
pub(crate) mod capable;
pub(crate) mod execution;
pub(crate) mod graphs;
pub(crate) mod interleavings;
pub(crate) mod judge;
pub(crate) mod order;
pub(crate) mod repeated;
