//! An all-to-all as a problem of flows: the links as arcs, and what everyone wants of everyone.

use canopy_optimize::{Arc, Commodity, Digraph};
use canopy_topology::Topology;

/// The links as arcs: arc `i` is link `i`, and nodes keep their numbers. O(nodes + links).
pub(crate) fn digraph(topology: &Topology) -> Digraph {
    let node_count = u32::try_from(topology.nodes().len()).expect("a topology has fewer than 2³² nodes");
    let arcs = topology.links().iter().map(|link| {
        let (from, to, capacity) = (link.from.number(), link.to.number(), link.capacity.bytes_per_sec());
        Arc { from, to, capacity }
    });
    Digraph { node_count, arcs: arcs.collect() }
}

/// What one rank has for all others, a unit for each, in a problem where so many ranks are alike.
pub(crate) fn commodity(source: u32, rank_count: u32, copies: u64) -> Commodity {
    let sinks = (0..rank_count).filter(|&rank| rank != source).map(|rank| (rank, 1)).collect();
    Commodity { source, sinks, copies }
}

/// What each rank has for all others, by rank. O(ranks²).
pub(crate) fn commodities(rank_count: u32) -> Vec<Commodity> {
    (0..rank_count).map(|source| commodity(source, rank_count, 1)).collect()
}
