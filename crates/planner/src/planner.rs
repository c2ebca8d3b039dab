//! The planner: bound first, then a schedule, then every check, then files that are read back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use canopy_plan::PlanFile;
use canopy_schedule::{AllreduceForm, Bound, Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, RootPolicy, Stop, TreeLimits, allreduce_form, are_listed};
use canopy_topology::{Rank, Topology, TopologyLimits};

use crate::bounded::{bound_with_nvls, bounded};
use crate::context::Context;
use crate::error::PlanError;
use crate::key::{PlanKey, ScheduleKey};
use crate::memory::{self, Form};
use crate::network::{self, Bases, Part, Relative, Relatives, Seats, Whole, composition_stated};
use crate::planned::{Planned, Warning};
use crate::prepared::Prepared;
use crate::request::{Making, Request};
use crate::rules::Rules;
use crate::schedules::Schedules;
use crate::search::{
    self, Attempt, Case, Fitted, JointMade, Joints, Labels, Repair, Source, first_limits, joint_prepared, that_fit,
};
use crate::shapes::Shapes;

/// From this estimate on, an allreduce is looked at for the form it will have: trees with roots anywhere are fewer, and
/// to find out takes some tenths of a second.
const FORM_MATTERS_BYTES: u64 = 1 << 30;

/// Plans with canopy's own libraries. Caches canonical forms and recent plans; any number of threads may share it.
#[derive(Debug)]
pub struct Planner {
    limits: TopologyLimits,
    bases: Bases,
    shapes: Shapes,
    relatives: Relatives,
    joints: Joints,
    pub(crate) rules: Rules,
}

/// What a request needs, as far as it is known without a search.
#[derive(Clone, Debug)]
pub enum Recalled {
    /// Everything that the plan needs.
    Made(Box<Planned>),
    /// Not enough, and where the result will be stored, if anywhere.
    Unknown(Option<ScheduleKey>),
}

impl Planner {
    /// A planner for topologies within these limits.
    pub fn new(limits: TopologyLimits) -> Self {
        Self {
            limits,
            bases: Bases::new(),
            shapes: Shapes::new(),
            relatives: Relatives::new(),
            joints: Joints::new(),
            rules: Rules::new(),
        }
    }

    /// Makes the best plan for a request, checked, with all its files.
    ///
    /// # Errors
    /// What is wrong with the request, or why it has no plan; [`PlanError::Stopped`] soon after a stop is requested.
    pub fn plan(&self, request: &Request, context: Context<'_>) -> Result<Planned, PlanError> {
        let prepared = self.prepare(request, context.stop)?;
        let mut planned = self.produce(request, &prepared, context)?;
        planned.warnings.splice(0..0, prepared.warnings);
        Ok(planned)
    }

    /// Finds the best rate that any plan for a request can reach, with its proof and the request with its topology
    /// read.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn bound(&self, request: &Request, stop: &dyn Stop) -> Result<(Prepared, Bound), PlanError> {
        let prepared = self.prepare(request, stop)?;
        let bound = bounded(&prepared, stop)?;
        Ok((prepared, bound))
    }

    /// Reads and hashes the topology: enough to know whether the plan exists already.
    ///
    /// # Errors
    /// What is wrong with the request; [`PlanError::Stopped`] soon after `stop` is requested.
    pub fn prepare(&self, request: &Request, stop: &dyn Stop) -> Result<Prepared, PlanError> {
        let whole = self.bases.read(&request.topology, &self.limits, stop)?;
        ask(stop)?;
        let joint = request.joint.as_ref();
        let joint =
            joint.map(|joint| joint_prepared(&whole.topology, joint, request.tenant.as_ref(), stop)).transpose()?;
        let faults = (!request.faults.is_empty()).then(|| network::faults(&whole.topology, request)).transpose()?;
        let faults = faults.map(|faults| (faults, whole.id()));
        let Whole { topology: whole, mut warnings, base } = whole;
        let mut part = Part::sound(network::take(whole, request, &mut warnings)?, request);
        ask(stop)?;
        if let Some((faults, base)) = faults {
            part = part.without(&faults, request, base)?;
        }
        let sound = match request.making {
            Making::Searched => None,
            Making::Repaired if request.faults.is_empty() => Some(Box::new(self.relative(request, &part, stop)?)),
            Making::Repaired => Some(Box::new(self.prepare(&request.sound(), stop)?)),
        };
        let mut prepared = self.prepared(request, part, sound, warnings, stop)?;
        prepared.base = base.map(|base| Arc::clone(&base.topology));
        if let Some((joint, memory_bytes)) = joint {
            prepared.key = prepared.key.in_common(&joint.key, joint.position);
            prepared.memory_bytes = prepared.memory_bytes.saturating_add(memory_bytes);
            prepared.joint = Some(Arc::new(joint));
        }
        Ok(prepared)
    }

    /// Makes the plan from stored schedules of the network's shape, without a search: takes milliseconds.
    ///
    /// # Errors
    /// As [`Planner::produce`].
    pub fn recall(&self, request: &Request, prepared: &Prepared, context: Context<'_>) -> Result<Recalled, PlanError> {
        if request.making == Making::Repaired {
            // Readers have other things to do than to wait for its bound.
            return Ok(Recalled::Unknown(None));
        }
        if let Some(joint) = &prepared.joint {
            // What is left once the schedule is there takes a worker all the same; the search is for whoever comes first.
            return Ok(Recalled::Unknown(Some(joint.key)));
        }
        let labels = Labels::of(&self.shapes, request, prepared, context.stop)?;
        let Some(labels) = labels else { return Ok(Recalled::Unknown(None)) };
        let key = labels.key(request, request.sums_on(&prepared.topology), first_limits(request));
        if !context.schedules.has(&key) {
            return Ok(Recalled::Unknown(Some(key)));
        }
        match self.made(request, prepared, Source::Kept { labels: &labels, may_search: false }, context) {
            Ok(planned) => Ok(Recalled::Made(Box::new(planned))),
            Err(PlanError::NotKnown) => Ok(Recalled::Unknown(Some(key))),
            Err(failure) => Err(failure),
        }
    }

    /// Whether the entry of this key is cached or stored, so that [`Planner::recall`] or a joint plan needs no search.
    pub fn is_known(&self, schedule: &ScheduleKey, schedules: &dyn Schedules) -> bool {
        schedules.has(schedule) || self.joints.has(schedule)
    }

    /// Makes the plan, checked, with the content of all its files.
    ///
    /// # Errors
    /// Why there is no plan; [`PlanError::Stopped`] soon after a stop is requested.
    pub fn produce(&self, request: &Request, prepared: &Prepared, context: Context<'_>) -> Result<Planned, PlanError> {
        if let Some(joint) = &prepared.joint {
            return self.in_common(request, prepared, context).map_err(|failure| failure.of_one(joint.position));
        }
        if let Some(repair) = Repair::of(&self.shapes, request, prepared, context)? {
            return self.made(request, prepared, Source::Repaired(&repair), context);
        }
        let labels = match context.schedules.are_kept() {
            true => Labels::of(&self.shapes, request, prepared, context.stop)?,
            false => None,
        };
        let source = labels.as_ref().map_or(Source::Searched, |labels| Source::Kept { labels, may_search: true });
        let made = match self.made(request, prepared, source, context) {
            // Said again in the caller's own labels.
            Err(failure) if labels.as_ref().is_some_and(Labels::is_renamed) && failure.names_parts() => {
                self.made(request, prepared, Source::Searched, context)
            }
            made => made,
        };
        if made.is_ok() && labels.is_some() && prepared.puncture.is_none() {
            self.relatives.note(&prepared.topology, prepared.rank_map.as_deref(), request.kind);
        }
        made.map_err(|failure| failure.with_parts(&prepared.topology))
    }

    /// A plan that is part of a joint plan.
    fn in_common(&self, request: &Request, prepared: &Prepared, context: Context<'_>) -> Result<Planned, PlanError> {
        let joint = prepared.joint.as_ref().ok_or(PlanError::NotKnown)?;
        let started = context.clock.now_ms();
        context.watch.stage("joint", 0, 1);
        let made: Arc<JointMade> = self.joints.of(joint, context.stop)?;
        let synthesis_ms = context.since(started);
        let mut planned = self.made(request, prepared, Source::Joint(&made), context)?;
        planned.timings.synthesis_ms += synthesis_ms;
        planned.wall_ms += synthesis_ms;
        planned.joint = made.summary(joint);
        Ok(planned)
    }

    /// A request on the part of the network that it is about.
    fn prepared(
        &self,
        request: &Request,
        part: Part,
        sound: Option<Box<Prepared>>,
        warnings: Vec<Warning>,
        stop: &dyn Stop,
    ) -> Result<Prepared, PlanError> {
        let Part { seats: Seats { topology, rank_map }, root, shares, puncture } = part;
        require_scale(request, &topology)?;
        let collective = Collective::new(request.kind, root.map(Rank::new), topology.rank_count())?;
        let shares = match shares.as_slice() {
            [] => Shares::Equal,
            _ => Shares::in_proportion(collective, topology.rank_count(), shares)?,
        };
        let topology_key = self.shapes.key_of(&topology, stop).map_err(|_| PlanError::Stopped)?;
        ask(stop)?;
        let key = PlanKey::new(&topology_key, collective, &shares, request);
        let composition = composition_stated(request, &self.limits)?;
        let key = composition.as_ref().map_or(key, |composition| key.composed(&composition.construction));
        let key = if request.sums_on(&topology).in_network { key.through_switches() } else { key };
        let key = rank_map.as_ref().map_or(key, |slots| key.placed(slots));
        let key = if request.states_devices() { key.stating_devices() } else { key };
        let key = request.tenant.as_ref().map_or(key, |tenant| key.of_tenant(tenant));
        let key = sound.as_ref().map_or(key, |sound| key.repaired_from(&sound.key));
        let outputs = (request.outputs.as_slice(), request.limits.max_depth.is_some());
        let estimate_by =
            |algorithm, form| memory::estimate_bytes(&topology, collective, &shares, (algorithm, form), outputs);
        let estimate = |form| estimate_by(request.algorithm, form);
        let mut memory_bytes = estimate(Form::Phases);
        let is_by_rule = || self.rules.meet(&key, request, &topology, (collective, &shares), stop);
        if memory_bytes > FORM_MATTERS_BYTES && is_by_rule()? {
            memory_bytes = estimate_by(Algorithm::Stages, Form::Phases);
        } else if request.kind == CollectiveKind::Allreduce && request.sums.form == Some(AllreduceForm::Trees) {
            memory_bytes = estimate(Form::Trees(request.limits.trees_per_root));
        } else if memory_bytes > FORM_MATTERS_BYTES && has_choice_of_form(request) {
            // What cannot be decided here is found out again, and told, where the plan is made.
            let form = allreduce_form(&topology, &shares, request.sums_on(&topology), stop);
            ask(stop)?;
            if form == Ok(AllreduceForm::Trees) {
                let is_rooted = request.sums.roots == RootPolicy::Spread || shares != Shares::Equal;
                memory_bytes = estimate(if is_rooted { Form::RootedTrees } else { Form::Trees(None) });
            }
        }
        Ok(Prepared {
            key,
            topology,
            topology_key,
            base: None,
            rank_map,
            collective,
            shares,
            composition,
            memory_bytes,
            warnings,
            sound,
            puncture,
            joint: None,
        })
    }

    /// The same request on a recently planned network that has everything this one has, and more.
    ///
    /// # Errors
    /// [`PlanError::NotKnown`] where there is none, or none whose ranks have shares that follow from the request's.
    fn relative(&self, request: &Request, part: &Part, stop: &dyn Stop) -> Result<Prepared, PlanError> {
        let Part { seats: Seats { topology, .. }, root, shares, .. } = part;
        let found = self.relatives.of(topology, request.kind).ok_or(PlanError::NotKnown)?;
        let Relative { topology: sound, rank_map, .. } = &*found;
        if !shares.is_empty() && sound.rank_count() != topology.rank_count() {
            return Err(PlanError::NotKnown);
        }
        let there = |root: u32| {
            let id = &topology.nodes().get(root as usize)?.id;
            sound.rank_of(sound.find_node(id)?).map(Rank::number)
        };
        let root = request.kind.has_root().then(|| there(root.unwrap_or(0)).ok_or(PlanError::NotKnown)).transpose()?;
        let seats = Seats { topology: sound.clone(), rank_map: rank_map.clone() };
        let part = Part { seats, root, shares: shares.clone(), puncture: None };
        self.prepared(&request.sound(), part, None, Vec::new(), stop)
    }

    /// Makes a plan of schedules from this source. What is found is kept by the time this returns.
    fn made(
        &self,
        request: &Request,
        prepared: &Prepared,
        source: Source<'_>,
        context: Context<'_>,
    ) -> Result<Planned, PlanError> {
        let started = context.clock.now_ms();
        let base = match source {
            Source::Kept { labels, .. } => &labels.normal.topology,
            Source::Searched | Source::Repaired(_) | Source::Joint(_) => &prepared.topology,
        };
        let boxed = match source {
            // Nothing is searched for that would want a hint.
            Source::Repaired(_) | Source::Joint(_) => None,
            Source::Kept { .. } | Source::Searched => {
                self.shapes.boxed(base, context.stop).map_err(|_| PlanError::Stopped)?
            }
        };
        let network = boxed.as_ref().map_or(base, |boxed| &boxed.topology);
        let boxes_ms = context.since(started);
        let mut planned = thread::scope(|scope| {
            let keep = |key: ScheduleKey, plan: Arc<PlanFile>| {
                let schedules = context.schedules;
                let kept = Arc::clone(&plan);
                // One that cannot be kept will be found again.
                let task = move || drop(catch_unwind(AssertUnwindSafe(|| schedules.put(&key, &kept))));
                let keeper = thread::Builder::new().name("canopy-keeper".to_owned());
                if keeper.spawn_scoped(scope, task).is_err() {
                    schedules.put(&key, &plan);
                }
            };
            let (algorithm, sums, limits) = (request.algorithm, request.sums_on(network), &self.limits);
            planned(Case { request, prepared, context, limits, source, algorithm, sums, network, keep: &keep })
        })?;
        planned.family = boxed.as_ref().and_then(|boxed| boxed.expression.clone());
        planned.timings.bound_ms += boxes_ms;
        planned.wall_ms = context.since(started);
        Ok(planned)
    }
}

/// The plan for a case: known or searched for, fitted, compared.
fn planned(case: Case<'_>) -> Result<Planned, PlanError> {
    let mut search = search::start(case)?;
    case.context.watch.bound(&search.bound().upper);
    let fitted = match case.source {
        Source::Kept { .. } | Source::Searched => search::best(&mut search),
        Source::Repaired(_) | Source::Joint(_) => that_fit(&mut search),
    };
    let Fitted { attempt: Attempt { plan, verdict, links_used, proofs, .. }, files, warning, note } = fitted?;
    case.context.watch.incumbent(&verdict.algbw);
    if proofs.choice_bound.as_ref().is_some_and(|bound| verdict.algbw > *bound) {
        let problem = format!("the plan reaches {}, more than any choice of its paths", verdict.algbw);
        return Err(PlanError::rejected("certificate", problem));
    }
    let zero = || PlanError::rejected("certificate", "the bound is zero".to_owned());
    let optimality = plan.achieved.ratio_to(&plan.bound.upper).ok_or_else(zero)?;
    let (prepared, record) = (case.prepared, search.record);
    let with_nvls =
        bound_with_nvls(&prepared.topology, prepared.collective, &prepared.shares, &plan.bound, case.context.stop)?;
    Ok(Planned {
        key: prepared.key,
        plan,
        topology_key: prepared.topology_key.clone(),
        verdict,
        links_used,
        optimality,
        with_nvls: with_nvls.map(|bound| bound.upper),
        proofs,
        warnings: files.warnings.iter().cloned().chain(warning).chain(note).collect(),
        files,
        family: None,
        rank_map: prepared.rank_map.clone(),
        puncture: prepared.puncture.clone(),
        schedules: record.schedules,
        rejected: record.rejections.into_kept(),
        repaired_from: prepared.sound.as_ref().map(|sound| sound.key),
        joint: None,
        timings: record.timings,
        wall_ms: 0.0,
        is_recalled: !record.has_searched,
    })
}

/// Refuses what takes more work than the network has parts, where these are many: all but stages.
fn require_scale(request: &Request, topology: &Topology) -> Result<(), PlanError> {
    let (nodes, limit) = (topology.nodes().len(), TopologyLimits::SEARCHED.nodes_max);
    let is_in_stages = [Algorithm::Auto, Algorithm::Stages, Algorithm::Orbits].contains(&request.algorithm);
    let is_shared = matches!(request.making, Making::Searched) && request.joint.is_none() && request.shares.is_empty();
    let is_planned = is_in_stages && is_shared && !are_listed(request.kind, topology.rank_count());
    if nodes <= limit || is_planned {
        return Ok(());
    }
    Err(PlanError::Scale { nodes, limit })
}

/// Whether a plan may have trees with roots anywhere.
fn has_choice_of_form(request: &Request) -> bool {
    let is_by_trees = request.algorithm.resolved(request.kind) == Algorithm::Forest;
    request.kind == CollectiveKind::Allreduce && is_by_trees && request.limits == TreeLimits::NONE
}

/// Stops the work between two stages if a stop is requested.
fn ask(stop: &dyn Stop) -> Result<(), PlanError> {
    if stop.is_requested() { Err(PlanError::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use canopy_synth::{Never, Silent, SynthesisRequest, synthesize};

    use super::*;
    use crate::schedules::{NoSchedules, SchedulesInMemory};

    /// It is as fast as any, and no file is made where none is asked for.
    #[test]
    fn where_no_schedule_is_kept_the_search_is_in_the_callers_labels() {
        let planner = Planner::new(TopologyLimits::STANDARD);
        let request = Request { outputs: Vec::new(), ..Request::on("mi250:boxes=2", CollectiveKind::Allgather) };
        let planned = |schedules: &dyn Schedules| planner.plan(&request, Context::new(schedules)).unwrap();
        let (own, canonical) = (planned(&NoSchedules), planned(&SchedulesInMemory::new(1 << 20)));
        let by_hand = SynthesisRequest::new(own.schedule().collective, Algorithm::Auto);
        let by_hand = synthesize(&own.plan.topology, &by_hand, &Never, &Silent).unwrap();
        assert_eq!((own.schedule(), own.achieved()), (&by_hand, canonical.achieved()));
        assert_ne!(own.schedule(), canonical.schedule());
        assert_eq!((own.schedules.len(), canonical.schedules.len(), own.files.files.len()), (0, 1, 0));
    }
}
