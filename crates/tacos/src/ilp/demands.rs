//! What is where, and who is to have it: the common form of copies and deliveries.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::task::CopyTask;
use crate::unicast::Demand;

/// Stands for no time at all.
pub(super) const NEVER: u64 = u64::MAX;

/// Chunks, by where they are and who is to have them.
#[derive(Clone, Debug)]
pub(super) struct ChunkDemands {
    /// By chunk, the nodes that have it or are being sent it, and from when on.
    pub(super) held: Vec<BTreeMap<u32, u64>>,
    /// By chunk, the number of its audience.
    pub(super) audience_of: Vec<u32>,
    /// Nodes that are to have the same chunks, in order.
    pub(super) audiences: Vec<Vec<u32>>,
}

impl ChunkDemands {
    /// Every chunk for all members.
    pub(super) fn of_copies(task: &CopyTask) -> Self {
        let members = (0..).take(task.node_count()).filter(|&node| task.is_member(node)).collect();
        Self {
            held: task.owners().iter().map(|&owner| BTreeMap::from([(owner, 0)])).collect(),
            audience_of: vec![0; task.owners().len()],
            audiences: vec![members],
        }
    }

    /// Every chunk for one node.
    pub(super) fn of_deliveries(demands: &[Demand]) -> Self {
        let mut destinations: Vec<u32> = demands.iter().map(|demand| demand.to).collect();
        destinations.sort_unstable();
        destinations.dedup();
        let place = |to: &u32| destinations.binary_search(to).expect("taken from there");
        Self {
            held: demands.iter().map(|demand| BTreeMap::from([(demand.from, 0)])).collect(),
            audience_of: demands
                .iter()
                .map(|demand| u32::try_from(place(&demand.to)).expect("fewer than nodes"))
                .collect(),
            audiences: destinations.iter().map(|&to| vec![to]).collect(),
        }
    }

    /// Number of chunks.
    pub(super) fn chunk_count(&self) -> u32 {
        u32::try_from(self.held.len()).expect("chunks are counted in u32")
    }

    /// Who is to have a chunk.
    pub(super) fn audience(&self, chunk: u32) -> &[u32] {
        &self.audiences[self.audience_of[chunk as usize] as usize]
    }

    /// Those sends, in order, that bring a chunk which their sender has to a node which is not sent it before, and that are of use
    /// to its audience.
    pub(super) fn useful(&self, network: &TimedNetwork, mut sends: Vec<Sent>) -> Sends {
        sends.sort_unstable();
        let mut held = self.held.clone();
        sends.retain(|sent| {
            let (link, held) = (network.link(sent.link), &mut held[sent.chunk as usize]);
            let has_it = held.get(&link.from).is_some_and(|&since| since <= sent.start);
            let is_new = has_it && !held.contains_key(&link.to);
            if is_new {
                held.insert(link.to, sent.start + link.latency);
            }
            is_new
        });
        let mut needed: Vec<BTreeMap<u32, ()>> = (0..self.chunk_count())
            .map(|chunk| self.audience(chunk).iter().map(|&node| (node, ())).collect())
            .collect();
        // Later sends first: whatever passes a chunk on does so after it has come.
        let mut kept: Vec<Sent> = Vec::with_capacity(sends.len());
        for sent in sends.into_iter().rev() {
            let (link, needed) = (network.link(sent.link), &mut needed[sent.chunk as usize]);
            if needed.contains_key(&link.to) {
                needed.insert(link.from, ());
                kept.push(sent);
            }
        }
        kept.reverse();
        let end = kept.iter().map(|sent| sent.start + network.link(sent.link).latency).max().unwrap_or(0);
        Sends { sends: kept, end }
    }
}

/// By node, when it can have a chunk at best that these nodes have from these times on.
pub(super) fn arrivals(network: &TimedNetwork, held: &BTreeMap<u32, u64>) -> Vec<u64> {
    let mut arrivals = vec![NEVER; network.node_count() as usize];
    let mut queue: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for (&node, &since) in held {
        arrivals[node as usize] = since;
        queue.push(Reverse((since, node)));
    }
    while let Some(Reverse((arrival, node))) = queue.pop() {
        if arrival > arrivals[node as usize] {
            continue;
        }
        for &link in network.outgoing(node) {
            let link = network.link(link);
            let found = arrival.saturating_add(link.latency);
            // Who is being sent a chunk is not sent it again.
            if found < arrivals[link.to as usize] && !held.contains_key(&link.to) {
                arrivals[link.to as usize] = found;
                queue.push(Reverse((found, link.to)));
            }
        }
    }
    arrivals
}
