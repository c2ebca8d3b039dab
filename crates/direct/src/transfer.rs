//! Transfers: the data on a link in a step.

use std::ops::Range;

/// A part of one node's share on one link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The step, from 0.
    pub step: u32,
    /// The owner of the share.
    pub source: u32,
    /// The number of the edge in the graph.
    pub edge: u32,
    /// Chunks of the share, from 0, not empty.
    pub chunks: Range<u64>,
}
