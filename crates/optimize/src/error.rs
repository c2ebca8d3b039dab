//! Errors of graphs and of their optima.

use crate::stop::Stopped;

/// Errors of a malformed [`Digraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DigraphError {
    #[error("arcs[{position}] leads from {from} to {to}, but the graph has {node_count} nodes; number nodes from 0")]
    NoSuchNode { position: usize, from: u32, to: u32, node_count: u32 },
}

/// Errors of computing an optimum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages and comments name every field")]
pub enum OptimumError {
    /// `cut` is the membership of a set whose data has to cross its boundary, while no arc does in that direction.
    #[error("no arc crosses a cut that data has to cross, so the optimum is zero")]
    Disconnected { cut: Vec<bool> },
    #[error("{found} values for {node_count} nodes; give one for each node")]
    WrongLength { found: usize, node_count: u32 },
    #[error("node {root} is not in the graph of {node_count} nodes")]
    NoSuchRoot { root: u32, node_count: u32 },
    #[error(
        "node {node} is not a terminal, but {entering} enters it and {leaving} leaves; lower one of them until they \
         are equal"
    )]
    Unbalanced { node: u32, entering: u128, leaving: u128 },
    #[error("no data has to move, because no node has weight that another one needs")]
    NothingToMove,
    #[error("total weight {weight} times capacities overflows 127 bits; divide the weights by a common factor")]
    TooLarge { weight: u128 },
    /// Only of [`balanced_optimum`](crate::balanced_optimum).
    #[error("no part of the graph was found in which every node that is not a terminal receives as much as it sends")]
    NoBalancedPart,
    #[error(transparent)]
    Graph(#[from] DigraphError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
