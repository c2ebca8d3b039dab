//! Trees of many nodes that use every port of a network at once, step by step, and paths that do so for one message.
//!
//! Graphs and numbers in, trees out: which edge each tree takes in which step. What travels on them is for callers to say: a
//! share down its owner's tree, the blocks of all that an edge leads to, sums up the trees of the network turned around.
//!
//! Source of the problem and of most of the methods: Pham, *Low-Latency Collective Communication for High-Performance Computing
//! Networks* (2026).

mod greedy;
mod grid;
#[cfg(test)]
mod judge;
mod levels;
mod paths;
mod rook;
#[cfg(test)]
mod tests;
mod trees;

pub use greedy::{GreedyError, RoutedTrees, Wires, greedy_trees};
pub use grid::{Grid, GridError};
pub use levels::{KautzError, level_trees, one_at_a_time, require_kautz};
pub use paths::{
    Forwarding, Hop, Line, MultiPath, MultiPathError, MultiPathProblem, PATHS_MAX, PathPart, Split, even_time,
    multi_path, split,
};
pub use rook::rook_trees;
pub use trees::{Branch, Tree, Trees, Unreachable};
