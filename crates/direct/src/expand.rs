//! Operators that make a graph of graphs, with the numbers of the nodes fixed: schedules are expanded alongside.
//!
//! Each computes the size of what it makes and refuses it over the limit before it is built.

use crate::digraph::Digraph;
use crate::size::{Limit, Size, TooLarge};

/// The line graph `L(G)`: a node for each edge of `G`, numbered as the edges of `G` are, and an edge from `uv` to every
/// `vw`, in the order of the edges of `v`. Parallel edges are different nodes; an edge from a node to itself becomes a
/// node with an edge to itself.
///
/// `|E|` nodes, `Σ in(v)·out(v)` edges. O(size of the result).
///
/// # Errors
/// [`TooLarge`] if the result would exceed `limit`.
pub fn line(graph: &Digraph, limit: Limit) -> Result<Digraph, TooLarge> {
    let edges = graph.edges().map(|(_, head)| graph.out(head).len() as u128).sum();
    Size { order: u128::from(graph.edge_count()), edges }.check(limit)?;
    Ok(Digraph::by_tail(graph.edge_count(), |edge, heads| heads.extend(graph.out_edges(graph.head(edge)))))
}

/// The degree expansion `G∗n`: copy `j` of node `v` is node `v·n + j`, and `(u, i)` has an edge to every `(v, j)` for
/// every edge `uv` of `G`, in the order of these edges and then of `j`.
///
/// `n·|V|` nodes, `n²·|E|` edges. O(size of the result).
///
/// # Errors
/// [`TooLarge`] if the result would exceed `limit`.
pub fn degree(graph: &Digraph, copies: u32, limit: Limit) -> Result<Digraph, TooLarge> {
    let wide = u128::from(copies);
    let edges = wide * wide;
    let order = u128::from(graph.order()) * wide;
    Size { order, edges: edges.saturating_mul(u128::from(graph.edge_count())) }.check(limit)?;
    let order = graph.order() * copies;
    Ok(Digraph::by_tail(order, |node, heads| {
        for &head in graph.out(node / copies) {
            heads.extend(head * copies..(head + 1) * copies);
        }
    }))
}

/// The Cartesian product `G1□…□Gm`: nodes are tuples, numbered row-major with the first factor slowest; a node has the
/// edges of the first factor in its first coordinate, then those of the second, and so on. No factor makes one node.
///
/// `Π|Vi|` nodes, `Σ |Ei|·Π|Vj|/|Vi|` edges. O(size of the result · factors).
///
/// # Errors
/// [`TooLarge`] if the result would exceed `limit`.
pub fn product(factors: &[&Digraph], limit: Limit) -> Result<Digraph, TooLarge> {
    let sizes = factors.iter().map(|graph| Size::of(graph));
    sizes.fold(Size { order: 1, edges: 0 }, Size::times).check(limit)?;
    let order = factors.iter().map(|graph| graph.order()).product();
    // A single node without edges changes nothing, however often it stands there.
    let factors: Vec<_> = factors.iter().filter(|graph| graph.order() != 1 || graph.edge_count() > 0).collect();
    Ok(Digraph::by_tail(order, |node, heads| {
        let mut stride: u32 = order;
        for graph in &factors {
            stride /= graph.order();
            let own = node / stride % graph.order();
            heads.extend(graph.out(own).iter().map(|&head| node - own * stride + head * stride));
        }
    }))
}

/// The Cartesian power `G□…□G` of so many factors, numbered as [`product`] does.
///
/// `|V|ⁿ` nodes, `n·|E|·|V|ⁿ⁻¹` edges. O(size of the result · factors).
///
/// # Errors
/// [`TooLarge`] if the result would exceed `limit`, or would have more factors than a graph of that many nodes can.
pub fn power(graph: &Digraph, factors: u32, limit: Limit) -> Result<Digraph, TooLarge> {
    Size::of(graph).power(u64::from(factors)).check(limit)?;
    // A single node without edges is its own power, however many factors there are.
    let factors = if graph.order() <= 1 && graph.edge_count() == 0 { factors.min(1) } else { factors };
    product(&vec![graph; factors as usize], limit)
}

/// `G ∪ Gᵀ`: each node has its edges in `G`, then those that enter it, turned around; an edge that both have is kept as
/// parallel ones.
///
/// `|V|` nodes, `2·|E|` edges. O(size of the result).
///
/// # Errors
/// [`TooLarge`] if the result would exceed `limit`.
pub fn bidirect(graph: &Digraph, limit: Limit) -> Result<Digraph, TooLarge> {
    Size::of(graph).both_ways().check(limit)?;
    let transpose = graph.transpose();
    Ok(Digraph::by_tail(graph.order(), |node, heads| {
        heads.extend(graph.out(node));
        heads.extend(transpose.out(node));
    }))
}

impl Size {
    /// The size of a graph.
    pub fn of(graph: &Digraph) -> Self {
        Self { order: graph.order().into(), edges: graph.edge_count().into() }
    }

    /// The size of the Cartesian product with a graph of another size.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let edges = self.edges.saturating_mul(other.order).saturating_add(other.edges.saturating_mul(self.order));
        Self { order: self.order.saturating_mul(other.order), edges }
    }

    /// The size of the Cartesian power of so many factors. O(log factors).
    #[must_use]
    pub fn power(self, factors: u64) -> Self {
        let mut result = Self { order: 1, edges: 0 };
        let (mut square, mut left) = (self, factors);
        while left > 0 {
            if left % 2 == 1 {
                result = result.times(square);
            }
            square = square.times(square);
            left /= 2;
        }
        result
    }

    /// The size of the degree expansion with so many copies.
    #[must_use]
    pub fn expanded(self, copies: u64) -> Self {
        let copies = u128::from(copies);
        Self {
            order: self.order.saturating_mul(copies),
            edges: self.edges.saturating_mul(copies).saturating_mul(copies),
        }
    }

    /// The size of the graph with each edge both ways.
    #[must_use]
    pub fn both_ways(self) -> Self {
        Self { order: self.order, edges: self.edges.saturating_mul(2) }
    }
}

#[cfg(test)]
mod tests;
