//! Trees of shortest paths where there is one between any two nodes, as in Kautz networks.

use crate::Digraph;

use crate::multiport::trees::{Branch, Tree, Trees};

/// Errors of recognising a Kautz network K(d, k).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum KautzError {
    #[error(
        "rank {node} sends to {found} ranks and rank 0 to {degree}, while all ranks of a Kautz network have one \
             degree"
    )]
    Degree { node: u32, found: u32, degree: u32 },
    #[error("{order} ranks of degree {degree} are not one ({}, … are)", sizes(*degree))]
    Order { order: u32, degree: u32 },
    #[error("several shortest paths lead from rank {from} to rank {to}, where a Kautz network has one")]
    Paths { from: u32, to: u32 },
    #[error("rank {to} is more than {limit} links from rank {from}, which is too far in a Kautz network of this size")]
    Far { from: u32, to: u32, limit: u32 },
}

/// The first numbers of nodes of Kautz networks of a degree, in words.
fn sizes(degree: u32) -> String {
    let orders = (1..4).filter_map(|length| kautz_order(degree, length)).map(|order| order.to_string());
    orders.collect::<Vec<_>>().join(", ")
}

/// Nodes of K(d, k).
fn kautz_order(degree: u32, length: u32) -> Option<u64> {
    let words = u64::from(degree).checked_pow(length - 1)?;
    words.checked_mul(u64::from(degree) + 1)
}

/// The diameter k of a Kautz network K(d, k): so many nodes as it has, none farther than k, and one shortest path between any two.
///
/// Nothing else is asked of the graph: the costs of messages that are combined level by level follow from that, whatever
/// the labels are.
///
/// * **Source.** Pham 2026, definition 2.1.3 and lemma 3.1 on unique trees. **Errors.** [`KautzError`], the first.
/// * **Cost.** O(nodes · edges).
pub fn require_kautz(graph: &Digraph) -> Result<u32, KautzError> {
    let order = graph.order();
    let degree_of = |node: u32| u32::try_from(graph.out(node).len()).unwrap_or(u32::MAX);
    let degree = if order == 0 { 0 } else { degree_of(0) };
    if let Some(node) = (0..order).find(|&node| degree_of(node) != degree) {
        return Err(KautzError::Degree { node, found: degree_of(node), degree });
    }
    let lengths = (1..=32).take_while(|&length| kautz_order(degree, length).is_some_and(|nodes| nodes <= order.into()));
    let limit = match degree {
        0 => None,
        // Of two nodes: all lengths of words name the same network.
        1 => (order == 2).then_some(1),
        _ => lengths.last().filter(|&length| kautz_order(degree, length) == Some(order.into())),
    };
    let limit = limit.ok_or(KautzError::Order { order, degree })?;
    let mut search = Search::new(order);
    for from in 0..order {
        search.run(graph, from);
        if let Some(to) = (0..order).find(|&node| search.levels[node as usize].is_none_or(|level| level > limit)) {
            return Err(KautzError::Far { from, to, limit });
        }
        if let Some(to) = search.twice {
            return Err(KautzError::Paths { from, to });
        }
    }
    Ok(limit)
}

/// Shortest paths from each of these nodes, of several to a node the first by number of its edges; an edge is taken in the step
/// of its depth.
///
/// What passes an edge in a step is one message: with everybody's trees, the shares of all nodes at that distance before it.
///
/// * **Source.** Pham 2026, section 3.2.2. **Cost.** O(roots · edges) time. Nodes out of reach are left out.
pub fn level_trees(graph: &Digraph, roots: &[u32]) -> Trees {
    let mut search = Search::new(graph.order());
    let trees = roots.iter().map(|&root| {
        search.run(graph, root);
        Tree { root, branches: search.branches.clone() }
    });
    Trees { trees: trees.collect() }
}

/// The same trees with no more than one of them on an edge in a step: each level takes as many steps as trees share an edge in it.
///
/// * **Source.** Pham 2026, section 3.2.3, MULTITREE on Kautz networks. **Cost.** O(branches).
#[must_use]
pub fn one_at_a_time(graph: &Digraph, trees: &Trees) -> Trees {
    let levels = trees.step_count() as usize;
    // By level and edge: how many trees have taken it.
    let mut taken = vec![vec![0_u32; graph.edge_count() as usize]; levels];
    let mut turns: Vec<Vec<u32>> = Vec::with_capacity(trees.trees.len());
    for tree in &trees.trees {
        let turn = tree.branches.iter().map(|branch| {
            let taken = &mut taken[branch.step as usize][branch.edge as usize];
            *taken += 1;
            *taken - 1
        });
        turns.push(turn.collect());
    }
    let mut first = vec![0_u32; levels + 1];
    for (level, taken) in taken.iter().enumerate() {
        first[level + 1] = first[level] + taken.iter().copied().max().unwrap_or(0);
    }
    let divided = trees.trees.iter().zip(turns).map(|(tree, turns)| {
        let branches = tree.branches.iter().zip(turns);
        let branches =
            branches.map(|(branch, turn)| Branch { step: first[branch.step as usize] + turn, edge: branch.edge });
        let mut branches: Vec<Branch> = branches.collect();
        branches.sort_unstable();
        Tree { root: tree.root, branches }
    });
    Trees { trees: divided.collect() }
}

/// A search from one node.
struct Search {
    levels: Vec<Option<u32>>,
    branches: Vec<Branch>,
    queue: Vec<u32>,
    /// A node with two shortest paths.
    twice: Option<u32>,
}

impl Search {
    fn new(order: u32) -> Self {
        Self { levels: vec![None; order as usize], branches: Vec::new(), queue: Vec::new(), twice: None }
    }

    fn run(&mut self, graph: &Digraph, root: u32) {
        self.levels.fill(None);
        self.branches.clear();
        self.queue.clear();
        self.twice = None;
        self.levels[root as usize] = Some(0);
        self.queue.push(root);
        let mut at = 0;
        while let Some(&node) = self.queue.get(at) {
            at += 1;
            let step = self.levels[node as usize].unwrap_or(0);
            for (&head, edge) in graph.out(node).iter().zip(graph.out_edges(node)) {
                match self.levels[head as usize] {
                    None => {
                        self.levels[head as usize] = Some(step + 1);
                        self.branches.push(Branch { step, edge });
                        self.queue.push(head);
                    }
                    Some(level) if level == step + 1 => self.twice = self.twice.or(Some(head)),
                    Some(_) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Family;

    use super::*;
    use crate::multiport::judge::judge_trees;
    use crate::multiport::tests::{graph, relabelled};

    /// Lemma 3.1 for d = 2 to 5 and 8, value K4: d + 1 steps with one block for each edge and step.
    #[test]
    fn trees_of_kautz_networks_take_two_steps_or_d_plus_one() {
        for d in [2, 3, 4, 5, 8] {
            let graph = relabelled(&graph(Family::Kautz { d, n: 2 }), d);
            assert_eq!(require_kautz(&graph), Ok(2));
            let roots: Vec<u32> = (0..graph.order()).collect();
            let together = level_trees(&graph, &roots);
            let alone = one_at_a_time(&graph, &together);
            assert_eq!(judge_trees(&graph, &together), Ok(u32::try_from(d).unwrap()), "{d}");
            assert_eq!(judge_trees(&graph, &alone), Ok(1), "{d}");
            assert_eq!((together.step_count(), u64::from(alone.step_count())), (2, d + 1));
        }
    }

    #[test]
    fn other_networks_are_refused() {
        assert_eq!(require_kautz(&graph(Family::Complete { n: 4 })), Ok(1));
        assert_eq!(require_kautz(&graph(Family::Kautz { d: 3, n: 3 })), Ok(3));
        let torus = graph(Family::Torus { extents: vec![4, 5] });
        assert!(matches!(require_kautz(&torus), Err(KautzError::Far { .. })), "{:?}", require_kautz(&torus));
        // As many nodes and as wide as K(2, 2), but two ways from 0 to 4.
        let edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (2, 5), (3, 0), (3, 2), (4, 0), (4, 1), (5, 0), (5, 1)];
        let other = Digraph::new(6, edges).unwrap();
        assert_eq!(require_kautz(&other), Err(KautzError::Paths { from: 0, to: 4 }));
        let ring = graph(Family::Ring { n: 6, one_way: false });
        assert!(matches!(require_kautz(&ring), Err(KautzError::Far { .. })));
        let refused = require_kautz(&graph(Family::Torus { extents: vec![4, 4] })).unwrap_err().to_string();
        assert!(refused.ends_with("(5, 20, 80, … are)"), "{refused}");
        let mesh = graph(Family::Mesh { extents: vec![3, 2] });
        assert!(matches!(require_kautz(&mesh), Err(KautzError::Degree { node: 2, found: 3, degree: 2 })));
    }
}
