//! All paths of the fewest arcs.

use std::ops::ControlFlow;

use super::PathGraph;

/// The shortest paths from one node to all others.
#[derive(Clone, Debug)]
pub struct ShortestPaths<'a> {
    graph: &'a PathGraph,
    source: u32,
    /// By node, arcs from the source; none where no path leads.
    distances: Vec<Option<u32>>,
    /// By node, the number of shortest paths, or the greatest number there is for more.
    counts: Vec<u128>,
}

impl PathGraph {
    /// Shortest paths from a node of the graph. O(nodes + arcs).
    pub fn shortest_from(&self, source: u32) -> ShortestPaths<'_> {
        let mut distances = vec![None; self.node_count()];
        let mut counts = vec![0_u128; self.node_count()];
        distances[source as usize] = Some(0);
        counts[source as usize] = 1;
        let mut queue = vec![source];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let below = distances[node as usize].map(|distance: u32| distance + 1);
            for &arc in &self.leaving[node as usize] {
                let head = self.head(arc) as usize;
                if distances[head].is_none() {
                    distances[head] = below;
                    queue.push(self.head(arc));
                }
                if distances[head] == below {
                    // All nodes of a level are left before any of the next, so the count of this one is complete.
                    counts[head] = counts[head].saturating_add(counts[node as usize]);
                }
            }
        }
        ShortestPaths { graph: self, source, distances, counts }
    }
}

impl ShortestPaths<'_> {
    /// Arcs on each shortest path to a node; `None` where no path leads.
    pub fn distance(&self, node: u32) -> Option<u32> {
        self.distances.get(node as usize).copied().flatten()
    }

    /// Number of shortest paths to a node, at most 2¹²⁸−1: one to the source, none to a node out of reach.
    pub fn count(&self, node: u32) -> u128 {
        self.counts.get(node as usize).copied().unwrap_or(0)
    }

    /// Hands over every shortest path to a node until `found` breaks, in the order of their arcs from the last one on.
    ///
    /// O(length) for each path; there may be very many, as [`Self::count`] says beforehand.
    pub fn each(&self, node: u32, found: &mut dyn FnMut(&[u32]) -> ControlFlow<()>) {
        if let Some(distance) = self.distance(node) {
            // Filled from the end; what is ahead of the place is of no path yet.
            let mut path = vec![0; distance as usize];
            let _ = self.extend(node, &mut path, distance as usize, found);
        }
    }

    fn extend(
        &self,
        node: u32,
        path: &mut [u32],
        place: usize,
        found: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if node == self.source {
            return found(path);
        }
        let before = self.distances[node as usize].and_then(|distance| distance.checked_sub(1));
        for &arc in &self.graph.entering[node as usize] {
            let tail = self.graph.tail(arc);
            if before.is_some() && self.distances[tail as usize] == before {
                path[place - 1] = arc;
                self.extend(tail, path, place - 1, found)?;
            }
        }
        ControlFlow::Continue(())
    }
}
