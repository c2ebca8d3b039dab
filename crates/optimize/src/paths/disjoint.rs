//! Maximum sets of arc-disjoint paths of the least total length.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::PathGraph;
use crate::stop::{Stop, Stopped};

/// The step of a search to a node: an arc of the graph, along it or back over one that is in use.
#[derive(Clone, Copy, Debug)]
struct Entry {
    arc: u32,
    is_back: bool,
}

impl PathGraph {
    /// A largest set of paths from one node to another of which no two share an arc, and of these one with the fewest arcs in
    /// all; by length, then by arcs. Empty where no path leads, and from a node to itself.
    ///
    /// A flow of one unit per arc of greatest value and least cost, found by shortest augmenting paths and taken apart from
    /// the arcs of smallest index on.
    ///
    /// * **Source.** Basu 2024 §3.1.4 asks for maximal sets, which are not unique; the least total length is a choice.
    /// * **Cost.** One search by Dijkstra over the arcs for each path. **Errors.** Stopped.
    pub fn disjoint(&self, source: u32, target: u32, stop: &dyn Stop) -> Result<Vec<Vec<u32>>, Stopped> {
        let mut flow = UnitFlow::new(self, &[]);
        if source == target {
            return Ok(Vec::new());
        }
        while flow.grow(source, target, stop)? {}
        Ok(flow.paths(source, target))
    }

    /// Of each size from one path up to `count_max` or as many as there can be, a set of paths of which no two share an arc, with
    /// the least total length; each by the number of arcs, then by arcs.
    ///
    /// `lengths` are those of the arcs, each from 1 to 2³¹; an arc for which none is given has length 1.
    ///
    /// * **Cost.** One search by Dijkstra over the arcs for each size. **Errors.** Stopped.
    pub fn disjoint_sets(
        &self,
        (source, target): (u32, u32),
        lengths: &[u32],
        count_max: usize,
        stop: &dyn Stop,
    ) -> Result<Vec<Vec<Vec<u32>>>, Stopped> {
        let mut flow = UnitFlow::new(self, lengths);
        let mut sets = Vec::new();
        while source != target && sets.len() < count_max && flow.grow(source, target, stop)? {
            sets.push(flow.paths(source, target));
        }
        Ok(sets)
    }
}

/// A flow of least cost of one unit per arc.
struct UnitFlow<'a> {
    graph: &'a PathGraph,
    lengths: &'a [u32],
    is_used: Vec<bool>,
    /// Reduced lengths, `length + p(u) − p(v)` along an arc, are never negative for arcs that can be taken.
    potentials: Vec<i64>,
}

impl<'a> UnitFlow<'a> {
    fn new(graph: &'a PathGraph, lengths: &'a [u32]) -> Self {
        let (is_used, potentials) = (vec![false; graph.ends.len()], vec![0; graph.node_count()]);
        Self { graph, lengths, is_used, potentials }
    }

    fn length(&self, arc: u32) -> i64 {
        self.lengths.get(arc as usize).map_or(1, |&length| length.max(1).into())
    }

    /// Adds a unit from the source to the target, if there is room.
    fn grow(&mut self, source: u32, target: u32, stop: &dyn Stop) -> Result<bool, Stopped> {
        if stop.is_requested() {
            return Err(Stopped);
        }
        let Some(entries) = self.augment(source, target) else { return Ok(false) };
        let mut node = target;
        while node != source {
            let Some(Entry { arc, is_back }) = entries[node as usize] else { break };
            self.is_used[arc as usize] = !is_back;
            node = if is_back { self.graph.head(arc) } else { self.graph.tail(arc) };
        }
        Ok(true)
    }

    /// Steps of a shortest way that takes unused arcs along or used ones back, by node; raises the potentials to match.
    fn augment(&mut self, source: u32, target: u32) -> Option<Vec<Option<Entry>>> {
        let graph = self.graph;
        let mut distances = vec![i64::MAX; self.potentials.len()];
        let mut entries: Vec<Option<Entry>> = vec![None; self.potentials.len()];
        let mut is_final = vec![false; self.potentials.len()];
        distances[source as usize] = 0;
        let mut queue = BinaryHeap::from([Reverse((0_i64, source))]);
        while let Some(Reverse((distance, node))) = queue.pop() {
            if std::mem::replace(&mut is_final[node as usize], true) {
                continue;
            }
            if node == target {
                break;
            }
            let along = graph.leaving[node as usize].iter().filter(|&&arc| !self.is_used[arc as usize]);
            let along = along.map(|&arc| (Entry { arc, is_back: false }, graph.head(arc), self.length(arc)));
            let back = graph.entering[node as usize].iter().filter(|&&arc| self.is_used[arc as usize]);
            let back = back.map(|&arc| (Entry { arc, is_back: true }, graph.tail(arc), -self.length(arc)));
            for (entry, head, length) in along.chain(back) {
                let through = distance + length + self.potentials[node as usize] - self.potentials[head as usize];
                if !is_final[head as usize] && through < distances[head as usize] {
                    distances[head as usize] = through;
                    entries[head as usize] = Some(entry);
                    queue.push(Reverse((through, head)));
                }
            }
        }
        let reached = distances[target as usize];
        if reached == i64::MAX {
            return None;
        }
        for (potential, distance) in self.potentials.iter_mut().zip(distances) {
            *potential += distance.min(reached);
        }
        Some(entries)
    }

    /// The flow as paths, by length, then by arcs.
    fn paths(&self, source: u32, target: u32) -> Vec<Vec<u32>> {
        let mut left = self.is_used.clone();
        let mut paths = Vec::new();
        // A cheapest flow has no cycle, so every walk from the source ends at the target, through no node twice.
        while let Some(path) = self.walk(source, target, &mut left) {
            paths.push(path);
        }
        paths.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
        paths
    }

    /// Takes a path from the source to the target out of the used arcs; none once no used arc leaves the source.
    fn walk(&self, source: u32, target: u32, is_used: &mut [bool]) -> Option<Vec<u32>> {
        let (mut node, mut path) = (source, Vec::new());
        while node != target {
            let arc = *self.graph.leaving[node as usize].iter().find(|&&arc| is_used[arc as usize])?;
            is_used[arc as usize] = false;
            path.push(arc);
            node = self.graph.head(arc);
        }
        Some(path)
    }
}
