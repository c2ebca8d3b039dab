//! How long plans take, and the least that any plan takes.

use std::borrow::Cow;

use canopy_schedule::{CompileError, TransferGraph, compile_until};
use canopy_simulate::{SimulateError, SimulateOptions, bandwidth_limit_ps, least_time_ps, simulate};
use canopy_synth::Stop;
use canopy_topology::{Latency, Rate, Topology};

use super::TRANSFERS_MAX;
use crate::error::PlanError;
use crate::search::{Attempt, Case};

/// Work of one simulation.
const WORK_MAX: u64 = 20_000_000;

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
        self.time_below(attempt, u64::MAX)
    }

    /// The time of a plan, if it is less than this. The longest chain of its transfers, and what its busiest link
    /// carries, may tell without a simulation that it is not.
    pub(super) fn time_below(&self, attempt: &Attempt, than_ps: u64) -> Result<Option<u64>, PlanError> {
        if self.alpha_ps().saturating_mul(attempt.verdict.chain_max.into()) >= than_ps {
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
        let options = SimulateOptions { alpha: self.alpha, ..SimulateOptions::usual(self.size_bytes, WORK_MAX) };
        if graph.transfers.len() > TRANSFERS_MAX
            || bandwidth_limit_ps(self.topology, graph, &options)?.saturating_add(self.alpha_ps()) >= than_ps
        {
            return Ok(None);
        }
        let time = simulate(self.topology, graph, &options, is_stopped)?.time_ps;
        Ok((time < than_ps).then_some(time))
    }
}
