//! What several of the tests need.

pub(crate) mod brute_force;
