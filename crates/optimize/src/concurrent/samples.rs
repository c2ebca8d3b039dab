//! Networks and demands that several tests of concurrent flows are about.

use std::ops::Range;

use proptest::prelude::*;

use super::Commodity;
use crate::digraph::{Arc, Digraph};

/// One unit from each of the first nodes to each other of them.
pub(super) fn everyone(terminals: u32) -> Vec<Commodity> {
    let others = |source: u32| (0..terminals).filter(|&node| node != source).map(|node| (node, 1)).collect();
    (0..terminals).map(|source| Commodity { source, sinks: others(source), copies: 1 }).collect()
}

/// Arcs of capacity 1.
pub(super) fn graph(node_count: u32, arcs: impl IntoIterator<Item = (u32, u32)>) -> Digraph {
    let arc = |(from, to)| Arc { from, to, capacity: 1 };
    Digraph { node_count, arcs: arcs.into_iter().map(arc).collect() }
}

/// Both directions of each cable.
pub(super) fn both(cables: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    cables.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]).collect()
}

/// `u → (−d·u − a) mod N`, a = 1 … d, without loops.
pub(super) fn generalized_kautz(node_count: u32, degree: u32) -> Digraph {
    let to = |from: u32, a: u32| (degree * (node_count - from) + node_count - a) % node_count;
    let all = (0..node_count).flat_map(|from| (1..=degree).map(move |a| (from, to(from, a))));
    graph(node_count, all.filter(|(from, to)| from != to))
}

/// Three dimensions of two.
pub(super) fn cube() -> Digraph {
    graph(8, (0..8).flat_map(|node| [1, 2, 4].map(|bit| (node, node ^ bit))))
}

/// A cube with two of its cables crossed.
pub(super) fn twisted_cube() -> Digraph {
    let cables = cube().arcs.into_iter().map(|arc| (arc.from, arc.to)).filter(|(from, to)| from < to);
    let kept = cables.filter(|&cable| cable != (0, 1) && cable != (2, 3));
    graph(8, both(kept.chain([(0, 3), (1, 2)])))
}

/// K4,4.
pub(super) fn bipartite() -> Digraph {
    graph(8, both((0..4).flat_map(|left| (4..8).map(move |right| (left, right)))))
}

/// Circulant networks of three links at each node, with few different capacities and demands; some demands may be 0, or all.
pub(super) fn uneven(
    nodes: Range<u32>,
    capacities: Range<u64>,
    demands: Range<u64>,
) -> impl Strategy<Value = (Digraph, Vec<Commodity>)> {
    let drawn = (nodes, 1..4_u32, prop::collection::vec(capacities, 7), prop::collection::vec(demands, 5));
    drawn.prop_map(|(node_count, stride, capacities, demands)| {
        let pairs = (0..node_count).flat_map(|node| [(node, 1), (node, stride), (node, node_count - 1)]);
        let arcs = pairs.zip(capacities.iter().cycle());
        let arcs = arcs.map(|((from, step), &capacity)| Arc { from, to: (from + step) % node_count, capacity });
        let graph = Digraph { node_count, arcs: arcs.collect() };
        let demand = |source: u32, node: u32| demands[((source * 3 + node * 7) % 5) as usize];
        let wanted = |source: u32| {
            let all = (0..node_count).filter(|&node| node != source).map(|node| (node, demand(source, node)));
            all.filter(|(_, wanted)| *wanted > 0).collect()
        };
        let all = (0..node_count).map(|source| Commodity { source, sinks: wanted(source), copies: 1 });
        let all = all.collect();
        (graph, all)
    })
}
