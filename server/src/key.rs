//! Keys of plans, requests and schedules.

use canopy_planner::PLANNER_CLASS;
pub use canopy_planner::{PlanKey, RequestKey, ScheduleKey, TopologyKey};

/// The class of this server's plans.
pub(crate) const fn planner_class() -> &'static str {
    PLANNER_CLASS
}
