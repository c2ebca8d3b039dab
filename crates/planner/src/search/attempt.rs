//! One plan within given limits: known or searched for, checked, and written to files.

use std::num::NonZeroU64;
use std::sync::Arc;

use canopy_plan::{Asked, Needs, PlanFile, Provenance, Target, chain};
use canopy_schedule::{
    Bound, CheckError, CollectiveKind, CompileError, FormChoice, Schedule, Shape, Shares, TransferGraph, Verdict,
    check_flow_until, check_steps_until, check_until, compile_until, judge_orbits_until, judge_stages_until,
};
use canopy_synth::{
    Algorithm, AllToAllFlow, ConstructionUse, Found, Progress, Stage, Stop, SynthesisError, SynthesisRequest,
    Synthesized, TreeLimits, synthesize_explained,
};
use canopy_topology::{Rate, Topology};

use super::{Case, Labels, Rejections, Search, Source};
use crate::context::{Note, Watch};
use crate::error::PlanError;
use crate::files;
use crate::network::composition_found;
use crate::planned::{Files, Proofs};

/// Most sends in steps that are kept: each takes some hundred bytes while it is written down.
const KEPT_SENDS_MAX: usize = 1 << 20;

/// Most sends in steps whose transfers are made for the checker where no file needs them.
const COMPILED_SENDS_MAX: usize = 1 << 17;

/// A checked plan.
pub(crate) struct Attempt {
    pub(crate) plan: PlanFile,
    /// Its transfers; none for flows and many sends of which no file needs them, as they take several times the memory.
    pub(crate) graph: Option<TransferGraph>,
    pub(crate) verdict: Verdict,
    /// Whether each link carries anything, where the checker has said so.
    pub(crate) links_used: Option<Vec<bool>>,
    pub(crate) proofs: Proofs,
}

impl Attempt {
    /// Transfers that files of runtimes are made from; 0 where they are not kept.
    pub(super) fn transfers(&self) -> u64 {
        self.graph.as_ref().map_or(0, |graph| graph.transfers.len() as u64)
    }
}

impl Search<'_> {
    /// Makes a plan within these limits, or takes the one that is known for the shape, and has it checked.
    pub(super) fn attempt(&mut self, limits: TreeLimits) -> Result<Attempt, PlanError> {
        let Case { prepared, context, source, .. } = self.case;
        match source {
            Source::Repaired(repair) => {
                let started = context.clock.now_ms();
                context.watch.stage("repair", 0, 1);
                let schedule = repair.schedule(&prepared.topology, limits, context);
                self.record.timings.synthesis_ms += context.since(started);
                self.judged(schedule?, None)
            }
            Source::Joint(made) => {
                // It is not kept beyond this process.
                self.record.has_searched = true;
                let position = prepared.joint.as_ref().map_or(0, |joint| joint.position);
                self.judged(made.schedule(position, &prepared.topology)?, None)
            }
            Source::Searched => {
                let Synthesized { schedule, form, choice_bound, time_proof } = self.searched(limits)?;
                let proofs = Proofs { choice_bound, time_proof };
                Ok(Attempt { proofs, ..self.judged(schedule, form)? })
            }
            Source::Kept { labels, may_search } => match self.recalled(labels, limits)? {
                Some(attempt) => Ok(attempt),
                None if may_search => self.found(labels, limits),
                None => Err(PlanError::NotKnown),
            },
        }
    }

    /// The plan that is kept within these limits, if there is one and it is right.
    fn recalled(&mut self, labels: &Labels, limits: TreeLimits) -> Result<Option<Attempt>, PlanError> {
        let Case { request, sums, context, .. } = self.case;
        let key = labels.key(request, sums, limits);
        if !self.record.schedules.contains(&key) {
            self.record.schedules.push(key);
        }
        let known = self.known.take().or_else(|| labels.answer(context.schedules, request, sums, limits));
        let Some(known) = known else { return Ok(None) };
        let judged = labels.schedule(&known.schedule);
        match judged.and_then(|schedule| self.judged(schedule, known.form.clone())) {
            Err(reason @ PlanError::Rejected { .. }) => {
                context.watch.note(Note::WrongSchedule { key: &key, reason: &reason });
                context.schedules.quarantine(&key);
                Ok(None)
            }
            judged => judged.map(Some),
        }
    }

    /// Searches for a plan within these limits, and keeps its schedule.
    fn found(&mut self, labels: &Labels, limits: TreeLimits) -> Result<Attempt, PlanError> {
        let Synthesized { schedule, form, choice_bound, time_proof } = self.searched(limits)?;
        let proofs = Proofs { choice_bound, time_proof };
        let attempt = Attempt { proofs, ..self.judged(labels.schedule(&schedule)?, form)? };
        if matches!(&schedule.shape, Shape::Steps(steps) if steps.sends.len() > KEPT_SENDS_MAX) {
            return Ok(attempt);
        }
        // What was accepted under the caller's labels is right under those it was found with.
        let plan = &attempt.plan;
        let kept = PlanFile {
            topology: labels.normal.topology.clone(),
            schedule,
            form: plan.form.clone(),
            bound: Bound { certificate: self.certificate.clone(), ..self.bound.clone() },
            achieved: plan.achieved.clone(),
            in_network: plan.in_network.clone(),
            provenance: plan.provenance.clone(),
        };
        let Case { request, sums, keep, .. } = self.case;
        keep(labels.key(request, sums, limits), Arc::new(kept));
        Ok(attempt)
    }

    /// Searches for a schedule, in canonical labels if there are any.
    fn searched(&mut self, limits: TreeLimits) -> Result<Synthesized, PlanError> {
        self.record.has_searched = true;
        let Case { request, prepared, context, algorithm, sums, network, .. } = self.case;
        let started = context.clock.now_ms();
        let (collective, shares) = match self.case.labels() {
            Some(labels) => (labels.collective, labels.shares.clone()),
            None => (prepared.collective, prepared.shares.clone()),
        };
        let composition = match &prepared.composition {
            None if algorithm.construction == ConstructionUse::StatedOrFound => {
                composition_found(network, self.case.limits, context.stop)?
            }
            stated => stated.clone(),
        };
        let (size_bytes, seed) = (NonZeroU64::new(request.size_bytes_max), request.seed);
        let request = SynthesisRequest { collective, shares, algorithm, limits, sums, size_bytes, composition, seed };
        if self.found.is_none() {
            let found = all_to_all_flow(&self.case, &request.shares, &mut self.record.rejections)?;
            self.found = found.map(|(flow, _)| Found::Flow(Box::new(flow)));
        }
        let reports = StageReports(context.watch);
        let planned = synthesize_explained(network, &request, self.found.as_ref(), context.stop, &reports);
        self.record.timings.synthesis_ms += context.since(started);
        planned.map_err(PlanError::Synthesis)
    }

    /// Has a schedule in the caller's labels checked.
    fn judged(&mut self, schedule: Schedule, form: Option<FormChoice>) -> Result<Attempt, PlanError> {
        let Case { request, prepared, context, .. } = self.case;
        let started = context.clock.now_ms();
        context.ask()?;
        context.watch.stage("check", 0, 1);
        let topology = &prepared.topology;
        let Checked { graph, verdict, links_used } =
            checked(topology, &schedule, &request.outputs, &self.bound, context.stop)?;
        // What a plan reaches is reachable, whatever was known before. What another one reaches is no part of its file,
        // and a reader of the file cannot derive it.
        let lower = self.bound.lower.clone().max(verdict.algbw.clone());
        self.record.timings.check_ms += context.since(started);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let plan = PlanFile {
            topology: topology.clone(),
            schedule,
            form,
            bound: Bound { lower, ..self.bound.clone() },
            achieved: verdict.algbw.clone(),
            in_network: verdict.in_network.clone(),
            provenance: Provenance { version, algorithm: request.algorithm.name().to_owned() },
        };
        Ok(Attempt { plan, graph, verdict, links_used, proofs: Proofs::default() })
    }

    /// Makes every file that is asked for.
    pub(super) fn files(&mut self, attempt: &Attempt) -> Result<Files, PlanError> {
        let started = self.case.context.clock.now_ms();
        let files = self.case.written(attempt);
        self.record.timings.lower_ms += self.case.context.since(started);
        files
    }
}

impl Case<'_> {
    fn written(&self, Attempt { plan, graph, .. }: &Attempt) -> Result<Files, PlanError> {
        let Self { request, prepared, context, .. } = *self;
        let (name, seed) = (files::name(request, plan, &prepared.key), files::seed(&prepared.key));
        let is_stopped = || context.stop.is_requested();
        let mut files = Files::new(request.size_bytes_max);
        let total = request.outputs.len() as u64;
        for (done, &target) in request.outputs.iter().enumerate() {
            context.ask()?;
            context.watch.stage("lower", done as u64, total);
            let layered = match target.needs() {
                Needs::Layers(most) => Some(files::layered(&plan.topology, &plan.schedule, most, context.stop)),
                Needs::Plan | Needs::Transfers => None,
            };
            let asked = |layered| Asked {
                topology: &plan.topology,
                base: prepared.base.as_deref(),
                plan: Some(plan),
                graph: graph.as_ref(),
                layered,
                name: &name,
                rank_map: prepared.rank_map.as_deref().filter(|_| request.states_devices()),
                in_place: request.in_place,
                bytes_min: request.size_bytes_min,
                bytes_max: request.size_bytes_max,
                seed,
                limits: self.limits,
                stop: &is_stopped,
            };
            let file = layered.transpose().and_then(|layered| target.write(asked(layered)));
            files.add(target, file.map_err(|error| PlanError::of_file(done, error))?);
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
    case: &Case<'_>,
    shares: &Shares,
    rejections: &mut Rejections,
) -> Result<Option<(AllToAllFlow, f64)>, PlanError> {
    let Case { request, context, algorithm, network, .. } = *case;
    let is_flow = algorithm.resolved(request.kind) == Algorithm::Flow;
    if request.kind != CollectiveKind::AllToAll || !is_flow {
        return Ok(None);
    }
    let started = context.clock.now_ms();
    match AllToAllFlow::of(network, shares, request.limits.tolerance, context.stop, &StageReports(context.watch)) {
        Ok(flow) => Ok(Some((flow, context.since(started)))),
        Err(SynthesisError::Stopped) => Err(PlanError::Stopped),
        Err(error) => {
            rejections.note(Algorithm::Flow, &PlanError::Synthesis(error), context.watch);
            Ok(None)
        }
    }
}

/// A schedule that passed the checks.
struct Checked {
    graph: Option<TransferGraph>,
    verdict: Verdict,
    links_used: Option<Vec<bool>>,
}

/// What the checker says of a schedule, and its transfers; unless an output needs them, flows, stages and most schedules of
/// many steps are judged without.
fn checked(
    topology: &Topology,
    schedule: &Schedule,
    outputs: &[Target],
    bound: &Bound,
    stop: &dyn Stop,
) -> Result<Checked, PlanError> {
    let needs_graph = outputs.iter().any(|output| output.needs() == Needs::Transfers);
    let is_stopped = || stop.is_requested();
    let refused = |error: CheckError| match error {
        CheckError::Stopped => PlanError::Stopped,
        error => rejected(error.check(), chain(&error)),
    };
    let mut links_used = None;
    let verdict = match &schedule.shape {
        _ if needs_graph => None,
        Shape::Flow(_) => Some(check_flow_until(topology, schedule, &is_stopped).map_err(refused)?),
        // Of fewer, the transfers may be simulated.
        Shape::Steps(steps) if steps.sends.len() > COMPILED_SENDS_MAX => {
            check_steps_until(topology, schedule, &is_stopped).map_err(refused)?
        }
        Shape::Stages(stages) => {
            let judged = judge_stages_until(topology, schedule.collective, &schedule.shares, stages, &is_stopped);
            let (verdict, chunks) = judged.map_err(refused)?;
            links_used = Some(chunks.into_iter().map(|chunks| chunks > 0).collect());
            Some(verdict)
        }
        Shape::Orbits(orbits) => {
            let judged = judge_orbits_until(topology, schedule.collective, &schedule.shares, orbits, &is_stopped);
            let (verdict, chunks) = judged.map_err(refused)?;
            links_used = Some(chunks.into_iter().map(|chunks| chunks > 0).collect());
            Some(verdict)
        }
        Shape::Steps(_) | Shape::Forest(_) => None,
    };
    let (graph, verdict) = match verdict {
        Some(verdict) => (None, verdict),
        None => {
            let graph = compile_until(topology, schedule, &is_stopped).map_err(|error| match error {
                CompileError::Stopped => PlanError::Stopped,
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
    Ok(Checked { graph, verdict, links_used })
}

/// A plan that fails one of its checks.
const fn rejected(check: &'static str, problem: String) -> PlanError {
    PlanError::Rejected { check, problem }
}

/// Passes a synthesizer's reports on.
struct StageReports<'a>(&'a dyn Watch);

impl Progress for StageReports<'_> {
    fn report(&self, stage: Stage, done: u64, total: u64) {
        self.0.stage(stage.name(), done, total);
    }
}
