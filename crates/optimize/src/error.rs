//! Why a graph cannot be worked on, or has no optimum.

use crate::stop::Stopped;

/// Why a [`Digraph`] can not be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DigraphError {
    #[error("arcs[{position}] joins {from} to {to}, but the graph has {node_count} nodes; ends are below that number")]
    NoSuchNode { position: usize, from: u32, to: u32, node_count: u32 },
}

/// Why there is no optimum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages and comments name every field")]
pub enum OptimumError {
    /// `cut` is the membership of a set whose data has to cross its boundary, while no arc does in that direction.
    #[error("no arc leads across a cut that data has to cross; the optimum is zero")]
    Disconnected { cut: Vec<bool> },
    #[error("{found} values are given per node, but the graph has {node_count} nodes; give one each")]
    WrongLength { found: usize, node_count: u32 },
    #[error("node {root} is not in the graph of {node_count} nodes")]
    NoSuchRoot { root: u32, node_count: u32 },
    #[error(
        "node {node} is no terminal, but {entering} enter it and {leaving} leave; lower one of them until they are equal"
    )]
    Unbalanced { node: u32, entering: u128, leaving: u128 },
    #[error("no data has to move: no node has weight that another one needs")]
    NothingToMove,
    #[error("total weight {weight} times capacities exceeds 127 bits; divide the weights by a common factor")]
    TooLarge { weight: u128 },
    /// Only of [`balanced_optimum`](crate::balanced_optimum).
    #[error("no part of the graph was found in which as much enters as leaves each node that is no terminal")]
    NoBalancedPart,
    #[error(transparent)]
    Graph(#[from] DigraphError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
