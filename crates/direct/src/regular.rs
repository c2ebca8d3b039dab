//! Graphs whose nodes have as many edges each, as breadth-first broadcasts take them.

use canopy_optimize::{Arc, BfbError, BfbGraph, Stop};

use crate::digraph::Digraph;
use crate::error::PredictError;

/// The edges that leave each node, if as many enter it and it is the same for all.
pub(crate) fn regular_degree(graph: &Digraph, transpose: &Digraph) -> Result<u32, PredictError> {
    let degree = if graph.order() == 0 { 0 } else { graph.out(0).len() };
    for node in 0..graph.order() {
        for found in [graph.out(node).len(), transpose.out(node).len()] {
            if found != degree {
                return Err(PredictError::NotRegular { node, found, degree });
            }
        }
    }
    Ok(u32::try_from(degree).expect("edges are numbered in 32 bits"))
}

/// The graph as breadth-first broadcasts take it: arcs are numbered as edges, all of capacity 1.
pub(crate) fn bfb_graph(graph: &Digraph, stop: &dyn Stop) -> Result<BfbGraph, BfbError> {
    let arcs = graph.edges().map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
    let graph = canopy_optimize::Digraph { node_count: graph.order(), arcs };
    BfbGraph::with_equal_shares(&graph, stop)
}
