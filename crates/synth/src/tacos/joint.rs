//! Schedules of several collectives at once, in steps with numbers in common, in which no link is ever used by two.
//!
//! Each is among some ranks of one network. Ranks keep and pass on what is theirs to have; a hop between two of them takes all
//! links on its way at once, through switches and, where no rank of the collective is nearer, through ranks that are no part of it.

#[cfg(test)]
mod tests;
mod ticks;
mod ways;

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{
    Action, ChunkLayout, Collective, Pace, RouteIndex, RouteInterner, Schedule, Shape, Shares, Steps,
};
use canopy_tacos::{CopyError, Joint, JointError, JointOptions, Tenant, TimedNetwork, Work};
use canopy_topology::{Rank, Ratio, Topology, Transit};
use num_bigint::BigUint;

use super::{copy_task, unicast};
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, phase_actions, require_room};
use crate::reach::require_reach;
use ticks::Lasts;
use ways::{Way, ways};

/// One of several collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointCollective {
    /// Its ranks, by the numbers that they have in it.
    pub ranks: Vec<Rank>,
    /// What they do, the root by its number among them.
    pub collective: Collective,
    /// How large their shares are.
    pub shares: Shares,
    /// Chunks of each share.
    pub chunks: NonZeroU64,
    /// Its *size*, as `canopy_schedule::check` defines it.
    pub size_bytes: NonZeroU64,
}

/// A collective's part of a joint schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointPlan {
    /// The network as its ranks see it.
    pub topology: Topology,
    /// What they do, in steps whose numbers all parts have in common.
    pub schedule: Schedule,
    /// Steps with nobody else there.
    pub steps_alone: u64,
    /// Time with nobody else there, and the least that this takes, as parts of [`JointPlans::time`].
    pub time_alone: u64,
    /// See `time_alone`.
    pub time_bound: u64,
}

/// A joint schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointPlans {
    /// Of each collective.
    pub plans: Vec<JointPlan>,
    /// Number of steps of all together.
    pub steps: u64,
    /// When the last one ends, in a unit that is the same for all times here.
    pub time: u64,
    /// The same with one after the other.
    pub time_one_by_one: u64,
    /// Nanoseconds of the unit, as a fraction whose denominator is not 0; where sizes and capacities have no common unit that
    /// is long enough, one in which all times are rounded up.
    pub unit_nanos: (u128, u128),
}

impl JointPlans {
    /// Seconds that a time here is.
    pub fn seconds(&self, time: u64) -> Ratio {
        let (nanos, parts) = self.unit_nanos;
        let seconds = Ratio::new(BigUint::from(time) * nanos, BigUint::from(parts) * 1_000_000_000_u64);
        seconds.expect("the unit has a denominator")
    }
}

/// Why there is no joint schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct JointSynthesisError {
    /// Which of the collectives is at fault, where one is.
    pub collective: Option<usize>,
    /// What is wrong.
    pub error: SynthesisError,
}

/// Plans collectives that run at the same time.
///
/// * **In.** Whether latencies count: then a link is busy for its latency as well, since steps are waited for. `attempts`: at orders of
///   the collectives.
/// * **Source.** Our own, by [`canopy_tacos::joint_schedule`].
/// * **Errors.** [`JointSynthesisError`]: ranks that cannot reach each other, too many sends, stopped.
/// * **Cost.** A breadth-first search for each rank of each collective, and that of the joint schedule.
pub fn synthesize_joint(
    topology: &Topology,
    collectives: &[JointCollective],
    with_latency: bool,
    attempts: u32,
    stop: &dyn Stop,
) -> Result<JointPlans, JointSynthesisError> {
    let of_all = |error| JointSynthesisError { collective: None, error };
    let mut parts = Vec::with_capacity(collectives.len());
    for (number, asked) in collectives.iter().enumerate() {
        let of_one = |error| JointSynthesisError { collective: Some(number), error };
        parts.push(Part::of(topology, asked, stop).map_err(of_one)?);
    }
    let lasts = Lasts::of(topology, parts.iter().map(|part| (part.layout.size(), part.asked.size_bytes)), with_latency);
    let tenants = parts.iter().enumerate().map(|(number, part)| part.tenant(&lasts, number));
    let tenants = tenants.collect::<Result<Vec<Tenant>, _>>().map_err(of_all)?;
    let options = JointOptions { seed: 0, attempts };
    let joint = canopy_tacos::joint_schedule(&tenants, options, stop).map_err(refused).map_err(of_all)?;
    let all_starts = joint.moments();
    let mut plans = Vec::with_capacity(parts.len());
    for (number, part) in parts.into_iter().enumerate() {
        let steps = part.steps(&joint, number, &all_starts).map_err(of_all)?;
        plans.push(JointPlan {
            schedule: Schedule {
                collective: part.asked.collective,
                algorithm: super::TACOS.name.to_owned(),
                shares: part.asked.shares.clone(),
                shape: Shape::Steps(steps),
            },
            topology: part.topology,
            steps_alone: joint.moments_alone[number],
            time_alone: joint.alone[number],
            time_bound: joint.bounds[number],
        });
    }
    Ok(JointPlans {
        plans,
        steps: all_starts.len() as u64,
        time: joint.end,
        time_one_by_one: joint.one_by_one(),
        unit_nanos: lasts.tick_nanos(),
    })
}

/// A collective on the network as its ranks see it.
struct Part<'a> {
    asked: &'a JointCollective,
    topology: Topology,
    layout: ChunkLayout,
    ways: Vec<Way>,
    /// By chunk that is delivered to one rank, its number in the schedule.
    delivered: Vec<u32>,
    works: Vec<(Action, Work)>,
}

impl<'a> Part<'a> {
    fn of(whole: &Topology, asked: &'a JointCollective, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let broken = |what: String| SynthesisError::Broken { what: format!("joint: {what}") };
        let topology = whole.group(&asked.ranks, Transit::Forward).map_err(|error| broken(error.to_string()))?;
        let (collective, shares) = (asked.collective, &asked.shares);
        require_reach(&topology, collective, shares)?;
        let ranks = topology.rank_count();
        let layout = ChunkLayout::new(collective, ranks, asked.chunks.get(), shares)?;
        require_room(layout.total().saturating_mul(u64::from(ranks)))?;
        let ways = ways(whole, &topology, stop)?;
        let mut delivered = Vec::new();
        let works = match phase_actions(collective.kind()) {
            Some(actions) => {
                let task = copy_task(collective, ranks, &layout)?;
                let work = |&action: &Action| match action {
                    Action::Copy => (action, Work::Copy(task.clone())),
                    Action::Reduce => (action, Work::Sum(task.clone())),
                };
                actions.iter().map(work).collect()
            }
            None => {
                let (demands, chunks) = unicast::demands(collective, shares, ranks, &layout)?;
                delivered = chunks;
                vec![(Action::Copy, Work::Deliver(demands))]
            }
        };
        Ok(Self { asked, topology, layout, ways, delivered, works })
    }

    /// Its links with the times that chunks of its size take.
    fn tenant(&self, lasts: &Lasts, number: usize) -> Result<Tenant, SynthesisError> {
        let broken = |what: String| SynthesisError::Broken { what: format!("joint: {what}") };
        let (links, claims) = self.ways.iter().map(|way| way.timed(lasts, number)).unzip();
        let network =
            TimedNetwork::new(self.topology.rank_count(), links).map_err(|error| broken(error.to_string()))?;
        let works = self.works.iter().map(|(_, work)| work.clone()).collect();
        Tenant::new(network, claims, works).map_err(|error| broken(error.to_string()))
    }

    /// Its sends, each in the step of its start.
    fn steps(&self, joint: &Joint, number: usize, starts: &[u64]) -> Result<Steps, SynthesisError> {
        let mut interner = RouteInterner::default();
        let routes: Vec<RouteIndex> = self.ways.iter().map(|way| interner.intern(&way.route)).collect();
        let mut steps = StepsParts::new(self.asked.chunks.get(), Pace::Barriers);
        for (&(action, _), work) in self.works.iter().zip(&joint.sends[number]) {
            for sent in &work.sends {
                let way = &self.ways[sent.link as usize];
                let chunk = u64::from(self.delivered.get(sent.chunk as usize).copied().unwrap_or(sent.chunk));
                let step = u32::try_from(starts.partition_point(|&start| start < sent.start));
                let (step, route) = (step.expect("fewer steps than sends"), routes[sent.link as usize]);
                steps.push(Sending { step, action, from: way.from, to: way.to, chunks: chunk..chunk + 1, route });
            }
        }
        Ok(steps.finish(interner.finish()))
    }
}

fn refused(error: JointError) -> SynthesisError {
    match error {
        JointError::Copy(CopyError::Stopped) => SynthesisError::Stopped,
        error => SynthesisError::Broken { what: format!("joint: {error}") },
    }
}
