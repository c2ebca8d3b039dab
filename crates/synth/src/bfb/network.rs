//! Networks as breadth-first broadcasts see them.

use canopy_optimize::{Arc, BfbGraph, Digraph, JointArrivals, Stop};
use canopy_schedule::{Action, Collective, Shares};
use canopy_topology::Topology;

use super::wires::{Wire, Wires};
use crate::error::SynthesisError;
use crate::parts::roots;

/// One phase of a collective: data that spreads along the links, or sums that are spread against them, backwards.
pub(super) struct Direction {
    pub(super) action: Action,
    /// Its arcs are the wires of the network, by number; turned around for sums.
    pub(super) graph: BfbGraph,
    /// What arrives at all ranks, where hosts make that of one depend on that of others.
    pub(super) joint: Option<JointArrivals>,
}

impl Direction {
    pub(super) fn new(wires: &Wires, action: Action, amounts: &[u64], stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let arcs = wires.all.iter().map(|&Wire { from, to, capacity, .. }| match action {
            Action::Copy => Arc { from, to, capacity },
            Action::Reduce => Arc { from: to, to: from, capacity },
        });
        let node_count = u32::try_from(amounts.len()).expect("one for each rank");
        let digraph = Digraph { node_count, arcs: arcs.collect() };
        let graph = wires.limit(BfbGraph::new(&digraph, amounts, stop)?, action)?;
        let joint = graph.has_hosts().then(|| JointArrivals::new(graph.clone(), stop)).transpose()?;
        Ok(Self { action, graph, joint })
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
