//! Plans that are made in common: one joint schedule, of which each of them is a part.
//!
//! The first of them that is asked for has the schedule made; it is judged as a whole, and kept in memory for the others. Who needs it
//! while it is being made waits in line, as for any schedule that somebody searches for.

use std::sync::{Arc, Mutex, PoisonError};

use canopy_proto::v1;
use canopy_schedule::{Collective, JointCheckError, JointPart, Schedule, Shape, Shares, check_joint};
use canopy_synth::{Algorithm, JointCollective, JointPlans, Stop, SynthesisError, synthesize_joint};
use canopy_topology::{Rank, Topology, Transit};

use super::memory::{self, Form};
use crate::failure::{PlanFailure, chain};
use crate::key::ScheduleKey;
use crate::order::{JointOrder, JointTask};
use crate::planner::PreparedJoint;
use crate::recent::Recent;
use crate::tenant::TenantName;

/// Bytes of joint schedules that are kept in memory, roughly.
const BYTES_MAX: u64 = 64 << 20;
/// What a send of a schedule takes, with its carrier.
const SEND_BYTES: u64 = 64;
/// Orders of the collectives that are tried.
const ATTEMPTS: u32 = 24;

/// Joint schedules that were made lately.
#[derive(Debug)]
pub(super) struct Joints(Mutex<Recent<ScheduleKey, Arc<JointMade>>>);

/// A joint schedule that was judged as a whole.
#[derive(Debug)]
pub(super) struct JointMade(JointPlans);

impl Joints {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Recent::new(BYTES_MAX)))
    }

    /// Whether a schedule is here.
    pub(super) fn has(&self, key: &ScheduleKey) -> bool {
        self.get(key).is_some()
    }

    fn get(&self, key: &ScheduleKey) -> Option<Arc<JointMade>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key)
    }

    /// The joint schedule; made, where it is not here.
    ///
    /// # Errors
    /// Why there is none; stopped.
    pub(super) fn of(&self, joint: &PreparedJoint, stop: &dyn Stop) -> Result<Arc<JointMade>, PlanFailure> {
        if let Some(made) = self.get(&joint.key) {
            return Ok(made);
        }
        let made = Arc::new(JointMade::of(joint, stop)?);
        let bytes = made.weight_bytes();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(joint.key, Arc::clone(&made), bytes);
        Ok(made)
    }
}

impl JointMade {
    fn of(joint: &PreparedJoint, stop: &dyn Stop) -> Result<Self, PlanFailure> {
        let plans = synthesize_joint(&joint.whole, &joint.collectives, (true, ATTEMPTS), stop);
        let plans = plans.map_err(|failed| match (failed.error, failed.collective) {
            (SynthesisError::Stopped, _) => PlanFailure::Stopped,
            (error, None) => PlanFailure::Synthesis(error),
            (error, Some(position)) => {
                PlanFailure::InJoint { position, failure: Box::new(PlanFailure::Synthesis(error)) }
            }
        })?;
        let parts = plans.plans.iter().zip(&joint.collectives).map(|(plan, asked)| JointPart {
            topology: &plan.topology,
            schedule: &plan.schedule,
            size_bytes: asked.size_bytes,
        });
        let parts: Vec<JointPart<'_>> = parts.collect();
        let verdict = check_joint(&joint.whole, &parts, &|| stop.is_requested()).map_err(refused)?;
        if verdict.shared_links > 0 || verdict.steps != plans.steps {
            let problem = format!("{} links are used twice in a step", verdict.shared_links);
            return Err(PlanFailure::Rejected { check: "joint", problem });
        }
        Ok(Self(plans))
    }

    /// The schedule at a place, on the network as its ranks see it.
    pub(super) fn schedule(&self, position: usize, topology: &Topology) -> Result<Schedule, PlanFailure> {
        let plan = self.0.plans.get(position).filter(|plan| plan.topology == *topology);
        let other = || PlanFailure::Rejected { check: "joint", problem: "a part is for another network".to_owned() };
        plan.map(|plan| plan.schedule.clone()).ok_or_else(other)
    }

    /// What the plan at a place says of itself and the others.
    pub(super) fn describe(&self, joint: &PreparedJoint) -> Option<v1::JointPlan> {
        let Self(plans) = self;
        let (own, asked) = (plans.plans.get(joint.position)?, joint.collectives.get(joint.position)?);
        let longest = plans.plans.iter().map(|plan| plan.time_alone).max().unwrap_or(0);
        let seconds = |time: u64| plans.seconds(time).to_string();
        Some(v1::JointPlan {
            position: u32::try_from(joint.position).ok()?,
            ranks: asked.ranks.iter().map(|rank| rank.number()).collect(),
            size_bytes: asked.size_bytes.get(),
            steps_alone: own.steps_alone,
            seconds_alone: seconds(own.time_alone),
            seconds_bound: seconds(own.time_bound),
            together: Some(v1::JointTimes {
                collectives: u32::try_from(plans.plans.len()).ok()?,
                steps: plans.steps,
                seconds: seconds(plans.time),
                seconds_one_by_one: seconds(plans.time_one_by_one),
                seconds_longest_alone: seconds(longest),
            }),
        })
    }

    fn weight_bytes(&self) -> u64 {
        let sends = self.0.plans.iter().map(|plan| match &plan.schedule.shape {
            Shape::Steps(steps) => steps.sends.len() as u64,
            Shape::Forest(_) | Shape::Flow(_) => 0,
        });
        let nodes = self.0.plans.iter().map(|plan| (plan.topology.nodes().len() + plan.topology.links().len()) as u64);
        (sends.sum::<u64>() + 4 * nodes.sum::<u64>()).saturating_mul(SEND_BYTES)
    }
}

fn refused(error: JointCheckError) -> PlanFailure {
    match &error {
        JointCheckError::Part { source, .. } if source.check() == "stopped" => PlanFailure::Stopped,
        _ => PlanFailure::Rejected { check: "joint", problem: chain(&error) },
    }
}

/// What an order is planned in common with, on a network that has been read, and the bytes of memory that all of it takes, roughly.
///
/// # Errors
/// Ranks that are no group, or a root that is none, of the first task with any; stopped.
pub(super) fn prepared(
    whole: &Topology,
    joint: &JointOrder,
    tenant: Option<&TenantName>,
    stop: &dyn Stop,
) -> Result<(PreparedJoint, u64), PlanFailure> {
    let (mut collectives, mut memory_bytes) = (Vec::with_capacity(joint.tasks.len()), 0_u64);
    for (position, task) in joint.tasks.iter().enumerate() {
        super::ask(stop)?;
        let within = |failure| PlanFailure::InJoint { position, failure: Box::new(failure) };
        let (collective, bytes) = read(whole, task).map_err(within)?;
        memory_bytes = memory_bytes.saturating_add(bytes);
        collectives.push(collective);
    }
    let key = ScheduleKey::of_joint(whole, &joint.tasks);
    let key = tenant.map_or(key, |tenant| key.of_tenant(tenant));
    Ok((PreparedJoint { whole: whole.clone(), collectives, position: joint.position, key }, memory_bytes))
}

fn read(whole: &Topology, task: &JointTask) -> Result<(JointCollective, u64), PlanFailure> {
    let ranks: Vec<Rank> = match task.ranks.as_slice() {
        [] => whole.ranks().collect(),
        ranks => ranks.iter().copied().map(Rank::new).collect(),
    };
    let group = whole.group(&ranks, Transit::Forward)?;
    let collective = Collective::new(task.kind, task.root.map(Rank::new), group.rank_count())?;
    let way = (Algorithm::Tacos, Form::Phases);
    let bytes = memory::estimate_bytes(&group, collective, &Shares::Equal, way, (&[], false));
    let JointTask { size_bytes, chunks, .. } = *task;
    let bytes = bytes.saturating_mul(chunks.get());
    Ok((JointCollective { ranks, collective, shares: Shares::Equal, chunks, size_bytes }, bytes))
}
