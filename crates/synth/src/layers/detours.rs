//! Other ways for what has no room in the layers that there are.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use canopy_optimize::{Layers, Stop};
use canopy_schedule::Flow;
use canopy_topology::{Link, NodeIndex, Topology};

use super::ways::{Detours, Ways};
use super::{LayeredFlow, LayersError, Order, finish, place};
use crate::reach::ask;

/// What a link costs that carries nothing, where one that is as loaded as the busiest costs so much more.
const HOP_COST: u64 = 1 << 10;
const LOAD_COST: u64 = 1 << 13;

/// The flow in at most so many layers, where its own ways `needed` more.
///
/// What has room stays. The rest goes, by source, on ways that rise in the order of a layer, so that no cycle closes: short
/// ones over links with little load. Where some pair has none, all is tried again with room kept in the first layer for ways up
/// and then down a tree (Autonet's up*/down*), on which every rank reaches every other where links lead both ways.
pub(super) fn within(
    topology: &Topology,
    flow: &Flow,
    ways: &Ways,
    (needed, layers_max): (u32, NonZeroU32),
    stop: &dyn Stop,
) -> Result<LayeredFlow, LayersError> {
    let order = Order::LongestFirst.of(ways);
    for has_tree in [false, true] {
        let mut layers = Layers::new(topology.links().len(), layers_max.get());
        if has_tree {
            reserve_tree(topology, &mut layers);
        }
        let placed = place(&mut layers, ways, (&order, true), stop)?;
        let Some(detours) = detours(topology, ways, &placed, &mut layers, stop)? else { continue };
        let chunks_moved = detours.keys().map(|&way| ways.chunks(way)).sum();
        let (ways, layers) = ways.with_detours(&placed, detours);
        return finish(topology, flow.chunks_per_share, &ways, layers, chunks_moved);
    }
    Err(LayersError::TooMany { needed, limit: layers_max.get() })
}

/// Layer and links of another way for each that was not placed; `None` if one has none.
fn detours(
    topology: &Topology,
    ways: &Ways,
    placed: &[Option<u32>],
    layers: &mut Layers,
    stop: &dyn Stop,
) -> Result<Option<Detours>, LayersError> {
    let mut loads = vec![0_u64; topology.links().len()];
    for way in (0..ways.len()).filter(|&way| placed[way].is_some()) {
        ways.links(way).iter().for_each(|&link| loads[link as usize] += ways.chunks(way));
    }
    let mut left: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for way in (0..ways.len()).filter(|&way| placed[way].is_none()) {
        left.entry(ways.ends(way).0).or_default().push(way);
    }
    let mut found = BTreeMap::new();
    for (source, some) in left {
        ask(stop).map_err(|_| LayersError::Stopped)?;
        let channels = channels(topology, &loads);
        let node_count = topology.nodes().len();
        // The order of a layer stays as it is while rising ways are put into it.
        let ascents: Vec<_> = (0..layers.count())
            .filter_map(|layer| Some((layer, layers.ascent(layer, source, node_count, &channels)?)))
            .collect();
        for way in some {
            let destination = ways.ends(way).1;
            let rising = ascents.iter().filter_map(|(layer, ascent)| {
                let (length, links) = ascent.way_to(destination)?;
                Some((length, *layer, links))
            });
            let Some((_, layer, links)) = rising.min() else { return Ok(None) };
            if !layers.place_in(layer, &links) {
                return Ok(None);
            }
            links.iter().for_each(|&link| loads[link as usize] += ways.chunks(way));
            found.insert(way, (layer, links));
        }
    }
    Ok(Some(found))
}

/// Ends of each link and what it costs to use it: more, the longer its load takes compared with the busiest link's.
fn channels(topology: &Topology, loads: &[u64]) -> Vec<(u32, u32, u64)> {
    let links = || topology.links().iter().zip(loads);
    let capacity_max = links().map(|(link, _)| link.capacity.bytes_per_sec()).max().unwrap_or(1);
    // Time at the rate of the fastest link.
    let time = |capacity: u64, load: u64| u128::from(load) * u128::from(capacity_max) / u128::from(capacity);
    let longest = links().map(|(link, &load)| time(link.capacity.bytes_per_sec(), load)).max().unwrap_or(0).max(1);
    let cost = |capacity: u64, load: u64| {
        let share = time(capacity, load).saturating_mul(LOAD_COST.into()) / longest;
        HOP_COST + u64::try_from(share).unwrap_or(LOAD_COST)
    };
    let of_link = |(link, &load): (&Link, &u64)| {
        (link.from.number(), link.to.number(), cost(link.capacity.bytes_per_sec(), load))
    };
    links().map(of_link).collect()
}

/// Puts the waits of all ways up and then down a tree into the first layer.
///
/// Links lead up where they come nearer to the root, among nodes as near where they lead to a smaller number.
fn reserve_tree(topology: &Topology, layers: &mut Layers) {
    let depths = depths(topology);
    let height = |node: NodeIndex| (depths[node.index()], node.number());
    let is_up: Vec<bool> = topology.links().iter().map(|link| height(link.to) < height(link.from)).collect();
    for (first, link) in (0_u32..).zip(topology.links()) {
        for next in topology.links_from(link.to) {
            if is_up[first as usize] || !is_up[next.index()] {
                // A rank is not gone back to, but the wait does no harm.
                layers.place(&[first, next.number()]);
            }
        }
    }
}

/// Links from the node with most of them, the first of such, to each other node; the greatest number where there is no way.
fn depths(topology: &Topology) -> Vec<u32> {
    let nodes = (0..).take(topology.nodes().len()).map(NodeIndex::new);
    let root = nodes.min_by_key(|&node| Reverse(topology.links_from(node).len()));
    let mut depths = vec![u32::MAX; topology.nodes().len()];
    let mut line: Vec<_> = root.into_iter().collect();
    line.iter().for_each(|node| depths[node.index()] = 0);
    let mut next = 0;
    while let Some(&node) = line.get(next) {
        next += 1;
        for link in topology.links_from(node) {
            let to = topology.link(link).to;
            if depths[to.index()] == u32::MAX {
                depths[to.index()] = depths[node.index()] + 1;
                line.push(to);
            }
        }
    }
    depths
}
