//! Networks as breadth-first broadcasts see them.

use canopy_optimize::{Arc, BfbGraph, Digraph, Stop};
use canopy_schedule::{Action, Collective, Shares};
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::parts::roots;

/// One phase of a collective: data that spreads along the links, or sums that are spread against them, backwards.
pub(super) struct Direction {
    pub(super) action: Action,
    /// Its arcs are the links of the topology, by index; turned around for sums.
    pub(super) graph: BfbGraph,
}

impl Direction {
    pub(super) fn new(
        topology: &Topology,
        action: Action,
        amounts: &[u64],
        stop: &dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let arcs = topology.links().iter().map(|link| {
            let (from, to, capacity) = (link.from.number(), link.to.number(), link.capacity.bytes_per_sec());
            match action {
                Action::Copy => Arc { from, to, capacity },
                Action::Reduce => Arc { from: to, to: from, capacity },
            }
        });
        let digraph = Digraph { node_count: topology.rank_count(), arcs: arcs.collect() };
        Ok(Self { action, graph: BfbGraph::new(&digraph, amounts, stop)? })
    }
}

/// By rank, the weight of what it has for all others, or of what they add up for it.
pub(super) fn amounts(topology: &Topology, collective: Collective, shares: &Shares) -> Vec<u64> {
    let mut amounts = vec![0; topology.rank_count() as usize];
    for (rank, weight) in roots(collective, topology.rank_count(), shares) {
        amounts[rank.index()] = weight;
    }
    amounts
}
