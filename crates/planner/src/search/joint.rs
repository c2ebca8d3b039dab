//! Plans that are made in common: one joint schedule, of which each of them is a part.
//!
//! The first of them that is asked for has the schedule made; it is judged as a whole, and kept in memory for the others. Who needs it
//! while it is being made waits in line, as for any schedule that somebody searches for.

use std::sync::Arc;

use canopy_plan::chain;
use canopy_schedule::{Collective, JointCheckError, JointPart, Schedule, Shape, Shares, check_joint};
use canopy_synth::{Algorithm, JointCollective, JointPlans, Stop, SynthesisError, synthesize_joint};
use canopy_topology::{Rank, Topology, Transit};
use parking_lot::Mutex;

use crate::error::PlanError;
use crate::key::ScheduleKey;
use crate::memory::{self, Form};
use crate::planned::JointSummary;
use crate::prepared::PreparedJoint;
use crate::recent::Recent;
use crate::request::{JointRequest, JointTask};
use crate::tenant::TenantName;

/// Bytes of joint schedules that are kept in memory, roughly.
const BYTES_MAX: u64 = 64 << 20;
/// What a send of a schedule takes, with its carrier.
const SEND_BYTES: u64 = 64;
/// Orders of the collectives that are tried.
const ATTEMPTS: u32 = 24;

/// Joint schedules that were made lately.
#[derive(Debug)]
pub(crate) struct Joints(Mutex<Recent<ScheduleKey, Arc<JointMade>>>);

/// A joint schedule that was judged as a whole.
#[derive(Debug)]
pub(crate) struct JointMade(JointPlans);

impl Joints {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(BYTES_MAX)))
    }

    /// Whether a schedule is here.
    pub(crate) fn has(&self, key: &ScheduleKey) -> bool {
        self.get(key).is_some()
    }

    fn get(&self, key: &ScheduleKey) -> Option<Arc<JointMade>> {
        self.0.lock().get(key)
    }

    /// The joint schedule; made, where it is not here.
    ///
    /// # Errors
    /// Why there is none; stopped.
    pub(crate) fn of(&self, joint: &PreparedJoint, stop: &dyn Stop) -> Result<Arc<JointMade>, PlanError> {
        if let Some(made) = self.get(&joint.key) {
            return Ok(made);
        }
        let made = Arc::new(JointMade::of(joint, stop)?);
        let bytes = made.weight_bytes();
        self.0.lock().keep(joint.key, Arc::clone(&made), bytes);
        Ok(made)
    }
}

impl JointMade {
    fn of(joint: &PreparedJoint, stop: &dyn Stop) -> Result<Self, PlanError> {
        let plans = synthesize_joint(&joint.whole, &joint.collectives, true, ATTEMPTS, stop);
        let plans = plans.map_err(|failed| match (failed.error, failed.collective) {
            (SynthesisError::Stopped, _) => PlanError::Stopped,
            (error, None) => PlanError::Synthesis(error),
            (error, Some(position)) => PlanError::InJoint { position, failure: Box::new(PlanError::Synthesis(error)) },
        })?;
        let parts = plans.plans.iter().zip(&joint.collectives).map(|(plan, asked)| JointPart {
            topology: &plan.topology,
            schedule: &plan.schedule,
            size_bytes: asked.size_bytes,
        });
        let parts: Vec<JointPart<'_>> = parts.collect();
        let verdict = check_joint(&joint.whole, &parts, &|| stop.is_requested()).map_err(refused)?;
        if verdict.shared_links > 0 || verdict.steps != plans.steps {
            let problem = format!("{} links are used twice in one step", verdict.shared_links);
            return Err(PlanError::Rejected { check: "joint", problem });
        }
        Ok(Self(plans))
    }

    /// The schedule at a place, on the network as its ranks see it.
    pub(crate) fn schedule(&self, position: usize, topology: &Topology) -> Result<Schedule, PlanError> {
        let plan = self.0.plans.get(position).filter(|plan| plan.topology == *topology);
        let other = || PlanError::Rejected { check: "joint", problem: "a part is for a different network".to_owned() };
        plan.map(|plan| plan.schedule.clone()).ok_or_else(other)
    }

    /// What the plan at a place says of itself and the others.
    pub(crate) fn summary(&self, joint: &PreparedJoint) -> Option<JointSummary> {
        let Self(plans) = self;
        let (own, asked) = (plans.plans.get(joint.position)?, joint.collectives.get(joint.position)?);
        let longest = plans.plans.iter().map(|plan| plan.time_alone).max().unwrap_or(0);
        Some(JointSummary {
            position: joint.position,
            ranks: asked.ranks.clone(),
            size_bytes: asked.size_bytes,
            steps_alone: own.steps_alone,
            seconds_alone: plans.seconds(own.time_alone),
            seconds_bound: plans.seconds(own.time_bound),
            collectives: plans.plans.len(),
            steps: plans.steps,
            seconds: plans.seconds(plans.time),
            seconds_one_by_one: plans.seconds(plans.time_one_by_one),
            seconds_longest_alone: plans.seconds(longest),
        })
    }

    fn weight_bytes(&self) -> u64 {
        let sends = self.0.plans.iter().map(|plan| match &plan.schedule.shape {
            Shape::Steps(steps) => steps.sends.len() as u64,
            Shape::Forest(_) | Shape::Flow(_) | Shape::Stages(_) | Shape::Orbits(_) => 0,
        });
        let nodes = self.0.plans.iter().map(|plan| (plan.topology.nodes().len() + plan.topology.links().len()) as u64);
        (sends.sum::<u64>() + 4 * nodes.sum::<u64>()).saturating_mul(SEND_BYTES)
    }
}

fn refused(error: JointCheckError) -> PlanError {
    match &error {
        JointCheckError::Part { source, .. } if source.check() == "stopped" => PlanError::Stopped,
        _ => PlanError::Rejected { check: "joint", problem: chain(&error) },
    }
}

/// What a request is planned in common with, on a network that has been read, and the bytes of memory that all of it takes, roughly.
///
/// # Errors
/// Ranks that are no group, or a root that is none, of the first task with any; stopped.
pub(crate) fn prepared(
    whole: &Topology,
    joint: &JointRequest,
    tenant: Option<&TenantName>,
    stop: &dyn Stop,
) -> Result<(PreparedJoint, u64), PlanError> {
    let (mut collectives, mut memory_bytes) = (Vec::with_capacity(joint.tasks.len()), 0_u64);
    for (position, task) in joint.tasks.iter().enumerate() {
        if stop.is_requested() {
            return Err(PlanError::Stopped);
        }
        let within = |failure| PlanError::InJoint { position, failure: Box::new(failure) };
        let (collective, bytes) = read(whole, task).map_err(within)?;
        memory_bytes = memory_bytes.saturating_add(bytes);
        collectives.push(collective);
    }
    let key = ScheduleKey::of_joint(whole, &joint.tasks);
    let key = tenant.map_or(key, |tenant| key.of_tenant(tenant));
    Ok((PreparedJoint { whole: whole.clone(), collectives, position: joint.position, key }, memory_bytes))
}

fn read(whole: &Topology, task: &JointTask) -> Result<(JointCollective, u64), PlanError> {
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
