//! Properties of a graph, computed from the graph alone.

use crate::digraph::Digraph;

/// The result of [`facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of edges that leave each node and number that enter it, if these are one number for all nodes; edges from
    /// a node to itself count.
    pub degree: Option<u32>,
    /// Number of edges from a node to itself.
    pub self_loops: u32,
    /// No parallel edges and none from a node to itself.
    pub simple: bool,
    /// Whether any two nodes have equally many edges in both directions.
    pub bidirectional: bool,
    /// Distances; `None` if the graph is not connected or has no nodes.
    pub distances: Option<Distances>,
}

/// Distances between the nodes of a graph, in edges, along their directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The greatest: the diameter.
    pub max: u32,
    /// Their sum over all ordered pairs.
    pub sum: u64,
}

/// Analyses a graph. O(order · edges) at worst, for the distances; the rest is O(order + edges · log edges).
pub fn facts(graph: &Digraph) -> Facts {
    let transpose = graph.transpose();
    let degree = (graph.order() > 0).then(|| graph.out(0).len());
    let regular = |degree: &usize| {
        (0..graph.order()).all(|node| graph.out(node).len() == *degree && transpose.out(node).len() == *degree)
    };
    let degree = degree.filter(regular).and_then(|degree| u32::try_from(degree).ok());
    let loops = graph.edges().filter(|(tail, head)| tail == head).count();
    let (mut simple, mut bidirectional) = (loops == 0, true);
    let sorted = |heads: &[u32]| {
        let mut heads = heads.to_vec();
        heads.sort_unstable();
        heads
    };
    for node in 0..graph.order() {
        let (after, before) = (sorted(graph.out(node)), sorted(transpose.out(node)));
        simple &= after.windows(2).all(|pair| pair[0] != pair[1]);
        bidirectional &= after == before;
    }
    let self_loops = u32::try_from(loops).expect("edges are numbered in 32 bits");
    Facts { degree, self_loops, simple, bidirectional, distances: distances(graph) }
}

/// The greatest distance between two nodes, in edges; `None` if some node cannot be reached from some other, or there is
/// none. O(order · edges) at worst.
pub fn diameter(graph: &Digraph) -> Option<u32> {
    distances(graph).map(|distances| distances.max)
}

/// Distance of every node from `source` along the edges; `None` where no path leads. O(order + edges).
///
/// # Panics
/// If `source` is no node of the graph, like any index.
pub fn distances_from(graph: &Digraph, source: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; graph.order() as usize];
    distances[source as usize] = Some(0);
    let mut found = vec![source];
    let mut next = 0;
    while let Some(&node) = found.get(next) {
        next += 1;
        let beyond = distances[node as usize].map(|distance| distance + 1);
        for &head in graph.out(node) {
            if distances[head as usize].is_none() {
                distances[head as usize] = beyond;
                found.push(head);
            }
        }
    }
    distances
}

/// Searches from 64 sources at once, one bit each: never more work than one after the other, and much less where many
/// of them come by the same node in the same step.
///
/// Source: M. Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB 8(4), 2014, §3.
fn distances(graph: &Digraph) -> Option<Distances> {
    let order = graph.order();
    let mut whole = (order > 0).then_some(Distances { max: 0, sum: 0 })?;
    let mut seen = vec![0_u64; order as usize];
    let mut fresh = vec![0_u64; order as usize];
    let mut next = vec![0_u64; order as usize];
    // 64 sources at a time, level by level, a bit for each: O(nodes / 64 · edges · levels) at most.
    for first in (0..order).step_by(64) {
        let sources = first..order.min(first + 64);
        seen.fill(0);
        for (bit, source) in sources.clone().enumerate() {
            fresh[source as usize] = 1 << bit;
            seen[source as usize] = 1 << bit;
        }
        let mut active: Vec<u32> = sources.clone().collect();
        let mut found = u64::from(sources.end - sources.start);
        let wanted = found * u64::from(order);
        let mut step = 0;
        while !active.is_empty() {
            let mut touched = Vec::new();
            for &node in &active {
                let bits = std::mem::take(&mut fresh[node as usize]);
                for &head in graph.out(node) {
                    let more = bits & !seen[head as usize];
                    if more != 0 && next[head as usize] == 0 {
                        touched.push(head);
                    }
                    next[head as usize] |= more;
                }
            }
            step += 1;
            for &node in &touched {
                let bits = std::mem::take(&mut next[node as usize]);
                seen[node as usize] |= bits;
                fresh[node as usize] = bits;
                found += u64::from(bits.count_ones());
                whole.sum += u64::from(step) * u64::from(bits.count_ones());
                whole.max = whole.max.max(step);
            }
            active = touched;
        }
        if found < wanted {
            return None;
        }
    }
    Some(whole)
}

/// Fewest steps in which a node of a graph of so many nodes can hear from all others, if `degree` edges enter each: the
/// least `k` with `order ≤ 1 + d + … + dᵏ`, the Moore bound of directed graphs. `None` if no number of steps suffices.
///
/// At most 64 rounds, or `order` of them for degree 1, by division.
pub fn moore_steps(order: u64, degree: u64) -> Option<u64> {
    layers(order, degree, degree)
}

/// The same for graphs without parallel edges whose edges all lead both ways: the least `k` with
/// `order ≤ 1 + d·(1 + (d−1) + … + (d−1)ᵏ⁻¹)`.
pub fn moore_steps_undirected(order: u64, degree: u64) -> Option<u64> {
    layers(order, degree, degree.saturating_sub(1))
}

/// Layers of `first`, `first·growth`, … nodes around one node until `order` are reached.
fn layers(order: u64, first: u64, growth: u64) -> Option<u64> {
    let others = order.saturating_sub(1);
    if others == 0 {
        return Some(0);
    }
    match (first, growth) {
        (0, _) => None,
        (_, 0) => (others <= first).then_some(1),
        (_, 1) => Some(others.div_ceil(first)),
        _ => {
            let (mut reached, mut layer, mut steps) = (0_u64, first, 0);
            while reached < others {
                reached = reached.saturating_add(layer);
                layer = layer.saturating_mul(growth);
                steps += 1;
            }
            Some(steps)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moore_bounds_are_those_of_trees() {
        // 1 + 4 + 16 = 21 nodes within two steps of degree 4, 1 + 4 + 12 = 17 where no edge may lead back at once.
        assert_eq!(
            [1, 2, 5, 6, 21, 22, 1024, 1365, 1366].map(|order| moore_steps(order, 4).unwrap()),
            [0, 1, 1, 2, 2, 3, 5, 5, 6]
        );
        assert_eq!([5, 6, 17, 18, 53, 54].map(|order| moore_steps_undirected(order, 4).unwrap()), [1, 2, 2, 3, 3, 4]);
        assert_eq!((moore_steps(7, 1), moore_steps_undirected(7, 2)), (Some(6), Some(3)));
        assert_eq!((moore_steps(1, 0), moore_steps(2, 0), moore_steps(0, 3)), (Some(0), None, Some(0)));
        assert_eq!((moore_steps_undirected(2, 1), moore_steps_undirected(3, 1)), (Some(1), None));
        assert_eq!(moore_steps(u64::MAX, 2), Some(63));
    }

    #[test]
    fn facts_of_small_graphs() {
        let of = |order, edges: &[(u32, u32)]| facts(&Digraph::new(order, edges.iter().copied()).unwrap());
        let ring = of(3, &[(0, 1), (1, 2), (2, 0)]);
        let distances = Some(Distances { max: 2, sum: 9 });
        assert_eq!(ring, Facts { degree: Some(1), self_loops: 0, simple: true, bidirectional: false, distances });
        let pair = of(2, &[(0, 1), (0, 1), (1, 0), (1, 1)]);
        let distances = Some(Distances { max: 1, sum: 2 });
        assert_eq!(pair, Facts { degree: None, self_loops: 1, simple: false, bidirectional: false, distances });
        assert_eq!(of(2, &[(0, 1)]).distances, None);
        assert_eq!(of(0, &[]).distances, None);
        assert!(of(3, &[(0, 1), (1, 0), (1, 2), (2, 1)]).bidirectional);
    }

    proptest! {
        /// Searching from many nodes at once finds what searching from one after the other does.
        #[test]
        fn distances_are_those_of_plain_searches(order in 1_u32..150, edges in proptest::collection::vec((0_u32..150, 0_u32..150), 0..600)) {
            let ring = (0..order).map(|node| (node, (node + 1) % order));
            let graph = Digraph::new(order, ring.chain(edges.into_iter().map(|(tail, head)| (tail % order, head % order)))).unwrap();
            let all: Vec<u32> = (0..order).flat_map(|source| distances_from(&graph, source)).map(Option::unwrap).collect();
            let plain = Distances { max: *all.iter().max().unwrap(), sum: all.iter().map(|&distance| u64::from(distance)).sum() };
            prop_assert_eq!(facts(&graph).distances, Some(plain));
        }
    }
}
