//! The third check: how much each link carries, exactly, and the algbw that follows.

use canopy_topology::{LinkIndex, Rate, Topology};
use num_bigint::BigUint;

use super::error::LoadError;
use crate::route::RouteTable;
use crate::shares::{ChunkLayout, ChunkSize};
use crate::transfer::TransferGraph;

/// algbw of a graph whose structure and meaning are right, and the link that decides it.
///
/// A link of capacity `c` that carries `L` chunks, over all phases and each time a route uses it, is busy for
/// `L · chunk size / c`. Everything takes as long as the busiest link, so `algbw = V / max(L / c)`, in bytes per second,
/// where `V` is *size* in chunks: all shares for allgather, reduce-scatter, allreduce, gather and scatter, the message
/// for broadcast and reduce, for all-to-all one rank's N blocks, or the mean over ranks where blocks differ.
///
/// Of several busiest links, the one of smallest index. O(carriers of all transfers + links of all routes).
pub(super) fn check_load(
    topology: &Topology,
    graph: &TransferGraph,
    layout: &ChunkLayout,
) -> Result<(Rate, LinkIndex), LoadError> {
    busiest(topology, &link_loads(topology, graph)?, layout.size())
}

/// algbw that follows from the loads of all links, and the link that decides it.
pub(super) fn busiest(topology: &Topology, loads: &[u128], size: ChunkSize) -> Result<(Rate, LinkIndex), LoadError> {
    let mut busiest: Option<(LinkIndex, u128, u64)> = None;
    for ((index, link), &load) in (0..).zip(topology.links()).zip(loads) {
        let capacity = link.capacity.bytes_per_sec();
        if load > 0 && busiest.is_none_or(|(_, most, of)| takes_longer((load, capacity), (most, of))) {
            busiest = Some((LinkIndex::new(index), load, capacity));
        }
    }
    let (link, load, capacity) = busiest.ok_or(LoadError::NothingMoves)?;
    let algbw = Rate::new(BigUint::from(size.chunks) * capacity, BigUint::from(load) * size.divisor)
        .expect("the busiest link carries something");
    Ok((algbw, link))
}

/// Whether `load / capacity` of the first exceeds that of the second.
pub(crate) fn takes_longer((load, capacity): (u128, u64), (other_load, other_capacity): (u128, u64)) -> bool {
    let products = load.checked_mul(other_capacity.into()).zip(other_load.checked_mul(capacity.into()));
    match products {
        Some((this, other)) => this > other,
        None => BigUint::from(load) * other_capacity > BigUint::from(other_load) * capacity,
    }
}

/// Chunks over each link.
pub(crate) fn link_loads(topology: &Topology, graph: &TransferGraph) -> Result<Vec<u128>, LoadError> {
    // At most 2³² transfers of less than 2⁶⁴ chunks each.
    let mut route_loads = vec![0_u128; graph.routes.len()];
    for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
        route_loads[carrier.route.index()] += u128::from(carrier.chunk_count);
    }
    add_up(topology, &graph.routes, route_loads.into_iter())
}

/// Chunks over each link, from those on each of the routes, all of which are some. O(links of all routes).
pub(super) fn add_up(
    topology: &Topology,
    routes: &RouteTable,
    route_loads: impl Iterator<Item = u128>,
) -> Result<Vec<u128>, LoadError> {
    let mut loads = vec![0_u128; topology.links().len()];
    for (links, route_load) in routes.iter().zip(route_loads) {
        for link in links {
            let load = &mut loads[link.index()];
            *load = load.checked_add(route_load).ok_or(LoadError::Overflow { link: link.number() })?;
        }
    }
    Ok(loads)
}
