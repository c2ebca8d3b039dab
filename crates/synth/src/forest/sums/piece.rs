//! A part of a network with trees of its own.

use canopy_optimize::{Arc, Digraph, Fraction, Stop, orientation};

use crate::error::SynthesisError;
use crate::forest::network::Way;
use crate::forest::sums::refusal;

/// A lane of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PieceLane {
    /// The lower end, in the numbers of the piece.
    pub(super) low: u32,
    pub(super) high: u32,
    /// Bytes per second.
    pub(super) capacity: u64,
    pub(super) latency_ns: u64,
}

/// A problem of its own: ranks and clusters as terminals, and the switches between them.
#[derive(Clone, Debug)]
pub(super) struct Piece<'a> {
    pub(super) shape: Shape,
    pub(super) switch_names: Vec<&'a str>,
    /// By lane of the piece: which of the network it is, and whether from the higher end there to the lower one.
    pub(super) origins: Vec<(usize, bool)>,
}

/// What pieces have in common if one solution serves both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Nodes from 0 on.
    pub(super) terminal_count: u32,
    pub(super) node_count: u32,
    /// By both ends.
    pub(super) lanes: Vec<PieceLane>,
    /// By terminal: its box, numbered as they come; none for clusters.
    pub(super) boxes: Vec<Option<u32>>,
}

impl Shape {
    /// The lanes as links that can be passed either way.
    pub(super) fn graph(&self) -> Digraph {
        let arcs = self.lanes.iter().map(|lane| Arc { from: lane.low, to: lane.high, capacity: lane.capacity });
        Digraph { node_count: self.node_count, arcs: arcs.collect() }
    }

    /// Which nodes are terminals.
    pub(super) fn terminals(&self) -> Vec<bool> {
        (0..self.node_count).map(|node| node < self.terminal_count).collect()
    }

    /// Both directions of all lanes, sorted by ends: each with its lane, and whether it leads to the higher end.
    pub(super) fn links(&self) -> Vec<(Way, usize, bool)> {
        let both = self.lanes.iter().enumerate().flat_map(|(lane, &PieceLane { low, high, latency_ns, .. })| {
            [
                (Way { from: low, to: high, latency_ns }, lane, true),
                (Way { from: high, to: low, latency_ns }, lane, false),
            ]
        });
        let mut links: Vec<(Way, usize, bool)> = both.collect();
        links.sort_by_key(|&(way, lane, _)| (way.from, way.to, lane));
        links
    }

    /// Whether trees of this total weight fit.
    pub(super) fn carries(&self, rate: Fraction, rank_count: u32, stop: &dyn Stop) -> Result<bool, SynthesisError> {
        let found = orientation(&self.graph(), &self.terminals(), rate, 0, stop);
        Ok(found.map_err(|error| refusal(error, rank_count))?.is_some())
    }
}
