//! Which pace tells the time of a schedule that was decided in time.

use std::collections::BTreeMap;

use canopy_schedule::Pace;
use canopy_tacos::{Sends, TimedNetwork};
use canopy_topology::Topology;

use super::times::Clock;
use super::unwound::Unwound;

/// Barriers where these cost no time, else in turn.
///
/// What starts together is a step. Where all links take the same time steps end together as well; where they do not, a barrier
/// would wait for the slowest link of each. Latencies are no part of either cost: where they count, barriers are kept only
/// if no link is without work in between.
///
/// O(links of the routes of all sends).
pub(super) fn pace(
    topology: &Topology,
    unwound: &Unwound,
    clock: &Clock,
    network: &TimedNetwork,
    phases: &[Sends],
) -> Pace {
    let links = network.links();
    let has_latency = links.iter().any(|link| link.latency != link.occupancy);
    let are_alike = links.windows(2).all(|pair| pair[0].occupancy == pair[1].occupancy);
    if are_alike && !has_latency && unwound.links.iter().all(|link| link.parts == 1) {
        return Pace::Barriers;
    }
    // By capacity, what the busiest links of steps carry.
    let mut carried: BTreeMap<u64, u128> = BTreeMap::new();
    let mut loads = vec![0_u64; topology.links().len()];
    let mut touched = Vec::new();
    for together in phases.iter().flat_map(|phase| phase.sends.chunk_by(|a, b| a.start == b.start)) {
        for link in together.iter().flat_map(|sent| &unwound.links[sent.link as usize].route) {
            loads[link.index()] += 1;
            touched.push(*link);
        }
        let busiest = touched.drain(..).map(|link| {
            let load = std::mem::take(&mut loads[link.index()]);
            (load, topology.link(link).capacity.bytes_per_sec())
        });
        let longer = |a: (u64, u64), b: (u64, u64)| {
            let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
            if product(b.0, a.1) > product(a.0, b.1) { b } else { a }
        };
        if let Some((load, capacity)) = busiest.reduce(longer) {
            *carried.entry(capacity).or_default() += u128::from(load);
        }
    }
    let with_barriers =
        carried.into_iter().map(|(capacity, load)| clock.ticks(load, capacity)).fold(0, u128::saturating_add);
    let without = match has_latency {
        false => phases.iter().map(|phase| u128::from(phase.end)).sum(),
        true => {
            let mut busy = vec![0_u128; links.len()];
            let sends = phases.iter().flat_map(|phase| &phase.sends);
            sends.for_each(|sent| busy[sent.link as usize] += u128::from(network.link(sent.link).occupancy));
            busy.into_iter().max().unwrap_or(0)
        }
    };
    if with_barriers <= without { Pace::Barriers } else { Pace::InTurn }
}
