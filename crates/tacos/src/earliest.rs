//! The way on which a chunk is somewhere first, around what is reserved.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::network::TimedNetwork;

/// When a node gets what it is never sent.
const NEVER: u64 = u64::MAX;

/// Looks for ways; keeps its tables from one search to the next.
pub(crate) struct Earliest<'a> {
    network: &'a TimedNetwork,
    /// By node: when the chunk is there, and by which link, from when on.
    arrivals: Vec<u64>,
    by: Vec<Option<(u32, u64)>>,
    /// By node: it has the chunk anyway.
    is_place: Vec<bool>,
    touched: Vec<u32>,
}

impl<'a> Earliest<'a> {
    pub(crate) fn new(network: &'a TimedNetwork) -> Self {
        let nodes = network.node_count() as usize;
        let (arrivals, by, is_place) = (vec![NEVER; nodes], vec![None; nodes], vec![false; nodes]);
        Self { network, arrivals, by, is_place, touched: Vec::new() }
    }

    /// Links with starts from one of the places that have the chunk, from these times on, to another; it is not sent to those that have it.
    /// None: no way leads there, or a node is none. Empty where it has it.
    ///
    /// * `first_free`: when a link can first carry it, not before a time; none where it cannot any more. Later for later times.
    ///
    /// Who waits is never overtaken by who comes later, so that a shortest-path search is exact. O(links · log) where all are looked at.
    pub(crate) fn way(
        &mut self,
        places: &[(u32, u64)],
        to: u32,
        first_free: impl Fn(u32, u64) -> Option<u64>,
    ) -> Option<Vec<(u32, u64)>> {
        let nodes = self.network.node_count();
        if to >= nodes || places.iter().any(|&(place, _)| place >= nodes) {
            return None;
        }
        for node in self.touched.drain(..) {
            self.arrivals[node as usize] = NEVER;
            self.by[node as usize] = None;
            self.is_place[node as usize] = false;
        }
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        for &(place, since) in places {
            self.arrivals[place as usize] = since;
            self.is_place[place as usize] = true;
            self.touched.push(place);
            queue.push(Reverse((since, place)));
        }
        while let Some(Reverse((time, node))) = queue.pop() {
            if node == to {
                break;
            }
            if time > self.arrivals[node as usize] {
                continue;
            }
            for &link in self.network.outgoing(node) {
                let timed = self.network.link(link);
                // It cannot be there sooner than on a free link.
                let known = self.arrivals[timed.to as usize];
                if self.is_place[timed.to as usize] || time.saturating_add(timed.latency) >= known {
                    continue;
                }
                let Some(start) = first_free(link, time) else { continue };
                let arrival = start.saturating_add(timed.latency);
                if arrival < known {
                    self.arrivals[timed.to as usize] = arrival;
                    self.by[timed.to as usize] = Some((link, start));
                    self.touched.push(timed.to);
                    queue.push(Reverse((arrival, timed.to)));
                }
            }
        }
        if self.arrivals[to as usize] == NEVER {
            return None;
        }
        let (mut node, mut way) = (to, Vec::new());
        while let Some((link, start)) = self.by[node as usize] {
            way.push((link, start));
            node = self.network.link(link).from;
        }
        way.reverse();
        Some(way)
    }
}
