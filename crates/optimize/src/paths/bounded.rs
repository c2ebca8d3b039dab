//! All paths of at most so many arcs.

use super::PathGraph;

impl PathGraph {
    /// Every path from one node to another of at most `length_max` arcs, in the order of their arcs; `None` if there are more than
    /// `count_max`. From a node to itself there is none.
    ///
    /// * **Source.** Basu 2024 §3.1.4: bounded depth-first search. **Cost.** A search backwards from the target, then
    ///   O(length_max · arcs of a node) for each path: nodes that are too far from the target are not visited.
    pub fn bounded(&self, source: u32, target: u32, length_max: u32, count_max: usize) -> Option<Vec<Vec<u32>>> {
        let mut search = Search {
            graph: self,
            target,
            left: self.distances_to(target),
            is_on_path: vec![false; self.node_count()],
            path: Vec::new(),
            paths: Vec::new(),
            count_max,
        };
        if source == target {
            return Some(Vec::new());
        }
        search.from(source, length_max).then_some(search.paths)
    }

    /// By node, the fewest arcs to the target; none where no path leads there.
    fn distances_to(&self, target: u32) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.node_count()];
        distances[target as usize] = Some(0);
        let mut queue = vec![target];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &arc in &self.entering[node as usize] {
                let tail = self.tail(arc);
                if distances[tail as usize].is_none() {
                    distances[tail as usize] = distances[node as usize].map(|distance: u32| distance + 1);
                    queue.push(tail);
                }
            }
        }
        distances
    }
}

struct Search<'a> {
    graph: &'a PathGraph,
    target: u32,
    /// By node, arcs to the target at least.
    left: Vec<Option<u32>>,
    is_on_path: Vec<bool>,
    path: Vec<u32>,
    paths: Vec<Vec<u32>>,
    count_max: usize,
}

impl Search<'_> {
    /// Whether all paths on from a node have been added, of at most so many arcs. A node of which every way to the target
    /// leads back over the path costs time and adds none.
    fn from(&mut self, node: u32, length_max: u32) -> bool {
        if node == self.target {
            self.paths.push(self.path.clone());
            return self.paths.len() <= self.count_max;
        }
        self.is_on_path[node as usize] = true;
        let graph = self.graph;
        for &arc in &graph.leaving[node as usize] {
            let head = graph.head(arc);
            let is_near = self.left[head as usize].is_some_and(|left| left < length_max);
            if !is_near || self.is_on_path[head as usize] {
                continue;
            }
            self.path.push(arc);
            let is_done = self.from(head, length_max - 1);
            self.path.pop();
            if !is_done {
                return false;
            }
        }
        self.is_on_path[node as usize] = false;
        true
    }
}
