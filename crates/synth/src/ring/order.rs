//! An order of the ranks in which neighbours are near each other.

use canopy_optimize::Stop;
use canopy_topology::{Rank, Topology};

use super::cycle::find_cycle;
use super::improve::improve;
use super::nearness::{Near, Neighbours, nearness};
use crate::error::SynthesisError;
use crate::reach::ask;
use crate::routing::{Heading, Network};

/// Most ranks for which all distances are kept to improve an order: 16 MiB.
const IMPROVED_MAX: u32 = 1024;

/// A cyclic order of all ranks for a ring, the same every time.
///
/// A cycle over links and switches only, on the widest that connect all ranks, where the search finds one; else the
/// nearest rank not yet visited, and so on. Where distances are alike in both directions, parts of the order are then
/// turned around as long as that makes the worst neighbours nearer. No order is claimed to be the best.
///
/// * **In.** A topology whose ranks reach each other.
/// * **Cost.** One search of the network per rank, a bounded search for a cycle, and for up to 1,024 ranks some passes
///   over all pairs.
pub(super) fn ring_order(topology: &Topology, stop: &dyn Stop) -> Result<Vec<Rank>, SynthesisError> {
    let network = Network::new(topology, Heading::Along);
    let neighbours = Neighbours::new(&network, stop)?;
    let mut order = match find_cycle(&neighbours, stop)? {
        Some(cycle) => cycle,
        None => by_nearest(&network, &neighbours, stop)?,
    };
    if topology.rank_count() <= IMPROVED_MAX {
        let mut rows = Vec::with_capacity(order.len());
        for rank in topology.ranks() {
            ask(stop)?;
            rows.push(nearness(&network, &neighbours, rank));
        }
        improve(&mut order, &rows, stop)?;
    }
    Ok(order.into_iter().map(Rank::new).collect())
}

/// From rank 0 always to the nearest rank not yet visited, the one of smallest number among equals.
fn by_nearest(network: &Network<'_>, neighbours: &Neighbours, stop: &dyn Stop) -> Result<Vec<u32>, SynthesisError> {
    let mut left: Vec<u32> = network.topology.ranks().skip(1).map(Rank::number).collect();
    let mut order = vec![0];
    while !left.is_empty() {
        ask(stop)?;
        let last = *order.last().expect("starts with rank 0");
        let row: Vec<Near> = nearness(network, neighbours, Rank::new(last));
        let nearest = (0..left.len()).min_by_key(|&position| (row[left[position] as usize], left[position]));
        order.push(left.swap_remove(nearest.expect("not empty")));
    }
    Ok(order)
}
