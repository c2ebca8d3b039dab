//! Shortest ways between members of a group, for whole lengths of arcs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::GroupProblem;

/// A length, then the number of arcs: of equally long ways that of fewest arcs is taken.
pub(crate) type Distance = (u128, u32);

/// No way at all.
pub(crate) const NO_WAY: Distance = (u128::MAX, u32::MAX);

/// The sum; lengths are so small that none is out of range.
pub(crate) const fn plus(distance: Distance, length: u128) -> Distance {
    (distance.0.saturating_add(length), distance.1.saturating_add(1))
}

/// Which nodes pass on what for one group: its members, and those that relay.
pub(crate) struct Passing<'a> {
    problem: &'a GroupProblem,
    is_member: Vec<bool>,
}

impl<'a> Passing<'a> {
    pub(crate) fn of(problem: &'a GroupProblem, members: &[u32]) -> Self {
        let mut is_member = vec![false; problem.graph().node_count as usize];
        members.iter().for_each(|&node| is_member[node as usize] = true);
        Self { problem, is_member }
    }

    pub(crate) fn passes(&self, node: u32) -> bool {
        self.is_member[node as usize] || self.problem.relays()[node as usize]
    }

    /// Shortest ways from the nearest of some nodes to all others. O((nodes + arcs) log nodes).
    pub(crate) fn ways_from(&self, sources: &[u32], lengths: &[u128]) -> Ways {
        let problem = self.problem;
        let count = problem.graph().node_count as usize;
        let mut ways = Ways { distances: vec![NO_WAY; count], last: vec![None; count], nearest: vec![u32::MAX; count] };
        let mut open = BinaryHeap::new();
        for &source in sources {
            ways.distances[source as usize] = (0, 0);
            ways.nearest[source as usize] = source;
            open.push(Reverse(((0, 0), source)));
        }
        while let Some(Reverse((distance, node))) = open.pop() {
            if distance > ways.distances[node as usize] || !self.passes(node) {
                continue;
            }
            for &number in problem.leaving(node) {
                let to = problem.graph().arcs[number as usize].to;
                let further = plus(distance, lengths[number as usize]);
                if further < ways.distances[to as usize] {
                    ways.distances[to as usize] = further;
                    ways.last[to as usize] = Some(number);
                    ways.nearest[to as usize] = ways.nearest[node as usize];
                    open.push(Reverse((further, to)));
                }
            }
        }
        ways
    }
}

/// Shortest ways from the nearest of some nodes.
pub(crate) struct Ways {
    pub(crate) distances: Vec<Distance>,
    /// By node, the last arc of its way.
    last: Vec<Option<u32>>,
    /// By node, where its way begins.
    pub(crate) nearest: Vec<u32>,
}

impl Ways {
    /// The arcs of the way to a node, from its beginning on.
    pub(crate) fn way_to(&self, problem: &GroupProblem, node: u32) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut node = node;
        while let Some(arc) = self.last[node as usize] {
            arcs.push(arc);
            node = problem.graph().arcs[arc as usize].from;
        }
        arcs.reverse();
        arcs
    }
}
