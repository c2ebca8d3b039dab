//! Circulants of several offsets: narrow, and bandwidth-optimal by breadth-first broadcast.
//!
//! Offsets are the powers 1, r, r², … of a number r modulo n. For two offsets theorem 22 has the best ones; for more no such
//! theorem is known, and that their broadcasts are bandwidth-optimal is conjectured only. So a few r are tried, the narrowest
//! network is taken, and its loads are counted: from one node, as it looks the same from all.
//!
//! Where rᵏ is 1 or −1 the offsets are exchanged by multiplication with r, so that even routes load all links alike.

use canopy_optimize::Stop;

use crate::finder::hall::{Divider, Group, Largest};

/// Powers that are tried.
const TRIED: u64 = 40;

/// A circulant and what was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    pub(crate) offsets: Vec<u64>,
    pub(crate) diameter: u32,
    /// Sum of the distances from one node.
    pub(crate) from_one: u64,
    /// Whether some automorphism exchanges its offsets.
    pub(crate) is_alike: bool,
}

/// The narrowest circulant found with so many offsets, then of the least sum of distances, whose breadth-first broadcast is
/// bandwidth-optimal.
///
/// * **None.** None of those tried is; stopped. **Cost.** O(n·offsets) for each power tried that is not wider than one before.
pub(crate) fn narrow(nodes: u64, offset_count: u32, stop: &dyn Stop) -> Option<Narrow> {
    let mut search = DistanceSearch::default();
    let mut found: Vec<Narrow> = Vec::new();
    let mut least = u32::MAX;
    for base in 2..=TRIED.min(nodes.saturating_sub(1) / 2) {
        if stop.is_requested() {
            return None;
        }
        let Some((offsets, is_alike)) = powers(nodes, base, offset_count) else { continue };
        if let Some((diameter, from_one)) = search.run(nodes, &offsets, least) {
            least = least.min(diameter);
            found.push(Narrow { offsets, diameter, from_one, is_alike });
        }
    }
    found.retain(|one| one.diameter == least);
    // Of equal ones those whose rate of an all-to-all is known.
    found.sort_by_key(|one| (one.from_one, !one.is_alike));
    found.into_iter().find(|one| {
        search.run(nodes, &one.offsets, u32::MAX);
        search.is_optimal(2 * offset_count as usize)
    })
}

/// 1, r, r², … as distinct offsets below half of `nodes`, rising; and whether the next one is among them.
fn powers(nodes: u64, base: u64, count: u32) -> Option<(Vec<u64>, bool)> {
    let folded = |power: u64| power.min(nodes - power);
    let (mut offsets, mut power) = (Vec::new(), 1);
    for _ in 0..count {
        let offset = folded(power);
        if offset == 0 || 2 * offset == nodes || offsets.contains(&offset) {
            return None;
        }
        offsets.push(offset);
        power = power * base % nodes;
    }
    let is_alike = folded(power) == 1;
    offsets.sort_unstable();
    Some((offsets, is_alike))
}

/// A search from node 0; keeps its buffers.
#[derive(Debug, Default)]
struct DistanceSearch {
    /// By node: distance, and the links that begin a shortest way there.
    distances: Vec<u32>,
    links: Vec<u64>,
    /// Nodes by distance; `starts[t] .. starts[t + 1]` at distance t.
    order: Vec<usize>,
    starts: Vec<usize>,
}

impl DistanceSearch {
    /// The greatest distance and the sum of all; none if some node is farther than `limit`.
    fn run(&mut self, nodes: u64, offsets: &[u64], limit: u32) -> Option<(u32, u64)> {
        let nodes = usize::try_from(nodes).ok()?;
        let steps: Vec<usize> = offsets.iter().filter_map(|&offset| usize::try_from(offset).ok()).collect();
        self.distances.clear();
        self.distances.resize(nodes, u32::MAX);
        self.links.clear();
        self.links.resize(nodes, 0);
        self.order.clear();
        self.order.push(0);
        self.starts.clear();
        self.starts.push(0);
        self.distances[0] = 0;
        let (mut start, mut distance, mut sum) = (0, 0, 0);
        // Level by level, over each offset both ways: O(nodes · offsets).
        while start < self.order.len() && self.order.len() < nodes {
            if distance == limit {
                return None;
            }
            distance += 1;
            let end = self.order.len();
            self.starts.push(end);
            for place in start..end {
                let node = self.order[place];
                for (index, step) in steps.iter().flat_map(|&step| [step, nodes - step]).enumerate() {
                    let head = if node + step >= nodes { node + step - nodes } else { node + step };
                    if self.distances[head] == u32::MAX {
                        self.distances[head] = distance;
                        self.order.push(head);
                    }
                    if self.distances[head] == distance {
                        self.links[head] |= if distance == 1 { 1 << index } else { self.links[node] };
                    }
                }
            }
            sum += u64::from(distance) * (self.order.len() - end) as u64;
            start = end;
        }
        self.starts.push(self.order.len());
        (self.order.len() == nodes).then_some((distance, sum))
    }

    /// Whether each step loads all links alike: what is that far, divided by the links.
    fn is_optimal(&self, degree: usize) -> bool {
        let mut divider = Divider::new(degree as u64);
        self.starts.windows(2).skip(1).all(|layer| {
            let mut masks: Vec<u64> = self.order[layer[0]..layer[1]].iter().map(|&node| self.links[node]).collect();
            masks.sort_unstable();
            let groups: Vec<Group> =
                masks.chunk_by(|a, b| a == b).map(|same| Group { links: same[0], count: same.len() as u64 }).collect();
            let mut load = Largest::default();
            // The even share is the least there can be.
            load.raise(masks.len() as u64, degree as u64);
            let even = load.fraction();
            divider.raise(&mut load, &groups);
            load.fraction() == even
        })
    }
}

#[cfg(test)]
mod tests {
    use canopy_direct::{Family, Limit, all_to_all_rate, facts, least_bandwidth};
    use canopy_optimize::{Arc, BfbGraph, Digraph, Fraction, Never, step_loads};

    use super::*;

    /// The graph itself says the same, and so do loads that are counted another way.
    #[test]
    fn what_is_found_is_narrow_and_optimal() {
        let mut alike = 0;
        for (nodes, count) in (9..90).flat_map(|nodes| [(nodes, 3), (nodes, 4)]) {
            let Some(found) = narrow(nodes, count, &Never) else { continue };
            let family = Family::Circulant { n: nodes, offsets: found.offsets.clone(), copies: 1 };
            let graph = family.graph(Limit { order_max: 128, edges_max: 1 << 10 }).unwrap();
            let distances = facts(&graph).distances.unwrap();
            assert_eq!((distances.max, distances.sum), (found.diameter, nodes * found.from_one), "{family}");
            let arcs = graph.edges().map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
            let digraph = Digraph { node_count: graph.order(), arcs };
            let loads = step_loads(&BfbGraph::with_equal_shares(&digraph, &Never).unwrap(), [0], None, &Never).unwrap();
            let total = loads.total().unwrap();
            let degree = u128::from(2 * count);
            let bandwidth = Fraction::new(total.numerator * degree, total.denominator * u128::from(nodes));
            assert_eq!(bandwidth, Some(least_bandwidth(nodes)), "{family}");
            if found.is_alike {
                assert!(all_to_all_rate(&graph, &Never).unwrap().is_reached, "{family}");
                alike += 1;
            }
        }
        assert!(alike > 0);
    }

    /// Two offsets at best are 22 links across.
    #[test]
    fn a_prime_number_of_nodes() {
        let found = narrow(997, 4, &Never).unwrap();
        assert_eq!((found.diameter, found.offsets), (7, vec![1, 22, 319, 484]));
        assert_eq!(narrow(997, 4, &|| true), None);
        assert_eq!(narrow(8, 4, &Never), None);
    }

    /// Two nodes beyond the neighbours, over one link both or one each.
    #[test]
    fn loads_that_are_not_even_are_noticed() {
        let search = |last| DistanceSearch {
            links: vec![0, 0b01, 0b10, 0b01, last],
            order: (0..5).collect(),
            starts: vec![0, 1, 3, 5],
            distances: Vec::new(),
        };
        assert!(!search(0b01).is_optimal(2));
        assert!(search(0b10).is_optimal(2));
        assert!(search(0b11).is_optimal(2));
    }

    #[test]
    fn a_search_ends_where_others_were_nearer() {
        let mut search = DistanceSearch::default();
        assert_eq!(search.run(12, &[1, 2, 4], u32::MAX), Some((2, 6 + 2 * 5)));
        assert_eq!(search.run(12, &[1, 2, 4], 1), None);
    }
}
