//! What is left of a graph once its cells are known: components that say nothing about each other.
//!
//! A permutation that keeps the cells keeps every link that all pairs of two cells have; so these can go, whatever they
//! carry. The same holds for the label that most pairs of two cells have, if all other pairs are marked instead.

use std::ops::Range;

use crate::graph::{Graph, Label};
use crate::partition::Partition;

/// Some nodes of a graph, with what distinguishes their pairs.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// By node: what it is called in the graph.
    pub(crate) names: Vec<u32>,
    /// By node: what it is called in the part that this was taken from.
    pub(crate) places: Vec<u32>,
    /// By node: its cell in the part that this was taken from. Rising.
    pub(crate) tags: Vec<u32>,
    starts: Vec<u32>,
    neighbours: Vec<(u32, Label)>,
    /// A label that no pair has: what pairs that are not listed get once another label is left out in their place.
    unused: Label,
}

impl Part {
    /// A whole graph.
    pub(crate) fn whole(graph: &Graph) -> Self {
        let names: Vec<u32> = (0_u32..).take(graph.node_count()).collect();
        let mut starts = vec![0];
        let mut neighbours = Vec::with_capacity(2 * graph.arcs().len());
        for &node in &names {
            neighbours.extend_from_slice(graph.around(node));
            starts.push(count(neighbours.len()));
        }
        Self {
            places: names.clone(),
            tags: graph.classes().to_vec(),
            names,
            starts,
            neighbours,
            unused: graph.label_count(),
        }
    }

    pub(crate) fn node_count(&self) -> usize {
        self.names.len()
    }

    /// Number of pairs that are listed, each from both ends.
    pub(crate) fn pair_count(&self) -> usize {
        self.neighbours.len()
    }

    /// Nodes whose pairs with this one are listed, with the labels.
    pub(crate) fn around(&self, node: u32) -> &[(u32, Label)] {
        &self.neighbours[self.span(node)]
    }

    fn span(&self, node: u32) -> Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    /// Drops what all or most pairs of two cells have, and gives the components that are left, each with its cells in the
    /// order of the partition, which must be one that cannot be refined. O(nodes + pairs).
    pub(crate) fn components(&self, partition: &Partition, graph: &Graph) -> Vec<Self> {
        let rest = self.reduced(partition, graph);
        let mut component = vec![u32::MAX; self.node_count()];
        let mut waiting = Vec::new();
        let mut component_count = 0_u32;
        for &first in partition.order() {
            if component[first as usize] != u32::MAX {
                continue;
            }
            component[first as usize] = component_count;
            waiting.push(first);
            while let Some(node) = waiting.pop() {
                for &(other, _) in rest.around(node) {
                    if component[other as usize] == u32::MAX {
                        component[other as usize] = component_count;
                        waiting.push(other);
                    }
                }
            }
            component_count += 1;
        }
        let mut parts: Vec<Self> = (0..component_count).map(|_| rest.emptied()).collect();
        let mut place_inside = vec![0_u32; self.node_count()];
        for &node in partition.order() {
            let part = &mut parts[component[node as usize] as usize];
            place_inside[node as usize] = count(part.names.len());
            part.names.push(self.names[node as usize]);
            part.places.push(node);
            part.tags.push(partition.cell_of(node));
        }
        for &node in partition.order() {
            let part = &mut parts[component[node as usize] as usize];
            part.neighbours
                .extend(rest.around(node).iter().map(|&(other, label)| (place_inside[other as usize], label)));
            part.starts.push(count(part.neighbours.len()));
        }
        parts
    }

    fn emptied(&self) -> Self {
        let (names, places, tags) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, places, tags, starts: vec![0], neighbours: Vec::new(), unused: self.unused }
    }

    /// The same nodes without what all or most pairs of two cells have.
    fn reduced(&self, partition: &Partition, graph: &Graph) -> Self {
        let node_count = self.node_count();
        let mut rest = Self { unused: self.unused + 1, ..self.emptied() };
        let mut spans = vec![0..0; node_count];
        // By cell, for the cell at hand: the label that is left out instead of none.
        let mut left_out: Vec<Option<Label>> = vec![None; node_count];
        let mut is_listed = vec![false; node_count];
        for cell in partition.cells() {
            let usual = self.usual_labels(cell, partition, graph);
            for &(other, label, _) in &usual {
                left_out[other as usize] = Some(label);
            }
            for &node in partition.members(cell) {
                let start = rest.neighbours.len();
                let around = self.around(node);
                let stays =
                    |&&(other, label): &&(u32, Label)| left_out[partition.cell_of(other) as usize] != Some(label);
                rest.neighbours.extend(around.iter().filter(stays));
                around.iter().for_each(|&(other, _)| is_listed[other as usize] = true);
                for &(other_cell, _, _) in usual.iter().filter(|&&(.., has_unlisted)| has_unlisted) {
                    let unlisted = partition
                        .members(other_cell)
                        .iter()
                        .filter(|&&other| other != node && !is_listed[other as usize]);
                    rest.neighbours.extend(unlisted.map(|&other| (other, self.unused)));
                }
                around.iter().for_each(|&(other, _)| is_listed[other as usize] = false);
                spans[node as usize] = start..rest.neighbours.len();
            }
            for &(other, ..) in &usual {
                left_out[other as usize] = None;
            }
        }
        rest.in_order(&spans)
    }

    /// With neighbours sorted by node, given where each node has its own.
    fn in_order(mut self, spans: &[Range<usize>]) -> Self {
        let mut neighbours = Vec::with_capacity(self.neighbours.len());
        for span in spans {
            neighbours.extend_from_slice(&self.neighbours[span.clone()]);
            self.starts.push(count(neighbours.len()));
        }
        self.neighbours = neighbours;
        self
    }

    /// Cells of which more pairs with this one have a certain label than are not listed: the cell, the label, and whether
    /// any pair is not listed. Both cells of a pair come to the same label, seen from either.
    fn usual_labels(&self, cell: u32, partition: &Partition, graph: &Graph) -> Vec<(u32, Label, bool)> {
        let Some(&first) = partition.members(cell).first() else { return Vec::new() };
        let mut met: Vec<(u32, Label)> =
            self.around(first).iter().map(|&(other, label)| (partition.cell_of(other), label)).collect();
        met.sort_unstable();
        let mut usual = Vec::new();
        for with_cell in met.chunk_by(|a, b| a.0 == b.0) {
            let other = with_cell[0].0;
            let pair_count = partition.size_of(other) - usize::from(other == cell);
            let unlisted = pair_count - with_cell.len();
            let mut best: Option<(usize, std::cmp::Reverse<Label>, Label)> = None;
            for same in with_cell.chunk_by(|a, b| a.1 == b.1) {
                let label = same[0].1;
                let reversed = graph.reversed(label);
                // Ties are broken by the label as the first of the two cells sees it.
                let seen_first = if cell <= other { label } else { reversed };
                let is_same_from_both_ends = other != cell || label == reversed;
                if same.len() > unlisted && is_same_from_both_ends {
                    best = best.max(Some((same.len(), std::cmp::Reverse(seen_first), label)));
                }
            }
            usual.extend(best.map(|(.., label)| (other, label, unlisted > 0)));
        }
        usual
    }

    /// The part written down in this order, without its names: a list that isomorphic parts share for corresponding orders,
    /// and others for none. `cell_of` is what is known of each node besides. O(nodes + pairs log pairs).
    pub(crate) fn certificate(&self, order: &[u32], cell_of: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut place = vec![0_u32; order.len()];
        for (position, &node) in (0_u32..).zip(order) {
            place[node as usize] = position;
        }
        let mut text = Vec::with_capacity(2 * order.len() + self.neighbours.len());
        let mut before: Vec<(u32, Label)> = Vec::new();
        for (position, &node) in (0_u32..).zip(order) {
            before.clear();
            let around = self.around(node).iter().map(|&(other, label)| (place[other as usize], label));
            before.extend(around.filter(|&(other, _)| other < position));
            before.sort_unstable();
            text.extend([cell_of(node), count(before.len())]);
            text.extend(before.iter().flat_map(|&(other, label)| [other, label]));
        }
        text
    }
}

/// A number of nodes or pairs.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("pairs of a graph are counted in u32")
}
