//! What numbered steps cost where each route carries its sends one after the other, exactly.
//!
//! A replay: routes are lanes that share links evenly, and nothing waits but for its lane and for what it depends on. It reads
//! transfers alone, and knows nothing of how their order was found.

use canopy_topology::Topology;
use num_bigint::BigUint;
use num_integer::Integer as _;

use super::error::LoadError;
use super::load::takes_longer;
use super::steps::Seconds;
use crate::transfer::TransferGraph;

/// When the last transfer ends if nothing has a latency, for chunks of one byte.
///
/// * **Model.** A lane is a route that carries anything. It has `capacity / lanes` of each of its links, where so many lanes pass
///   the link, and is as fast as the least of these; so lanes together never claim more than a link has. Transfers are in an
///   order that keeps steps and dependencies: each lane takes its parts of them in that order, each part once the lane is free
///   and all that the transfer depends on has ended, for chunks · time of a chunk. A transfer ends with the last of its parts.
/// * **In.** A graph whose structure is right, with a step for each transfer, in order.
/// * **Errors.** [`LoadError`]: times without a common unit, or too long to be counted.
/// * **Cost.** O(links of all routes + carriers and dependencies of all transfers).
pub(super) fn seconds_in_turn(topology: &Topology, graph: &TransferGraph) -> Result<Seconds, LoadError> {
    let Lanes { times, unit, denominator } = Lanes::of(topology, graph)?;
    let too_long = || LoadError::NoCommonUnit { routes: times.len() };
    let mut free_at = vec![0_u128; times.len()];
    let mut ends: Vec<u128> = Vec::with_capacity(graph.transfers.len());
    for transfer in &graph.transfers {
        let waited = graph.dependencies_of(transfer).iter().map(|&before| ends[before as usize]);
        let ready = waited.max().unwrap_or(0);
        let mut end = ready;
        for carrier in graph.carriers_of(transfer) {
            let lane = carrier.route.index();
            let taken = times[lane].checked_mul(carrier.chunk_count.into());
            let own = taken.and_then(|taken| free_at[lane].max(ready).checked_add(taken)).ok_or_else(too_long)?;
            free_at[lane] = own;
            end = end.max(own);
        }
        ends.push(end);
    }
    let last = ends.into_iter().max().ok_or(LoadError::NothingMoves)?;
    let count = graph.steps.last().map_or(0, |step| step.saturating_add(1));
    Ok(Seconds { count, numerator: unit * last, denominator })
}

/// Routes by how long they take for one chunk of one byte.
struct Lanes {
    /// By route, `times · unit / denominator` seconds; 0 for one that carries nothing.
    times: Vec<u128>,
    unit: BigUint,
    denominator: BigUint,
}

impl Lanes {
    fn of(topology: &Topology, graph: &TransferGraph) -> Result<Self, LoadError> {
        let mut is_used = vec![false; graph.routes.len()];
        for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
            is_used[carrier.route.index()] = true;
        }
        let mut lanes = vec![0_u64; topology.links().len()];
        let used = || graph.routes.iter().zip(&is_used).filter(|&(_, &is_used)| is_used).map(|(links, _)| links);
        used().flatten().for_each(|link| lanes[link.index()] += 1);
        // By route: lanes and capacity of its slowest link, in lowest terms.
        let slowest = |(links, &is_used): (&[canopy_topology::LinkIndex], &bool)| {
            let parts = links.iter().filter(|_| is_used).map(|link| {
                let (shared, capacity) = (lanes[link.index()], topology.link(*link).capacity.bytes_per_sec());
                let divisor = shared.gcd(&capacity);
                (shared / divisor, capacity / divisor)
            });
            let slower = |a: (u64, u64), b: (u64, u64)| {
                if takes_longer((b.0.into(), b.1), (a.0.into(), a.1)) { b } else { a }
            };
            parts.reduce(slower)
        };
        let parts: Vec<Option<(u64, u64)>> = graph.routes.iter().zip(&is_used).map(slowest).collect();
        let mut capacities: Vec<u64> = parts.iter().flatten().map(|&(_, capacity)| capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let common = capacities.iter().fold(BigUint::from(1_u8), |common, &capacity| common.lcm(&capacity.into()));
        let time = |(shared, capacity): (u64, u64)| &common / capacity * shared;
        let mut different: Vec<(u64, u64)> = parts.iter().flatten().copied().collect();
        different.sort_unstable();
        different.dedup();
        let unit = different.iter().fold(BigUint::from(0_u8), |unit, &part| unit.gcd(&time(part)));
        let in_units = |part: Option<(u64, u64)>| match part {
            Some(part) => u128::try_from(time(part) / &unit),
            None => Ok(0),
        };
        let times: Result<Vec<u128>, _> = parts.iter().map(|&part| in_units(part)).collect();
        let times = times.map_err(|_| LoadError::NoCommonUnit { routes: parts.len() })?;
        Ok(Self { times, unit, denominator: common })
    }
}
