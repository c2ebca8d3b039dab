//! Explains the bound of an allreduce: irregular parts that limit it, and the gain of a repair.

mod repairs;

use std::collections::BTreeMap;

use canopy_schedule::Certificate;
use canopy_topology::{LinkIndex, NodeIndex, Topology};

pub use repairs::{Repair, Repaired, repairs};

/// Sets of a partition with equal numbers of ranks and equal capacities of leaving links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartClass {
    /// Positions in the certificate, rising.
    pub sets: Vec<usize>,
    /// Ranks in each of the sets.
    pub ranks: usize,
    /// Rate that leaves each of the sets, in bytes per second.
    pub capacity: u128,
    /// Of the first set, links that are slower than their counterparts in the largest class, which have so many bytes
    /// per second.
    pub slower: Vec<(LinkIndex, u64)>,
    /// Capacities, in bytes per second, of links that sets of the largest class have beyond those of these.
    pub missing: Vec<u64>,
}

/// Classes of equal sets of a partition, the largest first; empty for other certificates.
///
/// Links that leave two sets are compared by capacity alone: of those without a counterpart, the fastest ones with each
/// other. Sets of more ranks than those of the largest class are not compared with these.
///
/// * **In.** A partition that was re-added on this topology. **Cost.** O(nodes + links log links).
#[must_use]
pub fn part_classes(topology: &Topology, certificate: &Certificate) -> Vec<PartClass> {
    let Certificate::Partition { sets } = certificate else { return Vec::new() };
    let mut set_of = vec![None; topology.nodes().len()];
    for (set, nodes) in sets.iter().enumerate() {
        for node in nodes {
            set_of[node.index()] = Some(set);
        }
    }
    let mut leaving: Vec<Vec<(u64, LinkIndex)>> = vec![Vec::new(); sets.len()];
    for (link, position) in topology.links().iter().zip(0_u32..) {
        let set = set_of[link.from.index()];
        if let Some(set) = set.filter(|&set| set_of[link.to.index()] != Some(set)) {
            leaving[set].push((link.capacity.bytes_per_sec(), LinkIndex::new(position)));
        }
    }
    let ranks_of = |nodes: &[NodeIndex]| nodes.iter().filter(|&&node| topology.rank_of(node).is_some()).count();
    let mut alike: BTreeMap<(usize, Vec<u64>), Vec<usize>> = BTreeMap::new();
    for (set, links) in leaving.iter_mut().enumerate() {
        links.sort_unstable_by_key(|&(capacity, link)| (std::cmp::Reverse(capacity), link));
        let capacities = links.iter().map(|&(capacity, _)| capacity).collect();
        alike.entry((ranks_of(&sets[set]), capacities)).or_default().push(set);
    }
    let largest = alike.iter().max_by_key(|(_, sets)| (sets.len(), std::cmp::Reverse(sets[0])));
    let (usual_ranks, usual) = largest.map(|(kind, _)| kind.clone()).unwrap_or_default();
    let mut classes: Vec<PartClass> = Vec::with_capacity(alike.len());
    for ((ranks, capacities), sets) in alike {
        let (slower, missing) = match ranks <= usual_ranks {
            true => lacking(&leaving[sets[0]], &usual),
            false => Default::default(),
        };
        let capacity = capacities.iter().map(|&capacity| u128::from(capacity)).sum();
        classes.push(PartClass { sets, ranks, capacity, slower, missing });
    }
    classes.sort_by_key(|class| (std::cmp::Reverse(class.sets.len()), class.sets[0]));
    classes
}

/// Links that are slower than others elsewhere, with the capacity of these, and capacities elsewhere that have no
/// counterpart: both lists by falling capacity, what is in both left out. O(links).
fn lacking(links: &[(u64, LinkIndex)], usual: &[u64]) -> (Vec<(LinkIndex, u64)>, Vec<u64>) {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let (mut links, mut usual) = (links.iter().copied().peekable(), usual.iter().copied().peekable());
    loop {
        match (links.peek().copied(), usual.peek().copied()) {
            (Some((capacity, _)), Some(other)) if capacity == other => {
                links.next();
                usual.next();
            }
            (Some(link), other) if other.is_none_or(|other| link.0 > other) => {
                own.push(link);
                links.next();
            }
            (_, Some(other)) => {
                others.push(other);
                usual.next();
            }
            (_, None) => break,
        }
    }
    let slower: Vec<(LinkIndex, u64)> = own
        .iter()
        .zip(&others)
        .filter(|((found, _), other)| found < other)
        .map(|(&(_, link), &other)| (link, other))
        .collect();
    let missing = others.get(own.len()..).unwrap_or_default().to_vec();
    (slower, missing)
}

#[cfg(test)]
mod tests;
