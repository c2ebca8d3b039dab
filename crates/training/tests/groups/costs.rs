//! What groups must send and what it costs, by plain enumeration.

use canopy_training::groups::{Group, GroupKind};

use crate::networks::Network;

/// Which trees a kind sends, or whether only ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    /// For some root, a tree towards it and one away from it.
    Pair,
    /// A tree for each of these roots: away from it, or towards it.
    Trees { inwards: bool },
    /// Ways between pairs.
    Ways,
}

/// What a group sends.
pub(crate) struct Work {
    pub(crate) sends: Sends,
    /// Roots of trees, as positions of members; for a pair, those that it can have.
    pub(crate) roots: Vec<usize>,
    /// Pairs of members that a way must join, by position.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// The parts that the size is divided into.
    pub(crate) parts: u64,
}

impl Work {
    pub(crate) fn of(group: &Group) -> Self {
        let count = group.members.len();
        let others = |root: usize| (0..count).filter(move |&member| member != root);
        let from = |root: usize| others(root).map(move |other| (root, other));
        let to = |root: usize| others(root).map(move |other| (other, root));
        let root = group.kind.root().map_or(0, |root| root as usize);
        let everybody: Vec<usize> = (0..count).collect();
        let every = || (0..count).flat_map(from).collect();
        let many = count as u64;
        let (sends, roots, pairs, parts) = match group.kind {
            GroupKind::AllReduce => (Sends::Pair, everybody, every(), 1),
            GroupKind::AllGather => (Sends::Trees { inwards: false }, everybody, every(), many),
            GroupKind::ReduceScatter => (Sends::Trees { inwards: true }, everybody, every(), many),
            GroupKind::Broadcast(_) => (Sends::Trees { inwards: false }, vec![root], from(root).collect(), 1),
            GroupKind::Reduce(_) => (Sends::Trees { inwards: true }, vec![root], to(root).collect(), 1),
            GroupKind::Scatter(_) => (Sends::Ways, vec![root], from(root).collect(), many),
            GroupKind::Gather(_) => (Sends::Ways, vec![root], to(root).collect(), many),
            GroupKind::AllToAll => (Sends::Ways, everybody, every(), many),
        };
        Self { sends, roots, pairs, parts }
    }
}

/// All trees over the numbers below `count` with this root, each as pairs of parent and child.
pub(crate) fn rooted_trees(count: usize, root: usize) -> Vec<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let mut parents = vec![0; count];
    'choices: loop {
        let reaches_root =
            |start: usize| (0..count).fold(start, |node, _| if node == root { root } else { parents[node] }) == root;
        if (0..count).all(reaches_root) {
            found.push((0..count).filter(|&node| node != root).map(|node| (parents[node], node)).collect());
        }
        // Counts through all choices of parents.
        for node in (0..count).filter(|&node| node != root) {
            parents[node] += 1;
            if parents[node] < count {
                continue 'choices;
            }
            parents[node] = 0;
        }
        return found;
    }
}

/// Whether a node passes on what a group sends.
pub(crate) fn passes(network: &Network, group: &Group, node: u32) -> bool {
    network.relays[node as usize] || group.members.contains(&node)
}

/// By node, whether a member's data can come there.
pub(crate) fn reached(network: &Network, group: &Group, source: u32) -> Vec<bool> {
    let mut reached = vec![false; network.graph.node_count as usize];
    let mut open = vec![source];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut reached[node as usize], true) && passes(network, group, node) {
            let leaving = network.graph.arcs.iter().filter(|arc| arc.from == node && arc.capacity > 0);
            open.extend(leaving.map(|arc| arc.to));
        }
    }
    reached
}

/// Distances between the members of a group, by position; `None` without a way. Floyd 1962, Warshall 1962.
pub(crate) fn distances(network: &Network, group: &Group, lengths: &[u128]) -> Vec<Vec<Option<u128>>> {
    let count = network.graph.node_count as usize;
    let mut all = vec![vec![None::<u128>; count]; count];
    (0..count).for_each(|node| all[node][node] = Some(0));
    for (arc, &length) in network.graph.arcs.iter().zip(lengths).filter(|(arc, _)| arc.capacity > 0) {
        let entry = &mut all[arc.from as usize][arc.to as usize];
        *entry = Some(entry.map_or(length, |known| known.min(length)));
    }
    for middle in (0..network.graph.node_count).filter(|&node| passes(network, group, node)) {
        for from in 0..count {
            for to in 0..count {
                let through = all[from][middle as usize].zip(all[middle as usize][to]).map(|(near, far)| near + far);
                all[from][to] = [all[from][to], through].into_iter().flatten().min();
            }
        }
    }
    let members = || group.members.iter().map(|&node| node as usize);
    members().map(|from| members().map(|to| all[from][to]).collect()).collect()
}

/// The first group that lacks a way, and the pairs of members that lack one.
pub(crate) fn lacking(network: &Network, groups: &[Group]) -> Option<(usize, Vec<(u32, u32)>)> {
    groups.iter().enumerate().find_map(|(number, group)| {
        let pairs = Work::of(group).pairs.into_iter();
        let pairs = pairs.map(|(from, to)| (group.members[from], group.members[to]));
        let lost: Vec<(u32, u32)> = pairs.filter(|&(from, to)| !reached(network, group, from)[to as usize]).collect();
        (!lost.is_empty()).then_some((number, lost))
    })
}
