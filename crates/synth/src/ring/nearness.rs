//! How near ranks are to each other.

use std::cmp::Reverse;
use std::collections::VecDeque;

use canopy_optimize::Stop;
use canopy_topology::{NodeIndex, Rank};

use crate::error::SynthesisError;
use crate::reach::ask;
use crate::routing::{Levels, Network, Passing};

/// Ranks that each rank reaches over switches only, with the width of the shortest route.
#[derive(Clone, Debug)]
pub(super) struct Neighbours(Vec<Vec<(u32, u64)>>);

impl Neighbours {
    /// One search per rank.
    pub(super) fn new(network: &Network<'_>, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let mut neighbours = Vec::with_capacity(network.topology.rank_count() as usize);
        for rank in network.topology.ranks() {
            ask(stop)?;
            let levels = Levels::new(network, rank.node(), Passing::Switches);
            let others = network.topology.ranks().filter(|&other| other != rank);
            let width = |other: Rank| (other.number(), levels.width(other.node()));
            neighbours.push(others.map(width).filter(|&(_, width)| width > 0).collect());
        }
        Ok(Self(neighbours))
    }

    /// Each with its neighbours and their widths, by number.
    pub(super) fn lists(&self) -> &[Vec<(u32, u64)>] {
        &self.0
    }
}

/// How near a rank is, nearer ones first: over fewer ranks, then over wider links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Near {
    /// Hops from rank to rank.
    hops: u32,
    /// Bytes per second of the shortest route; 0 if it passes other ranks.
    width: Reverse<u64>,
}

/// How near every rank is to one of them, by number. O(nodes + links).
pub(super) fn nearness(network: &Network<'_>, neighbours: &Neighbours, from: Rank) -> Vec<Near> {
    let hops = rank_hops(network, from);
    let near = |rank: Rank| Near { hops: hops[rank.index()], width: Reverse(0) };
    let mut row: Vec<Near> = network.topology.ranks().map(near).collect();
    for &(rank, width) in &neighbours.lists()[from.index()] {
        row[rank as usize].width = Reverse(width);
    }
    row
}

/// Fewest hops from rank to rank, by node: entering a rank is one, entering a switch is none.
fn rank_hops(network: &Network<'_>, from: Rank) -> Vec<u32> {
    let mut hops = vec![u32::MAX; network.topology.nodes().len()];
    hops[from.index()] = 0;
    let mut queue: VecDeque<(NodeIndex, u32)> = VecDeque::from([(from.node(), 0)]);
    while let Some((node, reached)) = queue.pop_front() {
        if hops[node.index()] < reached {
            continue;
        }
        for &link in network.leaving(node) {
            let head = network.head(link);
            let is_rank = network.is_rank(head);
            let next = reached + u32::from(is_rank);
            if next < hops[head.index()] {
                hops[head.index()] = next;
                if is_rank { queue.push_back((head, next)) } else { queue.push_front((head, next)) }
            }
        }
    }
    hops
}
