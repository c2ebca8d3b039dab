//! Widest paths, one after the other.

use super::super::problem::{Commodity, ConcurrentError};
use super::support::Support;
use crate::digraph::Digraph;

/// Chunks for one sink, with their path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholePath {
    /// The sink.
    pub sink: u32,
    /// Number of chunks, ≥ 1.
    pub chunks: u64,
    /// The arcs, from the source on.
    pub arcs: Vec<u32>,
}

/// The best way to a node that is known so far.
#[derive(Clone, Copy)]
struct Way {
    width: u64,
    hops: u32,
    /// Position of the arc that ends it.
    by: u32,
}

/// Takes a flow apart; see [`WholeFlow::paths`](super::WholeFlow::paths).
pub(super) fn extracted(
    graph: &Digraph,
    commodity: &Commodity,
    chunks: u64,
    amounts: &[(u32, u64)],
) -> Result<Vec<WholePath>, ConcurrentError> {
    let mut amounts = amounts.to_vec();
    let mut support = Support::new(graph.node_count, &graph.arcs);
    support.untangle(&mut amounts);
    let mut places = vec![0_u32; graph.node_count as usize];
    for (place, &node) in (0_u32..).zip(support.order()) {
        places[node as usize] = place;
    }
    let mut wanted: Vec<(u32, u64)> = commodity.sinks.iter().map(|&(node, demand)| (node, demand * chunks)).collect();
    wanted.sort_unstable_by_key(|&(node, _)| std::cmp::Reverse(places[node as usize]));
    let mut extractor = Extractor {
        graph,
        source: commodity.source,
        support,
        places,
        amounts,
        ways: vec![None; graph.node_count as usize],
    };
    let mut paths = Vec::with_capacity(wanted.len());
    for (sink, mut left) in wanted {
        while left > 0 {
            let broken = ConcurrentError::Broken { what: "a flow of whole chunks brings a sink less than it wants" };
            let (width, arcs) = extractor.widest(sink).ok_or(broken)?;
            let chunks = width.min(left);
            extractor.take(&arcs, chunks);
            left -= chunks;
            let arcs = arcs.into_iter().map(|position| extractor.amounts[position as usize].0).collect();
            paths.push(WholePath { sink, chunks, arcs });
        }
    }
    paths.sort_by_key(|path| path.sink);
    Ok(paths)
}

struct Extractor<'a> {
    graph: &'a Digraph,
    source: u32,
    support: Support<'a>,
    /// By node, its place in the order of the flow.
    places: Vec<u32>,
    /// What is left.
    amounts: Vec<(u32, u64)>,
    /// By node, for the nodes before the sink at hand.
    ways: Vec<Option<Way>>,
}

impl Extractor<'_> {
    /// Width and positions of the arcs of the widest path to a node; of several the one of fewest arcs.
    fn widest(&mut self, sink: u32) -> Option<(u64, Vec<u32>)> {
        // The nodes through which anything gets there.
        let mut cone = vec![sink];
        let mut next = 0;
        self.ways[sink as usize] = Some(Way { width: 0, hops: 0, by: u32::MAX });
        while let Some(&node) = cone.get(next) {
            next += 1;
            for &position in self.support.entering(node) {
                let (arc, left) = self.amounts[position as usize];
                let from = self.graph.arcs[arc as usize].from;
                if left > 0 && self.ways[from as usize].is_none() {
                    self.ways[from as usize] = Some(Way { width: 0, hops: 0, by: u32::MAX });
                    cone.push(from);
                }
            }
        }
        cone.sort_unstable_by_key(|&node| self.places[node as usize]);
        for &node in &cone {
            if node == self.source {
                self.ways[node as usize] = Some(Way { width: u64::MAX, hops: 0, by: u32::MAX });
                continue;
            }
            let mut best = Way { width: 0, hops: 0, by: u32::MAX };
            for &position in self.support.entering(node) {
                let (arc, left) = self.amounts[position as usize];
                let Some(before) = self.ways[self.graph.arcs[arc as usize].from as usize] else { continue };
                let way = Way { width: before.width.min(left), hops: before.hops + 1, by: position };
                if (way.width, best.hops) > (best.width, way.hops) {
                    best = way;
                }
            }
            self.ways[node as usize] = Some(best);
        }
        let found = self.walk(sink);
        cone.iter().for_each(|&node| self.ways[node as usize] = None);
        found
    }

    fn walk(&self, sink: u32) -> Option<(u64, Vec<u32>)> {
        let width = self.ways[sink as usize]?.width;
        let mut arcs = Vec::new();
        let mut node = sink;
        while node != self.source {
            let way = self.ways[node as usize].filter(|way| way.width > 0)?;
            arcs.push(way.by);
            node = self.graph.arcs[self.amounts[way.by as usize].0 as usize].from;
        }
        arcs.reverse();
        Some((width, arcs))
    }

    fn take(&mut self, positions: &[u32], chunks: u64) {
        for &position in positions {
            self.amounts[position as usize].1 -= chunks;
        }
    }
}
