//! The groups of ranks of a training job ([`job`]), and the greatest common rate of groups that communicate over the same
//! links at once ([`groups`]), which is found on plain graphs.

pub mod groups;
pub mod job;
