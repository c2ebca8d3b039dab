//! What no delivery can be faster than.

use super::Demand;
use crate::bound::{distances, time_to_bring};
use crate::levels::Levels;
use crate::network::{TimedLink, TimedNetwork};

/// Ticks that every delivery takes at least; none where a chunk cannot come to where it is to be.
///
/// The greatest of five: the longest of the shortest ways; for each node, how long its links take to send what it has for others
/// and to bring what others have for it; the same for the links across each division of nodes by number, and into and out
/// of each cluster of nodes that faster links join; and all occupancies on ways
/// of least occupancy, divided among all links, and likewise of slow links alone.
///
/// * **Cost.** O(sources · levels · links · log nodes + nodes · links · log time).
pub fn delivery_bound(network: &TimedNetwork, demands: &[Demand]) -> Option<u64> {
    let nodes = network.node_count();
    if demands.iter().any(|demand| demand.from.max(demand.to) >= nodes) {
        return None;
    }
    let levels = Levels::of(network);
    let mut best = bound_of_nodes(network, demands)?.max(bound_of_divisions(network, demands)?);
    for cluster_of in &levels.clusters {
        best = best.max(bound_of_clusters(network, demands, cluster_of, levels.level_of.len())?);
    }
    let mut by_source: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
    demands.iter().for_each(|&Demand { from, to }| by_source[from as usize].push(to));
    Some(best.max(bound_of_ways(network, &by_source, &levels.limits)?))
}

/// Ticks that some links take to bring so many chunks; none where there is no link for them.
fn time(network: &TimedNetwork, links: impl Iterator<Item = u32>, chunks: u64) -> Option<u64> {
    let entry = |link: u32| (network.link(link).latency, network.link(link).occupancy);
    let links: Vec<(u64, u64)> = links.map(entry).collect();
    time_to_bring(&links, chunks)
}

/// For each node: how long its links take to send what it has for others, and to bring what others have for it.
fn bound_of_nodes(network: &TimedNetwork, demands: &[Demand]) -> Option<u64> {
    let nodes = network.node_count() as usize;
    let (mut leaving, mut entering) = (vec![0_u64; nodes], vec![0_u64; nodes]);
    for &Demand { from, to } in demands {
        leaving[from as usize] += 1;
        entering[to as usize] += 1;
    }
    let mut best = 0;
    for node in 0..network.node_count() {
        best = best.max(time(network, network.outgoing(node).iter().copied(), leaving[node as usize])?);
        best = best.max(time(network, network.incoming(node).iter().copied(), entering[node as usize])?);
    }
    Some(best)
}

/// The same for the links across each division of nodes by number.
fn bound_of_divisions(network: &TimedNetwork, demands: &[Demand]) -> Option<u64> {
    let nodes = network.node_count() as usize;
    // By number of nodes on the lower side: by how much more chunks go up, and down, across the division than across the one before.
    let (mut up, mut down) = (vec![0_i64; nodes + 1], vec![0_i64; nodes + 1]);
    for &Demand { from, to } in demands {
        let across = if from < to { &mut up } else { &mut down };
        across[from.min(to) as usize + 1] += 1;
        across[from.max(to) as usize + 1] -= 1;
    }
    let (mut best, mut going_up, mut going_down) = (0, 0, 0);
    for division in 1..network.node_count() {
        going_up += up[division as usize];
        going_down += down[division as usize];
        let across = |is_up: bool| {
            let crosses = move |link: &TimedLink| match is_up {
                true => link.from < division && link.to >= division,
                false => link.from >= division && link.to < division,
            };
            (0..).zip(network.links()).filter(move |(_, link)| crosses(link)).map(|(number, _)| number)
        };
        best = best.max(time(network, across(true), u64::try_from(going_up).ok()?)?);
        best = best.max(time(network, across(false), u64::try_from(going_down).ok()?)?);
    }
    Some(best)
}

/// What crosses the boundary of a cluster one way.
#[derive(Clone, Default)]
struct BoundaryTraffic {
    links: Vec<u32>,
    chunks: u64,
}

/// The same into and out of each cluster of nodes that faster links join.
fn bound_of_clusters(
    network: &TimedNetwork,
    demands: &[Demand],
    cluster_of: &[u32],
    cluster_count: usize,
) -> Option<u64> {
    let (mut leaving, mut entering) =
        (vec![BoundaryTraffic::default(); cluster_count], vec![BoundaryTraffic::default(); cluster_count]);
    // What stays within its cluster crosses nothing; a node may be in none.
    let clusters = |from: u32, to: u32| {
        let ends = (cluster_of[from as usize], cluster_of[to as usize]);
        Some(ends).filter(|(from, to)| from != to)
    };
    for (from, to) in demands.iter().filter_map(|demand| clusters(demand.from, demand.to)) {
        leaving.get_mut(from as usize).into_iter().for_each(|out| out.chunks += 1);
        entering.get_mut(to as usize).into_iter().for_each(|into| into.chunks += 1);
    }
    for (number, link) in (0_u32..).zip(network.links()) {
        if let Some((from, to)) = clusters(link.from, link.to) {
            leaving.get_mut(from as usize).into_iter().for_each(|out| out.links.push(number));
            entering.get_mut(to as usize).into_iter().for_each(|into| into.links.push(number));
        }
    }
    let mut times = leaving.into_iter().chain(entering).map(|side| time(network, side.links.into_iter(), side.chunks));
    times.try_fold(0, |best, time| Some(best.max(time?)))
}

/// The longest of the shortest ways; and all occupancies on ways of least occupancy, divided among all links, and likewise of links alone that are
/// slower than a level.
fn bound_of_ways(network: &TimedNetwork, by_source: &[Vec<u32>], limits: &[u64]) -> Option<u64> {
    let sources = || (0..).zip(by_source).filter(|(_, destinations)| !destinations.is_empty());
    let mut best = 0;
    for (source, destinations) in sources() {
        let latencies = distances(network, &[source], |link| link.latency);
        let farthest = destinations.iter().map(|&to| latencies[to as usize]).max().unwrap_or(0);
        best = best.max(Some(farthest).filter(|&latency| latency != u64::MAX)?);
    }
    for limit in limits.iter().copied().chain([0]) {
        let time = |link: &TimedLink| if link.occupancy > limit { link.occupancy } else { 0 };
        let mut work = 0_u128;
        for (source, destinations) in sources() {
            let occupied = distances(network, &[source], time);
            work += destinations.iter().map(|&to| u128::from(occupied[to as usize])).sum::<u128>();
        }
        let links = network.links().iter().filter(|link| link.occupancy > limit).count().max(1);
        best = best.max(u64::try_from(work.div_ceil(links as u128)).ok()?);
    }
    Some(best)
}
