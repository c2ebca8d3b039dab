//! Which plan `auto` takes for small messages: that of the best rate, or one of fewer steps.
//!
//! Rates say what large messages take. Where latencies count beside them, others are simulated at the largest message that was
//! asked for, and the fastest one is taken; that of the best rate where others are no faster, and the first of equals. What cannot be
//! faster, by its steps or by what its busiest link carries, is not simulated, and not even made where that is known before.

mod rivals;

use std::borrow::Cow;

use canopy_plan::oneccl;
use canopy_proto::v1;
use canopy_schedule::{CollectiveKind, CompileError, TransferGraph, compile_until};
use canopy_simulate::{ALPHA_NS_USUAL, SimulateError, SimulateOptions, bandwidth_limit_ps, least_time_ps, simulate};
use canopy_synth::{Algorithm, Stop, SumOptions, TreeLimits};
use canopy_topology::{Rate, Topology};

use self::rivals::{Rival, rivals};
use super::attempt::{Attempt, Work};
use super::fewer::{self, Fitted};
use super::rejections::Rejections;
use crate::failure::PlanFailure;
use crate::order::Order;

/// Latencies count if all hops of the deepest tree, so many times, take longer than the bytes do: a plan without any latency
/// would be faster by one part in seventeen at least.
const LATENCY_FACTOR: u128 = 16;

/// Most transfers of a plan that is compared: it is simulated in some tenths of a second.
const TRANSFERS_MAX: usize = 1 << 18;

/// Work of one simulation.
const WORK_MAX: u64 = 20_000_000;

/// α of a message, in picoseconds.
const ALPHA_PS: u64 = ALPHA_NS_USUAL * 1_000;

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
            let Work { timings, mut rejections, algorithm, .. } = other;
            if let Err(failure) = &fitted
                && !failure.is_cancellation()
            {
                rejections.note(algorithm, failure, work.watch);
            }
            work.take_over(&timings, rejections);
            work.schedules.clear();
            // What is said is why there is no plan of the best rate.
            return match fitted {
                Ok(fitted) => Ok(fitted),
                Err(PlanFailure::Stopped) => Err(PlanFailure::Stopped),
                Err(_) => Err(failure),
            };
        }
    };
    if !latency_counts(work, &fitted.attempt) {
        return Ok(fitted);
    }
    let others = rivals(work, &fitted.attempt);
    if others.is_empty() {
        return Ok(fitted);
    }
    let clock = Clock::of(work);
    let Some(by_best_rate) = clock.time_ps(&fitted.attempt)? else { return Ok(fitted) };
    let mut best = (by_best_rate, fitted);
    for Rival { algorithm, steps_min } in others {
        if clock.least_ps(work, steps_min) >= best.0 {
            continue;
        }
        let mut other = work.by(algorithm);
        let found = faster(&mut other, best.0, &clock);
        // It is made at once rather than searched for: a shape whose trees are known needs no search.
        let Work { timings, rejections, .. } = other;
        work.take_over(&timings, rejections);
        match found {
            Ok(Some(found)) => {
                best = found;
                // The schedule of the best rate has no part in the plan.
                work.schedules.clear();
            }
            Err(PlanFailure::Stopped) => return Err(PlanFailure::Stopped),
            // Slower.
            Ok(None) => {}
            // It has no part in the plan, whose request need not suffer for it: such as one for which a runtime has no room, or a wrong one.
            Err(failure) => work.rejections.note(algorithm, &failure, work.watch),
        }
    }
    Ok(best.1)
}

/// A plan that takes less time than this, with its files.
fn faster(work: &mut Work<'_>, than_ps: u64, clock: &Clock<'_>) -> Result<Option<(u64, Fitted)>, PlanFailure> {
    let first = fewer::first(work)?;
    let Some(time) = clock.time_below(&first, than_ps)? else { return Ok(None) };
    let fitted = fewer::fitted(work, first)?;
    // With fewer trees it is another plan.
    let time = if fitted.warning.is_none() { Some(time) } else { clock.time_below(&fitted.attempt, than_ps)? };
    Ok(time.map(|time| (time, fitted)))
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

impl Work<'_> {
    /// Adds what another algorithm took and what was wrong with it.
    fn take_over(&mut self, timings: &v1::Timings, rejections: Rejections) {
        self.timings.synthesis += timings.synthesis;
        self.timings.check += timings.check;
        self.timings.lower += timings.lower;
        self.rejections.append(rejections);
    }
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

/// Tells how long plans take for the messages of an order: on fair links, without barriers.
struct Clock<'a> {
    topology: &'a Topology,
    size_bytes: u64,
    stop: &'a dyn Stop,
}

impl<'a> Clock<'a> {
    fn of(work: &Work<'a>) -> Self {
        Self { topology: &work.prepared.topology, size_bytes: work.order.size_bytes_max, stop: work.stop }
    }

    /// What no plan of so many steps or more takes less than: an α for each of them, and an α before what the bound allows.
    fn least_ps(&self, work: &Work<'_>, steps_min: u32) -> u64 {
        let bytes = least_time_ps(self.size_bytes, &work.bound.upper).unwrap_or(u64::MAX);
        ALPHA_PS.saturating_mul(steps_min.into()).max(bytes.saturating_add(ALPHA_PS))
    }

    /// The time of a plan; none where it takes too much work to find.
    fn time_ps(&self, attempt: &Attempt) -> Result<Option<u64>, PlanFailure> {
        self.time_below(attempt, u64::MAX)
    }

    /// The time of a plan, if it is less than this. The longest chain of its transfers, and what its busiest link carries, may tell
    /// without a simulation that it is not.
    fn time_below(&self, attempt: &Attempt, than_ps: u64) -> Result<Option<u64>, PlanFailure> {
        if ALPHA_PS.saturating_mul(attempt.verdict.chain_max.into()) >= than_ps {
            return Ok(None);
        }
        let is_stopped = || self.stop.is_requested();
        let graph = match &attempt.graph {
            Some(graph) => Cow::Borrowed(graph),
            None => match compile_until(self.topology, &attempt.plan.schedule, &is_stopped) {
                Ok(graph) => Cow::Owned(graph),
                Err(CompileError::Stopped) => return Err(PlanFailure::Stopped),
                Err(_) => return Ok(None),
            },
        };
        match self.simulated_below(&graph, than_ps, &is_stopped) {
            Ok(time) => Ok(time),
            Err(SimulateError::Stopped) => Err(PlanFailure::Stopped),
            // Too much work, or too long: then the plan of the best rate it is.
            Err(_) => Ok(None),
        }
    }

    fn simulated_below(
        &self,
        graph: &TransferGraph,
        than_ps: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<u64>, SimulateError> {
        let options = SimulateOptions::usual(self.size_bytes, WORK_MAX);
        if graph.transfers.len() > TRANSFERS_MAX
            || bandwidth_limit_ps(self.topology, graph, &options)?.saturating_add(ALPHA_PS) >= than_ps
        {
            return Ok(None);
        }
        let time = simulate(self.topology, graph, &options, is_stopped)?.time_ps;
        Ok((time < than_ps).then_some(time))
    }
}
