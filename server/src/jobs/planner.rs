//! The interface of a planner for the workers, so that tests can replace it.

use canopy_planner::{Request as Order, ScheduleKey};
use canopy_synth::Stop;
use canopy_wire::StoredPlan;

use crate::failure::PlanFailure;
use crate::store::StoreError;

pub use canopy_planner::{Prepared, PreparedJoint, Watch};

/// Makes plans. Called from worker threads; a panic in it fails the job alone.
pub trait Planner: Send + Sync + 'static {
    /// Reads and hashes the topology: all that is needed to know whether the plan is there already.
    ///
    /// # Errors
    /// What is wrong with the request; [`PlanFailure::Stopped`] soon after `stop` is requested.
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure>;

    /// Makes the plan from what is known of the network's shape, without a search: takes milliseconds.
    ///
    /// # Errors
    /// As [`Planner::produce`].
    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        let _knows_no_shapes = (order, prepared, stop, watch);
        Ok(Recall::Unknown(None))
    }

    /// Whether what is kept under this key would do for [`Planner::recall`].
    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        let _knows_no_shapes = schedule;
        false
    }

    /// Number of schedules that are kept, and their bytes.
    ///
    /// # Errors
    /// The store failed.
    fn kept(&self) -> Result<(usize, u64), StoreError> {
        Ok((0, 0))
    }

    /// Drops what is kept under these keys: whoever wants it next has it searched for.
    fn forget(&self, schedules: &[ScheduleKey]) {
        let _keeps_none = schedules;
    }

    /// Makes the plan, checked, with the content of all its artifacts.
    ///
    /// # Errors
    /// Why there is none; [`PlanFailure::Stopped`] soon after `stop` is requested.
    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure>;
}

/// A finished plan.
#[derive(Clone, Debug)]
pub struct Produced {
    /// The plan as it is kept.
    pub plan: StoredPlan,
    /// How long its stages took; [`Planner::produce`] alone.
    pub timings: canopy_planner::Timings,
    /// Whether it was made from what was known, without a search.
    pub is_recalled: bool,
}

/// What is known of a shape.
#[derive(Clone, Debug)]
pub enum Recall {
    /// All that the plan needs.
    Made(Box<Produced>),
    /// Not enough; where what is found will be kept, if anywhere.
    Unknown(Option<ScheduleKey>),
}
