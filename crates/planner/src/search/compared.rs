//! Which plan `auto` takes for small messages: that of the best rate, or one of fewer steps.
//!
//! Rates say what large messages take. Where latencies count beside them, others are simulated at the largest message that was
//! asked for, and the fastest one is taken; that of the best rate where others are no faster, and the first of equals. What cannot be
//! faster, by its steps or by what its busiest link carries, is not simulated, and not even made where that is known before.

mod rivals;

use std::borrow::Cow;

use canopy_plan::TargetReason;
use canopy_schedule::{CollectiveKind, CompileError, TransferGraph, compile_until};
use canopy_simulate::{ALPHA_NS_USUAL, SimulateError, SimulateOptions, bandwidth_limit_ps, least_time_ps, simulate};
use canopy_synth::{Algorithm, Stop, SumOptions, TreeLimits};
use canopy_topology::{Rate, Topology};

use self::rivals::{Rival, rivals};
use super::fitted::{self, Fitted};
use super::{Attempt, Case, Search};
use crate::error::PlanError;
use crate::request::Request;

/// Latencies count if all hops of the deepest tree, so many times, take longer than the bytes do: a plan without any latency
/// would be faster by one part in seventeen at least.
const LATENCY_FACTOR: u128 = 16;

/// Most transfers of a plan that is compared: it is simulated in some tenths of a second.
const TRANSFERS_MAX: usize = 1 << 18;

/// Work of one simulation.
const WORK_MAX: u64 = 20_000_000;

/// α of a message, in picoseconds.
const ALPHA_PS: u64 = ALPHA_NS_USUAL * 1_000;

/// The plan for a request: by the algorithm that was asked for, or, where that is left open, the faster one at its size.
///
/// # Errors
/// As [`fitted::that_fit`].
pub(crate) fn best(search: &mut Search<'_>) -> Result<Fitted, PlanError> {
    let fitted = match fitted::that_fit(search) {
        Ok(fitted) => fitted,
        Err(failure) => return otherwise(search, failure),
    };
    if !latency_counts(&search.case, &fitted.attempt) {
        return Ok(fitted);
    }
    let others = rivals(&search.case, &fitted.attempt);
    if others.is_empty() {
        return Ok(fitted);
    }
    let timer = Timer::of(&search.case);
    let Some(by_best_rate) = timer.time_ps(&fitted.attempt)? else { return Ok(fitted) };
    let mut best = (by_best_rate, fitted);
    for Rival { algorithm, steps_min } in others {
        if timer.least_ps(search, steps_min) >= best.0 {
            continue;
        }
        let mut other = search.by(algorithm);
        let found = faster(&mut other, best.0, &timer);
        search.take_over(other.record);
        match found {
            Ok(Some(found)) => {
                best = found;
                // The schedule of the best rate has no part in the plan.
                search.record.schedules.clear();
            }
            Err(PlanError::Stopped) => return Err(PlanError::Stopped),
            // Slower.
            Ok(None) => {}
            // It has no part in the plan, whose request need not suffer for it: such as one for which a runtime has no room, or a wrong one.
            Err(failure) => search.record.rejections.note(algorithm, &failure, search.case.context.watch),
        }
    }
    Ok(best.1)
}

/// What is planned where there is no plan of the best rate, if there is a way out.
///
/// # Errors
/// Why there is no plan of the best rate; stopped.
fn otherwise(search: &mut Search<'_>, failure: PlanError) -> Result<Fitted, PlanError> {
    let Some(algorithm) = way_out(search.case.request, &failure) else { return Err(failure) };
    let mut other = search.by(algorithm);
    let fitted = fitted::that_fit(&mut other);
    if let Err(failure) = &fitted
        && !failure.is_cancellation()
    {
        other.record.rejections.note(algorithm, failure, search.case.context.watch);
    }
    search.take_over(other.record);
    search.record.schedules.clear();
    fitted.map_err(|other| if matches!(other, PlanError::Stopped) { other } else { failure })
}

/// A plan that takes less time than this, with its files.
fn faster(search: &mut Search<'_>, than_ps: u64, timer: &Timer<'_>) -> Result<Option<(u64, Fitted)>, PlanError> {
    let first = fitted::first(search)?;
    let Some(time) = timer.time_below(&first, than_ps)? else { return Ok(None) };
    let fitted = fitted::fitted(search, first)?;
    // With fewer trees it is another plan.
    let time = if fitted.warning.is_none() { Some(time) } else { timer.time_below(&fitted.attempt, than_ps)? };
    Ok(time.map(|time| (time, fitted)))
}

/// What is planned where a runtime can not have the plan of the best rate, if the request leaves the choice to the planner:
/// routes of one chunk each may have room where the least that a flow needs has not, and an allreduce in steps adds up as
/// much at every rank, where trees may have chosen otherwise.
fn way_out(request: &Request, failure: &PlanError) -> Option<Algorithm> {
    let is_open = request.algorithm == Algorithm::Auto && request.limits.without_tolerance() == TreeLimits::NONE;
    let has_uneven_sums = matches!(failure, PlanError::File { error, .. } if error.reason == TargetReason::Shares)
        && request.shares.is_empty()
        && request.sums == SumOptions::AUTO;
    match request.kind {
        CollectiveKind::AllToAll if is_open && fitted::over_limit(failure).is_some() => Some(Algorithm::Direct),
        CollectiveKind::Allreduce if is_open && has_uneven_sums => Some(Algorithm::Bfb),
        _ => None,
    }
}

/// Whether a plan of fewer hops could be faster by a part worth a simulation.
fn latency_counts(case: &Case<'_>, attempt: &Attempt) -> bool {
    let latency = case.prepared.topology.links().iter().map(|link| link.latency.nanos()).max().unwrap_or(0);
    let waiting =
        u128::from(attempt.verdict.depth_max) * u128::from(ALPHA_NS_USUAL.saturating_add(latency)) * LATENCY_FACTOR;
    // The rate at which the bytes take as long as all hops, in nanoseconds, so many times.
    let balance = Rate::new(u128::from(case.request.size_bytes_max) * 1_000_000_000, waiting);
    balance.is_some_and(|balance| attempt.verdict.algbw > balance)
}

/// Tells how long plans take for the messages of a request: on fair links, without barriers.
struct Timer<'a> {
    topology: &'a Topology,
    size_bytes: u64,
    stop: &'a dyn Stop,
}

impl<'a> Timer<'a> {
    fn of(case: &Case<'a>) -> Self {
        let Case { request, prepared, context, .. } = *case;
        Self { topology: &prepared.topology, size_bytes: request.size_bytes_max, stop: context.stop }
    }

    /// What no plan of so many steps or more takes less than: an α for each of them, and an α before what the bound allows.
    fn least_ps(&self, search: &Search<'_>, steps_min: u32) -> u64 {
        let bytes = least_time_ps(self.size_bytes, &search.bound.upper).unwrap_or(u64::MAX);
        ALPHA_PS.saturating_mul(steps_min.into()).max(bytes.saturating_add(ALPHA_PS))
    }

    /// The time of a plan; none where it takes too much work to find.
    fn time_ps(&self, attempt: &Attempt) -> Result<Option<u64>, PlanError> {
        self.time_below(attempt, u64::MAX)
    }

    /// The time of a plan, if it is less than this. The longest chain of its transfers, and what its busiest link carries, may tell
    /// without a simulation that it is not.
    fn time_below(&self, attempt: &Attempt, than_ps: u64) -> Result<Option<u64>, PlanError> {
        if ALPHA_PS.saturating_mul(attempt.verdict.chain_max.into()) >= than_ps {
            return Ok(None);
        }
        let is_stopped = || self.stop.is_requested();
        let graph = match &attempt.graph {
            Some(graph) => Cow::Borrowed(graph),
            None => match compile_until(self.topology, &attempt.plan.schedule, &is_stopped) {
                Ok(graph) => Cow::Owned(graph),
                Err(CompileError::Stopped) => return Err(PlanError::Stopped),
                Err(_) => return Ok(None),
            },
        };
        match self.simulated_below(&graph, than_ps, &is_stopped) {
            Ok(time) => Ok(time),
            Err(SimulateError::Stopped) => Err(PlanError::Stopped),
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
