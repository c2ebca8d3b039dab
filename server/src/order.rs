//! What a request asks of its job.

pub use canopy_planner::{Group, JointRequest as JointOrder, JointTask, Making, Request as Order, TopologyInput};
pub(crate) use canopy_wire::Priority;
pub use canopy_wire::RequestError;
