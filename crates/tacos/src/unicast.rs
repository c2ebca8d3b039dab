//! Chunks that go to one node each: scatter, gather, all-to-all.
//!
//! Ways are chosen first, so that the busiest link is busy for as short as possible (`paths`); then every link sends, of what waits
//! for it, what has farthest to go. On most networks that takes as long as the busiest link is busy, and no longer.

mod bound;
mod judge;
pub(crate) mod paths;

use std::collections::{BTreeMap, BinaryHeap};

use canopy_optimize::Stop;

use crate::attempts::{Attempt, Attempts};
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use paths::chosen;

pub use bound::delivery_bound;
pub use judge::judge_delivery;

/// Where a chunk is, and where it is to be; chunks are numbered by their place in a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    /// The node that has the chunk.
    pub from: u32,
    /// Another node, which is to have it.
    pub to: u32,
}

/// The routes to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ways {
    /// Those of least latency.
    Shortest,
    /// Any.
    Any,
}

/// Sends that bring every chunk from where it is to where it is to be.
///
/// * **Source.** Our own; farthest first is Won et al., figure 5. **Out.** The same for the same seed.
/// * **Errors.** [`CopyError`]: nodes that there are not count as unreachable.
/// * **Cost.** Some 64 shortest-path searches for each node with chunks for many others, and O(hops · log chunks).
pub fn deliver(
    network: &TimedNetwork,
    demands: &[Demand],
    ways: Ways,
    seed: u64,
    stop: &dyn Stop,
) -> Result<Sends, CopyError> {
    let mut chance = Chance::new(seed);
    let paths = chosen(network, demands, ways, &mut chance, stop)?;
    scheduled(network, &paths, &mut chance, stop)
}

/// The best of some attempts, which take by turns both kinds of ways in both directions: what gathers, turned around, scatters.
///
/// * **Errors.** Those of [`deliver`] in the first attempt; being stopped later costs no more than the attempts not yet done.
/// * **Cost.** That of [`deliver`] for each attempt. The result does not depend on the number of threads.
pub fn deliver_best(
    network: &TimedNetwork,
    demands: &[Demand],
    attempts: Attempts,
    stop: &dyn Stop,
) -> Result<Attempt, CopyError> {
    const KINDS: [(Ways, bool); 4] =
        [(Ways::Shortest, false), (Ways::Shortest, true), (Ways::Any, false), (Ways::Any, true)];
    let transposed = network.transposed();
    let turned: Vec<Demand> = demands.iter().map(|demand| Demand { from: demand.to, to: demand.from }).collect();
    attempts.best(|number, seed| {
        let (ways, is_turned) = KINDS[number as usize % KINDS.len()];
        match is_turned {
            false => deliver(network, demands, ways, seed, stop),
            true => Ok(deliver(&transposed, &turned, ways, seed, stop)?.reversed(&transposed)),
        }
    })
}

/// When each chunk passes each link of its way.
fn scheduled(
    network: &TimedNetwork,
    paths: &[Vec<u32>],
    chance: &mut Chance,
    stop: &dyn Stop,
) -> Result<Sends, CopyError> {
    let latency = |link: u32| network.link(link).latency;
    let mut remaining: Vec<u64> = paths.iter().map(|path| path.iter().map(|&link| latency(link)).sum()).collect();
    let mut next_hop = vec![0_usize; paths.len()];
    let mut queues: Vec<BinaryHeap<(u64, u64, u32)>> = vec![BinaryHeap::new(); network.links().len()];
    let mut busy_until = vec![0; network.links().len()];
    // What arrives somewhere, and which links become free, by time.
    let mut events: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    events.insert(0, (0..).take(paths.len()).map(Event::Here).collect());
    let (mut sends, mut end) = (Vec::new(), 0);
    let mut touched: Vec<u32> = Vec::new();
    while let Some((now, events_now)) = events.pop_first() {
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        for event in events_now {
            match event {
                Event::Here(chunk) => {
                    let hop = next_hop[chunk as usize];
                    if let Some(&link) = paths[chunk as usize].get(hop) {
                        queues[link as usize].push((remaining[chunk as usize], chance.next(), chunk));
                        touched.push(link);
                    }
                }
                Event::Free(link) => touched.push(link),
            }
        }
        for link in touched.drain(..) {
            if busy_until[link as usize] > now {
                continue;
            }
            let Some((.., chunk)) = queues[link as usize].pop() else { continue };
            let timed = network.link(link);
            sends.push(Sent { start: now, link, chunk });
            next_hop[chunk as usize] += 1;
            remaining[chunk as usize] -= timed.latency;
            let arrival = now.checked_add(timed.latency).ok_or(CopyError::TooLong)?;
            end = end.max(arrival);
            busy_until[link as usize] = now + timed.occupancy;
            events.entry(arrival).or_default().push(Event::Here(chunk));
            events.entry(busy_until[link as usize]).or_default().push(Event::Free(link));
        }
    }
    Ok(Sends { sends, end })
}

/// What happens at a moment.
enum Event {
    /// A chunk is at the next node of its way.
    Here(u32),
    /// A link may send again.
    Free(u32),
}
