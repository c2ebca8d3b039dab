//! How many hops from rank to rank a network needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, NodeIndex, Topology};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::instance::Roots;

/// The least hops from a rank to every other, and the links they lead over.
pub(super) struct Distances {
    /// By node: ranks entered on the way, and the last link. `None` at the rank itself, and where nothing leads.
    reached: Vec<Option<(u32, LinkIndex)>>,
}

impl Distances {
    /// Of shortest routes the cheapest. Dijkstra's algorithm, where entering a rank counts more than any cost.
    /// O(links · log).
    pub(super) fn from(topology: &Topology, root: u32, cost: impl Fn(LinkIndex) -> u64) -> Self {
        let mut reached: Vec<Option<(u32, LinkIndex)>> = vec![None; topology.nodes().len()];
        let mut least = vec![(u32::MAX, u64::MAX); topology.nodes().len()];
        least[root as usize] = (0, 0);
        let mut queue = BinaryHeap::from([Reverse((0, 0_u64, NodeIndex::new(root)))]);
        while let Some(Reverse((distance, spent, node))) = queue.pop() {
            if least[node.index()] != (distance, spent) {
                continue;
            }
            for index in topology.links_from(node) {
                let to = topology.link(index).to;
                let next = (distance + u32::from(topology.rank_of(to).is_some()), spent.saturating_add(cost(index)));
                if next < least[to.index()] {
                    least[to.index()] = next;
                    reached[to.index()] = Some((next.0, index));
                    queue.push(Reverse((next.0, next.1, to)));
                }
            }
        }
        Self { reached }
    }

    /// Hops to a rank.
    pub(super) fn to(&self, rank: u32) -> Option<u32> {
        self.reached[rank as usize].map(|(distance, _)| distance)
    }

    /// The last hop to a rank: where it starts, and its links. `None` at the root.
    pub(super) fn last_hop(&self, topology: &Topology, rank: u32) -> Option<(u32, Vec<LinkIndex>)> {
        let mut links = Vec::new();
        let mut node = NodeIndex::new(rank);
        loop {
            let (_, index) = self.reached[node.index()]?;
            links.push(index);
            node = topology.link(index).from;
            if let Some(from) = topology.rank_of(node) {
                links.reverse();
                return Some((from.number(), links));
            }
        }
    }
}

/// Refuses a depth that no schedule can keep. O(roots · (nodes + links)).
pub(super) fn require_depth(
    topology: &Topology,
    roots: Roots<'_>,
    depth_max: u32,
    stop: &dyn Stop,
) -> Result<(), SynthesisError> {
    let mut furthest = (0, 0, 0);
    for root in topology.ranks().filter(|&rank| roots.weight(rank) > 0) {
        ask(stop)?;
        let distances = Distances::from(topology, root.number(), |_| 0);
        for rank in 0..topology.rank_count() {
            let distance = distances.to(rank).unwrap_or(0);
            if distance > furthest.0 {
                furthest = (distance, root.number(), rank);
            }
        }
    }
    let (least, from_rank, to_rank) = furthest;
    if least <= depth_max {
        Ok(())
    } else {
        Err(SynthesisError::TooShallow { max_depth: depth_max, least, from_rank, to_rank })
    }
}
