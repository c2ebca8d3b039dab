//! What a link carries in a step.

use std::ops::Range;

/// One link's carrying of a part of one node's share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// When, from 0.
    pub step: u32,
    /// Whose share.
    pub source: u32,
    /// The number of the edge in the graph.
    pub edge: u32,
    /// Chunks of the share, from 0, not empty.
    pub chunks: Range<u64>,
}
