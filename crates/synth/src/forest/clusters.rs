//! Which nodes belong together: nested, disjoint sets around which the network might be taken apart.
//!
//! What says so: boxes that the topology names, a switch that sets hang on, and neighbours that sets have in common
//! (`communities`).
//!
//! Nothing here is trusted: a set is used only once its boundary was found tight, by trimming and an exact test.

mod communities;

use std::collections::BTreeMap;

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::network::Network;

/// Levels of nesting looked for: racks in pods in rows in halls are four.
const LEVELS_MAX: usize = 10;

/// What is looked at in boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Their ranks, with the switches that have most to do with them.
    Boxes,
    /// Parts of them, too, and all switches that are nearest.
    Parts,
}

/// A set of nodes with what is nested in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// All of its nodes, sorted, those of nested clusters included.
    pub(super) nodes: Vec<u32>,
    /// Ranks among them.
    pub(super) rank_count: usize,
    /// The clusters directly inside, by position in the list of all.
    pub(super) children: Vec<usize>,
}

/// Finds clusters bottom-up: parts of the boxes that the topology names, these boxes, then, level by level, clusters with switches of their own,
/// or terminals and clusters that hang on one switch, or, where none does, that are joined with each other rather than
/// with others. A set grows by every switch that has more to do with it than with all others.
///
/// Of overlapping sets the one whose boundary is scarcest is taken, `D(V∖T)/in(T)`; none holds more than half the ranks.
///
/// * **Out.** Children before parents. **Errors.** Stopped. **Cost.** O(links · log) per level.
pub(super) fn find_clusters<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    detail: Detail,
    stop: &dyn Stop,
) -> Result<Vec<Cluster>, Stopped> {
    let mut finder = Finder::new(network, capacities);
    let mut by_box: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (rank, number) in (0_u32..).zip(&network.boxes) {
        if let Some(number) = number {
            by_box.entry(*number).or_default().push(rank);
        }
    }
    ask(stop)?;
    let boxes: Vec<Vec<u32>> = by_box.into_values().filter(|ranks| ranks.len() > 1).collect();
    let parts: Vec<Vec<u32>> = boxes.iter().flat_map(|ranks| finder.parts(ranks)).collect();
    let by_detail = match detail {
        Detail::Boxes => {
            finder.take_disjoint(boxes.into_iter().map(|ranks| finder.closure(ranks)).collect());
            Vec::new()
        }
        Detail::Parts => vec![parts, boxes],
    };
    for sets in by_detail {
        let mut layers = finder.with_nearest(sets);
        let last = layers.pop().unwrap_or_default();
        for sets in layers {
            finder.take_disjoint(sets);
        }
        finder.take_disjoint(last.into_iter().map(|nodes| finder.closure(nodes)).collect());
    }
    for _ in 0..LEVELS_MAX {
        ask(stop)?;
        let with_switches = finder.with_own_switches();
        if finder.take_disjoint(with_switches) {
            continue;
        }
        let mut candidates = Vec::new();
        for switch in network.terminal_count..network.node_count {
            ask(stop)?;
            candidates.extend(finder.around(switch));
        }
        if !finder.take_disjoint(candidates) {
            let communities = communities::communities(&finder, stop)?;
            if !finder.take_disjoint(communities) {
                break;
            }
        }
    }
    Ok(finder.clusters)
}

struct Finder {
    rank_count: u32,
    /// By node: neighbours with the capacity of the links to and from them, as far as it can be used.
    neighbours: Vec<Vec<(u32, u128)>>,
    /// By node: that of all its links.
    totals: Vec<u128>,
    clusters: Vec<Cluster>,
    /// By node: the outermost cluster it is in.
    outermost: Vec<Option<usize>>,
}

impl Finder {
    fn new<C: FlowUnit>(network: &Network<'_>, capacities: &[C]) -> Self {
        let mut sums: BTreeMap<(u32, u32), u128> = BTreeMap::new();
        for (link, capacity) in network.links.iter().zip(capacities).filter(|&(_, &capacity)| capacity > C::ZERO) {
            for ends in [(link.from, link.to), (link.to, link.from)] {
                *sums.entry(ends).or_default() += capacity.to_u128();
            }
        }
        let totals_of = |sums: &BTreeMap<(u32, u32), u128>| {
            let mut totals = vec![0; network.node_count as usize];
            sums.iter().for_each(|(&(from, _), sum)| totals[from as usize] += sum);
            totals
        };
        // A switch sends on no more than its other links bring.
        let known = totals_of(&sums);
        for (&(from, to), sum) in &mut sums {
            let switches = [from, to].into_iter().filter(|&node| node >= network.terminal_count);
            *sum = switches.map(|switch| known[switch as usize] - *sum).chain([*sum]).min().unwrap_or(0);
        }
        let totals = totals_of(&sums);
        let mut neighbours = vec![Vec::new(); network.node_count as usize];
        for ((from, to), sum) in sums {
            neighbours[from as usize].push((to, sum));
        }
        let outermost = vec![None; neighbours.len()];
        Self { rank_count: network.terminal_count, neighbours, totals, clusters: Vec::new(), outermost }
    }

    /// The node, or all nodes of its outermost cluster.
    fn whole(&self, node: u32) -> Vec<u32> {
        self.outermost[node as usize].map_or_else(|| vec![node], |cluster| self.clusters[cluster].nodes.clone())
    }

    /// A free switch with the terminals and clusters next to it, if there are at least two.
    fn around(&self, switch: u32) -> Option<Vec<u32>> {
        if self.outermost[switch as usize].is_some() {
            return None;
        }
        let holds_ranks =
            |&&(node, _): &&(u32, u128)| node < self.rank_count || self.outermost[node as usize].is_some();
        let near = self.neighbours[switch as usize].iter().filter(holds_ranks);
        let mut nodes: Vec<u32> = near.flat_map(|&(node, _)| self.whole(node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let first = *nodes.first()?;
        if self.rank_count_of(&nodes) == self.rank_count_of(&self.whole(first)) || self.is_too_large(&nodes) {
            return None;
        }
        nodes.push(switch);
        Some(self.closure(nodes))
    }

    /// Outermost clusters with the free switches that have at least twice as much to do with them as with anything else: the
    /// router of a box, its only leaf.
    fn with_own_switches(&self) -> Vec<Vec<u32>> {
        let mut owned: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for switch in self.rank_count..u32::try_from(self.neighbours.len()).expect("node counts are u32") {
            if self.outermost[switch as usize].is_some() {
                continue;
            }
            let mut by_unit: BTreeMap<Result<usize, u32>, u128> = BTreeMap::new();
            for &(node, capacity) in &self.neighbours[switch as usize] {
                *by_unit.entry(self.outermost[node as usize].ok_or(node)).or_default() += capacity;
            }
            let mut units: Vec<(u128, Result<usize, u32>)> =
                by_unit.into_iter().map(|(unit, sum)| (sum, unit)).collect();
            units.sort_unstable();
            if let Some((most, Ok(cluster))) = units.pop()
                && units.last().is_some_and(|&(next, _)| next <= most / 2)
            {
                owned.entry(cluster).or_default().push(switch);
            }
        }
        let joined = owned.into_iter().map(|(cluster, switches)| {
            let mut nodes = self.clusters[cluster].nodes.clone();
            nodes.extend(switches);
            nodes.sort_unstable();
            nodes
        });
        joined.collect()
    }

    fn rank_count_of(&self, nodes: &[u32]) -> usize {
        nodes.iter().filter(|&&node| node < self.rank_count).count()
    }

    fn is_too_large(&self, nodes: &[u32]) -> bool {
        2 * self.rank_count_of(nodes) > self.rank_count as usize
    }

    /// Ranks of a box that links between ranks connect, if these make several parts of it: two hives of a box.
    fn parts(&self, ranks: &[u32]) -> Vec<Vec<u32>> {
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let mut is_taken = vec![false; ranks.len()];
        for start in 0..ranks.len() {
            if std::mem::replace(&mut is_taken[start], true) {
                continue;
            }
            let mut part = vec![ranks[start]];
            let mut next = 0;
            while let Some(&rank) = part.get(next) {
                next += 1;
                for (other, _) in &self.neighbours[rank as usize] {
                    if let Ok(place) = ranks.binary_search(other)
                        && !std::mem::replace(&mut is_taken[place], true)
                    {
                        part.push(*other);
                    }
                }
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts.retain(|part| part.len() > 1 && part.len() < ranks.len());
        parts
    }

    /// Sets of ranks with the switches to which no others are as near: processors and PCI switches of boxes, however much
    /// leads on from them. First with those that are one link away, then with those of two links, and so on; which of these
    /// boundaries is scarce, if any, trimming finds out.
    fn with_nearest(&self, mut sets: Vec<Vec<u32>>) -> Vec<Vec<Vec<u32>>> {
        for nodes in &mut sets {
            *nodes = nodes.iter().flat_map(|&node| self.whole(node)).collect();
            nodes.sort_unstable();
            nodes.dedup();
        }
        // By node: the set that is nearest, none if several are.
        let mut nearest: Vec<Option<usize>> = vec![None; self.neighbours.len()];
        let mut is_reached = vec![false; self.neighbours.len()];
        (0..self.rank_count as usize).for_each(|rank| is_reached[rank] = true);
        for (set, nodes) in sets.iter().enumerate() {
            for &node in nodes {
                (nearest[node as usize], is_reached[node as usize]) = (Some(set), true);
            }
        }
        let mut layers = Vec::new();
        let mut layer: Vec<u32> = (0_u32..).zip(&is_reached).filter(|(_, is)| **is).map(|(node, _)| node).collect();
        while !layer.is_empty() {
            let mut next: BTreeMap<u32, Option<usize>> = BTreeMap::new();
            for &node in &layer {
                let set = nearest[node as usize];
                for &(other, _) in
                    self.neighbours[node as usize].iter().filter(|(other, _)| !is_reached[*other as usize])
                {
                    let known = next.entry(other).or_insert(set);
                    *known = known.filter(|&known| set == Some(known));
                }
            }
            layer = next.keys().copied().collect();
            let has_grown = next.values().any(Option::is_some);
            for (switch, set) in next {
                (is_reached[switch as usize], nearest[switch as usize]) = (true, set);
                if let Some(set) = set {
                    sets[set].push(switch);
                }
            }
            if has_grown {
                layers.push(sets.iter().map(|nodes| sorted(nodes)).collect());
            }
        }
        if layers.is_empty() {
            layers.push(sets);
        }
        layers
    }

    /// Adds the free switches most of whose capacity leads into the set; where it is just half, those that connect the
    /// set with nothing but switches.
    fn closure(&self, mut nodes: Vec<u32>) -> Vec<u32> {
        let mut is_in = vec![false; self.neighbours.len()];
        nodes.iter().for_each(|&node| is_in[node as usize] = true);
        let mut into: BTreeMap<u32, u128> = BTreeMap::new();
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            next += 1;
            for &(other, capacity) in &self.neighbours[node as usize] {
                let is_free = other >= self.rank_count && self.outermost[other as usize].is_none();
                if !is_free || is_in[other as usize] {
                    continue;
                }
                let sum = into.entry(other).or_default();
                *sum += capacity;
                let total = self.totals[other as usize];
                let only_switches = || {
                    let mut outside = self.neighbours[other as usize].iter().filter(|(node, _)| !is_in[*node as usize]);
                    outside.all(|&(node, _)| node >= self.rank_count && self.outermost[node as usize].is_none())
                };
                if *sum > total - *sum || (*sum == total - *sum && only_switches()) {
                    is_in[other as usize] = true;
                    nodes.push(other);
                }
            }
        }
        nodes.sort_unstable();
        nodes
    }

    /// Turns sets into clusters, scarcest boundary first, leaving out those that are too large or overlap. Says whether
    /// there are any.
    fn take_disjoint(&mut self, candidates: Vec<Vec<u32>>) -> bool {
        let mut is_in = vec![false; self.neighbours.len()];
        let mut rated: Vec<(u128, usize, Vec<u32>)> = Vec::new();
        for nodes in candidates.into_iter().filter(|nodes| !self.is_too_large(nodes)) {
            nodes.iter().for_each(|&node| is_in[node as usize] = true);
            let links = nodes.iter().flat_map(|&node| &self.neighbours[node as usize]);
            let boundary: u128 = links.filter(|(node, _)| !is_in[*node as usize]).map(|(_, capacity)| capacity).sum();
            nodes.iter().for_each(|&node| is_in[node as usize] = false);
            rated.push((boundary, self.rank_count as usize - self.rank_count_of(&nodes), nodes));
        }
        // By boundary per rank outside, smallest first; numbers beyond 2⁶⁴ lose precision, which harms no proof.
        let scarcity =
            |boundary: u128, outside: usize| (boundary << 32.min(boundary.leading_zeros())) / outside as u128;
        rated.sort_by_cached_key(|(boundary, outside, nodes)| (scarcity(*boundary, *outside), nodes.clone()));
        let before = self.clusters.len();
        for (_, _, nodes) in rated {
            let overlaps = |&node: &u32| self.outermost[node as usize].is_some_and(|cluster| cluster >= before);
            if nodes.iter().any(overlaps) {
                continue;
            }
            let mut children: Vec<usize> = nodes.iter().filter_map(|&node| self.outermost[node as usize]).collect();
            children.sort_unstable();
            children.dedup();
            nodes.iter().for_each(|&node| self.outermost[node as usize] = Some(self.clusters.len()));
            self.clusters.push(Cluster { rank_count: self.rank_count_of(&nodes), nodes, children });
        }
        self.clusters.len() > before
    }
}

fn sorted(nodes: &[u32]) -> Vec<u32> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}
