//! One plan within given limits: made, checked, and written to files.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use canopy_plan::{PlanFile, Provenance};
use canopy_proto::v1;
use canopy_schedule::{
    Bound, Certificate, CheckError, CollectiveKind, CompileError, FormChoice, Schedule, Shape, Shares, TransferGraph,
    Verdict, check_flow_until, check_steps_until, check_until, compile_until,
};
use canopy_synth::{
    Algorithm, AllToAllFlow, ConstructionUse, Progress, ProvenTime, Stage, Stop, SynthesisError, SynthesisRequest,
    Synthesized, TreeLimits, synthesize_explained,
};
use canopy_topology::{Rate, Topology, TopologyLimits};

use super::ask;
use super::canon::Canon;
use super::composition;
use super::files::Files;
use super::joint::JointMade;
use super::rejections::Rejections;
use super::repair::Repair;
use crate::clock;
use crate::failure::{PlanFailure, chain};
use crate::key::ScheduleKey;
use crate::order::{Order, Output};
use crate::planner::{Prepared, Watch};
use crate::shapes::Shapes;

/// Most sends in steps that are kept: each takes some hundred bytes while it is written down.
const KEPT_SENDS_MAX: usize = 1 << 20;

/// Most sends in steps whose transfers are made for the checker where no file needs them.
const COMPILED_SENDS_MAX: usize = 1 << 17;

/// An order being worked on.
pub(super) struct Work<'a> {
    /// What a plan file that is read back may hold.
    pub(super) limits: &'a TopologyLimits,
    pub(super) shapes: &'a Arc<Shapes>,
    /// Threads that keep schedules.
    pub(super) keepers: Vec<JoinHandle<()>>,
    /// Where schedules are looked for and kept; none for what stays in the caller's labels.
    pub(super) canon: Option<&'a Canon>,
    /// The schedule that its plans are made of; none where they are searched for.
    pub(super) repair: Option<Repair>,
    /// The joint schedule that its plan is a part of; none where it is made alone.
    pub(super) joint: Option<&'a Arc<JointMade>>,
    /// What is searched: the network in canonical order or as it was prepared, perhaps with the boxes of its family.
    pub(super) network: &'a Topology,
    /// The plan within the order's own limits, in canonical labels, if it is known.
    pub(super) known: Option<Arc<PlanFile>>,
    /// Whether what is not known may be searched for.
    pub(super) may_search: bool,
    /// Whether anything was searched for.
    pub(super) has_searched: bool,
    /// The flow of an all-to-all on the network that is searched, once it is found.
    pub(super) flow: Option<Arc<AllToAllFlow>>,
    /// What was taken from the schedules of the shape or put there, in order.
    pub(super) schedules: Vec<ScheduleKey>,
    pub(super) order: &'a Order,
    /// How schedules are searched for: as ordered, or one of the algorithms among which that leaves the choice.
    pub(super) algorithm: Algorithm,
    pub(super) prepared: &'a Prepared,
    /// Proven; its lower end rises with every attempt that is better.
    pub(super) bound: Bound,
    /// Its certificate in the labels it was found with.
    pub(super) certificate: Certificate,
    /// Of all attempts together.
    pub(super) timings: v1::Timings,
    /// What has no part in the plan by a fault of our own.
    pub(super) rejections: Rejections,
    pub(super) stop: &'a dyn Stop,
    pub(super) watch: &'a dyn Watch,
}

/// A checked plan.
pub(super) struct Attempt {
    pub(super) plan: PlanFile,
    /// Its transfers; none for flows and many sends of which no file needs them, as they take several times the memory.
    pub(super) graph: Option<TransferGraph>,
    pub(super) verdict: Verdict,
    pub(super) proofs: Proofs,
}

/// What is proven of a plan beside its rate.
#[derive(Default)]
pub(super) struct Proofs {
    /// As of [`Synthesized::choice_bound`].
    pub(super) choice_bound: Option<Rate>,
    /// As of [`Synthesized::time_proof`].
    pub(super) time_proof: Option<ProvenTime>,
}

impl<'a> Work<'a> {
    /// The same order by one of the algorithms that it leaves the choice among, in the caller's labels.
    pub(super) fn by(&self, algorithm: Algorithm) -> Self {
        let prepared: &'a Prepared = self.prepared;
        Self {
            keepers: Vec::new(),
            canon: None,
            repair: None,
            joint: None,
            network: &prepared.topology,
            known: None,
            has_searched: false,
            // In the caller's labels there may be another.
            flow: None,
            schedules: Vec::new(),
            algorithm,
            bound: self.bound.clone(),
            certificate: self.certificate.clone(),
            timings: v1::Timings::default(),
            rejections: Rejections::of(prepared.key),
            ..*self
        }
    }

    /// Makes a plan within these limits, or takes the one that is known for the shape, and has it checked.
    pub(super) fn attempt(&mut self, limits: TreeLimits) -> Result<Attempt, PlanFailure> {
        if let Some(repair) = &self.repair {
            let started = clock::now();
            self.watch.stage("repair", 0, 1);
            let schedule = repair.schedule(&self.prepared.topology, limits, self.stop);
            self.timings.synthesis += clock::millis_since(started);
            return self.judged(schedule?, None);
        }
        if let (Some(made), Some(joint)) = (self.joint, &self.prepared.joint) {
            // It is not kept beyond this process.
            self.has_searched = true;
            return self.judged(made.schedule(joint.position, &self.prepared.topology)?, None);
        }
        let Some(canon) = self.canon else {
            let Synthesized { schedule, form, choice_bound, time_proof } = self.searched(limits)?;
            let proofs = Proofs { choice_bound, time_proof };
            return Ok(Attempt { proofs, ..self.judged(schedule, form)? });
        };
        let key = canon.key(self.order, limits);
        if !self.schedules.contains(&key) {
            self.schedules.push(key);
        }
        if let Some(known) = self.known.take().or_else(|| canon.answer(self.shapes, self.order, limits)) {
            let judged = canon.schedule(&known.schedule);
            match judged.and_then(|schedule| self.judged(schedule, known.form.clone())) {
                Err(failure @ PlanFailure::Rejected { .. }) => canon.refuse(self.shapes, self.order, limits, &failure),
                judged => return judged,
            }
        }
        if !self.may_search {
            return Err(PlanFailure::NotCached);
        }
        let Synthesized { schedule, form, choice_bound, time_proof } = self.searched(limits)?;
        let proofs = Proofs { choice_bound, time_proof };
        let attempt = Attempt { proofs, ..self.judged(canon.schedule(&schedule)?, form)? };
        // What was accepted under the caller's labels is right under those it was found with.
        let plan = &attempt.plan;
        let kept = PlanFile {
            topology: canon.normal.topology.clone(),
            schedule,
            form: plan.form.clone(),
            bound: Bound { certificate: self.certificate.clone(), ..self.bound.clone() },
            achieved: plan.achieved.clone(),
            in_network: plan.in_network.clone(),
            provenance: plan.provenance.clone(),
        };
        self.keep(key, kept);
        Ok(attempt)
    }

    /// Keeps a schedule, beside what else is to be done.
    fn keep(&mut self, key: ScheduleKey, kept: PlanFile) {
        if matches!(&kept.schedule.shape, Shape::Steps(steps) if steps.sends.len() > KEPT_SENDS_MAX) {
            return;
        }
        let (shapes, kept) = (Arc::clone(self.shapes), Arc::new(kept));
        let task = {
            let (shapes, kept) = (Arc::clone(&shapes), Arc::clone(&kept));
            move || shapes.schedules.put(&key, &kept)
        };
        match thread::Builder::new().name("canopy-keeper".to_owned()).spawn(task) {
            Ok(keeper) => self.keepers.push(keeper),
            Err(_) => shapes.schedules.put(&key, &kept),
        }
    }

    /// Waits until everything is kept.
    pub(super) fn join_keepers(&mut self) {
        for keeper in self.keepers.drain(..) {
            if keeper.join().is_err() {
                tracing::error!("a schedule could not be stored: its thread panicked");
            }
        }
    }

    /// Searches for a schedule, in canonical labels if there are any.
    fn searched(&mut self, limits: TreeLimits) -> Result<Synthesized, PlanFailure> {
        self.has_searched = true;
        let started = clock::now();
        let (collective, shares) = match self.canon {
            Some(canon) => (canon.collective, canon.shares.clone()),
            None => (self.prepared.collective, self.prepared.shares.clone()),
        };
        let (algorithm, sums, seed) = (self.algorithm, self.order.sums, self.order.seed);
        let composition = match &self.prepared.composition {
            None if algorithm.construction == ConstructionUse::StatedOrFound => {
                composition::found(self.network, self.limits, self.stop)?
            }
            stated => stated.clone(),
        };
        let size_bytes = NonZeroU64::new(self.order.size_bytes_max);
        let request = SynthesisRequest { collective, shares, algorithm, limits, sums, size_bytes, composition, seed };
        if self.flow.is_none() {
            let told = (self.stop, self.watch, &mut self.rejections);
            let found = all_to_all_flow(self.order, algorithm, self.network, &request.shares, told)?;
            self.flow = found.map(|(flow, _)| flow);
        }
        let reports = StageReports(self.watch);
        let planned = synthesize_explained(self.network, &request, self.flow.as_deref(), self.stop, &reports);
        self.timings.synthesis += clock::millis_since(started);
        planned.map_err(PlanFailure::Synthesis)
    }

    /// Has a schedule in the caller's labels checked.
    fn judged(&mut self, schedule: Schedule, form: Option<FormChoice>) -> Result<Attempt, PlanFailure> {
        let started = clock::now();
        ask(self.stop)?;
        self.watch.stage("check", 0, 1);
        let topology = &self.prepared.topology;
        let (graph, verdict) = checked(topology, &schedule, &self.order.outputs, &self.bound, self.stop)?;
        if verdict.algbw > self.bound.lower {
            // What a plan reaches is reachable, whatever was known before.
            self.bound.lower = verdict.algbw.clone();
        }
        self.timings.check += clock::millis_since(started);
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
        Ok(Attempt { plan, graph, verdict, proofs: Proofs::default() })
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
        let transfers = || {
            let none = || rejected("structure", "the file of a runtime needs the plan's transfers".to_owned());
            graph.as_ref().map(|graph| (&plan.topology, graph)).ok_or_else(none)
        };
        let total = order.outputs.len() as u64;
        for (done, &output) in (0_u64..).zip(&order.outputs) {
            ask(stop)?;
            self.watch.stage("lower", done, total);
            match output {
                Output::Json => files.add_json(plan, self.limits)?,
                Output::RoutesXml(layers_max) => files.add_routes(layers_max, order, plan, &prepared.key, stop)?,
                Output::OnecclXml => files.add_oneccl(order, transfers()?, &prepared.key, stop)?,
                Output::MscclXml(profile, instances) => {
                    files.add_msccl((profile, instances), order, transfers()?, &prepared.key, stop)?;
                }
                Output::MscclppJson(profile, switches) => {
                    files.add_execution_plan((profile, switches), order, transfers()?, &prepared.key, stop)?;
                }
            }
        }
        Ok(files)
    }
}

/// The flow of an all-to-all, and the milliseconds that it took, for algorithms that plan with it; none where there are
/// too many variables, for what else the search for a bound will say, or by a fault of ours, which is noted.
///
/// # Errors
/// Stopped.
pub(super) fn all_to_all_flow(
    order: &Order,
    algorithm: Algorithm,
    network: &Topology,
    shares: &Shares,
    (stop, watch, rejections): (&dyn Stop, &dyn Watch, &mut Rejections),
) -> Result<Option<(Arc<AllToAllFlow>, f64)>, PlanFailure> {
    let is_flow = algorithm.resolved(order.kind) == Algorithm::Flow;
    if order.kind != CollectiveKind::AllToAll || !is_flow {
        return Ok(None);
    }
    let started = clock::now();
    match AllToAllFlow::of(network, shares, order.limits.tolerance, stop, &StageReports(watch)) {
        Ok(flow) => Ok(Some((Arc::new(flow), clock::millis_since(started)))),
        Err(SynthesisError::Stopped) => Err(PlanFailure::Stopped),
        Err(error) => {
            rejections.note(Algorithm::Flow, &PlanFailure::Synthesis(error), watch);
            Ok(None)
        }
    }
}

/// What the checker says of a schedule, and its transfers; unless an output needs them, flows and most schedules of many
/// steps are judged without.
fn checked(
    topology: &Topology,
    schedule: &Schedule,
    outputs: &[Output],
    bound: &Bound,
    stop: &dyn Stop,
) -> Result<(Option<TransferGraph>, Verdict), PlanFailure> {
    let needs_graph = outputs.iter().any(|output| !matches!(output, Output::Json | Output::RoutesXml(_)));
    let is_stopped = || stop.is_requested();
    let refused = |error: CheckError| match error {
        CheckError::Stopped => PlanFailure::Stopped,
        error => rejected(error.check(), chain(&error)),
    };
    let verdict = match &schedule.shape {
        _ if needs_graph => None,
        Shape::Flow(_) => Some(check_flow_until(topology, schedule, &is_stopped).map_err(refused)?),
        // Of fewer, the transfers may be simulated.
        Shape::Steps(steps) if steps.sends.len() > COMPILED_SENDS_MAX => {
            check_steps_until(topology, schedule, &is_stopped).map_err(refused)?
        }
        Shape::Steps(_) | Shape::Forest(_) => None,
    };
    let (graph, verdict) = match verdict {
        Some(verdict) => (None, verdict),
        None => {
            let graph = compile_until(topology, schedule, &is_stopped).map_err(|error| match error {
                CompileError::Stopped => PlanFailure::Stopped,
                error => rejected("structure", chain(&error)),
            })?;
            let verdict = check_until(topology, &graph, &is_stopped).map_err(refused)?;
            (Some(graph), verdict)
        }
    };
    if verdict.algbw > bound.upper {
        let (rate, limit) = (&verdict.algbw, &bound.upper);
        return Err(rejected("certificate", format!("the plan reaches {rate}, more than the proven bound {limit}")));
    }
    if verdict.algbw == Rate::zero() {
        return Err(rejected("load", "the plan moves nothing".to_owned()));
    }
    Ok((graph, verdict))
}

/// A plan that fails one of its checks.
const fn rejected(check: &'static str, problem: String) -> PlanFailure {
    PlanFailure::Rejected { check, problem }
}

/// Passes a synthesizer's reports on.
struct StageReports<'a>(&'a dyn Watch);

impl Progress for StageReports<'_> {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.stage(stage.name(), done, total);
    }
}
