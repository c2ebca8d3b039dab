//! Distances between members of a group, and cheapest trees in them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_topology::{NodeIndex, NodeKind, Topology, Transit};
use num_bigint::BigUint;
use num_traits::Zero as _;

/// Lengths of the links of a network.
pub(super) struct Lengths<'a> {
    topology: &'a Topology,
    lengths: &'a [u128],
    transit: Transit,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// By member, by member, the distance; none where there is no way.
pub(super) type Distances = Vec<Vec<Option<u128>>>;

impl<'a> Lengths<'a> {
    pub(super) const fn new(
        topology: &'a Topology,
        lengths: &'a [u128],
        transit: Transit,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self { topology, lengths, transit, stop }
    }

    /// Whether nobody waits for an answer any more.
    pub(super) fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    pub(super) const fn topology(&self) -> &Topology {
        self.topology
    }

    pub(super) const fn of_links(&self) -> &[u128] {
        self.lengths
    }

    pub(super) fn node_count(&self) -> usize {
        self.topology.nodes().len()
    }

    /// Distances among members: nodes in between forward, as far as they do. `None` if it is stopped.
    pub(super) fn between(&self, members: &[NodeIndex]) -> Option<Distances> {
        let passes = self.passes(members);
        let row = |&from: &NodeIndex| {
            if self.is_stopped() {
                return None;
            }
            let mut known = vec![None; self.node_count()];
            let mut open = BinaryHeap::from([Reverse((0, from.number()))]);
            while let Some(Reverse((distance, node))) = open.pop() {
                if known[node as usize].is_some() {
                    continue;
                }
                known[node as usize] = Some(distance);
                if passes[node as usize] {
                    self.relax(node, distance, |to, further| open.push(Reverse((further, to))));
                }
            }
            Some(members.iter().map(|to| known[to.index()]).collect())
        };
        members.iter().map(row).collect()
    }

    fn passes(&self, members: &[NodeIndex]) -> Vec<bool> {
        let forwards = |kind: &NodeKind| match kind {
            NodeKind::Compute => self.transit == Transit::Forward,
            NodeKind::Switch { .. } | NodeKind::Forwarder => true,
        };
        let mut passes: Vec<bool> = self.topology.nodes().iter().map(|node| forwards(&node.kind)).collect();
        members.iter().for_each(|member| passes[member.index()] = true);
        passes
    }

    fn relax(&self, node: u32, distance: u128, mut reach: impl FnMut(u32, u128)) {
        for link in self.topology.links_from(NodeIndex::new(node)) {
            let further = distance.saturating_add(self.lengths[link.index()]);
            reach(self.topology.link(link).to.number(), further);
        }
    }
}

/// The length of a spanning tree over members, where lengths are the same both ways; none if they are not connected.
///
/// Prim's algorithm: from all members in the tree at once, the nearest one outside joins, and ways begin at it, too.
pub(super) fn prim(lengths: &Lengths<'_>, members: &[NodeIndex]) -> Option<BigUint> {
    let passes = lengths.passes(members);
    let mut is_outside = vec![false; lengths.node_count()];
    members.iter().skip(1).for_each(|member| is_outside[member.index()] = true);
    let mut known = vec![u128::MAX; lengths.node_count()];
    let first = members.first()?;
    known[first.index()] = 0;
    let mut open = BinaryHeap::from([Reverse((0, first.number()))]);
    let (mut sum, mut left) = (BigUint::zero(), members.len() - 1);
    while let Some(Reverse((distance, node))) = open.pop() {
        if distance > known[node as usize] {
            continue;
        }
        let mut start = distance;
        if std::mem::take(&mut is_outside[node as usize]) {
            sum += distance;
            left -= 1;
            (known[node as usize], start) = (0, 0);
        }
        if passes[node as usize] {
            lengths.relax(node, start, |to, further| {
                if further < known[to as usize] {
                    known[to as usize] = further;
                    open.push(Reverse((further, to)));
                }
            });
        }
    }
    (left == 0).then_some(sum)
}

/// The length of the cheapest tree away from a root over all members, or `inwards` to it; none if there is no such
/// tree, or it is stopped.
///
/// Each member takes its cheapest arc; what that costs is taken off all arcs to it, so that cycles of them cost nothing
/// and are one member from then on.
pub(super) fn cheapest_tree(
    lengths: &Lengths<'_>,
    distances: &Distances,
    root: usize,
    inwards: bool,
) -> Option<BigUint> {
    let count = distances.len();
    let mut arcs: Vec<(usize, usize, u128)> = Vec::with_capacity(count * count);
    for (from, row) in distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate().filter(|&(to, _)| to != from) {
            if let Some(distance) = distance {
                arcs.push(if inwards { (to, from, *distance) } else { (from, to, *distance) });
            }
        }
    }
    let (mut root, mut count, mut sum) = (root, count, BigUint::zero());
    loop {
        if lengths.is_stopped() {
            return None;
        }
        let mut cheapest: Vec<Option<(u128, usize)>> = vec![None; count];
        for &(from, to, length) in arcs.iter().filter(|&&(from, to, _)| from != to && to != root) {
            if cheapest[to].is_none_or(|(least, _)| length < least) {
                cheapest[to] = Some((length, from));
            }
        }
        for (_, least) in cheapest.iter().enumerate().filter(|&(node, _)| node != root) {
            sum += least.as_ref()?.0;
        }
        let (group, next) = contracted(&cheapest, root);
        if next == count {
            return Some(sum);
        }
        for (from, to, length) in &mut arcs {
            if let Some((least, _)) = cheapest[*to].filter(|_| *to != root && from != to) {
                *length -= least;
            }
            (*from, *to) = (group[*from], group[*to]);
        }
        arcs.retain(|(from, to, _)| from != to);
        (root, count) = (group[root], next);
    }
}

/// By node, its number after each cycle of cheapest arcs has become one node; and how many there are then.
fn contracted(cheapest: &[Option<(u128, usize)>], root: usize) -> (Vec<usize>, usize) {
    const NEW: usize = usize::MAX;
    let count = cheapest.len();
    let (mut group, mut seen, mut next) = (vec![NEW; count], vec![NEW; count], 0);
    for start in 0..count {
        let mut node = start;
        while node != root && seen[node] == NEW {
            seen[node] = start;
            node = cheapest[node].map_or(root, |(_, from)| from);
        }
        if node != root && seen[node] == start && group[node] == NEW {
            let mut other = node;
            while group[other] == NEW {
                group[other] = next;
                other = cheapest[other].map_or(root, |(_, from)| from);
            }
            next += 1;
        }
    }
    for place in group.iter_mut().filter(|place| **place == NEW) {
        *place = next;
        next += 1;
    }
    (group, next)
}
