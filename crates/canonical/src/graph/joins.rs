//! All arcs of two nodes as one label, seen from both ends.

use super::{Arc, Label, Weight};

/// How nodes are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joins {
    /// What is around node `v` is at `starts[v] .. starts[v + 1]`, by rising node.
    starts: Vec<u32>,
    around: Vec<(u32, Label)>,
    /// By label: that of the way back.
    pub(super) reversed: Vec<Label>,
}

/// There and back: which list of weights, by its rank among all from 1 on; 0 is no arc.
type Way = (u32, u32);

impl Joins {
    /// Joins sorted arcs. O(arcs log kinds), where a kind is a list of weights.
    pub(super) fn new(node_count: usize, arcs: &[Arc]) -> Self {
        let groups: Vec<&[Arc]> = arcs.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)).collect();
        let lists = distinct(groups.iter().map(|group| group.iter().map(|arc| arc.weight).collect::<Vec<Weight>>()));
        let rank = |group: &[Arc]| {
            let before = |list: &Vec<Weight>| list.iter().copied().lt(group.iter().map(|arc| arc.weight));
            count(lists.partition_point(before) + 1)
        };
        let there: Vec<(u32, u32, u32)> =
            groups.iter().map(|group| (group[0].from, group[0].to, rank(group))).collect();
        // The same by head, then tail.
        let mut next = starts(node_count, there.iter().map(|&(_, to, _)| to));
        let mut back = vec![(0, 0); there.len()];
        for &(from, to, rank) in &there {
            let place = &mut next[to as usize];
            back[*place as usize] = (from, rank);
            *place += 1;
        }
        let (mut ends, mut ways): (Vec<u32>, Vec<Way>) = (Vec::new(), Vec::new());
        let mut starts = vec![0];
        let (mut there, mut back) = (there.into_iter().peekable(), back.into_iter());
        let mut first = 0;
        for (node, &end) in (0_u32..).zip(&next[..node_count]) {
            let mut entering = back.by_ref().take((end - first) as usize).peekable();
            first = end;
            loop {
                let leaving = there.peek().filter(|pair| pair.0 == node).map(|pair| pair.1);
                let other = match (leaving, entering.peek().map(|pair| pair.0)) {
                    (Some(to), Some(from)) => to.min(from),
                    (Some(other), None) | (None, Some(other)) => other,
                    (None, None) => break,
                };
                let forth = there.next_if(|pair| (pair.0, pair.1) == (node, other)).map_or(0, |pair| pair.2);
                let reverse = entering.next_if(|pair| pair.0 == other).map_or(0, |pair| pair.1);
                ends.push(other);
                ways.push((forth, reverse));
            }
            starts.push(count(ends.len()));
        }
        // No arc in either direction comes first, and is the label 0.
        let kinds = distinct(ways.iter().copied().chain([(0, 0)]));
        let label = |way: &Way| count(kinds.partition_point(|other| other < way));
        let reversed = kinds.iter().map(|&(there, back)| label(&(back, there))).collect();
        let around = ends.into_iter().zip(&ways).map(|(other, way)| (other, label(way))).collect();
        Self { starts, around, reversed }
    }

    /// Nodes that an arc joins with this one, rising, and how.
    pub(super) fn around(&self, node: u32) -> &[(u32, Label)] {
        &self.around[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

/// Where the items of each node begin, if items are sorted by node.
fn starts(node_count: usize, nodes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0_u32; node_count + 1];
    nodes.for_each(|node| starts[node as usize + 1] += 1);
    for node in 0..node_count {
        starts[node + 1] += starts[node];
    }
    starts
}

/// Sorted, each once. Networks have few kinds of links, so little is kept at a time.
fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct: Vec<T> = Vec::new();
    let mut length_max = 64;
    for item in items {
        if distinct.last() == Some(&item) {
            continue;
        }
        distinct.push(item);
        if distinct.len() == length_max {
            distinct.sort_unstable();
            distinct.dedup();
            length_max = 64.max(2 * distinct.len());
        }
    }
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// A number of arcs.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a graph is refused whose arcs are not counted in 31 bits")
}
