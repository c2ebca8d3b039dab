//! A topology as kernels want it: plain arcs, weights and terminals.

use canopy_optimize::{Arc, Digraph, Fraction};
use canopy_schedule::{CutDirection, Shares};
use canopy_topology::{NodeKind, Rate, Topology};

use super::rate_of_time;

/// The arcs of a topology, or of the part of it that runs both ways.
pub(super) struct Network<'a> {
    pub(super) topology: &'a Topology,
    pub(super) shares: &'a Shares,
    /// Merged by (from, to) and sorted.
    arcs: Vec<Arc128>,
}

/// An arc whose capacity may be the sum of several links.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Arc128 {
    from: u32,
    to: u32,
    capacity: u128,
}

impl<'a> Network<'a> {
    /// Links of different latency between the same nodes add up. O(links).
    pub(super) fn of(topology: &'a Topology, shares: &'a Shares) -> Self {
        let mut arcs: Vec<Arc128> = Vec::with_capacity(topology.links().len());
        for link in topology.links() {
            let (from, to) = (link.from.number(), link.to.number());
            let capacity = u128::from(link.capacity.bytes_per_sec());
            match arcs.last_mut() {
                Some(last) if (last.from, last.to) == (from, to) => last.capacity += capacity,
                _ => arcs.push(Arc128 { from, to, capacity }),
            }
        }
        Self { topology, shares, arcs }
    }

    /// The largest sub-network in which every link has a reverse of the same capacity. O(links log links).
    #[must_use]
    pub(super) fn two_way(&self) -> Self {
        let both = |&arc: &Arc128| {
            let reverse = self.arcs.binary_search_by_key(&(arc.to, arc.from), |other| (other.from, other.to)).ok()?;
            Some(Arc128 { capacity: arc.capacity.min(self.arcs[reverse].capacity), ..arc })
        };
        Self { arcs: self.arcs.iter().filter_map(both).collect(), ..*self }
    }

    /// Whether both hold the same arcs.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.arcs == other.arcs
    }

    /// Arcs as they are (`Out`), or all turned around (`In`).
    pub(super) fn graph(&self, direction: CutDirection) -> Digraph {
        let mut arcs = Vec::with_capacity(self.arcs.len());
        for &Arc128 { from, to, capacity: mut left } in &self.arcs {
            // A sum beyond 64 bits becomes parallel arcs, which kernels add up again.
            while left > 0 {
                let capacity = u64::try_from(left).unwrap_or(u64::MAX);
                left -= u128::from(capacity);
                arcs.push(match direction {
                    CutDirection::Out => Arc { from, to, capacity },
                    CutDirection::In => Arc { from: to, to: from, capacity },
                });
            }
        }
        Digraph { node_count: self.node_count(), arcs }
    }

    fn node_count(&self) -> u32 {
        u32::try_from(self.topology.nodes().len()).expect("nodes are counted in u32")
    }

    /// Which nodes are ranks.
    pub(super) fn terminals(&self) -> Vec<bool> {
        (0..self.node_count()).map(|node| node < self.topology.rank_count()).collect()
    }

    /// Weight of each rank's share, 0 for each switch.
    pub(super) fn weights(&self) -> Vec<u64> {
        let mut weights: Vec<u64> = self.topology.ranks().map(|rank| self.shares.weight(rank)).collect();
        weights.resize(self.topology.nodes().len(), 0);
        weights
    }

    /// The algbw at which a unit of weight takes `inverse_rate` per byte: all shares in that time.
    pub(super) fn rate_of_shares(&self, inverse_rate: Fraction) -> Rate {
        rate_of_time(self.shares.weight_total(self.topology.rank_count()), inverse_rate)
    }

    /// Which nodes are no ranks and can replicate or add up what passes them.
    pub(super) fn capable(&self) -> Vec<bool> {
        let mut capable = vec![false; self.topology.nodes().len()];
        self.topology.capable_nodes().for_each(|node| capable[node.index()] = true);
        capable
    }

    /// Which nodes are ranks, or switches that both multicast and aggregate.
    pub(super) fn able(&self) -> Vec<bool> {
        let nodes = self.topology.nodes().iter();
        nodes
            .map(|node| matches!(node.kind, NodeKind::Compute | NodeKind::Switch { multicast: true, aggregate: true }))
            .collect()
    }

    /// Parts of the ranks, each with those nodes that replicate or add up what passes them and have the fewest links to it.
    /// Of equally near parts the first. O(links).
    pub(super) fn with_capable(&self, parts: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut parts = parts.to_vec();
        if self.topology.capable_nodes().next().is_none() {
            return parts;
        }
        let node_count = self.topology.nodes().len();
        let mut neighbours = vec![Vec::new(); node_count];
        for arc in &self.arcs {
            neighbours[arc.from as usize].push(arc.to);
            neighbours[arc.to as usize].push(arc.from);
        }
        let mut part_of = vec![None; node_count];
        let mut reached: Vec<u32> = Vec::with_capacity(node_count);
        for (part, nodes) in parts.iter().enumerate() {
            nodes.iter().for_each(|&node| part_of[node as usize] = Some(part));
            reached.extend(nodes);
        }
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for &neighbour in &neighbours[node as usize] {
                if part_of[neighbour as usize].is_none() {
                    part_of[neighbour as usize] = part_of[node as usize];
                    reached.push(neighbour);
                }
            }
        }
        for node in self.topology.capable_nodes() {
            // One without links harms no part.
            let part = part_of[node.index()].unwrap_or(0);
            parts.get_mut(part).into_iter().for_each(|nodes| nodes.push(node.number()));
        }
        parts
    }

    /// Whether as much capacity enters as leaves, at every switch. O(links).
    pub(super) fn switches_are_balanced(&self) -> bool {
        let mut surplus = vec![(0_u128, 0_u128); self.topology.nodes().len()];
        for arc in &self.arcs {
            surplus[arc.to as usize].0 += arc.capacity;
            surplus[arc.from as usize].1 += arc.capacity;
        }
        surplus.iter().skip(self.topology.rank_count() as usize).all(|(entering, leaving)| entering == leaving)
    }

    /// Sum of what leaves the disjoint sets that nodes belong to, `None` being no set. O(links).
    pub(super) fn leaving(&self, set_of: &[Option<usize>]) -> u128 {
        let leaves = |arc: &&Arc128| {
            let from = set_of[arc.from as usize];
            from.is_some() && from != set_of[arc.to as usize]
        };
        self.arcs.iter().filter(leaves).map(|arc| arc.capacity).sum()
    }
}
