//! A regular graph with its edges by both ends, in either direction.

use super::Heading;
use crate::digraph::Digraph;
use crate::error::PredictError;
use crate::regular::regular_degree;

/// A regular graph as data moves in it: `from` and `to` are tail and head, or the other way round.
#[derive(Clone, Debug)]
pub(super) struct Oriented {
    order: u32,
    degree: u32,
    heading: Heading,
    heads: Vec<u32>,
    /// Edges that enter a node of the graph as it is, node by node, by increasing number.
    entering: Vec<u32>,
}

impl Oriented {
    pub(super) fn new(graph: &Digraph, heading: Heading) -> Result<Self, PredictError> {
        let degree = regular_degree(graph, &graph.transpose())?;
        let heads = (0..graph.edge_count()).map(|edge| graph.head(edge)).collect();
        Ok(Self { order: graph.order(), degree, heading, heads, entering: graph.transposed_edges() })
    }

    pub(super) const fn order(&self) -> u32 {
        self.order
    }

    pub(super) const fn degree(&self) -> u32 {
        self.degree
    }

    pub(super) const fn heading(&self) -> Heading {
        self.heading
    }

    pub(super) fn edge_count(&self) -> usize {
        self.heads.len()
    }

    /// Tail of an edge of the graph as it is.
    pub(super) const fn tail(&self, edge: u32) -> u32 {
        edge / self.degree
    }

    /// Position of an edge among those of its tail.
    pub(super) const fn slot(&self, edge: u32) -> u32 {
        edge % self.degree
    }

    /// Where an edge carries data from.
    pub(super) fn from(&self, edge: u32) -> u32 {
        match self.heading {
            Heading::Along => self.tail(edge),
            Heading::Against => self.heads[edge as usize],
        }
    }

    /// Where an edge carries data to.
    pub(super) fn to(&self, edge: u32) -> u32 {
        match self.heading {
            Heading::Along => self.heads[edge as usize],
            Heading::Against => self.tail(edge),
        }
    }

    /// Edges that carry data away from a node.
    pub(super) fn leaving(&self, node: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        self.at(node, self.heading == Heading::Along)
    }

    /// Edges that carry data to a node.
    pub(super) fn reaching(&self, node: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        self.at(node, self.heading == Heading::Against)
    }

    fn at(&self, node: u32, is_tail: bool) -> impl Iterator<Item = u32> + Clone + '_ {
        (node * self.degree..(node + 1) * self.degree)
            .map(move |position| if is_tail { position } else { self.entering[position as usize] })
    }

    /// The position, among the edges that enter its head in the graph as it is, of every edge.
    pub(super) fn positions_at_head(&self) -> Vec<u32> {
        let mut positions = vec![0; self.entering.len()];
        for (&edge, position) in self.entering.iter().zip(0..) {
            positions[edge as usize] = position % self.degree;
        }
        positions
    }
}
