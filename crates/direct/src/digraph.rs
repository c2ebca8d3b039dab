//! Directed graphs in compressed rows: the heads of a node's edges stand side by side.

/// A directed graph on the nodes `0 … order−1`; parallel edges and edges from a node to itself are allowed.
///
/// Edges are numbered tail by tail, those of one tail in the order in which they were given. The expansions number the
/// nodes of what they make by these numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digraph {
    /// The edges of node `v` are `starts[v] .. starts[v + 1]`.
    starts: Vec<u32>,
    heads: Vec<u32>,
}

/// Errors of building a [`Digraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DigraphError {
    #[error("edges[{position}] leads from {tail} to {head}, but the graph has {order} nodes; number nodes from 0")]
    NoSuchNode { position: usize, tail: u32, head: u32, order: u32 },
    #[error("the graph has more than 4294967295 edges; use fewer")]
    TooManyEdges,
}

impl Digraph {
    /// A graph of so many nodes with these `(tail, head)` edges, in any order of tails. O(order + edges).
    ///
    /// # Errors
    /// [`DigraphError::NoSuchNode`] for the first edge with an end that is no node, [`DigraphError::TooManyEdges`]
    /// beyond 2³²−1 of them.
    pub fn new(order: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Result<Self, DigraphError> {
        let edges: Vec<(u32, u32)> = edges.into_iter().collect();
        u32::try_from(edges.len()).map_err(|_| DigraphError::TooManyEdges)?;
        match edges.iter().position(|&(tail, head)| tail.max(head) >= order) {
            None => Ok(Self::sorted(order, &edges)),
            Some(position) => {
                let (tail, head) = edges[position];
                Err(DigraphError::NoSuchNode { position, tail, head, order })
            }
        }
    }

    /// The graph in which `add_heads` appends the heads of each node's edges. O(order + edges).
    pub(crate) fn by_tail(order: u32, mut add_heads: impl FnMut(u32, &mut Vec<u32>)) -> Self {
        let mut starts = Vec::with_capacity(order as usize + 1);
        let mut heads = Vec::new();
        starts.push(0);
        for tail in 0..order {
            add_heads(tail, &mut heads);
            starts.push(u32::try_from(heads.len()).expect("sizes are checked before anything is built"));
        }
        debug_assert!(heads.iter().all(|&head| head < order), "an edge leads to a node that does not exist");
        Self { starts, heads }
    }

    /// Counting sort by tail; the ends are nodes and the edges fit 32 bits.
    fn sorted(order: u32, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; order as usize + 1];
        for &(tail, _) in edges {
            starts[tail as usize + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut next = starts.clone();
        let mut heads = vec![0; edges.len()];
        for &(tail, head) in edges {
            heads[next[tail as usize] as usize] = head;
            next[tail as usize] += 1;
        }
        Self { starts, heads }
    }

    /// Number of nodes.
    pub fn order(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).expect("nodes are numbered in 32 bits")
    }

    /// Number of edges, parallel ones and those from a node to itself included.
    pub fn edge_count(&self) -> u32 {
        u32::try_from(self.heads.len()).expect("edges are numbered in 32 bits")
    }

    /// Heads of the edges that leave a node, in the order of their numbers.
    ///
    /// # Panics
    /// If `node` is none of the graph, like any index.
    pub fn out(&self, node: u32) -> &[u32] {
        let range = self.out_edges(node);
        &self.heads[range.start as usize..range.end as usize]
    }

    /// Numbers of the edges that leave a node, for the heads in [`out`](Self::out).
    ///
    /// # Panics
    /// If `node` is none of the graph, like any index.
    pub fn out_edges(&self, node: u32) -> std::ops::Range<u32> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    /// Head of an edge.
    ///
    /// # Panics
    /// If `edge` is none of the graph, like any index.
    pub fn head(&self, edge: u32) -> u32 {
        self.heads[edge as usize]
    }

    /// All edges as `(tail, head)`, in the order of their numbers.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.order()).flat_map(move |tail| self.out(tail).iter().map(move |&head| (tail, head)))
    }

    /// The graph with every edge turned around: `transpose().out(v)` are the tails of the edges that enter `v`, by
    /// increasing number of the edge. O(order + edges).
    #[must_use]
    pub fn transpose(&self) -> Self {
        let turned: Vec<(u32, u32)> = self.edges().map(|(tail, head)| (head, tail)).collect();
        Self::sorted(self.order(), &turned)
    }

    /// The number of the edge of this graph that each edge of [`transpose`](Self::transpose) is, by the latter's number.
    /// O(order + edges).
    pub fn transposed_edges(&self) -> Vec<u32> {
        let entering: Vec<(u32, u32)> = (0..).zip(&self.heads).map(|(edge, &head)| (head, edge)).collect();
        Self::sorted(self.order(), &entering).heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_stand_by_tail_in_the_order_given() {
        let graph = Digraph::new(3, [(2, 0), (0, 2), (0, 1), (2, 2), (0, 2)]).unwrap();
        assert_eq!((graph.order(), graph.edge_count()), (3, 5));
        assert_eq!(
            (graph.out(0), graph.out(1), graph.out(2)),
            ([2, 1, 2].as_slice(), [].as_slice(), [0, 2].as_slice())
        );
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 2), (0, 1), (0, 2), (2, 0), (2, 2)]);
        assert_eq!((graph.out_edges(2), graph.head(1)), (3..5, 1));
        assert_eq!(graph.transpose().edges().collect::<Vec<_>>(), [(0, 2), (1, 0), (2, 0), (2, 0), (2, 2)]);
        assert_eq!(graph.transposed_edges(), [3, 1, 0, 2, 4]);
    }

    #[test]
    fn ends_that_are_no_nodes_are_named() {
        let error = Digraph::new(2, [(0, 1), (1, 2)]).unwrap_err();
        assert_eq!(error, DigraphError::NoSuchNode { position: 1, tail: 1, head: 2, order: 2 });
        assert!(error.to_string().starts_with("edges[1] leads from 1 to 2, but the graph has 2 nodes"));
        assert_eq!(Digraph::new(0, []).unwrap().order(), 0);
    }

    proptest! {
        #[test]
        fn transposing_twice_keeps_the_edges(edges in proptest::collection::vec((0_u32..7, 0_u32..7), 0..40)) {
            let graph = Digraph::new(7, edges).unwrap();
            let transpose = graph.transpose();
            let named: Vec<_> = graph.transposed_edges().iter().map(|&edge| graph.edges().nth(edge as usize).unwrap()).collect();
            let turned: Vec<_> = transpose.edges().map(|(tail, head)| (head, tail)).collect();
            prop_assert_eq!(turned, named);
            let sorted = |graph: &Digraph| { let mut edges: Vec<_> = graph.edges().collect(); edges.sort_unstable(); edges };
            prop_assert_eq!(sorted(&graph), sorted(&transpose.transpose()));
        }
    }
}
