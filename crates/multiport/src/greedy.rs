//! Trees on any network, of which no two take an edge in the same step.

use canopy_direct::Digraph;
use canopy_optimize::{Stop, Stopped};

use crate::trees::{Branch, Tree, Trees, Unreachable};

/// Errors of growing trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GreedyError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error("stopped before all trees were found")]
    Stopped,
}

impl From<Stopped> for GreedyError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Trees that grow together, one edge each in turn: in a step every edge is taken by the first tree that it extends.
///
/// * **Source.** Huang et al., MULTITREE, with steps counted by edge as in Pham 2026, section 3.2.3; which of a tree's edges is
///   taken first, and which tree is first in a step, is our own: the nodes that joined first, and one later in each step.
/// * **Errors.** A node out of reach; stopped.
/// * **Cost.** O(steps · roots · edges) at most, without the nodes of a tree that lead to no new one.
pub fn greedy_trees(graph: &Digraph, roots: &[u32], stop: &dyn Stop) -> Result<Trees, GreedyError> {
    let mut growing: Vec<Growing> = roots.iter().map(|&root| Growing::new(graph.order(), root)).collect();
    let mut is_taken = vec![false; graph.edge_count() as usize];
    let mut step = 0;
    let mut open: Vec<usize> = (0..growing.len()).collect();
    loop {
        open.retain(|&tree| growing[tree].missing > 0);
        if open.is_empty() {
            break;
        }
        is_taken.fill(false);
        let first = step as usize % open.len();
        let mut turns: Vec<usize> = open[first..].iter().chain(&open[..first]).copied().collect();
        let missing = |growing: &[Growing]| growing.iter().map(|tree| u64::from(tree.missing)).sum::<u64>();
        let before = missing(&growing);
        while !turns.is_empty() {
            if stop.is_requested() {
                return Err(GreedyError::Stopped);
            }
            turns.retain(|&tree| growing[tree].grow(graph, step, &mut is_taken));
        }
        if missing(&growing) == before {
            let stuck = &growing[open[0]];
            let node = stuck.is_in.iter().position(|&is_in| !is_in).unwrap_or(0);
            let node = u32::try_from(node).unwrap_or(u32::MAX);
            return Err(Unreachable { root: stuck.root, node }.into());
        }
        growing.iter_mut().for_each(|tree| tree.end_step(graph));
        step += 1;
    }
    Ok(Trees { trees: growing.into_iter().map(|tree| Tree { root: tree.root, branches: tree.branches }).collect() })
}

/// A tree that does not come to all nodes yet.
struct Growing {
    root: u32,
    is_in: Vec<bool>,
    missing: u32,
    branches: Vec<Branch>,
    /// Nodes that were in it before this step and lead to others, in the order in which they came.
    live: Vec<u32>,
    /// Nodes that came in this step.
    new: Vec<u32>,
    /// Where to look on in this step: a place in `live`, and one of its edges. What was passed cannot be of use before the next.
    cursor: (usize, usize),
}

impl Growing {
    fn new(order: u32, root: u32) -> Self {
        let mut is_in = vec![false; order as usize];
        if let Some(is_in) = is_in.get_mut(root as usize) {
            *is_in = true;
        }
        let missing = order.saturating_sub(1);
        Self { root, is_in, missing, branches: Vec::new(), live: vec![root], new: Vec::new(), cursor: (0, 0) }
    }

    /// Takes an edge that no tree has taken in this step; false if there is none.
    fn grow(&mut self, graph: &Digraph, step: u32, is_taken: &mut [bool]) -> bool {
        while let Some(&node) = self.live.get(self.cursor.0) {
            let (heads, first) = (graph.out(node), graph.out_edges(node).start);
            for (place, &head) in heads.iter().enumerate().skip(self.cursor.1) {
                let edge = first + u32::try_from(place).unwrap_or(u32::MAX);
                let is_taken = &mut is_taken[edge as usize];
                if !*is_taken && !self.is_in[head as usize] {
                    *is_taken = true;
                    self.is_in[head as usize] = true;
                    self.missing -= 1;
                    self.branches.push(Branch { step, edge });
                    self.new.push(head);
                    self.cursor.1 = place + 1;
                    return self.missing > 0;
                }
            }
            self.cursor = (self.cursor.0 + 1, 0);
        }
        false
    }

    fn end_step(&mut self, graph: &Digraph) {
        self.live.append(&mut self.new);
        let is_in = &self.is_in;
        self.live.retain(|&node| graph.out(node).iter().any(|&head| !is_in[head as usize]));
        self.cursor = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use canopy_direct::Family;
    use canopy_optimize::Never;
    use proptest::prelude::*;

    use super::*;
    use crate::judge::judge_trees;
    use crate::tests::{graph, relabelled};

    #[test]
    fn every_family_gets_trees_without_contention() {
        for family in [
            Family::Kautz { d: 2, n: 2 },
            Family::Kautz { d: 3, n: 3 },
            Family::Dfc2 { rows: 4, columns: 6 },
            Family::Hypercube { n: 5 },
            Family::Ring { n: 9, one_way: false },
        ] {
            let graph = graph(family);
            let roots: Vec<u32> = (0..graph.order()).collect();
            let trees = greedy_trees(&graph, &roots, &Never).unwrap();
            assert_eq!(judge_trees(&graph, &trees), Ok(1));
            // No rank can get the shares of all others over its links any sooner.
            let degree = graph.edge_count() / graph.order();
            assert!(trees.step_count() >= (graph.order() - 1).div_ceil(degree));
        }
    }

    #[test]
    fn nodes_out_of_reach_are_named() {
        let graph = Digraph::new(4, [(0, 1), (1, 0), (2, 3), (3, 2)]).unwrap();
        let unreachable = GreedyError::Unreachable(Unreachable { root: 1, node: 2 });
        assert_eq!(greedy_trees(&graph, &[1], &Never), Err(unreachable));
        assert_eq!(greedy_trees(&graph, &[1], &|| true), Err(GreedyError::Stopped));
    }

    proptest! {
        #[test]
        fn trees_are_right_on_any_connected_graph(n in 3_u64..20, d in 2_u64..4, seed in any::<u64>()) {
            let graph = relabelled(&graph(Family::GenKautz { n: n.max(d + 1), d }), seed);
            let roots: Vec<u32> = (0..graph.order()).step_by(2).collect();
            let trees = greedy_trees(&graph, &roots, &Never).unwrap();
            prop_assert_eq!(judge_trees(&graph, &trees), Ok(1));
        }
    }
}
