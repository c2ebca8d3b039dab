//! Links that serve one message after the other, in the order in which their first bytes arrive.
//!
//! A switch passes a message's first byte on as soon as the next link is free. It begins so late, however, that the
//! message crosses a fast link without gaps: the link is kept for no longer than the message takes at its full rate. No
//! message overtakes another, and buffers are large enough for everything that waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_schedule::TransferGraph;
use canopy_topology::Topology;

use crate::limit::PS_PER_SEC;

/// Messages on their way from link to link.
#[derive(Debug)]
pub(crate) struct Fifo<'a> {
    topology: &'a Topology,
    graph: &'a TransferGraph,
    /// First bytes that arrive at a link: time, message, and which link of its route.
    heads: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// When each link is free.
    free: Vec<u64>,
    busy: Vec<u64>,
    /// By message: when its last byte arrives at the link its head is at, the longest it spent at one, and that link.
    tails: Vec<(u64, u64, u32)>,
    /// Heads served.
    pub(crate) work: u64,
}

/// What became of a message at a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) message: u32,
    /// When its last byte leaves the sender, where this was its first link.
    pub(crate) left: Option<u64>,
    /// When its last byte arrives at the receiver, where this was its last link, and the link that kept it longest.
    pub(crate) arrived: Option<(u64, u32)>,
}

impl<'a> Fifo<'a> {
    /// An idle network.
    pub(crate) fn new(topology: &'a Topology, graph: &'a TransferGraph, message_count: usize) -> Self {
        let link_count = topology.links().len();
        let (free, busy) = (vec![0; link_count], vec![0; link_count]);
        Self { topology, graph, heads: BinaryHeap::new(), free, busy, tails: vec![(0, 0, 0); message_count], work: 0 }
    }

    /// A message of at least one byte is at its first link, all of it.
    pub(crate) fn join(&mut self, time: u64, message: u32) {
        self.tails[message as usize] = (time, 0, 0);
        self.heads.push(Reverse((time, message, 0)));
    }

    /// When the next head arrives.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heads.peek().map(|&Reverse((time, _, _))| time)
    }

    /// Serves one head that arrives now, the one of least message; none if there is none.
    pub(crate) fn serve(&mut self, time: u64, of: impl Fn(u32) -> (u32, u64)) -> Option<Served> {
        if self.next_time() != Some(time) {
            return None;
        }
        let Reverse((_, message, hop)) = self.heads.pop()?;
        let (route, bytes) = of(message);
        let links = self.graph.routes.get(canopy_schedule::RouteIndex::new(route)).unwrap_or_default();
        let index = *links.get(hop as usize)?;
        let link = self.topology.link(index);
        let amount = u128::from(bytes) * u128::from(PS_PER_SEC);
        let takes = amount.div_ceil(link.capacity.bytes_per_sec().into());
        let takes = u64::try_from(takes).unwrap_or(u64::MAX / 2);
        let (tail, longest, at) = self.tails[message as usize];
        let begin = time.max(self.free[index.index()]).max(tail.saturating_sub(takes));
        let end = begin.saturating_add(takes);
        self.free[index.index()] = end;
        self.busy[index.index()] = self.busy[index.index()].saturating_add(takes);
        let latency = link.latency.nanos().saturating_mul(1_000);
        let spent = end - time;
        let (longest, at) = if spent > longest { (spent, index.number()) } else { (longest, at) };
        let tail = end.saturating_add(latency);
        self.tails[message as usize] = (tail, longest, at);
        self.work += 1;
        let is_last = hop as usize + 1 == links.len();
        if !is_last {
            self.heads.push(Reverse((begin.saturating_add(latency), message, hop + 1)));
        }
        Some(Served { message, left: (hop == 0).then_some(end), arrived: is_last.then_some((tail, at)) })
    }

    /// Time for which each link sent.
    pub(crate) fn busy(&self) -> impl Iterator<Item = u64> {
        self.busy.iter().copied()
    }
}
