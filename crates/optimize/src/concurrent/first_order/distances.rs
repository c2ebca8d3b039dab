//! Distances from the sources of a block, and shortest-path trees read off them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout::Layout;
use super::real::Real;

/// Passes over all arcs before the search goes node by node: enough for networks in which nothing is far apart.
const PASSES_MAX: usize = 40;

/// By node and lane, the distance from the lane's source; infinite where there is none.
///
/// * **In.** Lengths that are not negative, by arc; the sources of the first lanes.
/// * **Out.** Every node reached has an arc entering it whose tail is as far as the length of that arc nearer, exactly: the
///   sums are those of floating point, whichever of the two ways they are found by.
/// * **Cost.** O(L × arcs) for each pass, about as many as a shortest path has arcs; past 40, L searches by Dijkstra.
pub(super) fn distances<R: Real, const L: usize>(
    layout: &Layout<'_>,
    lengths: &[R],
    sources: &[u32],
    distance: &mut Vec<[R; L]>,
) {
    distance.clear();
    distance.resize(layout.node_count, [R::INFINITY; L]);
    for (lane, &source) in sources.iter().enumerate() {
        distance[source as usize][lane] = R::ZERO;
    }
    // Bellman-Ford for L sources at once, until nothing changes: O(arcs · L) for each pass.
    for _ in 0..PASSES_MAX {
        let mut changed = false;
        for (arc, &length) in layout.arcs.iter().zip(lengths) {
            let tail = distance[arc.from as usize];
            let head = &mut distance[arc.to as usize];
            let before = *head;
            for lane in 0..L {
                head[lane] = head[lane].lesser(tail[lane] + length);
            }
            changed |= *head != before;
        }
        if !changed {
            return;
        }
    }
    for (lane, &source) in sources.iter().enumerate() {
        search(layout, lengths, source, lane, distance);
    }
}

/// Dijkstra's search for one lane.
fn search<R: Real, const L: usize>(
    layout: &Layout<'_>,
    lengths: &[R],
    source: u32,
    lane: usize,
    distance: &mut [[R; L]],
) {
    for lanes in distance.iter_mut() {
        lanes[lane] = R::INFINITY;
    }
    distance[source as usize][lane] = R::ZERO;
    // Of numbers that are not negative, the greater has the greater bits.
    let bits = |value: R| value.wide().to_bits();
    let mut queue = BinaryHeap::from([Reverse((bits(R::ZERO), source))]);
    while let Some(Reverse((found, node))) = queue.pop() {
        let here = distance[node as usize][lane];
        if bits(here) != found {
            continue;
        }
        for &arc in layout.leaving(node) {
            let through = here + lengths[arc as usize];
            let to = layout.arcs[arc as usize].to;
            let known = &mut distance[to as usize][lane];
            if through < *known {
                *known = through;
                queue.push(Reverse((bits(through), to)));
            }
        }
    }
}

/// Shortest-path trees, made one at a time.
#[derive(Debug)]
pub(super) struct Trees {
    seen: Vec<bool>,
    nodes: Vec<u32>,
    arcs: Vec<u32>,
}

impl Trees {
    pub(super) fn new(layout: &Layout<'_>) -> Self {
        let node_count = layout.node_count;
        Self { seen: vec![false; node_count], nodes: Vec::with_capacity(node_count), arcs: Vec::new() }
    }

    /// Arcs of a shortest-path tree of one lane, each after the one that its tail is reached by.
    ///
    /// Only arcs that are exactly tight are followed, breadth first from the source. That reaches every node: the label of a
    /// node that is final came from one with a smaller label, or one that was final earlier, so arcs of length zero close no
    /// circle of nodes without a way in. O(arcs).
    pub(super) fn grow<R: Real, const L: usize>(
        &mut self,
        layout: &Layout<'_>,
        lengths: &[R],
        distance: &[[R; L]],
        source: u32,
        lane: usize,
    ) -> &[u32] {
        self.seen.fill(false);
        self.seen[source as usize] = true;
        self.nodes.clear();
        self.nodes.push(source);
        self.arcs.clear();
        let mut next = 0;
        while let Some(&node) = self.nodes.get(next) {
            next += 1;
            let here = distance[node as usize][lane];
            for &arc in layout.leaving(node) {
                let to = layout.arcs[arc as usize].to;
                if !self.seen[to as usize] && here + lengths[arc as usize] <= distance[to as usize][lane] {
                    self.seen[to as usize] = true;
                    self.nodes.push(to);
                    self.arcs.push(arc);
                }
            }
        }
        &self.arcs
    }
}
