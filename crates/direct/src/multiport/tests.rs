//! Graphs that the tests of several modules share.

use crate::{Digraph, Family, Limit};

/// The graph of a family.
pub(crate) fn graph(family: Family) -> Digraph {
    family.graph(Limit { order_max: 1 << 12, edges_max: 1 << 20 }).unwrap()
}

/// The same with its nodes renamed, by a seed.
pub(crate) fn relabelled(graph: &Digraph, seed: u64) -> Digraph {
    let order = graph.order();
    let mut names: Vec<u32> = (0..order).collect();
    let mut state = seed;
    for place in (1..order as usize).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        names.swap(place, usize::try_from((state >> 33) % (place as u64 + 1)).unwrap());
    }
    let mut edges: Vec<(u32, u32)> =
        graph.edges().map(|(tail, head)| (names[tail as usize], names[head as usize])).collect();
    edges.sort_unstable();
    Digraph::new(order, edges).unwrap()
}
