//! Which plan `auto` takes for small messages: trees of the best rate, breadth-first broadcasts of the fewest steps, or a
//! schedule in time; of an all-to-all, flows of the best rate, shortest routes, or a schedule in time.
//!
//! Rates say what large messages take. Where latencies count beside them, all are simulated at the largest message that was
//! asked for, and the fastest one is taken; that of the best rate where others are no faster.

use std::borrow::Cow;

use canopy_plan::oneccl;
use canopy_proto::v1;
use canopy_schedule::{CollectiveKind, CompileError, Shape, TransferGraph, compile_until};
use canopy_simulate::{ALPHA_NS_USUAL, SimulateError, SimulateOptions, simulate};
use canopy_synth::{Algorithm, SumOptions, TreeLimits};
use canopy_topology::{Rate, Topology};

use super::attempt::{Attempt, Work};
use super::fewer::{self, Fitted};
use crate::failure::PlanFailure;
use crate::order::Order;

/// Latencies count if all hops of the deepest tree, so many times, take longer than the bytes do: a plan without any latency
/// would be faster by one part in seventeen at least.
const LATENCY_FACTOR: u128 = 16;

/// Most ranks, and transfers, of a plan that is compared: both are made and simulated in less than a tenth of a second or so.
const RANKS_MAX: u32 = 128;
pub(super) const TRANSFERS_MAX: usize = 1 << 16;

/// Most ranks of an all-to-all that is planned in time for comparison.
const PAIRED_RANKS_MAX: u32 = 64;

/// Work of one simulation.
const WORK_MAX: u64 = 20_000_000;

/// The plan for an order: by the algorithm that was asked for, or, where that is left open, the faster one at its size.
///
/// # Errors
/// As [`fewer::that_fit`].
pub(super) fn best(work: &mut Work<'_>) -> Result<Fitted, PlanFailure> {
    let fitted = match fewer::that_fit(work) {
        Ok(fitted) => fitted,
        Err(failure) => {
            let Some(other) = way_out(work.order, &failure) else { return Err(failure) };
            let mut other = work.by(other);
            let fitted = fewer::that_fit(&mut other);
            let timings = other.timings;
            drop(other);
            add(&mut work.timings, &timings);
            work.schedules.clear();
            // What is said is why there is no plan of the best rate.
            return match fitted {
                Ok(fitted) => Ok(fitted),
                Err(PlanFailure::Stopped) => Err(PlanFailure::Stopped),
                Err(_) => Err(failure),
            };
        }
    };
    let others = alternatives(work, &fitted.attempt);
    if others.is_empty() || !latency_counts(work, &fitted.attempt) {
        return Ok(fitted);
    }
    let topology = &work.prepared.topology;
    let size_bytes = work.order.size_bytes_max;
    let is_stopped = || work.stop.is_requested();
    let time = |attempt: &Attempt| {
        let graph = match &attempt.graph {
            Some(graph) => Cow::Borrowed(graph),
            None => match compile_until(topology, &attempt.plan.schedule, &is_stopped) {
                Ok(graph) => Cow::Owned(graph),
                Err(CompileError::Stopped) => return Err(PlanFailure::Stopped),
                Err(_) => return Ok(None),
            },
        };
        match time_ps(topology, &graph, size_bytes, &is_stopped) {
            Ok(time) => Ok(Some(time)),
            Err(SimulateError::Stopped) => Err(PlanFailure::Stopped),
            // Too much work, or too long: then the plan of the best rate it is.
            Err(_) => Ok(None),
        }
    };
    let Some(by_best_rate) = time(&fitted.attempt)? else { return Ok(fitted) };
    let mut best = (by_best_rate, fitted);
    for algorithm in others {
        let mut other = work.by(algorithm);
        let found = fewer::that_fit(&mut other);
        // It is made at once rather than searched for: a shape whose trees are known needs no search.
        let timings = other.timings;
        drop(other);
        add(&mut work.timings, &timings);
        let found = match found {
            Ok(found) => found,
            Err(PlanFailure::Stopped) => return Err(PlanFailure::Stopped),
            // Such as one for which a runtime has no room.
            Err(_) => continue,
        };
        if let Some(time) = time(&found.attempt)?.filter(|&time| time < best.0) {
            best = (time, found);
            // The schedule of the best rate has no part in the plan.
            work.schedules.clear();
        }
    }
    Ok(best.1)
}

/// What is planned where a runtime can not have the plan of the best rate, if the request leaves the choice to the planner:
/// routes of one chunk each may have room where the least that a flow needs has not, and an allreduce in steps adds up as
/// much at every rank, where trees may have chosen otherwise.
fn way_out(order: &Order, failure: &PlanFailure) -> Option<Algorithm> {
    let is_open = order.algorithm == Algorithm::Auto && order.limits.without_tolerance() == TreeLimits::NONE;
    let has_uneven_sums = matches!(failure, PlanFailure::LowerOneccl { error: oneccl::LowerError::Shares, .. })
        && order.shares.is_empty()
        && order.sums == SumOptions::AUTO;
    match order.kind {
        CollectiveKind::AllToAll if is_open && fewer::over_limit(failure).is_some() => Some(Algorithm::Direct),
        CollectiveKind::Allreduce if is_open && has_uneven_sums => Some(Algorithm::Bfb),
        _ => None,
    }
}

fn add(timings: &mut v1::Timings, others: &v1::Timings) {
    timings.synthesis += others.synthesis;
    timings.check += others.check;
    timings.lower += others.lower;
}

/// What a plan is compared with, if the request leaves the choice to the planner and the network is one that has it.
fn alternatives(work: &Work<'_>, attempt: &Attempt) -> Vec<Algorithm> {
    let (topology, kind) = (&work.prepared.topology, work.order.kind);
    let is_free = work.order.limits == TreeLimits::NONE && work.order.sums == SumOptions::AUTO;
    let is_open = work.order.algorithm == Algorithm::Auto && is_free && topology.rank_count() <= RANKS_MAX;
    let (transfers, others) = match (&attempt.plan.schedule.shape, &attempt.graph) {
        (Shape::Forest(_), Some(graph)) => {
            let is_direct = topology.nodes().len() == topology.rank_count() as usize;
            let others = if is_direct { vec![Algorithm::Bfb, Algorithm::Tacos] } else { vec![Algorithm::Tacos] };
            (graph.transfers.len(), others)
        }
        (Shape::Flow(flow), _) if kind == CollectiveKind::AllToAll => {
            let is_small = topology.rank_count() <= PAIRED_RANKS_MAX;
            let others = if is_small { vec![Algorithm::Direct, Algorithm::Tacos] } else { vec![Algorithm::Direct] };
            (flow.hops.len(), others)
        }
        (Shape::Flow(flow), _) => (flow.hops.len(), vec![Algorithm::Tacos]),
        _ => return Vec::new(),
    };
    if is_open && transfers <= TRANSFERS_MAX { others } else { Vec::new() }
}

/// Whether a plan of fewer hops could be faster by a part worth a simulation.
fn latency_counts(work: &Work<'_>, attempt: &Attempt) -> bool {
    let latency = work.prepared.topology.links().iter().map(|link| link.latency.nanos()).max().unwrap_or(0);
    let waiting =
        u128::from(attempt.verdict.depth_max) * u128::from(ALPHA_NS_USUAL.saturating_add(latency)) * LATENCY_FACTOR;
    // The rate at which the bytes take as long as all hops, in nanoseconds, so many times.
    let balance = Rate::new(u128::from(work.order.size_bytes_max) * 1_000_000_000, waiting);
    balance.is_some_and(|balance| attempt.verdict.algbw > balance)
}

/// Time for a message, on fair links, without barriers.
fn time_ps(
    topology: &Topology,
    graph: &TransferGraph,
    size_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<u64, SimulateError> {
    let options = SimulateOptions::usual(size_bytes, WORK_MAX);
    Ok(simulate(topology, graph, &options, stop)?.time_ps)
}
