//! Trees with a step for each edge.

use crate::Digraph;

/// An edge of a tree, with its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// From 0.
    pub step: u32,
    /// Its number in the graph.
    pub edge: u32,
}

/// A tree that leads from its root to every other node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where it begins.
    pub root: u32,
    /// By step: an edge is taken after the one that leads to its tail.
    pub branches: Vec<Branch>,
}

/// One tree for each of some roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trees {
    /// By increasing root.
    pub trees: Vec<Tree>,
}

/// A node that no tree can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no path leads from node {root} to node {node}")]
pub struct Unreachable {
    /// Where the tree begins.
    pub root: u32,
    /// What it does not reach.
    pub node: u32,
}

impl Trees {
    /// One more than the last step of any tree. O(branches).
    pub fn step_count(&self) -> u32 {
        let steps = self.trees.iter().flat_map(|tree| &tree.branches).map(|branch| branch.step + 1);
        steps.max().unwrap_or(0)
    }

    /// The same trees, each edge taken in the step of its depth: for a collective of one root, whose tree has the ports to
    /// itself. O(branches).
    #[must_use]
    pub fn by_depth(&self, graph: &Digraph) -> Self {
        let tails = tails(graph);
        let trees = self.trees.iter().map(|tree| {
            let mut depth = vec![0; graph.order() as usize];
            let mut branches: Vec<Branch> = Vec::with_capacity(tree.branches.len());
            for &Branch { edge, .. } in &tree.branches {
                let step = depth[tails[edge as usize] as usize];
                depth[graph.head(edge) as usize] = step + 1;
                branches.push(Branch { step, edge });
            }
            branches.sort_unstable();
            Tree { root: tree.root, branches }
        });
        Self { trees: trees.collect() }
    }
}

/// Tails of all edges, by number.
pub(crate) fn tails(graph: &Digraph) -> Vec<u32> {
    graph.edges().map(|(tail, _)| tail).collect()
}
