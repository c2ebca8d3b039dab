//! The schedule of a sound network, made to fit what faults leave of it.

use std::num::NonZeroU64;
use std::sync::Arc;

use canopy_schedule::Schedule;
use canopy_synth::{RepairError, RepairOptions, Stop, SynthesisError, TreeLimits, repaired};
use canopy_topology::Topology;

use super::canon::Canon;
use super::fewer::first_limits;
use crate::failure::{PlanFailure, chain};
use crate::order::Order;
use crate::planner::Prepared;
use crate::shapes::Shapes;

/// What is kept of the sound network.
#[derive(Debug)]
pub(super) struct Repair {
    shapes: Arc<Shapes>,
    /// The order on the sound network.
    order: Order,
    canon: Canon,
    sound: Topology,
    /// Its schedule in the caller's labels.
    schedule: Schedule,
}

impl Repair {
    /// Takes the schedule that is kept for the sound network; none for an order that is not made so.
    ///
    /// # Errors
    /// [`PlanFailure::NotCached`] where none is kept: nothing is searched for. Stopped.
    pub(super) fn of(
        shapes: &Arc<Shapes>,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, PlanFailure> {
        let Some(sound) = &prepared.sound else { return Ok(None) };
        let order = order.sound();
        let canon = Canon::of(shapes, &order, sound, stop)?.ok_or(PlanFailure::NotCached)?;
        let known = canon.known(shapes, &order, first_limits(&order)).ok_or(PlanFailure::NotCached)?;
        let schedule = canon.schedule(&known.schedule)?;
        Ok(Some(Self { shapes: Arc::clone(shapes), order, canon, sound: sound.topology.clone(), schedule }))
    }

    /// The schedule on what is left, within limits: of fewer chunks, if so many are allowed, the one that is kept for as many.
    pub(super) fn schedule(
        &self,
        left: &Topology,
        limits: TreeLimits,
        stop: &dyn Stop,
    ) -> Result<Schedule, PlanFailure> {
        let chunks_max = limits.max_chunks.or(limits.chunks).or(limits.trees_per_root);
        let is_within = |most: NonZeroU64| self.schedule.shape.chunks_per_share() <= most.get();
        let fewer = match chunks_max {
            Some(most) if !is_within(most) => {
                let known = self.canon.known(&self.shapes, &self.order, limits).ok_or(PlanFailure::NotCached)?;
                Some(self.canon.schedule(&known.schedule)?)
            }
            _ => None,
        };
        let schedule = fewer.as_ref().unwrap_or(&self.schedule);
        let options = RepairOptions { chunks_max, size_bytes: NonZeroU64::new(self.order.size_bytes_max) };
        repaired(&self.sound, schedule, left, options, stop).map_err(failure)
    }
}

/// Why there is no such plan, as whoever asks for any plan is told.
fn failure(error: RepairError) -> PlanFailure {
    match error {
        RepairError::Stopped => PlanFailure::Stopped,
        RepairError::Disconnected { from, from_rank, to, to_rank } => {
            PlanFailure::Synthesis(SynthesisError::Disconnected { from, from_rank, to, to_rank })
        }
        RepairError::Foreign { .. } | RepairError::Malformed { .. } => {
            PlanFailure::Rejected { check: "structure", problem: chain(&error) }
        }
        RepairError::RootGone { .. }
        | RepairError::Unsupported { .. }
        | RepairError::NoRoute { .. }
        | RepairError::RankGone { .. }
        | RepairError::NothingLeft
        | RepairError::Shares(_)
        | RepairError::TooLarge => {
            tracing::info!(reason = chain(&error), "a schedule is not repaired");
            PlanFailure::NotCached
        }
    }
}
