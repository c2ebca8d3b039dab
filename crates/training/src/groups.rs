//! The greatest common rate of several groups of nodes that communicate over the same links at once, and its proof;
//! then what some reach above it, level by level, beside groups whose rates are given.
//!
//! Graphs and numbers in, fractions out. It knows no topologies, files or runtimes.

mod commodity;
mod exact;
mod found;
mod joined;
mod layout;
mod levels;
mod master;
mod optimum;
mod patience;
mod problem;
mod program;
mod rings;
mod scale;
mod search;
mod shares;
mod smooth;
mod symmetry;
mod tree;
mod vertex;
mod ways;

pub use commodity::Unit;
pub use found::{GroupLevel, GroupLevels, GroupOptimum, GroupOptions, GroupPart};
pub use levels::group_levels;
pub use optimum::group_optimum;
pub use patience::{Patience, Room};
pub use problem::{Group, GroupKind, GroupProblem, GroupsError};
pub use rings::ring_rate;
pub use shares::{GroupShares, group_shares, level_shares};
pub use tree::Hop;
