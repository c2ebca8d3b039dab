//! Concurrent flows in steps: what a node sends in a step it has received in an earlier one.
//!
//! A linear program says how long each step takes at best (`program`); whole chunks are then fitted into these times, each on
//! a trajectory of its own (`fit`).

mod fit;
mod program;

use super::exact::{EXACT_VARIABLES_MAX, solve_exactly};
use super::problem::{Commodity, ConcurrentError, ConcurrentProblem};
use crate::digraph::{Arc, Digraph};
use crate::fraction::Fraction;
use crate::stop::Stop;
use fit::Fit;
use program::StepTimes;

/// Steps beyond the greatest distance that are tried: with one, every network that was tried is as fast as without steps.
const FURTHER_STEPS_MAX: u32 = 2;

/// Part of the time without steps that is not worth another step.
const NEAR_TIME: f64 = 1e-6;

/// Most chunks that are fitted.
const CHUNKS_TOTAL_MAX: u64 = 1 << 18;

/// What is asked of a flow in steps.
#[derive(Clone, Copy, Debug)]
pub struct SteppedOptions<'a> {
    /// Chunks that a unit of demand is divided into: from the first number up to the last, as few as lose no more than
    /// `loss_max`. Both at least 1.
    pub chunks: (u64, u64),
    /// What whole chunks may add to the time, as a part of it.
    pub loss_max: f64,
    /// By node, the capacity of all that it sends in a step, and again of all that it receives, relayed or not; empty for none.
    pub node_limits: &'a [u64],
}

/// A flow in steps and whole chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct SteppedRoutes {
    /// Chunks that a unit of demand is divided into.
    pub chunks_per_unit: u64,
    /// How many steps there are.
    pub step_count: u32,
    /// How long all steps take one after the other, for units of demand and capacity: exactly, where it fits.
    pub time: Option<Fraction>,
    /// How long they would take if chunks could be divided, to about eight digits.
    pub time_divided: f64,
    /// How long it takes without steps: 1 over the greatest rate.
    pub time_unstepped: f64,
    /// By commodity, by sink: what takes which way.
    pub routes: Vec<Vec<Vec<Trajectory>>>,
}

/// A way in time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trajectory {
    /// Arcs, each with the step in which it is passed, from 0; both joined and ascending.
    pub hops: Vec<(u32, u32)>,
    /// How many chunks take it, at least 1; those of a sink add up to its demand times the chunks of a unit.
    pub chunk_count: u64,
}

/// A flow of whole chunks in steps that takes nearly as little time as any.
///
/// Steps are as many as the greatest distance, or one or two more where that is faster.
///
/// * **Source.** Basu 2024, equations (15)–(20), grouped by source; §3.2.2 for limits of nodes. Trajectories by negotiated
///   congestion, after McMurchie and Ebeling 1995: chunks take turns to find the cheapest way in time, and what is too full
///   gets dearer from round to round.
/// * **In.** A problem in which each commodity stands for itself. **Out.** `None` where the linear program has more than
///   [`EXACT_VARIABLES_MAX`] variables, one for each commodity, arc and step at which something can be there, there are more
///   than 2¹⁸ chunks, or the solver gives up.
/// * **Errors.** [`ConcurrentError`]: commodities or limits that do not fit, out of reach, stopped.
/// * **Cost.** The linear program; then rounds of O(chunks · arcs · steps).
pub fn stepped_routes(
    problem: &ConcurrentProblem<'_>,
    options: &SteppedOptions<'_>,
    stop: &dyn Stop,
) -> Result<Option<SteppedRoutes>, ConcurrentError> {
    require_plain(problem, options)?;
    let Some(rate) = rate_without_steps(problem, options.node_limits, stop)? else { return Ok(None) };
    let Some(times) = step_times(problem, options.node_limits, rate, stop)? else { return Ok(None) };
    let units =
        problem.commodities().iter().flat_map(|commodity| &commodity.sinks).map(|&(_, demand)| u128::from(demand));
    let units: u128 = units.sum();
    let mut best: Option<Fit> = None;
    let (least, most) = options.chunks;
    for chunks in (least.max(1)..=most).filter(|&chunks| is_tried(least, chunks)) {
        if units * u128::from(chunks) > u128::from(CHUNKS_TOTAL_MAX) {
            break;
        }
        let fitted = fit::fitted(problem, options, &times, chunks, best.as_ref().map(|best| best.loss), stop)?;
        if let Some(fitted) = fitted {
            let is_enough = fitted.loss <= options.loss_max + fit::LOSS_NOISE;
            best = Some(fitted);
            if is_enough {
                break;
            }
        }
    }
    Ok(best.map(|best| SteppedRoutes {
        chunks_per_unit: best.chunks,
        step_count: times.step_count,
        time: best.time,
        time_divided: times.total(),
        time_unstepped: 1.0 / rate,
        routes: best.routes,
    }))
}

/// The times of as many steps as are worth while.
fn step_times(
    problem: &ConcurrentProblem<'_>,
    node_limits: &[u64],
    rate: f64,
    stop: &dyn Stop,
) -> Result<Option<StepTimes>, ConcurrentError> {
    let hops = program::Hops::new(problem);
    let mut best: Option<StepTimes> = None;
    for further in 0..=FURTHER_STEPS_MAX {
        let step_count = hops.greatest(problem)? + further;
        let found = program::step_times(problem, node_limits, &hops, step_count, rate, stop)?;
        let Some(found) = found else { break };
        if best.as_ref().is_none_or(|best| found.total() < best.total() * (1.0 - NEAR_TIME)) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.total() * rate <= 1.0 + NEAR_TIME) {
            break;
        }
    }
    Ok(best)
}

/// Numbers of chunks worth trying: every one up to 4, then those with many divisors.
fn is_tried(least: u64, chunks: u64) -> bool {
    chunks == least || chunks <= 4 || (chunks <= 16 && chunks.is_multiple_of(2)) || chunks.is_multiple_of(12)
}

fn require_plain(problem: &ConcurrentProblem<'_>, options: &SteppedOptions<'_>) -> Result<(), ConcurrentError> {
    if let Some(commodity) = problem.commodities().iter().position(|commodity| commodity.copies != 1) {
        return Err(ConcurrentError::Copies { commodity });
    }
    let (found, expected) = (options.node_limits.len(), problem.graph().node_count as usize);
    if found != 0 && found != expected {
        return Err(ConcurrentError::LimitCount { found, expected });
    }
    Ok(())
}

/// The greatest rate without steps; a node with a limit is one that things enter and leave through an arc each.
fn rate_without_steps(
    problem: &ConcurrentProblem<'_>,
    node_limits: &[u64],
    stop: &dyn Stop,
) -> Result<Option<f64>, ConcurrentError> {
    let graph = problem.graph();
    if node_limits.is_empty() {
        return Ok(solve_exactly(problem, stop)?.map(|optimum| optimum.limit));
    }
    // Node v enters at n + v, is v, and leaves at 2n + v.
    let node_count = graph.node_count;
    let too_large = ConcurrentError::TooLarge;
    let all = node_count.checked_mul(3).ok_or(too_large)?;
    let mut arcs: Vec<Arc> = Vec::with_capacity(graph.arcs.len() + 2 * node_limits.len());
    for arc in graph.arcs.iter().filter(|arc| arc.from != arc.to) {
        arcs.push(Arc { from: 2 * node_count + arc.from, to: node_count + arc.to, capacity: arc.capacity });
    }
    for (node, &capacity) in (0..node_count).zip(node_limits) {
        arcs.push(Arc { from: node_count + node, to: node, capacity });
        arcs.push(Arc { from: node, to: 2 * node_count + node, capacity });
    }
    let split = Digraph { node_count: all, arcs };
    let commodities: Vec<Commodity> = problem.commodities().to_vec();
    let split = ConcurrentProblem::new(&split, &commodities, &[])?;
    Ok(solve_exactly(&split, stop)?.map(|optimum| optimum.limit))
}

/// Whether a program of so many variables is too large.
const fn is_too_large(variable_count: u64) -> bool {
    variable_count > EXACT_VARIABLES_MAX
}

#[cfg(test)]
mod tests;
