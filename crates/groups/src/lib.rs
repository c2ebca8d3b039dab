//! The greatest common rate of several groups of nodes that communicate over the same links at once, and its proof.
//!
//! Graphs and numbers in, fractions out. It knows no topologies, files or runtimes.

mod commodity;
mod exact;
mod found;
mod joined;
mod layout;
mod master;
mod optimum;
mod problem;
mod rings;
mod search;
mod shares;
mod symmetry;
mod tree;
mod vertex;
mod ways;

pub use commodity::Unit;
pub use found::{GroupOptimum, GroupOptions, GroupPart};
pub use optimum::group_optimum;
pub use problem::{Group, GroupKind, GroupProblem, GroupsError};
pub use rings::ring_rate;
pub use shares::{GroupShares, group_shares};
pub use tree::Hop;
