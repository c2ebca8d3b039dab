//! Checks trees independently of the code that made them.

use crate::Digraph;

use crate::multiport::trees::{Trees, tails};

/// What is wrong with trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TreeFault {
    #[error("the tree of node {root} takes edge {edge}, which does not exist")]
    Unknown { root: u32, edge: u32 },
    #[error(
        "the tree of node {root} takes edge {edge} in step {step}, before it reaches the tail or after it reached the \
         head"
    )]
    Early { root: u32, edge: u32, step: u32 },
    #[error("the tree of node {root} does not reach node {node}")]
    Missing { root: u32, node: u32 },
}

/// Judges trees, and counts how many of them share an edge in a step at most.
///
/// # Errors
/// [`TreeFault`], the first. O(branches + steps · edges) time.
pub(crate) fn judge_trees(graph: &Digraph, trees: &Trees) -> Result<u32, TreeFault> {
    let tails = tails(graph);
    let mut uses = vec![0_u32; tails.len() * trees.step_count() as usize];
    let mut most = 0;
    for tree in &trees.trees {
        let root = tree.root;
        let mut since: Vec<Option<u32>> = vec![None; graph.order() as usize];
        if let Some(since) = since.get_mut(root as usize) {
            *since = Some(0);
        }
        for branch in &tree.branches {
            let (step, edge) = (branch.step, branch.edge);
            let tail = *tails.get(edge as usize).ok_or(TreeFault::Unknown { root, edge })?;
            let head = graph.head(edge) as usize;
            let is_there = since[tail as usize].is_some_and(|since| since <= step);
            if !is_there || since[head].is_some() {
                return Err(TreeFault::Early { root, edge, step });
            }
            since[head] = Some(step + 1);
            let uses = &mut uses[step as usize * tails.len() + edge as usize];
            *uses += 1;
            most = most.max(*uses);
        }
        if let Some(node) = (0..graph.order()).find(|&node| since[node as usize].is_none()) {
            return Err(TreeFault::Missing { root, node });
        }
    }
    Ok(most)
}
