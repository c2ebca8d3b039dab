//! Networks in the direction of trees.

use canopy_direct::Digraph;
use canopy_multiport::{Branch, Tree};
use canopy_topology::Topology;

use crate::error::SynthesisError;

/// The graph that trees are on.
pub(super) struct Directed {
    pub(super) graph: Digraph,
    /// The network turned around: trees lead from what is added up or gathered to where it came from.
    pub(super) is_backwards: bool,
    /// By edge, its link.
    links: Vec<u32>,
    /// By edge, where it begins.
    tails: Vec<u32>,
}

impl Directed {
    /// The graph of a network without switches. O(ranks + links).
    pub(super) fn new(topology: &Topology, is_backwards: bool) -> Result<Self, SynthesisError> {
        let ends = topology.links().iter().map(|link| (link.from.number(), link.to.number()));
        let graph = Digraph::new(topology.rank_count(), ends)
            .map_err(|error| SynthesisError::Broken { what: format!("multiport: {error}") })?;
        // Links are sorted by their ends, so that edges have their numbers.
        let (graph, links) = match is_backwards {
            false => {
                let links = (0..graph.edge_count()).collect();
                (graph, links)
            }
            true => (graph.transpose(), graph.transposed_edges()),
        };
        let tails = graph.edges().map(|(tail, _)| tail).collect();
        Ok(Self { graph, is_backwards, links, tails })
    }

    /// The link that an edge is.
    pub(super) fn link(&self, edge: u32) -> u32 {
        self.links[edge as usize]
    }

    /// By rank, the branch that leads there, and from where.
    pub(super) fn before(&self, tree: &Tree) -> Vec<Option<(Branch, u32)>> {
        let mut before = vec![None; self.graph.order() as usize];
        for &branch in &tree.branches {
            before[self.graph.head(branch.edge) as usize] = Some((branch, self.tails[branch.edge as usize]));
        }
        before
    }
}
