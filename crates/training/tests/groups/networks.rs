//! Networks and usual groups on them.

use canopy_optimize::{Arc, Digraph};
use canopy_training::groups::{Group, GroupKind, GroupProblem};

/// A network that is built link by link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) graph: Digraph,
    pub(crate) relays: Vec<bool>,
}

impl Network {
    pub(crate) fn nodes(count: u32) -> Self {
        Self { graph: Digraph { node_count: count, arcs: Vec::new() }, relays: vec![true; count as usize] }
    }

    /// A link both ways.
    pub(crate) fn link(&mut self, a: u32, b: u32, capacity: u64) {
        self.arc(a, b, capacity);
        self.arc(b, a, capacity);
    }

    pub(crate) fn arc(&mut self, from: u32, to: u32, capacity: u64) {
        self.graph.arcs.push(Arc { from, to, capacity });
    }

    /// Takes the links between two nodes away.
    pub(crate) fn cut(&mut self, a: u32, b: u32) {
        self.graph.arcs.retain(|arc| ![(a, b), (b, a)].contains(&(arc.from, arc.to)));
    }

    pub(crate) fn problem(&self, groups: Vec<Group>) -> GroupProblem {
        GroupProblem::new(&self.graph, self.relays.clone(), groups).unwrap()
    }
}

pub(crate) fn group(kind: GroupKind, members: Vec<u32>, size: u64) -> Group {
    Group { kind, members, size }
}

/// Boxes of 8 ranks with a switch of 300 and a NIC of 25 for each rank; NIC i goes to rail i, or all to one hub.
pub(crate) fn boxes(count: u32, rails: bool) -> Network {
    let ranks = 8 * count;
    let mut network = Network::nodes(ranks + count + if rails { 8 } else { 1 });
    for rank in 0..ranks {
        network.link(rank, ranks + rank / 8, 300);
        network.link(rank, ranks + count + if rails { rank % 8 } else { 0 }, 25);
    }
    network
}

/// One group for each box.
pub(crate) fn tensor(count: u32, kind: GroupKind, size: u64) -> impl Iterator<Item = Group> {
    (0..count).map(move |number| group(kind, (8 * number..8 * number + 8).collect(), size))
}

/// The rank i of every box, for some i.
pub(crate) fn data(
    count: u32,
    kind: GroupKind,
    which: impl IntoIterator<Item = u32>,
    size: impl Fn(u32) -> u64,
) -> Vec<Group> {
    which.into_iter().map(|i| group(kind, (0..count).map(|number| 8 * number + i).collect(), size(i))).collect()
}

/// A grid with rows and columns, closed to rings or not.
pub(crate) fn grid(width: u32, height: u32, closed: bool) -> Network {
    let mut network = Network::nodes(width * height);
    for y in 0..height {
        for x in 0..width {
            let at = |x: u32, y: u32| y % height * width + x % width;
            if closed || x + 1 < width {
                network.link(at(x, y), at(x + 1, y), 1);
            }
            if closed || y + 1 < height {
                network.link(at(x, y), at(x, y + 1), 1);
            }
        }
    }
    network
}

pub(crate) fn rows(width: u32, which: impl IntoIterator<Item = u32>, kind: GroupKind) -> Vec<Group> {
    which.into_iter().map(|y| group(kind, (y * width..(y + 1) * width).collect(), 1)).collect()
}

pub(crate) fn columns(width: u32, height: u32, kind: GroupKind) -> Vec<Group> {
    (0..width).map(|x| group(kind, (0..height).map(|y| y * width + x).collect(), 1)).collect()
}
