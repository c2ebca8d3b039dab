//! How many hops from rank to rank a network needs.

use std::collections::VecDeque;

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
    /// Breadth first, where only entering a rank counts. O(nodes + links).
    pub(super) fn from(topology: &Topology, root: u32) -> Self {
        let mut reached: Vec<Option<(u32, LinkIndex)>> = vec![None; topology.nodes().len()];
        let mut queue = VecDeque::from([(0, NodeIndex::new(root))]);
        while let Some((distance, node)) = queue.pop_front() {
            if node.number() != root && reached[node.index()].is_none_or(|(least, _)| least != distance) {
                continue;
            }
            for index in topology.links_from(node) {
                let to = topology.link(index).to;
                let is_rank = topology.rank_of(to).is_some();
                let next = distance + u32::from(is_rank);
                if to.number() != root && reached[to.index()].is_none_or(|(least, _)| next < least) {
                    reached[to.index()] = Some((next, index));
                    // What costs nothing comes first, so that the queue stays in order.
                    if is_rank { queue.push_back((next, to)) } else { queue.push_front((next, to)) }
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
        let distances = Distances::from(topology, root.number());
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
