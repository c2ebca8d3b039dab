//! Reading topologies outside the workers, whose stacks are deep enough for any document.

use std::thread;

use canopy_planner::{TopologyInput, Warning, read_topology};
use canopy_topology::{Topology, TopologyLimits};

use crate::failure::PlanFailure;

/// Ample for recursive parsers at their greatest permitted depth.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// Reads on a thread whose stack the deepest document cannot exhaust. A panic there ends the call alone.
pub(crate) fn read_deeply(
    input: &TopologyInput,
    limits: &TopologyLimits,
    gone: &(dyn Fn() -> bool + Sync),
) -> Result<(Topology, Vec<Warning>), PlanFailure> {
    Ok(on_a_deep_stack(|| read_topology(input, limits, &gone))?)
}

/// Reads on a thread whose stack the deepest document cannot exhaust.
pub(crate) fn on_a_deep_stack<T: Send>(read: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("canopy-topology".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, &read) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Better with less stack than not at all.
            Err(_) => read(),
        }
    })
}
