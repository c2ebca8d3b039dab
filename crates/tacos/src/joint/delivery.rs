//! Chunks that go to one node each, around what is taken: ways first, then on every link what has farthest to go.

use std::collections::{BTreeMap, BTreeSet};

use canopy_optimize::Stop;

use super::Tenant;
use super::view::View;
use crate::calendar::Calendar;
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::sends::Sent;
use crate::unicast::paths::chosen;
use crate::unicast::{Demand, Ways};

/// Sends in ticks after `begin`, *not* yet entered in the calendar. O(hops · log chunks) after the ways are chosen.
pub(super) fn placed(
    tenant: &Tenant,
    demands: &[Demand],
    calendar: &Calendar,
    begin: u64,
    seed: u64,
    stop: &dyn Stop,
) -> Result<Vec<Sent>, CopyError> {
    let (network, view) = (&tenant.network, View::Forwards { begin });
    let (mut calendar, mut chance) = (calendar.clone(), Chance::new(seed));
    let ways = if seed.is_multiple_of(2) { Ways::Shortest } else { Ways::Any };
    let paths = chosen(network, demands, ways, &mut chance, stop)?;
    let mut remaining: Vec<u64> =
        paths.iter().map(|path| path.iter().map(|&link| network.link(link).latency).sum()).collect();
    let mut next_hop = vec![0_usize; paths.len()];
    let mut queues: Vec<BTreeSet<(u64, u64, u32)>> = vec![BTreeSet::new(); network.links().len()];
    let mut arrivals: BTreeMap<u64, Vec<u32>> = BTreeMap::from([(0, (0..).take(paths.len()).collect())]);
    let mut waiting: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut sends = Vec::new();
    loop {
        let next = [arrivals.keys().next(), waiting.keys().next()].into_iter().flatten().min().copied();
        let Some(now) = next else { return Ok(sends) };
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        let mut links = waiting.remove(&now).unwrap_or_default();
        for chunk in arrivals.remove(&now).unwrap_or_default() {
            if let Some(&link) = paths[chunk as usize].get(next_hop[chunk as usize]) {
                queues[link as usize].insert((remaining[chunk as usize], chance.next(), chunk));
                links.insert(link);
            }
        }
        for link in links {
            if queues[link as usize].is_empty() {
                continue;
            }
            let free = view.first_free(tenant, &calendar, link, now).ok_or(CopyError::TooLong)?;
            if free > now {
                waiting.entry(free).or_default().insert(link);
                continue;
            }
            let Some((.., chunk)) = queues[link as usize].pop_last() else { continue };
            let timed = network.link(link);
            view.take(tenant, &mut calendar, link, now);
            sends.push(Sent { start: now, link, chunk });
            next_hop[chunk as usize] += 1;
            remaining[chunk as usize] -= timed.latency;
            let after = |ticks: u64| now.checked_add(ticks).ok_or(CopyError::TooLong);
            arrivals.entry(after(timed.latency)?).or_default().push(chunk);
            waiting.entry(after(timed.occupancy)?).or_default().insert(link);
        }
    }
}
