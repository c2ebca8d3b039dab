//! The planner: bound first, then a schedule, then every check, then files that are read back.
//!
//! Pure but for the clock that times the stages. A plan comes out only if everything that judges it agrees: the
//! certificate proves the bound, the checker found the transfers right and their rate no better than the bound, and
//! each file, read back, is what was written and passes the checks of its format.

mod describe;
mod files;
mod input;
mod memory;

use canopy_plan::{PlanFile, Provenance};
use canopy_proto::v1;
use canopy_schedule::{
    Bound, CheckError, Collective, CompileError, Schedule, Shares, TransferGraph, Verdict, certified_bound,
    check_until, compile_until,
};
use canopy_synth::{Progress, Stage, Stop, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rate, Topology, TopologyLimits};

pub(crate) use self::describe::{collective as collective_on_the_wire, topology_summary};
use self::files::Files;
pub(crate) use self::input::read_topology;
use crate::clock;
use crate::failure::{PlanFailure, chain};
use crate::key::{PlanKey, TopologyKey};
use crate::order::{Order, Output};
use crate::planner::{Planner, Prepared, Produced, Watch};
use crate::store::StoredPlan;

/// Plans with canopy's own libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    limits: TopologyLimits,
}

impl Pipeline {
    /// A planner for topologies within these limits.
    pub const fn new(limits: TopologyLimits) -> Self {
        Self { limits }
    }
}

impl Planner for Pipeline {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        let (topology, warnings) = read_topology(&order.topology, &self.limits, stop)?;
        ask(stop)?;
        let root = order.root.map(canopy_topology::Rank::new);
        let collective = Collective::new(order.kind, root, topology.rank_count())?;
        let topology_key = TopologyKey::of(&topology);
        ask(stop)?;
        let key = PlanKey::new(&topology_key, collective, order);
        let memory_bytes = memory::estimate_bytes(&topology, collective, &order.outputs);
        Ok(Prepared { key, topology, topology_key, collective, memory_bytes, warnings })
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        let started = clock::now();
        let (topology, collective) = (&prepared.topology, prepared.collective);
        watch.stage("bound", 0, 1);
        let mut bound = proven_bound(topology, collective, stop)?;
        watch.bound(&bound.upper);
        let bound_ms = clock::millis_since(started);

        let synthesis_started = clock::now();
        let request = SynthesisRequest { limits: order.limits, ..SynthesisRequest::new(collective, order.algorithm) };
        let schedule = synthesize(topology, &request, stop, &StageReports(watch)).map_err(PlanFailure::Synthesis)?;
        let synthesis_ms = clock::millis_since(synthesis_started);

        let check_started = clock::now();
        ask(stop)?;
        watch.stage("check", 0, 1);
        let (graph, verdict) = checked(topology, &schedule, &bound, stop)?;
        watch.incumbent(&verdict.algbw);
        if verdict.algbw > bound.lower {
            // What a plan reaches is reachable, whatever was known before.
            bound.lower = verdict.algbw.clone();
        }
        let check_ms = clock::millis_since(check_started);

        let lower_started = clock::now();
        let provenance =
            Provenance { version: env!("CARGO_PKG_VERSION").to_owned(), algorithm: order.algorithm.name().to_owned() };
        let (achieved, in_network) = (verdict.algbw.clone(), verdict.in_network.clone());
        let plan = PlanFile { topology: topology.clone(), schedule, bound, achieved, in_network, provenance };
        let files = self.files(order, &plan, &graph, prepared, stop, watch)?;
        let timings = v1::Timings {
            bound: bound_ms,
            synthesis: synthesis_ms,
            check: check_ms,
            lower: clock::millis_since(lower_started),
            ..v1::Timings::default()
        };
        let wall_ms = clock::millis_since(started);
        let warnings = files.warnings.clone();
        let plan = describe::plan(order, prepared, &plan, &verdict, files, wall_ms)?;
        Ok(Produced { plan: StoredPlan { plan, warnings }, timings })
    }
}

impl Pipeline {
    /// Makes every file that is asked for.
    fn files(
        &self,
        order: &Order,
        plan: &PlanFile,
        graph: &TransferGraph,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Files, PlanFailure> {
        let mut files = Files::new(order.size_bytes_max);
        let total = order.outputs.len() as u64;
        for (done, &output) in (0_u64..).zip(&order.outputs) {
            ask(stop)?;
            watch.stage("lower", done, total);
            match output {
                Output::Json => files.add_json(plan, &self.limits)?,
                Output::MscclXml(profile) => files.add_msccl(profile, order, graph, &prepared.key, stop)?,
            }
        }
        Ok(files)
    }
}

/// The bound, and the certificate's own word for it.
fn proven_bound(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Bound, PlanFailure> {
    let bound = bound(topology, collective, &Shares::Equal, stop).map_err(PlanFailure::Bound)?;
    let rejected = |problem: String| PlanFailure::Rejected { check: "certificate", problem };
    let proven = certified_bound(topology, collective, &Shares::Equal, &bound.certificate);
    let proven = proven.map_err(|error| rejected(error.to_string()))?;
    if proven != bound.upper {
        return Err(rejected(format!("the certificate proves {proven}, stated is {}", bound.upper)));
    }
    if bound.lower > bound.upper {
        return Err(rejected(format!("{} is said to be reachable beyond the bound {}", bound.lower, bound.upper)));
    }
    Ok(bound)
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

/// Ends the work between two stages when nobody waits for it.
fn ask(stop: &dyn Stop) -> Result<(), PlanFailure> {
    if stop.is_requested() { Err(PlanFailure::Stopped) } else { Ok(()) }
}

/// Passes a synthesizer's reports on.
struct StageReports<'a>(&'a dyn Watch);

impl Progress for StageReports<'_> {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.stage(stage.name(), done, total);
    }
}

#[cfg(test)]
mod tests;
