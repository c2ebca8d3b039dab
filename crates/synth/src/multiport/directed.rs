//! Networks in the direction of trees.

use canopy_direct::Digraph;
use canopy_direct::multiport::{Branch, GreedyError, Tree, Trees, Wires, greedy_trees};
use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, Topology};

use crate::error::SynthesisError;

/// The graph that trees are on: an edge for each route from rank to rank that they may take.
pub(super) struct Directed {
    pub(super) graph: Digraph,
    /// The network turned around: trees lead from what is added up or gathered to where it came from.
    pub(super) is_backwards: bool,
    /// By edge, its route in the direction of the data.
    routes: Vec<Vec<LinkIndex>>,
    /// By edge, where it begins.
    tails: Vec<u32>,
}

impl Directed {
    /// The graph of a network without switches, whose edges are its links. O(ranks + links).
    pub(super) fn new(topology: &Topology, is_backwards: bool) -> Result<Self, SynthesisError> {
        let (graph, links) = edges(topology, topology.rank_count(), is_backwards)?;
        Ok(Self::of(graph, links.into_iter().map(|link| vec![link]).collect(), is_backwards))
    }

    /// Trees that grow together on any network, and the graph of the routes that they take.
    ///
    /// A link has as many parts as it is times as wide as the narrowest one. **Cost.** That of [`greedy_trees`].
    pub(super) fn grown(
        topology: &Topology,
        is_backwards: bool,
        roots: &[u32],
        stop: &dyn Stop,
    ) -> Result<(Self, Trees), SynthesisError> {
        let nodes = u32::try_from(topology.nodes().len()).expect("nodes have indices of 32 bits");
        let (graph, links) = edges(topology, nodes, is_backwards)?;
        let rate = |link: &LinkIndex| topology.link(*link).capacity.bytes_per_sec();
        let unit = links.iter().map(rate).min().unwrap_or(1);
        let parts = links.iter().map(|link| u32::try_from(rate(link) / unit).unwrap_or(u32::MAX)).collect();
        let wires = Wires { graph, ranks: topology.rank_count(), parts };
        let found = greedy_trees(&wires, roots, stop).map_err(|error| match error {
            GreedyError::Stopped => SynthesisError::Stopped,
            // That ranks reach each other is known.
            error => SynthesisError::Broken { what: format!("multitree: {error}") },
        })?;
        let route = |edges: Vec<u32>| {
            let mut route: Vec<LinkIndex> = edges.into_iter().map(|edge| links[edge as usize]).collect();
            if is_backwards {
                route.reverse();
            }
            route
        };
        let routes = found.routes.into_iter().map(route).collect();
        Ok((Self::of(found.graph, routes, is_backwards), found.trees))
    }

    fn of(graph: Digraph, routes: Vec<Vec<LinkIndex>>, is_backwards: bool) -> Self {
        let tails = graph.edges().map(|(tail, _)| tail).collect();
        Self { graph, is_backwards, routes, tails }
    }

    /// The links that an edge is, in the direction of the data.
    pub(super) fn route(&self, edge: u32) -> &[LinkIndex] {
        &self.routes[edge as usize]
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

/// All links among the first nodes of a network as edges, perhaps turned around; by edge, its link.
fn edges(topology: &Topology, nodes: u32, is_backwards: bool) -> Result<(Digraph, Vec<LinkIndex>), SynthesisError> {
    let ends = topology.links().iter().map(|link| (link.from.number(), link.to.number()));
    let graph =
        Digraph::new(nodes, ends).map_err(|error| SynthesisError::Broken { what: format!("multiport: {error}") })?;
    // Links are sorted by their ends, so that edges have their numbers.
    let (graph, links) = match is_backwards {
        false => {
            let links = (0..graph.edge_count()).collect();
            (graph, links)
        }
        true => (graph.transpose(), graph.transposed_edges()),
    };
    Ok((graph, links.into_iter().map(LinkIndex::new).collect()))
}
