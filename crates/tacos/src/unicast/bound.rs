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
    let nodes = network.node_count() as usize;
    let (mut leaving, mut entering) = (vec![0_u64; nodes], vec![0_u64; nodes]);
    // By number of nodes on the lower side: chunks that go up, and down, across the division.
    let (mut up, mut down) = (vec![0_i64; nodes + 1], vec![0_i64; nodes + 1]);
    let mut by_source: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for &Demand { from, to } in demands {
        *leaving.get_mut(from as usize)? += 1;
        *entering.get_mut(to as usize)? += 1;
        let across = if from < to { &mut up } else { &mut down };
        across[from.min(to) as usize + 1] += 1;
        across[from.max(to) as usize + 1] -= 1;
        by_source[from as usize].push(to);
    }
    let entry = |&link: &u32| (network.link(link).latency, network.link(link).occupancy);
    let time = |links: &mut dyn Iterator<Item = u32>, chunks: u64| {
        let links: Vec<(u64, u64)> = links.map(|link| entry(&link)).collect();
        time_to_bring(&links, chunks)
    };
    let mut best = 0;
    for node in 0..network.node_count() {
        best = best.max(time(&mut network.outgoing(node).iter().copied(), leaving[node as usize])?);
        best = best.max(time(&mut network.incoming(node).iter().copied(), entering[node as usize])?);
    }
    let (mut going_up, mut going_down) = (0, 0);
    for division in 1..network.node_count() {
        going_up += up[division as usize];
        going_down += down[division as usize];
        let across = |is_up: bool| {
            (0..).zip(network.links()).filter_map(move |(number, link)| {
                let crosses = if is_up {
                    link.from < division && link.to >= division
                } else {
                    link.from >= division && link.to < division
                };
                crosses.then_some(number)
            })
        };
        best = best.max(time(&mut across(true), u64::try_from(going_up).ok()?)?);
        best = best.max(time(&mut across(false), u64::try_from(going_down).ok()?)?);
    }
    let levels = Levels::of(network);
    for cluster_of in &levels.clusters {
        // By cluster: chunks that leave it, and that enter it.
        let mut crossing = vec![(0, 0); levels.level_of.len()];
        for demand in demands {
            let (from, to) = (cluster_of[demand.from as usize], cluster_of[demand.to as usize]);
            if from != to {
                if let Some((leaving, _)) = crossing.get_mut(from as usize) {
                    *leaving += 1;
                }
                if let Some((_, entering)) = crossing.get_mut(to as usize) {
                    *entering += 1;
                }
            }
        }
        let mut links = vec![(Vec::new(), Vec::new()); levels.level_of.len()];
        for (number, link) in (0_u32..).zip(network.links()) {
            let (from, to) = (cluster_of[link.from as usize], cluster_of[link.to as usize]);
            if from != to {
                if let Some((leaving, _)) = links.get_mut(from as usize) {
                    leaving.push(number);
                }
                if let Some((_, entering)) = links.get_mut(to as usize) {
                    entering.push(number);
                }
            }
        }
        for ((leaving, entering), (chunks_out, chunks_in)) in links.into_iter().zip(crossing) {
            best = best.max(time(&mut leaving.into_iter(), chunks_out)?);
            best = best.max(time(&mut entering.into_iter(), chunks_in)?);
        }
    }
    for (source, destinations) in (0..).zip(&by_source).filter(|(_, destinations)| !destinations.is_empty()) {
        let latencies = distances(network, &[source], |link| link.latency);
        let farthest = destinations.iter().map(|&to| latencies[to as usize]).max().unwrap_or(0);
        best = best.max(Some(farthest).filter(|&latency| latency != u64::MAX)?);
    }
    // Of all links, and of those only that are slower than a level.
    for limit in levels.limits.iter().copied().chain([0]) {
        let time = |link: &TimedLink| if link.occupancy > limit { link.occupancy } else { 0 };
        let mut work = 0_u128;
        for (source, destinations) in (0..).zip(&by_source).filter(|(_, destinations)| !destinations.is_empty()) {
            let occupied = distances(network, &[source], time);
            work += destinations.iter().map(|&to| u128::from(occupied[to as usize])).sum::<u128>();
        }
        let links = network.links().iter().filter(|link| link.occupancy > limit).count().max(1);
        best = best.max(u64::try_from(work.div_ceil(links as u128)).ok()?);
    }
    Some(best)
}
