//! Concurrent flows in steps: what a node sends in a step it has received in an earlier one, but for nodes that things only
//! pass, as they do a switch: these it leaves in the step in which it enters them.
//!
//! A linear program says how long each step takes at best (`program`); whole chunks are then fitted into these times, each on
//! a trajectory of its own (`fit`).

mod fit;
mod program;

use super::exact::{EXACT_VARIABLES_MAX, solve_exactly};
use super::problem::{ConcurrentError, ConcurrentProblem};
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

/// Options of a flow in steps.
#[derive(Clone, Copy, Debug)]
pub struct SteppedOptions<'a> {
    /// Chunks that a unit of demand is divided into: from the first number up to the last, as few as lose no more than
    /// `loss_max`. Both at least 1.
    pub chunks: (u64, u64),
    /// Most time that whole chunks may add, as a part of the time.
    pub loss_max: f64,
    /// By node, whether things pass it within a step and never rest there; empty where they may rest anywhere.
    pub transit: &'a [bool],
}

/// A flow in steps and whole chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct SteppedRoutes {
    /// Chunks that a unit of demand is divided into.
    pub chunks_per_unit: u64,
    /// Number of steps.
    pub step_count: u32,
    /// Time of all steps in sequence, in units of demand and capacity; exact if it fits.
    pub time: Option<Fraction>,
    /// Time of the steps if chunks could be divided, to about eight digits.
    pub time_divided: f64,
    /// Time without steps: 1 over the greatest rate.
    pub time_unstepped: f64,
    /// Routes in time of each sink of each commodity.
    pub routes: Vec<Vec<Vec<Trajectory>>>,
}

/// A route in time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trajectory {
    /// Arcs that join, each with the step in which it is passed, from 0: the step of the arc before where that ends at a node
    /// of transit, else a later one.
    pub hops: Vec<(u32, u32)>,
    /// Number of its chunks, at least 1; those of a sink add up to its demand times the chunks of a unit.
    pub chunk_count: u64,
}

/// A flow of whole chunks in steps that takes nearly as little time as any.
///
/// Steps are as many as the greatest distance, counted in nodes that things can rest at, or one or two more where that is
/// faster.
///
/// * **Source.** Basu 2024, equations (15)–(20), grouped by source; for nodes of transit each step has their balance instead of
///   a copy for the next one. A node of limited rate (§3.2.2) is one between two of transit. Trajectories by negotiated congestion, after McMurchie and Ebeling 1995: chunks take turns to find the cheapest way in time, and what is too full
///   gets dearer from round to round.
/// * **In.** A problem in which each commodity stands for itself. **Out.** `None` where the linear program has more than
///   [`EXACT_VARIABLES_MAX`] variables, one for each commodity, arc and step at which something can be there, there are more
///   than 2¹⁸ chunks, or the solver gives up.
/// * **Errors.** [`ConcurrentError`]: commodities or transit that do not fit, out of reach, stopped.
/// * **Cost.** The linear program; then rounds of O(chunks · arcs · steps), times the arcs from one node of rest to the next.
pub fn stepped_routes(
    problem: &ConcurrentProblem<'_>,
    options: &SteppedOptions<'_>,
    stop: &dyn Stop,
) -> Result<Option<SteppedRoutes>, ConcurrentError> {
    require_plain(problem, options)?;
    let Some(rate) = solve_exactly(problem, stop)?.map(|optimum| optimum.limit) else { return Ok(None) };
    let Some(times) = step_times(problem, options.transit, rate, stop)? else { return Ok(None) };
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
    transit: &[bool],
    rate: f64,
    stop: &dyn Stop,
) -> Result<Option<StepTimes>, ConcurrentError> {
    let hops = program::Hops::new(problem, transit);
    let mut best: Option<StepTimes> = None;
    for further in 0..=FURTHER_STEPS_MAX {
        let step_count = hops.greatest(problem)? + further;
        let found = program::step_times(problem, transit, &hops, step_count, rate, stop)?;
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
    let (found, expected) = (options.transit.len(), problem.graph().node_count as usize);
    if found != 0 && found != expected {
        return Err(ConcurrentError::TransitCount { found, expected });
    }
    for (commodity, of) in problem.commodities().iter().enumerate() {
        let mut ends = std::iter::once(of.source).chain(of.sinks.iter().map(|&(node, _)| node));
        if let Some(node) = ends.find(|&node| is_transit(options.transit, node)) {
            return Err(ConcurrentError::TransitEnd { commodity, node });
        }
    }
    Ok(())
}

/// Whether things only pass a node.
fn is_transit(transit: &[bool], node: u32) -> bool {
    transit.get(node as usize).is_some_and(|&is_transit| is_transit)
}

/// Whether a program of so many variables is too large.
const fn is_too_large(variable_count: u64) -> bool {
    variable_count > EXACT_VARIABLES_MAX
}

#[cfg(test)]
mod tests;
