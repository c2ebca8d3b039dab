//! Ways that keep the busiest link as little busy as possible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::Stop;

use super::{Demand, Ways};
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::network::TimedNetwork;

/// Groups of chunks that take their ways together, for each node.
const GROUPS_PER_NODE: usize = 16;
/// How often every group chooses, and every chunk where it is a group by itself.
const SWEEPS: (usize, usize) = (4, 8);
/// One, in parts of which loads are compared.
const ONE: u64 = 1 << 16;
/// What a link costs that carries nothing, in these parts: 0.021.
const IDLE_COST: u64 = 1376;
const NEVER: u64 = u64::MAX;

/// By chunk, the links that it takes.
///
/// Chunks of one node are divided at random into groups. Each group takes the shortest ways from there where a link costs what
/// it takes, times the eighth power of how busy it is compared with the busiest; over and over, in random order.
pub(crate) fn chosen(
    network: &TimedNetwork,
    demands: &[Demand],
    ways: Ways,
    chance: &mut Chance,
    stop: &dyn Stop,
) -> Result<Vec<Vec<u32>>, CopyError> {
    let mut groups = groups(network, demands, chance);
    let mut paths: Vec<Vec<u32>> = vec![Vec::new(); demands.len()];
    let mut load = vec![0_u64; network.links().len()];
    let mut search = Search::new(network);
    let sweeps = if groups.len() == demands.len() { SWEEPS.1 } else { SWEEPS.0 };
    for _ in 0..sweeps {
        chance.shuffle(&mut groups);
        for group in &groups {
            if stop.is_requested() {
                return Err(CopyError::Stopped);
            }
            for &chunk in group {
                for link in paths[chunk as usize].drain(..) {
                    load[link as usize] -= network.link(link).occupancy;
                }
            }
            let source = demands[group[0] as usize].from;
            search.run(network, source, ways, &load, chance);
            for &chunk in group {
                let demand = demands[chunk as usize];
                let path = search.path(network, source, demand.to);
                let path = path.ok_or(CopyError::Unreachable { node: demand.to, chunk, owner: source })?;
                path.iter().for_each(|&link| load[link as usize] += network.link(link).occupancy);
                paths[chunk as usize] = path;
            }
        }
    }
    Ok(paths)
}

/// Chunks that choose together, all of one source.
fn groups(network: &TimedNetwork, demands: &[Demand], chance: &mut Chance) -> Vec<Vec<u32>> {
    let size = demands.len().div_ceil(GROUPS_PER_NODE * network.node_count().max(1) as usize).max(1);
    let mut by_source: Vec<Vec<u32>> = vec![Vec::new(); network.node_count() as usize];
    for (chunk, demand) in (0..).zip(demands) {
        if let Some(chunks) = by_source.get_mut(demand.from as usize) {
            chunks.push(chunk);
        }
    }
    let mut groups = Vec::new();
    for mut chunks in by_source {
        chance.shuffle(&mut chunks);
        groups.extend(chunks.chunks(size).map(<[u32]>::to_vec));
    }
    groups
}

/// Shortest ways from one node.
struct Search {
    distance: Vec<u64>,
    latency: Vec<u64>,
    /// By node, the link that leads there; none at the source and where no way leads.
    before: Vec<Option<u32>>,
    queue: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Search {
    fn new(network: &TimedNetwork) -> Self {
        let count = network.node_count() as usize;
        let (distance, latency) = (vec![NEVER; count], vec![NEVER; count]);
        Self { distance, latency, before: vec![None; count], queue: BinaryHeap::new() }
    }

    /// Finds the cheapest ways to all nodes, ties at random.
    fn run(&mut self, network: &TimedNetwork, source: u32, ways: Ways, load: &[u64], chance: &mut Chance) {
        if ways == Ways::Shortest {
            self.latency.fill(NEVER);
            self.spread(network, source, chance, |_, link| Some(network.link(link).latency));
            self.latency.clone_from(&self.distance);
        }
        let most = load.iter().copied().max().unwrap_or(0).max(1);
        let latency = std::mem::take(&mut self.latency);
        self.spread(network, source, chance, |from, link| {
            let timed = network.link(link);
            let is_on_the_way = ways == Ways::Any
                || latency[from as usize].checked_add(timed.latency) == Some(latency[timed.to as usize]);
            let busy =
                u64::try_from(u128::from(load[link as usize]) * u128::from(ONE) / u128::from(most)).unwrap_or(ONE);
            let square = |part: u64| part * part / ONE;
            is_on_the_way.then(|| timed.occupancy.saturating_mul(IDLE_COST + square(square(square(busy)))))
        });
        self.latency = latency;
    }

    /// Dijkstra's search with these costs of links.
    fn spread(
        &mut self,
        network: &TimedNetwork,
        source: u32,
        chance: &mut Chance,
        cost: impl Fn(u32, u32) -> Option<u64>,
    ) {
        self.distance.fill(NEVER);
        self.before.fill(None);
        self.queue.clear();
        if let Some(distance) = self.distance.get_mut(source as usize) {
            *distance = 0;
            self.queue.push(Reverse((0, 0, source)));
        }
        while let Some(Reverse((distance, _, node))) = self.queue.pop() {
            if distance > self.distance[node as usize] {
                continue;
            }
            for &link in network.outgoing(node) {
                let Some(cost) = cost(node, link) else { continue };
                let (to, found) = (network.link(link).to, distance.saturating_add(cost));
                if found < self.distance[to as usize] {
                    self.distance[to as usize] = found;
                    self.before[to as usize] = Some(link);
                    self.queue.push(Reverse((found, chance.next(), to)));
                }
            }
        }
    }

    /// The way to a node; none where there is no such way.
    fn path(&self, network: &TimedNetwork, source: u32, to: u32) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        let mut node = to;
        while node != source {
            let link = (*self.before.get(node as usize)?)?;
            path.push(link);
            node = network.link(link).from;
        }
        path.reverse();
        Some(path)
    }
}
