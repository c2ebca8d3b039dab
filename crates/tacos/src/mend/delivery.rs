//! Chunks that go to one node each: what is under way stays on its way as far as that leads, and goes on from there or from a
//! node before by the way that brings it to its end first.

use std::cmp::Reverse;

use canopy_optimize::Stop;

use super::{Mended, STRIDE};
use crate::calendar::Calendar;
use crate::copies::{CopyError, END_MAX};
use crate::earliest::Earliest;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::unicast::Demand;

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
    let mut search = Earliest::new(network);
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
        let unreachable = || CopyError::Unreachable { node: demand.to, chunk, owner: demand.from };
        let places: Vec<(u32, u64)> = ways.places_of(chunk, demand).collect();
        let free = |link: u32, time: u64| Some(calendar.first_free(link, time, network.link(link).occupancy));
        let found = search.way(&places, demand.to, free).ok_or_else(unreachable)?;
        let first = found.first().map_or(demand.to, |&(link, _)| network.link(link).from);
        let kept = places.iter().position(|&(place, _)| place == first).ok_or_else(unreachable)?;
        let hops = &mut ways.hops[chunk as usize];
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

    /// Where a chunk comes, and when.
    fn places_of(&self, chunk: u32, demand: Demand) -> impl Iterator<Item = (u32, u64)> {
        [(demand.from, 0)].into_iter().chain(self.hops[chunk as usize].iter().map(|hop| self.arrival(hop)))
    }

    /// Where a chunk is in the end.
    fn end_of(&self, chunk: u32, demand: &Demand) -> u32 {
        self.hops[chunk as usize].last().map_or(demand.from, |last| self.arrival(last).0)
    }
}
