//! Pods of boxes, pods of pods, and groups of switches that are all linked to each other.

mod cliques;

use canopy_topology::Topology;
use petgraph::unionfind::UnionFind;

use super::parts::Parts;

/// Sets of boxes, the smallest first, each in one of the next.
pub(super) struct Levels {
    /// By level, then by box: the number of its set, in the order of first boxes.
    pub(super) of_boxes: Vec<Vec<usize>>,
    /// By level, then by node: the set of boxes that it joins alone, or is in.
    pub(super) of_nodes: Vec<Vec<Option<usize>>>,
}

impl Levels {
    /// Boxes at one switch are in one pod. Those whose pods are at one of the next switches are in one of the next
    /// level, and so on up to the switches that join all. Where pods are linked to each other and not by switches above
    /// them, those that are all linked to each other form groups.
    ///
    /// O(links · levels), and for groups O(links between pods · links of a pod).
    pub(super) fn of(topology: &Topology, parts: &Parts) -> Self {
        let mut joined = Joined::new(topology, parts);
        let mut levels = Self { of_boxes: Vec::new(), of_nodes: Vec::new() };
        for height in 1..=joined.heights.iter().flatten().copied().max().unwrap_or(0) {
            joined.climb(topology, height);
            if !levels.add(parts, &mut joined) {
                break;
            }
        }
        if let (Some(boxes), Some(nodes)) = (levels.of_boxes.last(), levels.of_nodes.last()) {
            let count = boxes.iter().max().map_or(0, |last| last + 1);
            if let Some(pairs) = cliques::pairs(topology, nodes, count).filter(|_| count > 1) {
                let first = first_of(boxes, count);
                for (one, other) in pairs {
                    joined.sets.union(joined.first[first[one]], joined.first[first[other]]);
                }
                levels.add(parts, &mut joined);
            }
        }
        levels
    }

    /// Adds the sets of nodes that are joined, if they are fewer than before; false: they are one.
    fn add(&mut self, parts: &Parts, joined: &mut Joined) -> bool {
        let mut number = vec![None; joined.heights.len()];
        let mut count = 0;
        let of_boxes: Vec<usize> = (0..parts.ranks.len())
            .map(|of_box| {
                *number[joined.sets.find_mut(joined.first[of_box])].get_or_insert_with(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        let before = self.of_boxes.last().map(|before| before.iter().max().map_or(0, |last| last + 1));
        if count > 1 && before.is_none_or(|before| count < before) {
            self.of_nodes.push((0..number.len()).map(|node| number[joined.sets.find_mut(node)]).collect());
            self.of_boxes.push(of_boxes);
        }
        count > 1
    }
}

/// A box of each set.
fn first_of(boxes: &[usize], count: usize) -> Vec<usize> {
    let mut first = vec![0; count];
    boxes.iter().enumerate().rev().for_each(|(of_box, &set)| first[set] = of_box);
    first
}

/// Nodes that are joined so far.
struct Joined {
    sets: UnionFind<usize>,
    /// By node: links from a box, 0 in one.
    heights: Vec<Option<u32>>,
    /// By box: one of its nodes.
    first: Vec<usize>,
}

impl Joined {
    fn new(topology: &Topology, parts: &Parts) -> Self {
        let nodes = topology.nodes().len();
        let first: Vec<usize> =
            parts.ranks.iter().map(|ranks| ranks.first().map_or(0, |&rank| rank as usize)).collect();
        let mut sets = UnionFind::new(nodes);
        for (node, piece) in parts.piece_of.iter().enumerate() {
            if let Some(&first) = piece.and_then(|piece| first.get(piece)) {
                sets.union(node, first);
            }
        }
        let mut joined = Self { sets, heights: vec![None; nodes], first };
        joined.measure(topology, parts);
        joined
    }

    fn measure(&mut self, topology: &Topology, parts: &Parts) {
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.heights.len()];
        for link in topology.links() {
            let (from, to) = (link.from.index(), link.to.index());
            for (from, to) in [(from, to), (to, from)] {
                if parts.outer[to] {
                    neighbours[from].push(to);
                }
            }
        }
        let mut reached: Vec<usize> = (0..self.heights.len()).filter(|&node| parts.piece_of[node].is_some()).collect();
        reached.iter().for_each(|&node| self.heights[node] = Some(0));
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            let height = self.heights[node].map(|height| height + 1);
            for &other in &neighbours[node] {
                if self.heights[other].is_none() {
                    self.heights[other] = height;
                    reached.push(other);
                }
            }
        }
    }

    /// Joins switches of a height to what is below them.
    fn climb(&mut self, topology: &Topology, height: u32) {
        for link in topology.links() {
            let ends = [link.from.index(), link.to.index()];
            let [Some(one), Some(other)] = ends.map(|end| self.heights[end]) else { continue };
            if one.max(other) == height && one != other {
                self.sets.union(ends[0], ends[1]);
            }
        }
    }
}
