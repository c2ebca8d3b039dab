//! An all-to-all as a flow problem: links as arcs, and the demand of every pair of ranks.

use canopy_optimize::{Arc, Commodity, Digraph};
use canopy_schedule::Shares;
use canopy_topology::{Rank, Topology};

/// The links as arcs: arc `i` is link `i`, and nodes keep their numbers. O(nodes + links).
pub fn digraph(topology: &Topology) -> Digraph {
    let node_count = u32::try_from(topology.nodes().len()).expect("a topology has fewer than 2³² nodes");
    let arcs = topology.links().iter().map(|link| {
        let (from, to, capacity) = (link.from.number(), link.to.number(), link.capacity.bytes_per_sec());
        Arc { from, to, capacity }
    });
    Digraph { node_count, arcs: arcs.collect() }
}

/// What each rank has for others, of those that have something. O(pairs).
pub(crate) fn commodities(rank_count: u32, shares: &Shares) -> Vec<Commodity> {
    let all = (0..rank_count).map(|source| commodity(rank_count, shares, source));
    all.filter(|commodity| !commodity.sinks.is_empty()).collect()
}

/// What one rank has for others, in units of weight.
pub(crate) fn commodity(rank_count: u32, shares: &Shares, source: u32) -> Commodity {
    let others = (0..rank_count).filter(|&rank| rank != source);
    let demands = others.map(|rank| (rank, shares.block(Rank::new(source), Rank::new(rank))));
    Commodity { source, sinks: demands.filter(|&(_, demand)| demand > 0).collect(), copies: 1 }
}

/// Whether each rank has the same for each other one, whatever it has for itself. O(pairs).
pub(crate) fn is_uniform(shares: &Shares) -> bool {
    let Shares::Blocks(blocks) = shares else { return true };
    let ranks = u64::from(blocks.rank_count());
    let mut demands = blocks.moving().map(|(_, _, weight)| weight);
    let first = demands.next();
    let alike = demands.by_ref().take_while(|&weight| Some(weight) == first).count() as u64;
    alike + 1 == ranks * (ranks - 1)
}
