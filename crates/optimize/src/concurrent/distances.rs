//! Exact distances in whole lengths of arcs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::digraph::Digraph;

/// A network whose arcs have lengths; those without capacity lead nowhere.
pub(super) struct Ways {
    /// By node, where its arcs lead, and how long they are.
    leaving: Vec<Vec<(u32, u64)>>,
}

impl Ways {
    /// Lengths that are missing are 0. O(nodes + arcs).
    pub(super) fn new(graph: &Digraph, lengths: &[u64]) -> Self {
        let mut leaving = vec![Vec::new(); graph.node_count as usize];
        for (index, arc) in graph.arcs.iter().enumerate().filter(|(_, arc)| arc.capacity > 0) {
            leaving[arc.from as usize].push((arc.to, lengths.get(index).copied().unwrap_or(0)));
        }
        Self { leaving }
    }

    /// By node, its distance from one of them; `None` out of reach. Fewer than 2³² arcs of less than 2⁶⁴ fit.
    ///
    /// O((nodes + arcs) · log nodes).
    pub(super) fn from(&self, source: u32) -> Vec<Option<u128>> {
        let mut distances: Vec<Option<u128>> = vec![None; self.leaving.len()];
        distances[source as usize] = Some(0);
        let mut queue = BinaryHeap::from([Reverse((0_u128, source))]);
        while let Some(Reverse((distance, node))) = queue.pop() {
            if distances[node as usize] != Some(distance) {
                continue;
            }
            for &(to, length) in &self.leaving[node as usize] {
                let through = distance + u128::from(length);
                let known = &mut distances[to as usize];
                if known.is_none_or(|known| through < known) {
                    *known = Some(through);
                    queue.push(Reverse((through, to)));
                }
            }
        }
        distances
    }
}
