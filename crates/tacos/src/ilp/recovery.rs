//! A schedule of what fractions propose, completed by shortest paths.
//!
//! Source: Won et al., section 3.1, for who is still without a chunk when the solver is cut short; that links are reserved,
//! and each path waits for the earliest free times, is our own.

use canopy_optimize::{Stop, Stopped};

use super::demands::ChunkDemands;
use crate::calendar::Calendar;
use crate::earliest::Earliest;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};

/// Takes of proposed sends, in order of time and then of weight, each that is possible; then brings every chunk that somebody is
/// still without there on the way that arrives first, around what is reserved.
///
/// * **In.** Everybody can be reached. **Out.** Each chunk to each node once at most.
/// * **Errors.** Stopped. **Cost.** O(links · log) for each chunk that somebody is without.
pub(super) fn completed(
    network: &TimedNetwork,
    demands: &ChunkDemands,
    mut proposed: Vec<(Sent, f64)>,
    stop: &dyn Stop,
) -> Result<Sends, Stopped> {
    proposed.sort_by(|(a, a_weight), (b, b_weight)| {
        a.start.cmp(&b.start).then(b_weight.total_cmp(a_weight)).then(a.cmp(b))
    });
    let mut held = demands.held.clone();
    let mut calendar = Calendar::new(network.links().len());
    let mut search = Earliest::new(network);
    let mut sends = Vec::new();
    for (sent, weight) in proposed {
        let (link, held) = (network.link(sent.link), &mut held[sent.chunk as usize]);
        let has_it = held.get(&link.from).is_some_and(|&since| since <= sent.start);
        let is_free = calendar.first_free(sent.link, sent.start, link.occupancy) == sent.start;
        if weight > WEIGHT_MIN && has_it && is_free && !held.contains_key(&link.to) {
            held.insert(link.to, sent.start + link.latency);
            calendar.take(sent.link, sent.start, link.occupancy);
            sends.push(sent);
        }
    }
    for chunk in 0..demands.chunk_count() {
        for &node in demands.audience(chunk) {
            if stop.is_requested() {
                return Err(Stopped);
            }
            let held = &mut held[chunk as usize];
            if held.contains_key(&node) {
                continue;
            }
            let places: Vec<(u32, u64)> = held.iter().map(|(&place, &since)| (place, since)).collect();
            // Everybody can be reached.
            let free = |link: u32, time: u64| Some(calendar.first_free(link, time, network.link(link).occupancy));
            for (link, start) in search.way(&places, node, free).unwrap_or_default() {
                let timed = network.link(link);
                held.insert(timed.to, start + timed.latency);
                calendar.take(link, start, timed.occupancy);
                sends.push(Sent { start, link, chunk });
            }
        }
    }
    Ok(demands.useful(network, sends))
}

/// What is proposed with less weight is noise.
const WEIGHT_MIN: f64 = 1e-3;
