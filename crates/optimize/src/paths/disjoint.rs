//! As many paths as there can be without an arc in common, of the least total length.

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
        let mut is_used = vec![false; self.ends.len()];
        if source == target {
            return Ok(Vec::new());
        }
        // Reduced lengths: 1 + p(u) − p(v) along an arc, which is never negative for arcs that can be taken.
        let mut potentials = vec![0_i64; self.node_count()];
        loop {
            if stop.is_requested() {
                return Err(Stopped);
            }
            let Some(entries) = self.augment(source, target, &is_used, &mut potentials) else { break };
            let mut node = target;
            while node != source {
                let Some(Entry { arc, is_back }) = entries[node as usize] else { break };
                is_used[arc as usize] = !is_back;
                node = if is_back { self.head(arc) } else { self.tail(arc) };
            }
        }
        let mut paths = Vec::new();
        // A cheapest flow has no cycle, so every walk from the source ends at the target, through no node twice.
        while let Some(path) = self.walk(source, target, &mut is_used) {
            paths.push(path);
        }
        paths.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
        Ok(paths)
    }

    /// Steps of a shortest way that takes unused arcs along or used ones back, by node; raises the potentials to match.
    fn augment(
        &self,
        source: u32,
        target: u32,
        is_used: &[bool],
        potentials: &mut [i64],
    ) -> Option<Vec<Option<Entry>>> {
        let mut distances = vec![i64::MAX; potentials.len()];
        let mut entries: Vec<Option<Entry>> = vec![None; potentials.len()];
        let mut is_final = vec![false; potentials.len()];
        distances[source as usize] = 0;
        let mut queue = BinaryHeap::from([Reverse((0_i64, source))]);
        while let Some(Reverse((distance, node))) = queue.pop() {
            if std::mem::replace(&mut is_final[node as usize], true) {
                continue;
            }
            if node == target {
                break;
            }
            let along = self.leaving[node as usize].iter().filter(|&&arc| !is_used[arc as usize]);
            let along = along.map(|&arc| (Entry { arc, is_back: false }, self.head(arc), 1));
            let back = self.entering[node as usize].iter().filter(|&&arc| is_used[arc as usize]);
            let back = back.map(|&arc| (Entry { arc, is_back: true }, self.tail(arc), -1));
            for (entry, head, length) in along.chain(back) {
                let through = distance + length + potentials[node as usize] - potentials[head as usize];
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
        for (potential, distance) in potentials.iter_mut().zip(distances) {
            *potential += distance.min(reached);
        }
        Some(entries)
    }

    /// Takes a path from the source to the target out of the used arcs; none once no used arc leaves the source.
    fn walk(&self, source: u32, target: u32, is_used: &mut [bool]) -> Option<Vec<u32>> {
        let (mut node, mut path) = (source, Vec::new());
        while node != target {
            let arc = *self.leaving[node as usize].iter().find(|&&arc| is_used[arc as usize])?;
            is_used[arc as usize] = false;
            path.push(arc);
            node = self.head(arc);
        }
        Some(path)
    }
}
