//! Permutations of nodes, as far as they move any, and their verification.

use crate::budget::{Ended, Meter};
use crate::graph::{Graph, Label, NO_LABEL};

/// A permutation that keeps colours and arcs, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automorphism {
    /// Every node that moves, and where to: rising.
    moves: Vec<(u32, u32)>,
}

impl Automorphism {
    /// Every node that moves, and where to, by node.
    pub fn moves(&self) -> &[(u32, u32)] {
        &self.moves
    }

    /// Where a node goes. O(log moves).
    pub fn image(&self, node: u32) -> u32 {
        self.moves.binary_search_by_key(&node, |&(from, _)| from).map_or(node, |position| self.moves[position].1)
    }

    /// Where each of so many nodes goes.
    pub fn to_table(&self, node_count: usize) -> Vec<u32> {
        let mut table: Vec<u32> = (0_u32..).take(node_count).collect();
        for &(from, to) in &self.moves {
            table[from as usize] = to;
        }
        table
    }
}

/// Verifies permutations on one graph.
pub(crate) struct Verifier<'a> {
    graph: &'a Graph,
    /// By node, between two verifications: itself.
    image: Vec<u32>,
    /// By node, between two verifications: no label.
    expected: Vec<Label>,
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let node_count = graph.node_count();
        Self { graph, image: (0_u32..).take(node_count).collect(), expected: vec![NO_LABEL; node_count] }
    }

    /// The permutation that moves these nodes, if it keeps the graph: every arc with an end that moves is looked at from
    /// that end. `None` if it does not keep it, or is no permutation. O(moves log moves + arcs of what moves).
    pub(crate) fn verified(
        &mut self,
        moves: impl IntoIterator<Item = (u32, u32)>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Automorphism>, Ended> {
        let mut moves: Vec<(u32, u32)> = moves.into_iter().filter(|(from, to)| from != to).collect();
        moves.sort_unstable();
        let mut targets: Vec<u32> = moves.iter().map(|&(_, to)| to).collect();
        targets.sort_unstable();
        let is_permutation =
            moves.iter().map(|&(from, _)| from).eq(targets) && moves.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_permutation {
            return Ok(None);
        }
        for &(from, to) in &moves {
            self.image[from as usize] = to;
        }
        let mut keeps = true;
        for &(from, to) in &moves {
            keeps = keeps && self.keeps(from, to);
        }
        for &(from, _) in &moves {
            self.image[from as usize] = from;
        }
        meter.spend(moves.iter().map(|&(from, _)| 2 + 2 * self.graph.around(from).len()).sum())?;
        Ok(keeps.then_some(Automorphism { moves }))
    }

    /// Whether the arcs of a node go to those of its image.
    fn keeps(&mut self, from: u32, to: u32) -> bool {
        let (before, after) = (self.graph.around(from), self.graph.around(to));
        let classes = self.graph.classes();
        if before.len() != after.len() || classes[from as usize] != classes[to as usize] {
            return false;
        }
        for &(node, label) in after {
            self.expected[node as usize] = label;
        }
        let keeps = before.iter().all(|&(node, label)| self.expected[self.image[node as usize] as usize] == label);
        for &(node, _) in after {
            self.expected[node as usize] = NO_LABEL;
        }
        keeps
    }
}
