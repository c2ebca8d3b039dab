//! The planner: bound first, then a schedule, then every check, then files that are read back.
//!
//! Schedules are searched for on the network in canonical order, and kept in those labels: whoever asks for a network of
//! the same shape later gets the same schedule in labels of their own. A plan comes out only if everything that judges it
//! under the caller's labels agrees: the certificate proves the bound, the checker found the transfers right and their
//! rate no better than the bound, and each file, read back, is what was written and passes the checks of its format.

mod attempt;
mod bounded;
mod canon;
mod composition;
mod describe;
mod execution;
mod fewer;
mod files;
mod input;
mod joint;
mod memory;
mod portfolio;
mod puncture;
mod rejections;
mod relatives;
mod repair;
mod seats;

use std::sync::Arc;

use canopy_proto::v1;
use canopy_schedule::{AllreduceForm, Bound, Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, BoundError, RootPolicy, Stop, SynthesisError, TreeLimits, allreduce_form, bound};
use canopy_topology::{Rank, Rate, TopologyLimits};

use self::attempt::{Attempt, Work};
pub(crate) use self::bounded::bounded;
use self::bounded::proven;
use self::canon::Canon;
pub(crate) use self::describe::{bits, collective as collective_on_the_wire, topology_summary};
use self::fewer::{Fitted, first_limits};
pub(crate) use self::input::read_topology;
use self::joint::Joints;
use self::memory::Form;
use self::puncture::Part;
pub(crate) use self::puncture::seen_by;
use self::rejections::Rejections;
use self::relatives::{Relative, Relatives};
use self::repair::Repair;
use self::seats::Seats;
use crate::clock;
use crate::failure::PlanFailure;
use crate::key::{PlanKey, ScheduleKey};
use crate::order::{Making, Order};
use crate::planner::{Planner, Prepared, Produced, Recall, Watch};
use crate::shapes::{ScheduleOptions, Schedules, Shapes};
use crate::store::{MemoryStore, Store, StoreError, StoredPlan};

/// From this estimate on, an allreduce is looked at for the form it will have: trees with roots anywhere are fewer, and
/// to find out takes some tenths of a second.
const FORM_MATTERS_BYTES: u64 = 1 << 30;

/// Bytes of the schedules of shapes that are kept in memory, roughly.
const SCHEDULES_MEMORY_BYTES: u64 = 128 << 20;

/// Plans with canopy's own libraries.
#[derive(Debug)]
pub struct Pipeline {
    limits: TopologyLimits,
    shapes: Arc<Shapes>,
    relatives: Relatives,
    joints: Joints,
}

impl Pipeline {
    /// A planner for topologies within these limits that keeps schedules as long as it lives.
    pub fn new(limits: TopologyLimits) -> Self {
        Self::keeping(limits, Arc::new(MemoryStore::default()), SCHEDULES_MEMORY_BYTES)
    }

    /// The same that keeps up to so many bytes of schedules in a store.
    pub fn keeping(limits: TopologyLimits, schedules: Arc<dyn Store>, bytes_max: u64) -> Self {
        let options = ScheduleOptions { bytes_max, memory_bytes_max: SCHEDULES_MEMORY_BYTES, limits };
        let shapes = Arc::new(Shapes::new(Schedules::new(schedules, options)));
        Self { limits, shapes, relatives: Relatives::new(), joints: Joints::new() }
    }

    /// An order on the part of the network that it is about.
    fn prepared(
        &self,
        order: &Order,
        part: Part,
        sound: Option<Box<Prepared>>,
        warnings: Vec<v1::Warning>,
        stop: &dyn Stop,
    ) -> Result<Prepared, PlanFailure> {
        let Part { seats: Seats { topology, rank_map }, root, shares, puncture } = part;
        let collective = Collective::new(order.kind, root.map(Rank::new), topology.rank_count())?;
        let shares = match shares.as_slice() {
            [] => Shares::Equal,
            _ => Shares::in_proportion(collective, topology.rank_count(), shares)?,
        };
        let topology_key = self.shapes.key_of(&topology, stop).map_err(|_| PlanFailure::Stopped)?;
        ask(stop)?;
        let key = PlanKey::new(&topology_key, collective, &shares, order);
        let composition = composition::stated(order, &self.limits)?;
        let key = composition.as_ref().map_or(key, |composition| key.composed(&composition.construction));
        let key = rank_map.as_ref().map_or(key, |slots| key.placed(slots));
        let key = order.tenant.as_ref().map_or(key, |tenant| key.of_tenant(tenant));
        let key = sound.as_ref().map_or(key, |sound| key.repaired_from(&sound.key));
        let outputs = (order.outputs.as_slice(), order.limits.max_depth.is_some());
        let estimate = |form| memory::estimate_bytes(&topology, collective, &shares, (order.algorithm, form), outputs);
        let mut memory_bytes = estimate(Form::Phases);
        if memory_bytes > FORM_MATTERS_BYTES && has_choice_of_form(order) {
            // What cannot be decided here is found out again, and told, where the plan is made.
            let form = allreduce_form(&topology, &shares, order.sums, stop);
            ask(stop)?;
            if form == Ok(AllreduceForm::Trees) {
                let is_rooted = order.sums.roots == RootPolicy::Spread || shares != Shares::Equal;
                memory_bytes = estimate(if is_rooted { Form::RootedTrees } else { Form::Trees });
            }
        }
        Ok(Prepared {
            key,
            topology,
            topology_key,
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

    /// The same order on a network planned for lately that has all that this one has, and more.
    ///
    /// # Errors
    /// [`PlanFailure::NotCached`] where there is none, or none whose ranks have shares that follow from the order's.
    fn relative(&self, order: &Order, part: &Part, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        let Part { seats: Seats { topology, .. }, root, shares, .. } = part;
        let found = self.relatives.of(topology, order.kind).ok_or(PlanFailure::NotCached)?;
        let Relative { topology: sound, rank_map, .. } = &*found;
        if !shares.is_empty() && sound.rank_count() != topology.rank_count() {
            return Err(PlanFailure::NotCached);
        }
        let there = |root: u32| {
            let id = &topology.nodes().get(root as usize)?.id;
            sound.rank_of(sound.find_node(id)?).map(Rank::number)
        };
        let root = order.kind.has_root().then(|| there(root.unwrap_or(0)).ok_or(PlanFailure::NotCached)).transpose()?;
        let seats = Seats { topology: sound.clone(), rank_map: rank_map.clone() };
        let part = Part { seats, root, shares: shares.clone(), puncture: None };
        self.prepared(&order.sound(), part, None, Vec::new(), stop)
    }

    /// Makes a plan from what is known and, where that is allowed, what is searched for.
    fn made(
        &self,
        order: &Order,
        prepared: &Prepared,
        canon: Option<&Canon>,
        may_search: bool,
        (stop, watch): (&dyn Stop, &dyn Watch),
    ) -> Result<Produced, PlanFailure> {
        let started = clock::now();
        let repair = Repair::of(&self.shapes, order, prepared, stop)?;
        let joint = match &prepared.joint {
            Some(joint) => {
                watch.stage("joint", 0, 1);
                Some(self.joints.of(joint, stop)?)
            }
            None => None,
        };
        let joint_ms = clock::millis_since(started);
        watch.stage("bound", 0, 1);
        let own = |found: &Bound| {
            let own = canon.map_or_else(|| found.clone(), |canon| canon.bound(found));
            proven(&prepared.topology, prepared.collective, &prepared.shares, own)
        };
        let mut known = None;
        if let Some((canon, plan)) =
            canon.and_then(|canon| Some((canon, canon.answer(&self.shapes, order, first_limits(order))?)))
        {
            match own(&plan.bound) {
                Ok(bound) => known = Some((plan, bound)),
                Err(failure) => canon.refuse(&self.shapes, order, first_limits(order), &failure),
            }
        }
        let base = canon.map_or(&prepared.topology, |canon| &canon.normal.topology);
        let boxed = match (&repair, &joint) {
            // Nothing is searched for that would want a hint.
            (Some(_), _) | (_, Some(_)) => None,
            (None, None) => self.shapes.boxed(base, stop).map_err(|_| PlanFailure::Stopped)?,
        };
        let network = boxed.as_ref().map_or(base, |boxed| &boxed.topology);
        let mut flow = None;
        let mut rejections = Rejections::of(prepared.key);
        let (known, certificate, bound) = match known {
            Some((plan, bound)) => (Some(Arc::clone(&plan)), plan.bound.certificate.clone(), bound),
            None if !may_search => return Err(PlanFailure::NotCached),
            None => {
                let shares = canon.map_or(&prepared.shares, |canon| &canon.shares);
                let told = (stop, watch, &mut rejections);
                flow = attempt::all_to_all_flow(order, order.algorithm, network, shares, told)?;
                let found = match (canon, &flow) {
                    (_, Some((flow, _))) => Ok(flow.bound(network)),
                    (Some(canon), None) => bound(network, canon.collective, &canon.shares, stop),
                    (None, None) => bound(network, prepared.collective, &prepared.shares, stop),
                };
                let mut found = found.map_err(PlanFailure::Bound)?;
                if order.kind == CollectiveKind::AllToAll {
                    // Only what a plan reaches can be seen without a solver.
                    found.lower = Rate::zero();
                }
                let bound = own(&found)?;
                (None, found.certificate, bound)
            }
        };
        watch.bound(&bound.upper);
        // The flow of an all-to-all is found with its bound, and is most of the schedule.
        let (flow, synthesis) = flow.map_or((None, 0.0), |(flow, millis)| (Some(flow), millis));
        let synthesis = synthesis + joint_ms;
        let timings =
            v1::Timings { bound: clock::millis_since(started) - synthesis, synthesis, ..v1::Timings::default() };

        let mut work = Work {
            limits: &self.limits,
            shapes: &self.shapes,
            keepers: Vec::new(),
            canon,
            repair,
            joint: joint.as_ref(),
            network,
            known,
            may_search,
            has_searched: false,
            flow,
            schedules: Vec::new(),
            order,
            algorithm: order.algorithm,
            prepared,
            bound,
            certificate,
            timings,
            rejections,
            stop,
            watch,
        };
        let fitted = match (&work.repair, work.joint) {
            (None, None) => portfolio::best(&mut work),
            _ => fewer::that_fit(&mut work),
        };
        work.join_keepers();
        let Fitted { attempt: Attempt { plan, verdict, proofs, .. }, files, warning } = fitted?;
        watch.incumbent(&verdict.algbw);
        let (timings, is_recalled) = (work.timings, !work.has_searched);
        let warnings = files.warnings.iter().cloned().chain(warning).collect();
        let family = boxed.as_ref().map(|boxed| boxed.expression.clone()).unwrap_or_default();
        if proofs.choice_bound.as_ref().is_some_and(|bound| verdict.algbw > *bound) {
            let problem = format!("the plan reaches {}, more than any choice of its paths", verdict.algbw);
            return Err(PlanFailure::Rejected { check: "certificate", problem });
        }
        let judged = (&plan, &verdict);
        let elapsed_ms = clock::millis_since(started);
        let mut plan = describe::plan(order, prepared, judged, &proofs, files, family, elapsed_ms)?;
        if let Some(provenance) = &mut plan.provenance {
            provenance.schedules = work.schedules.iter().map(ScheduleKey::to_string).collect();
            provenance.rejected = work.rejections.into_kept();
            provenance.repaired_from = prepared.sound.as_ref().map(|sound| sound.key.plan_id()).unwrap_or_default();
        }
        if let (Some(made), Some(joint)) = (&joint, &prepared.joint) {
            plan.joint = made.describe(joint);
        }
        Ok(Produced { plan: StoredPlan::new(plan, warnings), timings, is_recalled })
    }
}

impl Planner for Pipeline {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        let (whole, mut warnings) = read_topology(&order.topology, &self.limits, stop)?;
        ask(stop)?;
        let joint = order.joint.as_ref();
        let joint = joint.map(|joint| joint::prepared(&whole, joint, order.tenant.as_ref(), stop)).transpose()?;
        let faults = (!order.faults.is_empty()).then(|| puncture::faults(&whole, order)).transpose()?;
        let mut part = Part::sound(seats::take(whole, order, &mut warnings)?, order);
        ask(stop)?;
        if let Some((faults, base)) = faults {
            part = part.without(&faults, order, base)?;
        }
        let sound = match order.making {
            Making::Searched => None,
            Making::Repaired if order.faults.is_empty() => Some(Box::new(self.relative(order, &part, stop)?)),
            Making::Repaired => Some(Box::new(self.prepare(&order.sound(), stop)?)),
        };
        let mut prepared = self.prepared(order, part, sound, warnings, stop)?;
        if let Some((joint, memory_bytes)) = joint {
            prepared.key = prepared.key.in_common(&joint.key, joint.position);
            prepared.memory_bytes = prepared.memory_bytes.saturating_add(memory_bytes);
            prepared.joint = Some(Arc::new(joint));
        }
        Ok(prepared)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        if let Some(joint) = &prepared.joint {
            let made = self.made(order, prepared, None, true, (stop, watch));
            return made.map_err(|failure| failure.of_one(joint.position));
        }
        if order.making == Making::Repaired {
            return self.made(order, prepared, None, true, (stop, watch));
        }
        let canon = Canon::of(&self.shapes, order, prepared, stop)?;
        let made = match self.made(order, prepared, canon.as_ref(), true, (stop, watch)) {
            // Said again in the caller's own labels.
            Err(failure) if canon.as_ref().is_some_and(Canon::is_renamed) && names_parts(&failure) => {
                self.made(order, prepared, None, true, (stop, watch))
            }
            made => made,
        };
        if made.is_ok() && canon.is_some() && prepared.puncture.is_none() {
            self.relatives.note(&prepared.topology, prepared.rank_map.as_deref(), order.kind);
        }
        made.map_err(|failure| failure.with_parts(&prepared.topology))
    }

    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        if order.making == Making::Repaired {
            // Readers have other things to do than to wait for its bound.
            return Ok(Recall::Unknown(None));
        }
        if let Some(joint) = &prepared.joint {
            // What is left once the schedule is there takes a worker all the same; the search is for whoever comes first.
            return Ok(Recall::Unknown(Some(joint.key)));
        }
        let Some(canon) = Canon::of(&self.shapes, order, prepared, stop)? else { return Ok(Recall::Unknown(None)) };
        let key = canon.key(order, first_limits(order));
        if !self.shapes.schedules.has(&key) {
            return Ok(Recall::Unknown(Some(key)));
        }
        match self.made(order, prepared, Some(&canon), false, (stop, watch)) {
            Ok(produced) => Ok(Recall::Made(Box::new(produced))),
            Err(PlanFailure::NotCached) => Ok(Recall::Unknown(Some(key))),
            Err(failure) => Err(failure),
        }
    }

    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        self.shapes.schedules.has(schedule) || self.joints.has(schedule)
    }

    fn kept(&self) -> Result<(usize, u64), StoreError> {
        self.shapes.schedules.usage()
    }

    fn forget(&self, schedules: &[ScheduleKey]) {
        self.shapes.schedules.remove(schedules);
    }
}

/// Whether a refusal names parts of the network it was found on.
const fn names_parts(failure: &PlanFailure) -> bool {
    match failure {
        PlanFailure::Bound(error) => !matches!(error, BoundError::Stopped | BoundError::Broken { .. }),
        PlanFailure::Synthesis(error) => !matches!(error, SynthesisError::Stopped | SynthesisError::Broken { .. }),
        _ => false,
    }
}

/// Whether a plan may have trees with roots anywhere.
fn has_choice_of_form(order: &Order) -> bool {
    let is_by_trees = order.algorithm.resolved(order.kind) == Algorithm::Forest;
    order.kind == CollectiveKind::Allreduce && is_by_trees && order.limits == TreeLimits::NONE
}

/// Ends the work between two stages when nobody waits for it.
fn ask(stop: &dyn Stop) -> Result<(), PlanFailure> {
    if stop.is_requested() { Err(PlanFailure::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
