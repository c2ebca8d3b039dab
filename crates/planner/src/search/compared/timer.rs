//! How long plans take, and the least that any plan takes.

use std::borrow::Cow;

use canopy_plan::chain;
use canopy_schedule::{CompileError, TransferGraph, compile_until};
use canopy_simulate::{SimulateError, SimulateOptions, bandwidth_limit_ps, least_time_ps, simulate};
use canopy_synth::Stop;
use canopy_topology::{Latency, Rate, Topology};

use super::TRANSFERS_MAX;
use crate::error::PlanError;
use crate::search::{Attempt, Case};

/// Work of one simulation.
const WORK_MAX: u64 = 20_000_000;

/// The time of a plan, beside that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// It is less.
    Less(u64),
    /// It is not.
    NotLess,
    /// The plan is too large to simulate.
    Unknown,
}

/// Tells how long plans take for the messages of a request: on fair links, without barriers.
pub(super) struct Timer<'a> {
    topology: &'a Topology,
    size_bytes: u64,
    /// Of a message.
    alpha: Latency,
    stop: &'a dyn Stop,
}

impl<'a> Timer<'a> {
    pub(super) fn of(case: &Case<'a>) -> Self {
        let Case { request, prepared, context, .. } = *case;
        let alpha = Latency::from_nanos(request.alpha_ns);
        Self { topology: &prepared.topology, size_bytes: request.size_bytes_max, alpha, stop: context.stop }
    }

    /// α of a message, in picoseconds.
    const fn alpha_ps(&self) -> u64 {
        self.alpha.nanos().saturating_mul(1_000)
    }

    /// What no plan of so many steps or more takes less than, where none is faster than this rate: an α for each step,
    /// and an α before what the rate allows.
    pub(super) fn least_ps(&self, upper: &Rate, steps_min: u32) -> u64 {
        let bytes = least_time_ps(self.size_bytes, upper).unwrap_or(u64::MAX);
        self.alpha_ps().saturating_mul(steps_min.into()).max(bytes.saturating_add(self.alpha_ps()))
    }

    /// The time of a plan; none where it takes too much work to find.
    pub(super) fn time_ps(&self, attempt: &Attempt) -> Result<Option<u64>, PlanError> {
        Ok(match self.time_below(attempt, u64::MAX)? {
            Time::Less(time_ps) => Some(time_ps),
            Time::NotLess | Time::Unknown => None,
        })
    }

    /// Compares the time of a plan with another. The longest chain of its transfers, and what its busiest link carries, may
    /// tell without a simulation that it is not less.
    pub(super) fn time_below(&self, attempt: &Attempt, than_ps: u64) -> Result<Time, PlanError> {
        if self.alpha_ps().saturating_mul(attempt.verdict.chain_max.into()) >= than_ps {
            return Ok(Time::NotLess);
        }
        let is_stopped = || self.stop.is_requested();
        let graph = match &attempt.graph {
            Some(graph) => Cow::Borrowed(graph),
            None => match compile_until(self.topology, &attempt.plan.schedule, &is_stopped) {
                Ok(graph) => Cow::Owned(graph),
                Err(error) => return not_compiled(error).map_or(Ok(Time::Unknown), Err),
            },
        };
        let time = self.simulated_below(&graph, than_ps, &is_stopped);
        time.or_else(|error| not_simulated(error).map_or(Ok(Time::Unknown), Err))
    }

    fn simulated_below(
        &self,
        graph: &TransferGraph,
        than_ps: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Time, SimulateError> {
        let options = SimulateOptions { alpha: self.alpha, ..SimulateOptions::usual(self.size_bytes, WORK_MAX) };
        if bandwidth_limit_ps(self.topology, graph, &options)?.saturating_add(self.alpha_ps()) >= than_ps {
            return Ok(Time::NotLess);
        }
        if graph.transfers.len() > TRANSFERS_MAX {
            return Ok(Time::Unknown);
        }
        let time = simulate(self.topology, graph, &options, is_stopped)?.time_ps;
        Ok(if time < than_ps { Time::Less(time) } else { Time::NotLess })
    }
}

/// What is wrong where a checked plan has no transfers; `None` if it is too large for them, and so for a comparison.
fn not_compiled(error: CompileError) -> Option<PlanError> {
    match error {
        CompileError::Stopped => Some(PlanError::Stopped),
        CompileError::TooManyHops { .. }
        | CompileError::TooManySends { .. }
        | CompileError::TooManyPathHops { .. }
        | CompileError::TooTangled { .. } => None,
        error => Some(PlanError::rejected("structure", chain(&error))),
    }
}

/// What is wrong where the transfers of a checked plan are not simulated; `None` if that takes too much work, or they too
/// long.
fn not_simulated(error: SimulateError) -> Option<PlanError> {
    match error {
        SimulateError::Stopped => Some(PlanError::Stopped),
        SimulateError::SizeTooLarge { .. } | SimulateError::TooLarge { .. } | SimulateError::TooLong => None,
        error @ (SimulateError::Shares(_)
        | SimulateError::Malformed { .. }
        | SimulateError::Rule { .. }
        | SimulateError::StepCount { .. }
        | SimulateError::StepOrder { .. }) => Some(PlanError::rejected("structure", chain(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_too_large_for_a_comparison_is_ordinary_and_a_malformed_one_is_a_bug() {
        let check = |failure: Option<PlanError>| failure.map(|failure| failure.failed_check());
        assert_eq!(check(not_compiled(CompileError::TooManySends { found: 2, limit: 1 })), None);
        assert_eq!(check(not_simulated(SimulateError::TooLong)), None);
        assert_eq!(check(not_simulated(SimulateError::TooLarge { messages: 2, limit: 1 })), None);
        assert_eq!(check(not_compiled(CompileError::UnknownRoot { root: 4, rank_count: 4 })), Some(Some("structure")));
        let malformed = SimulateError::Malformed { transfer: 0, what: "waits for itself" };
        assert_eq!(check(not_simulated(malformed)), Some(Some("structure")));
        for stopped in [not_compiled(CompileError::Stopped), not_simulated(SimulateError::Stopped)] {
            assert!(matches!(stopped, Some(PlanError::Stopped)), "{stopped:?}");
        }
    }
}
