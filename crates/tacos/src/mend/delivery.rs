//! Chunks that go to one node each: what is under way stays on its way as far as that leads, and goes on from there or from a
//! node before by the way that brings it to its end first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::Stop;

use super::{Mended, STRIDE};
use crate::calendar::Calendar;
use crate::copies::{CopyError, END_MAX};
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::unicast::Demand;

/// When a node gets what it is never sent.
const NEVER: u64 = u64::MAX;

/// Sends that bring every chunk to where it is to be, as many of these as can be at the times that they have.
///
/// * **In.** `known`: in any order; sends of chunks that their sender does not have and names of links and chunks that there are not do no harm.
/// * **Out.** Accepted by [`judge_delivery`](crate::judge_delivery). What is dropped is placed chunk by chunk, what had farthest to go first:
///   each takes the way on which it is there first. The same for the same arguments.
/// * **Source.** Our own. **Errors.** [`CopyError`]: nodes that cannot be reached, stopped.
/// * **Cost.** O(sends · log sends), and a shortest-path search for each chunk whose way is broken.
pub fn mend_delivery(
    network: &TimedNetwork,
    demands: &[Demand],
    mut known: Vec<Sent>,
    stop: &dyn Stop,
) -> Result<Mended, CopyError> {
    known.sort_unstable();
    let mut ways = Ways::of(network, demands, &known, stop)?;
    let mut broken: Vec<(Reverse<usize>, u32)> = (0..)
        .zip(demands)
        .filter(|&(chunk, demand)| ways.end_of(chunk, demand) != demand.to)
        .map(|(chunk, _)| (Reverse(ways.lost[chunk as usize]), chunk))
        .collect();
    broken.sort_unstable();
    let mut search = Search::new(network);
    let mut calendar = Calendar::new(network.links().len());
    for sent in ways.hops.iter().flatten() {
        calendar.take(sent.link, sent.start, network.link(sent.link).occupancy);
    }
    let mut added = 0;
    for (_, chunk) in broken {
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        let demand = demands[chunk as usize];
        let hops = &mut ways.hops[chunk as usize];
        let (kept, found) = search.way(hops, demand, &calendar).ok_or(CopyError::Unreachable {
            node: demand.to,
            chunk,
            owner: demand.from,
        })?;
        hops.truncate(kept);
        for &(link, start) in &found {
            if start >= END_MAX {
                return Err(CopyError::TooLong);
            }
            calendar.take(link, start, network.link(link).occupancy);
            hops.push(Sent { start, link, chunk });
        }
        added += found.len();
    }
    let mut sends = ways.hops.concat();
    sends.sort_unstable();
    let end = sends.iter().map(|sent| sent.start + network.link(sent.link).latency).max().unwrap_or(0);
    let kept = sends.len() - added;
    Ok(Mended { sends: Sends { sends, end }, kept })
}

/// How far chunks come.
struct Ways<'a> {
    network: &'a TimedNetwork,
    /// By chunk, its sends that can stay, one after the other.
    hops: Vec<Vec<Sent>>,
    /// By chunk, how many cannot.
    lost: Vec<usize>,
}

impl<'a> Ways<'a> {
    fn of(network: &'a TimedNetwork, demands: &[Demand], known: &[Sent], stop: &dyn Stop) -> Result<Self, CopyError> {
        let mut ways = Self { network, hops: vec![Vec::new(); demands.len()], lost: vec![0; demands.len()] };
        let mut busy = vec![0; network.links().len()];
        for sends in known.chunks(STRIDE) {
            if stop.is_requested() {
                return Err(CopyError::Stopped);
            }
            for &sent in sends.iter().filter(|sent| sent.start < END_MAX) {
                let (Some(link), Some(&demand)) =
                    (network.links().get(sent.link as usize), demands.get(sent.chunk as usize))
                else {
                    continue;
                };
                let hops = &ways.hops[sent.chunk as usize];
                let here = hops.last().map_or((demand.from, 0), |last| ways.arrival(last));
                let was_there =
                    |node: u32| node == demand.from || hops.iter().any(|hop| network.link(hop.link).to == node);
                let is_possible = here.0 == link.from && here.1 <= sent.start && !was_there(link.to);
                if is_possible && here.0 != demand.to && busy[sent.link as usize] <= sent.start {
                    busy[sent.link as usize] = sent.start + link.occupancy;
                    ways.hops[sent.chunk as usize].push(sent);
                } else {
                    ways.lost[sent.chunk as usize] += 1;
                }
            }
        }
        Ok(ways)
    }

    /// Where a send ends, and when.
    fn arrival(&self, sent: &Sent) -> (u32, u64) {
        let link = self.network.link(sent.link);
        (link.to, sent.start + link.latency)
    }

    /// Where a chunk is in the end.
    fn end_of(&self, chunk: u32, demand: &Demand) -> u32 {
        self.hops[chunk as usize].last().map_or(demand.from, |last| self.arrival(last).0)
    }
}

/// Looks for the way on which a chunk is there first.
struct Search<'a> {
    network: &'a TimedNetwork,
    /// By node: when the chunk is there, and by which link, from when on.
    arrivals: Vec<u64>,
    by: Vec<Option<(u32, u64)>>,
    touched: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(network: &'a TimedNetwork) -> Self {
        let nodes = network.node_count() as usize;
        Self { network, arrivals: vec![NEVER; nodes], by: vec![None; nodes], touched: Vec::new() }
    }

    /// How many of the hops so far it takes, and links with starts from there on. None: no way leads there, or a node is none.
    ///
    /// Who waits is never overtaken by who comes later, so that a shortest-path search is exact.
    fn way(&mut self, hops: &[Sent], demand: Demand, calendar: &Calendar) -> Option<(usize, Vec<(u32, u64)>)> {
        if demand.from.max(demand.to) >= self.network.node_count() {
            return None;
        }
        for node in self.touched.drain(..) {
            self.arrivals[node as usize] = NEVER;
            self.by[node as usize] = None;
        }
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let places = hops.iter().map(|hop| {
            let link = self.network.link(hop.link);
            (hop.start + link.latency, link.to)
        });
        let places: Vec<(u64, u32)> = [(0, demand.from)].into_iter().chain(places).collect();
        for &(time, node) in &places {
            self.arrivals[node as usize] = time;
            self.touched.push(node);
            queue.push(Reverse((time, node)));
        }
        while let Some(Reverse((time, node))) = queue.pop() {
            if node == demand.to {
                break;
            }
            if time > self.arrivals[node as usize] {
                continue;
            }
            for &link in self.network.outgoing(node) {
                let timed = self.network.link(link);
                // It cannot be there sooner than on a free link.
                if time.saturating_add(timed.latency) >= self.arrivals[timed.to as usize] {
                    continue;
                }
                let start = calendar.first_free(link, time, timed.occupancy);
                let arrival = start.saturating_add(timed.latency);
                let known = &mut self.arrivals[timed.to as usize];
                if arrival < *known && !places.iter().any(|&(_, place)| place == timed.to) {
                    *known = arrival;
                    self.by[timed.to as usize] = Some((link, start));
                    self.touched.push(timed.to);
                    queue.push(Reverse((arrival, timed.to)));
                }
            }
        }
        let (mut node, mut way) = (demand.to, Vec::new());
        while let Some((link, start)) = self.by[node as usize] {
            way.push((link, start));
            node = self.network.link(link).from;
        }
        way.reverse();
        let kept = places.iter().position(|&(_, place)| place == node)?;
        Some((kept, way))
    }
}
