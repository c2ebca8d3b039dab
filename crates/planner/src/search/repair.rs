//! The schedule of a sound network, made to fit what faults leave of it.

use std::num::NonZeroU64;

use canopy_plan::chain;
use canopy_schedule::Schedule;
use canopy_synth::{RepairError, RepairOptions, SynthesisError, TreeLimits, repaired};
use canopy_topology::Topology;

use super::{Labels, first_limits};
use crate::context::{Context, Note};
use crate::error::PlanError;
use crate::prepared::Prepared;
use crate::request::Request;
use crate::shapes::Shapes;

/// What is kept of the sound network.
#[derive(Debug)]
pub(crate) struct Repair {
    /// The request on the sound network.
    request: Request,
    labels: Labels,
    sound: Topology,
    /// Its schedule in the caller's labels.
    schedule: Schedule,
}

impl Repair {
    /// Takes the schedule that is kept for the sound network; none for a request that is not met so.
    ///
    /// # Errors
    /// [`PlanError::NotKnown`] where none is kept: nothing is searched for. Stopped.
    pub(crate) fn of(
        shapes: &Shapes,
        request: &Request,
        prepared: &Prepared,
        context: Context<'_>,
    ) -> Result<Option<Self>, PlanError> {
        let Some(sound) = &prepared.sound else { return Ok(None) };
        let request = request.sound();
        let labels = Labels::of(shapes, &request, sound, context.stop)?.ok_or(PlanError::NotKnown)?;
        let known = labels.known(context.schedules, &request, request.sums_on(&sound.topology), first_limits(&request));
        let schedule = labels.schedule(&known.ok_or(PlanError::NotKnown)?.schedule)?;
        Ok(Some(Self { request, labels, sound: sound.topology.clone(), schedule }))
    }

    /// The schedule on what is left, within limits: of fewer chunks, if so many are allowed, the one that is kept for as many.
    pub(super) fn schedule(
        &self,
        left: &Topology,
        limits: TreeLimits,
        context: Context<'_>,
    ) -> Result<Schedule, PlanError> {
        let chunks_max = limits.max_chunks.or(limits.chunks).or(limits.trees_per_root);
        let is_within = |most: NonZeroU64| self.schedule.shape.chunks_per_share() <= most.get();
        let fewer = match chunks_max {
            Some(most) if !is_within(most) => {
                let known =
                    self.labels.known(context.schedules, &self.request, self.request.sums_on(&self.sound), limits);
                Some(self.labels.schedule(&known.ok_or(PlanError::NotKnown)?.schedule)?)
            }
            _ => None,
        };
        let schedule = fewer.as_ref().unwrap_or(&self.schedule);
        let size_bytes = NonZeroU64::new(self.request.size_bytes_max);
        let is_in_time = canopy_baselines::algorithm(&schedule.algorithm).is_ok_and(|algorithm| algorithm.is_in_time());
        let options = RepairOptions { chunks_max, size_bytes, is_in_time };
        repaired(&self.sound, schedule, left, options, context.stop).map_err(|error| failure(error, context))
    }
}

/// Why there is no such plan, as whoever asks for any plan is told.
fn failure(error: RepairError, context: Context<'_>) -> PlanError {
    match error {
        RepairError::Stopped => PlanError::Stopped,
        RepairError::Disconnected { from, from_rank, to, to_rank } => {
            PlanError::Synthesis(SynthesisError::Disconnected { from, from_rank, to, to_rank })
        }
        RepairError::Foreign { .. } | RepairError::Malformed { .. } => {
            PlanError::Rejected { check: "structure", problem: chain(&error) }
        }
        RepairError::RootGone { .. }
        | RepairError::Unsupported { .. }
        | RepairError::NoRoute { .. }
        | RepairError::RankGone { .. }
        | RepairError::NothingLeft
        | RepairError::Shares(_)
        | RepairError::TooLarge => {
            context.watch.note(Note::NotRepaired { reason: &error });
            PlanError::NotKnown
        }
    }
}
