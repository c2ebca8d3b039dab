//! Machines and switches of a topology, and how a flow between two machines divides.

use std::collections::BTreeMap;

use canopy_topology::Topology;

/// One flow, in parts that can be divided.
pub(crate) const WHOLE: u64 = 1 << 40;

/// More hops than from any node to another: there is no way, or none that is looked at.
pub(crate) const FAR: u16 = u16::MAX;

/// Switches at the first machine that are looked at for one that joins all.
const FIRST_MAX: usize = 8;

/// Whether there is a way, and not just arrived.
const fn is_away(distance: u16) -> bool {
    0 < distance && distance < FAR
}

/// By what a load in parts of [`WHOLE`] is multiplied for parts of 2⁶⁴: more would show what is lost where flows divide.
const SCALE: u128 = 1 << 24;

/// A load in parts of [`WHOLE`] over a capacity, in parts of 2⁶⁴ of a second per byte, rounded.
pub(crate) const fn ratio(load: u128, capacity: u128) -> u128 {
    let capacity = if capacity == 0 { 1 } else { capacity };
    load.saturating_mul(SCALE).saturating_add(capacity / 2) / capacity
}

/// The topology names no machines: every rank must have a host or a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network does not say on which machines its ranks are; give each a host or a box")]
pub struct NoMachines;

/// A link between machines or switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Of all links that it stands for, in bytes per second.
    pub(crate) capacity: u64,
    /// Cables, each at least as fast as a NIC: what a flow that does not divide takes one of.
    pub(crate) cables: u32,
}

/// Machines and what joins them: each machine is one node, whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    machines: Vec<String>,
    /// By machine.
    rank_counts: Vec<u32>,
    /// Machines first, then switches.
    node_count: usize,
    /// The slowest link that leaves a machine, in bytes per second.
    pub(crate) nic: u64,
    pub(crate) edges: Vec<Edge>,
    /// By node: edges that leave it, and that enter it.
    pub(crate) leaving: Vec<Vec<usize>>,
    pub(crate) entering: Vec<Vec<usize>>,
    /// By edge: of the machines below it, those of the job and all; none where nothing is said of others.
    pub(crate) below: Vec<(u64, u64)>,
}

impl Fabric {
    /// Machines in the order of their first ranks. O(links log links).
    ///
    /// # Errors
    /// Some rank has neither host nor box.
    pub fn of(topology: &Topology) -> Result<Self, NoMachines> {
        let name = |node: usize| {
            let attributes = &topology.nodes()[node].attributes;
            attributes.host.as_deref().or(attributes.box_name.as_deref())
        };
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut machines, mut rank_counts) = (Vec::new(), Vec::new());
        for rank in 0..topology.rank_count() as usize {
            let name = name(rank).ok_or(NoMachines)?;
            let number = *numbers.entry(name).or_insert_with(|| {
                machines.push(name.to_owned());
                rank_counts.push(0);
                machines.len() - 1
            });
            rank_counts[number] += 1;
        }
        let mut node_count = machines.len();
        let mut number = |node: usize| {
            name(node).and_then(|name| numbers.get(name).copied()).unwrap_or_else(|| {
                node_count += 1;
                node_count - 1
            })
        };
        let node_of: Vec<usize> = (0..topology.nodes().len()).map(&mut number).collect();
        let links: Vec<(usize, usize, u64)> = topology
            .links()
            .iter()
            .map(|link| (node_of[link.from.index()], node_of[link.to.index()], link.capacity.bytes_per_sec()))
            .filter(|(from, to, _)| from != to)
            .collect();
        let of_machines = links.iter().filter(|(from, ..)| *from < machines.len()).map(|&(.., rate)| rate);
        let nic = of_machines.min().unwrap_or(1).max(1);
        let mut sums: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
        for (from, to, rate) in links {
            let (capacity, cables) = sums.entry((from, to)).or_default();
            *capacity = capacity.saturating_add(rate);
            *cables = cables.saturating_add((rate / nic).max(1));
        }
        let cables = |cables: u64| u32::try_from(cables).unwrap_or(u32::MAX);
        let edge = |((from, to), (capacity, count))| Edge { from, to, capacity, cables: cables(count) };
        let edges = sums.into_iter().map(edge).collect();
        Ok(Self { nic, ..Self::new(machines, rank_counts, edges, node_count) })
    }

    pub(crate) fn new(machines: Vec<String>, rank_counts: Vec<u32>, edges: Vec<Edge>, node_count: usize) -> Self {
        let (mut leaving, mut entering) = (vec![Vec::new(); node_count], vec![Vec::new(); node_count]);
        for (number, edge) in edges.iter().enumerate() {
            leaving[edge.from].push(number);
            entering[edge.to].push(number);
        }
        Self { machines, rank_counts, node_count, nic: 1, edges, leaving, entering, below: Vec::new() }
    }

    /// Names of the machines.
    pub fn machines(&self) -> &[String] {
        &self.machines
    }

    /// How many ranks each has.
    pub fn rank_counts(&self) -> &[u32] {
        &self.rank_counts
    }

    /// All ranks.
    pub fn rank_count(&self) -> u32 {
        self.rank_counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Whether other machines share its links.
    pub fn is_shared(&self) -> bool {
        self.below.iter().any(|(chosen, all)| chosen < all)
    }

    pub(crate) const fn node_count(&self) -> usize {
        self.node_count
    }

    /// Whether every machine reaches every other one. O(links) where all are at the same switches, else a search for each.
    pub(crate) fn is_joined(&self) -> bool {
        let machines = self.machines.len();
        let switch = |node: &usize| *node >= machines;
        // Switches that reach each other: all machines may be at them.
        let spread = |start: usize, edges: &[Vec<usize>], end: fn(&Edge) -> usize| {
            let mut is_met = vec![false; self.node_count];
            is_met[start] = true;
            let mut left = vec![start];
            while let Some(node) = left.pop() {
                for other in edges[node].iter().map(|&edge| end(&self.edges[edge])) {
                    if !std::mem::replace(&mut is_met[other], true) && switch(&other) {
                        left.push(other);
                    }
                }
            }
            is_met
        };
        let first = self.leaving[0].iter().map(|&edge| self.edges[edge].to).filter(switch);
        let joins_all = |start: usize| {
            let to = spread(start, &self.leaving, |edge| edge.to);
            let from = spread(start, &self.entering, |edge| edge.from);
            (0..machines).all(|machine| to[machine] && from[machine])
        };
        let is_reached = |machine: usize| {
            let distances = self.distances_to(machine);
            distances[..machines].iter().all(|&distance| distance < FAR)
        };
        first.take(FIRST_MAX).any(joins_all) || (0..machines).all(is_reached)
    }

    /// By node: hops to one; [`FAR`] if there is no way. Machines pass nothing on.
    pub(crate) fn distances_to(&self, target: usize) -> Vec<u16> {
        let mut distances = vec![FAR; self.node_count];
        distances[target] = 0;
        let mut layer = vec![target];
        for distance in 1..FAR {
            let mut next = Vec::new();
            for node in layer.into_iter().filter(|&node| node >= self.machines.len() || node == target) {
                for &edge in &self.entering[node] {
                    let from = self.edges[edge].from;
                    if distances[from] == FAR {
                        distances[from] = distance;
                        next.push(from);
                    }
                }
            }
            layer = next;
            if layer.is_empty() {
                break;
            }
        }
        distances
    }

    /// How a flow to the machine that these distances are to divides: edges with their parts of [`WHOLE`]. At each node, over
    /// all edges on shortest ways, by capacity. Nothing if there is no way.
    pub(crate) fn divided(&self, from: usize, distances: &[u16]) -> Vec<(usize, u64)> {
        let mut parts = Vec::new();
        let mut at: BTreeMap<usize, u64> = BTreeMap::from([(from, WHOLE)]);
        while let Some(distance) = at.keys().next().map(|&node| distances[node]).filter(|&distance| is_away(distance)) {
            let mut next: BTreeMap<usize, u64> = BTreeMap::new();
            for (node, amount) in at {
                let is_nearer = |&&edge: &&usize| distances[self.edges[edge].to] == distance - 1;
                let ways: Vec<usize> = self.leaving[node].iter().filter(is_nearer).copied().collect();
                let mut left = (amount, ways.iter().map(|&edge| u128::from(self.edges[edge].capacity)).sum::<u128>());
                for edge in ways {
                    let capacity = u128::from(self.edges[edge].capacity);
                    let part = u64::try_from(u128::from(left.0) * capacity / left.1.max(1)).unwrap_or(left.0);
                    left = (left.0 - part, left.1 - capacity);
                    parts.push((edge, part));
                    *next.entry(self.edges[edge].to).or_default() += part;
                }
            }
            at = next;
        }
        parts
    }
}
