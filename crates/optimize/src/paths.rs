//! Sets of paths between two nodes of a graph, for routing on a choice of them.
//!
//! A path is a list of arcs, by index, each beginning where the one before ends, through no node twice. Every arc counts as one,
//! however much it carries; arcs of capacity zero are not there.

mod bounded;
mod disjoint;
mod shortest;
mod single;
mod whole;

#[cfg(test)]
mod tests;

pub use shortest::ShortestPaths;
pub use single::{SingleOptions, SinglePaths, single_load_bound, single_paths};
pub use whole::{WholePaths, whole_paths};

use crate::digraph::Digraph;

/// A graph with the arcs of every node at hand, to look for paths in.
#[derive(Clone, Debug)]
pub struct PathGraph {
    /// By arc, where it starts and ends; of loops and arcs without capacity, too.
    ends: Vec<(u32, u32)>,
    /// By node, arcs that leave it, by index.
    leaving: Vec<Vec<u32>>,
    /// By node, arcs that enter it, by index.
    entering: Vec<Vec<u32>>,
}

impl PathGraph {
    /// Lists the arcs of every node. Arcs to nodes that are not there are left out. O(nodes + arcs).
    pub fn new(graph: &Digraph) -> Self {
        let mut leaving = vec![Vec::new(); graph.node_count as usize];
        let mut entering = leaving.clone();
        for (arc, index) in graph.arcs.iter().zip(0..) {
            let is_usable = arc.capacity > 0 && arc.from != arc.to && arc.from.max(arc.to) < graph.node_count;
            if is_usable {
                leaving[arc.from as usize].push(index);
                entering[arc.to as usize].push(index);
            }
        }
        Self { ends: graph.arcs.iter().map(|arc| (arc.from, arc.to)).collect(), leaving, entering }
    }

    fn node_count(&self) -> usize {
        self.leaving.len()
    }

    fn head(&self, arc: u32) -> u32 {
        self.ends[arc as usize].1
    }

    fn tail(&self, arc: u32) -> u32 {
        self.ends[arc as usize].0
    }
}
