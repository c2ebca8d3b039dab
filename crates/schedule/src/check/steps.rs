//! What numbered steps cost at their pace, exactly.

use std::ops::Range;

use canopy_topology::{Rate, Ratio, Topology};
use num_bigint::BigUint;
use num_integer::Integer as _;

use super::error::{LoadError, StructureError, TransferFault};
use super::in_turn::seconds_in_turn;
use super::load::takes_longer;
use super::seconds::Seconds;
use crate::forest::Carrier;
use crate::route::RouteTable;
use crate::schedule::Pace;
use crate::shares::{ChunkLayout, ChunkSize};
use crate::transfer::{Transfer, TransferGraph};

/// Both terms of a stepped schedule's time: a latency for every step, and what the busiest link of each step takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCost {
    /// Number of steps, `T_L`.
    pub count: u32,
    /// `T_B`: Σ over steps of the longest time of a link, or what all of them take [in turn](crate::Pace::InTurn), in units of the time that *size* takes over all ports of
    /// the rank with most, [`Topology::node_bandwidth`].
    pub bandwidth: Ratio,
    /// *Size* ÷ that time, in bytes per second.
    pub algbw: Rate,
}

/// Cost of the steps of a graph whose structure is right; none where transfers have no steps.
///
/// Steps must come in order, and bring a rank what it sends before the step in which it sends it: else a barrier after each
/// step would stop the schedule.
///
/// * **Source.** Zhao 2026, chapter 3: `T_L` and `T_B`, for links of any capacities.
/// * **Errors.** A number of steps that is not that of transfers; steps out of order; loads that are too large.
/// * **Cost.** O(carriers of all transfers + links of all routes + dependencies).
pub(super) fn check_steps(
    topology: &Topology,
    graph: &TransferGraph,
    layout: &ChunkLayout,
) -> Result<Option<StepCost>, super::CheckError> {
    if graph.steps.is_empty() {
        return Ok(None);
    }
    check_order(graph)?;
    if graph.pace == Pace::InTurn {
        return Ok(Some(step_cost(topology, layout.size(), seconds_in_turn(topology, graph)?)?));
    }
    let mut start = 0;
    let groups = graph.steps.chunk_by(|a, b| a == b).map(|steps| {
        let transfers = &graph.transfers[start..start + steps.len()];
        start += steps.len();
        (steps[0], transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)))
    });
    let seconds = seconds_per_chunk(topology, &graph.routes, groups)?;
    Ok(Some(step_cost(topology, layout.size(), seconds)?))
}

/// What steps cost that take so long in all for chunks of one byte.
pub(super) fn step_cost(topology: &Topology, size: ChunkSize, seconds: Seconds) -> Result<StepCost, LoadError> {
    let Seconds { count, numerator, denominator } = seconds;
    let algbw = Rate::new(BigUint::from(size.chunks) * denominator, numerator * size.divisor);
    let algbw = algbw.ok_or(LoadError::NothingMoves)?;
    let most = Rate::new(topology.node_bandwidth(), 1_u8).expect("1 is not 0");
    let bandwidth = most.ratio_to(&algbw).ok_or(LoadError::NothingMoves)?;
    Ok(StepCost { count, bandwidth, algbw })
}

/// Steps in order, and each transfer after the step that brought what it sends.
fn check_order(graph: &TransferGraph) -> Result<(), StructureError> {
    let (found, expected) = (graph.steps.len(), graph.transfers.len());
    if found != expected {
        return Err(StructureError::StepCount { found, expected });
    }
    let fault = |transfer: usize, source: TransferFault| {
        let Transfer { from, to, .. } = graph.transfers[transfer];
        let index = u32::try_from(transfer).expect("transfers are counted in u32");
        StructureError::Transfer { transfer: index, from: from.number(), to: to.number(), source }
    };
    if let Some(early) = graph.steps.windows(2).position(|pair| pair[1] < pair[0]) {
        let (step, before) = (graph.steps[early + 1], graph.steps[early]);
        return Err(fault(early + 1, TransferFault::StepOrder { step, before }));
    }
    let mut known: (Range<u32>, u32, u32) = (0..0, u32::MAX, 0);
    for (index, (transfer, &step)) in graph.transfers.iter().zip(&graph.steps).enumerate() {
        // Transfers in a row often wait for the same.
        if known == (transfer.dependencies.clone(), transfer.from.number(), step) {
            continue;
        }
        known = (transfer.dependencies.clone(), transfer.from.number(), step);
        let brings = |&&dependency: &&u32| graph.transfers[dependency as usize].to == transfer.from;
        let late = graph.dependencies_of(transfer).iter().filter(brings);
        if let Some(&dependency) = late.into_iter().find(|&&dependency| graph.steps[dependency as usize] >= step) {
            return Err(fault(index, TransferFault::SameStep { dependency, step }));
        }
    }
    Ok(())
}

/// Times of steps, given by increasing number with what carries their chunks.
pub(super) fn seconds_per_chunk<'a>(
    topology: &Topology,
    routes: &RouteTable,
    steps: impl Iterator<Item = (u32, impl Iterator<Item = &'a Carrier>)>,
) -> Result<Seconds, LoadError> {
    let capacities: Vec<u64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).collect();
    // Chunks over the busiest link of each step and its capacity.
    let mut busiest: Vec<(u128, u64)> = Vec::new();
    let mut loads = vec![0_u128; capacities.len()];
    let mut touched: Vec<usize> = Vec::new();
    let mut count = 0;
    for (step, carriers) in steps {
        count = count.max(step.saturating_add(1));
        for carrier in carriers {
            for link in routes.get(carrier.route).unwrap_or_default() {
                let load = &mut loads[link.index()];
                if *load == 0 {
                    touched.push(link.index());
                }
                let more = load.checked_add(carrier.chunk_count.into());
                *load = more.ok_or(LoadError::Overflow { link: link.number() })?;
            }
        }
        let longest = touched.iter().map(|&link| (loads[link], capacities[link]));
        let longest = longest.reduce(|most, next| if takes_longer(next, most) { next } else { most });
        busiest.extend(longest);
        touched.drain(..).for_each(|link| loads[link] = 0);
    }
    let denominator =
        busiest.iter().fold(BigUint::from(1_u8), |common, &(_, capacity)| common.lcm(&BigUint::from(capacity)));
    let numerator = busiest.iter().map(|&(load, capacity)| load * (&denominator / capacity)).sum();
    Ok(Seconds { count, numerator, denominator })
}
