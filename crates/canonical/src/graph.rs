//! Graphs with coloured nodes and weighted arcs.

mod joins;

use joins::Joins;

/// Weight of an arc; arcs of different weights are not exchanged. For a link: capacity, then latency.
pub type Weight = [u64; 2];

/// A directed arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arc {
    /// Where it starts.
    pub from: u32,
    /// Where it ends; never its start.
    pub to: u32,
    /// Its weight.
    pub weight: Weight,
}

/// Errors of building a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GraphError {
    #[error("arc {from} -> {to} exceeds the {node_count} nodes of the graph; number them from 0")]
    NoSuchNode { from: u32, to: u32, node_count: usize },
    #[error("arc {node} -> {node} is a loop; give the node a colour of its own instead")]
    Loop { node: u32 },
    #[error("{node_count} nodes with {arc_count} arcs are too many to number in 31 bits")]
    TooLarge { node_count: usize, arc_count: usize },
}

/// How two nodes are joined, seen from the first: an index into the sorted list of all ways there are in a graph.
pub(crate) type Label = u32;

/// No arc in either direction.
pub(crate) const NO_LABEL: Label = 0;

/// A directed graph with a colour for each node and a weight for each arc. Two arcs may join the same nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    colours: Vec<u64>,
    /// Sorted.
    arcs: Vec<Arc>,
    /// By node: the rank of its colour among all colours.
    classes: Vec<u32>,
    joins: Joins,
}

impl Graph {
    /// A graph of nodes with these colours.
    ///
    /// # Errors
    /// An arc that is a loop or leads nowhere. O(nodes log nodes + arcs log arcs).
    pub fn new(colours: Vec<u64>, mut arcs: Vec<Arc>) -> Result<Self, GraphError> {
        let node_count = colours.len();
        // Every arc is seen from two ends.
        if node_count.max(arcs.len()) > i32::MAX as usize {
            return Err(GraphError::TooLarge { node_count, arc_count: arcs.len() });
        }
        for &Arc { from, to, .. } in &arcs {
            if from as usize >= node_count || to as usize >= node_count {
                return Err(GraphError::NoSuchNode { from, to, node_count });
            }
            if from == to {
                return Err(GraphError::Loop { node: from });
            }
        }
        arcs.sort_unstable();
        let classes = ranked(&colours);
        let joins = Joins::new(node_count, &arcs);
        Ok(Self { colours, arcs, classes, joins })
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.colours.len()
    }

    /// Colours, by node.
    pub fn colours(&self) -> &[u64] {
        &self.colours
    }

    /// Arcs, sorted by (from, to, weight).
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The same graph with other numbers: node `v` becomes `places[v]`. `None` unless each number is used once.
    /// O(nodes + arcs log arcs).
    pub fn renumbered(&self, places: &[u32]) -> Option<Self> {
        let mut colours = vec![None; self.node_count()];
        for (&colour, &place) in self.colours.iter().zip(places) {
            *colours.get_mut(place as usize)? = Some(colour);
        }
        let colours = colours.into_iter().collect::<Option<Vec<u64>>>()?;
        let moved = |arc: &Arc| Arc { from: places[arc.from as usize], to: places[arc.to as usize], ..*arc };
        Self::new(colours, self.arcs.iter().map(moved).collect()).ok()
    }

    /// By node: the rank of its colour among all colours.
    pub(crate) fn classes(&self) -> &[u32] {
        &self.classes
    }

    /// Nodes that an arc joins with this one, rising, and how.
    pub(crate) fn around(&self, node: u32) -> &[(u32, Label)] {
        self.joins.around(node)
    }

    /// The label of the same arcs seen from the other end. Labels that the graph does not have are symmetric.
    pub(crate) fn reversed(&self, label: Label) -> Label {
        self.joins.reversed.get(label as usize).copied().unwrap_or(label)
    }

    /// Labels are below this number.
    pub(crate) fn label_count(&self) -> Label {
        Label::try_from(self.joins.reversed.len()).expect("there are no more labels than arcs")
    }
}

/// By item: its rank among all distinct items.
fn ranked<T: Ord + Clone>(items: &[T]) -> Vec<u32> {
    let mut distinct = items.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |item: &T| distinct.partition_point(|other| other < item);
    items.iter().map(|item| u32::try_from(rank(item)).expect("nodes are counted in u32")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arc(from: u32, to: u32, weight: u64) -> Arc {
        Arc { from, to, weight: [weight, 0] }
    }

    #[test]
    fn both_ends_see_the_same_arcs() {
        let arcs = vec![arc(0, 1, 5), arc(1, 0, 7), arc(1, 2, 5), arc(1, 2, 5), arc(3, 0, 5)];
        let graph = Graph::new(vec![9, 9, 4, 9], arcs).unwrap();
        assert_eq!(graph.classes(), [1, 1, 0, 1]);
        for node in 0..4 {
            for &(other, label) in graph.around(node) {
                assert_ne!(label, NO_LABEL);
                assert!(graph.around(other).contains(&(node, graph.reversed(label))));
            }
        }
        assert_eq!(graph.around(0).iter().map(|pair| pair.0).collect::<Vec<_>>(), [1, 3]);
        // One arc, two arcs, there, back: all differ.
        let labels: std::collections::BTreeSet<Label> =
            (0..4).flat_map(|node| graph.around(node).iter().map(|pair| pair.1)).collect();
        assert_eq!(labels.len(), 6);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let refused = |from, to| Graph::new(vec![0; 2], vec![arc(from, to, 1)]).unwrap_err();
        assert_eq!(refused(0, 2), GraphError::NoSuchNode { from: 0, to: 2, node_count: 2 });
        assert_eq!(refused(1, 1).to_string(), "arc 1 -> 1 is a loop; give the node a colour of its own instead");
    }

    #[test]
    fn other_numbers_there_and_back() {
        let graph = Graph::new(vec![1, 2, 3], vec![arc(0, 1, 5), arc(1, 2, 6)]).unwrap();
        let moved = graph.renumbered(&[2, 0, 1]).unwrap();
        assert_eq!((moved.colours(), moved.arcs()), (&[2, 3, 1][..], &[arc(0, 1, 6), arc(2, 0, 5)][..]));
        assert_eq!(moved.renumbered(&[1, 2, 0]), Some(graph.clone()));
        assert_eq!((graph.renumbered(&[0, 0, 1]), graph.renumbered(&[0, 1])), (None, None));
    }
}
