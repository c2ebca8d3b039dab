//! One plan within given limits: made, checked, and written to files.

use canopy_plan::{PlanFile, Provenance};
use canopy_proto::v1;
use canopy_schedule::{Bound, CheckError, CompileError, Schedule, TransferGraph, Verdict, check_until, compile_until};
use canopy_synth::{Progress, Stage, Stop, SynthesisRequest, Synthesized, TreeLimits, synthesize_explained};
use canopy_topology::{Rate, Topology, TopologyLimits};

use super::ask;
use super::files::Files;
use crate::clock;
use crate::failure::{PlanFailure, chain};
use crate::order::{Order, Output};
use crate::planner::{Prepared, Watch};

/// An order being worked on.
pub(super) struct Work<'a> {
    /// What a plan file that is read back may hold.
    pub(super) limits: &'a TopologyLimits,
    pub(super) order: &'a Order,
    pub(super) prepared: &'a Prepared,
    /// Proven; its lower end rises with every attempt that is better.
    pub(super) bound: Bound,
    /// Of all attempts together.
    pub(super) timings: v1::Timings,
    pub(super) stop: &'a dyn Stop,
    pub(super) watch: &'a dyn Watch,
}

/// A checked plan.
pub(super) struct Attempt {
    pub(super) plan: PlanFile,
    pub(super) graph: TransferGraph,
    pub(super) verdict: Verdict,
}

impl Work<'_> {
    /// Makes a plan within these limits, and has it checked.
    pub(super) fn attempt(&mut self, limits: TreeLimits) -> Result<Attempt, PlanFailure> {
        let (topology, collective) = (&self.prepared.topology, self.prepared.collective);
        let synthesis_started = clock::now();
        let shares = self.prepared.shares.clone();
        let sums = self.order.sums;
        let request = SynthesisRequest { collective, shares, algorithm: self.order.algorithm, limits, sums };
        let planned = synthesize_explained(topology, &request, self.stop, &StageReports(self.watch));
        let Synthesized { schedule, form } = planned.map_err(PlanFailure::Synthesis)?;
        self.timings.synthesis += clock::millis_since(synthesis_started);

        let check_started = clock::now();
        ask(self.stop)?;
        self.watch.stage("check", 0, 1);
        let (graph, verdict) = checked(topology, &schedule, &self.bound, self.stop)?;
        if verdict.algbw > self.bound.lower {
            // What a plan reaches is reachable, whatever was known before.
            self.bound.lower = verdict.algbw.clone();
        }
        self.timings.check += clock::millis_since(check_started);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let plan = PlanFile {
            topology: topology.clone(),
            schedule,
            form,
            bound: self.bound.clone(),
            achieved: verdict.algbw.clone(),
            in_network: verdict.in_network.clone(),
            provenance: Provenance { version, algorithm: self.order.algorithm.name().to_owned() },
        };
        Ok(Attempt { plan, graph, verdict })
    }

    /// Makes every file that is asked for.
    pub(super) fn files(&mut self, attempt: &Attempt) -> Result<Files, PlanFailure> {
        let started = clock::now();
        let files = self.write(attempt);
        self.timings.lower += clock::millis_since(started);
        files
    }

    fn write(&self, Attempt { plan, graph, .. }: &Attempt) -> Result<Files, PlanFailure> {
        let Self { order, prepared, stop, .. } = *self;
        let mut files = Files::new(order.size_bytes_max);
        let total = order.outputs.len() as u64;
        for (done, &output) in (0_u64..).zip(&order.outputs) {
            ask(stop)?;
            self.watch.stage("lower", done, total);
            match output {
                Output::Json => files.add_json(plan, self.limits)?,
                Output::MscclXml(profile, instances) => {
                    files.add_msccl((profile, instances), order, (&plan.topology, graph), &prepared.key, stop)?;
                }
            }
        }
        Ok(files)
    }
}

/// The transfers of a schedule and what the checker says of them.
fn checked(
    topology: &Topology,
    schedule: &Schedule,
    bound: &Bound,
    stop: &dyn Stop,
) -> Result<(TransferGraph, Verdict), PlanFailure> {
    let rejected = |check: &'static str| move |problem: String| PlanFailure::Rejected { check, problem };
    let is_stopped = || stop.is_requested();
    let graph = compile_until(topology, schedule, &is_stopped).map_err(|error| match error {
        CompileError::Stopped => PlanFailure::Stopped,
        error => rejected("structure")(chain(&error)),
    })?;
    let verdict = check_until(topology, &graph, &is_stopped).map_err(|error| match error {
        CheckError::Stopped => PlanFailure::Stopped,
        error => rejected(error.check())(chain(&error)),
    })?;
    if verdict.algbw > bound.upper {
        let (rate, limit) = (&verdict.algbw, &bound.upper);
        return Err(rejected("certificate")(format!("the plan reaches {rate}, more than the proven bound {limit}")));
    }
    if verdict.algbw == Rate::zero() {
        return Err(rejected("load")("the plan moves nothing".to_owned()));
    }
    Ok((graph, verdict))
}

/// Passes a synthesizer's reports on.
struct StageReports<'a>(&'a dyn Watch);

impl Progress for StageReports<'_> {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.stage(stage.name(), done, total);
    }
}
