//! Whether sends deliver what they should, decided without the engine.

use super::Demand;
use crate::judge::Fault;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};

/// Judges a delivery: in order, each send of a chunk that its sender has, on a link that is free, each chunk to each node once, in
/// the end where it is to be, and the end as stated.
///
/// # Errors
/// [`Fault`], the first. O(sends · hops of a chunk) time.
pub fn judge_delivery(network: &TimedNetwork, demands: &[Demand], sends: &Sends) -> Result<(), Fault> {
    // By chunk: where it has been or is sent, and from when on.
    let mut places: Vec<Vec<(u32, u64)>> = demands.iter().map(|demand| vec![(demand.from, 0)]).collect();
    let mut busy = vec![0; network.links().len()];
    let (mut before, mut found) = (0, 0);
    for (send, &Sent { start, link, chunk }) in sends.sends.iter().enumerate() {
        let known = network.links().get(link as usize).zip(places.get_mut(chunk as usize));
        let (known, places) = known.ok_or(Fault::Unknown { send, link, chunk })?;
        if start < before {
            return Err(Fault::Order { send, start, before });
        }
        before = start;
        if !places.iter().any(|&(node, arrival)| node == known.from && arrival <= start) {
            return Err(Fault::Early { send, start, node: known.from, chunk });
        }
        let until = busy[link as usize];
        if until > start {
            return Err(Fault::Busy { send, start, link, until });
        }
        busy[link as usize] = start + known.occupancy;
        if places.iter().any(|&(node, _)| node == known.to) {
            return Err(Fault::Twice { send, node: known.to, chunk });
        }
        places.push((known.to, start + known.latency));
        found = found.max(start + known.latency);
    }
    for (chunk, (demand, places)) in (0..).zip(demands.iter().zip(&places)) {
        if !places.iter().any(|&(node, _)| node == demand.to) {
            return Err(Fault::Missing { node: demand.to, chunk });
        }
    }
    if found != sends.end {
        return Err(Fault::End { found, stated: sends.end });
    }
    Ok(())
}
