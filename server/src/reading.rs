//! Reading topologies outside the workers, whose stacks are deep enough for any document.

use canopy_planner::{TopologyInput, Warning, read_topology};
pub(crate) use canopy_service::{STACK_BYTES, on_a_deep_stack};
use canopy_topology::{Topology, TopologyLimits};

use crate::failure::PlanFailure;

/// Reads on a thread whose stack the deepest document cannot exhaust. A panic there ends the call alone.
pub(crate) fn read_deeply(
    input: &TopologyInput,
    limits: &TopologyLimits,
    gone: &(dyn Fn() -> bool + Sync),
) -> Result<(Topology, Vec<Warning>), PlanFailure> {
    Ok(on_a_deep_stack(|| read_topology(input, limits, &gone))?)
}
