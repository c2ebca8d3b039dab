//! Networks of requests, read on stacks that are deep enough for any document.

use std::thread;

use canopy_faults::Directory;
use canopy_planner::{PlanError, read_topology};
use canopy_proto::v1;
use canopy_topology::{Fault, Topology, TopologyLimits};
use canopy_wire::{Sourced, sourced};

use crate::error::ServiceError;

/// Ample for recursive parsers at their greatest permitted depth.
pub const STACK_BYTES: usize = 16 << 20;

/// Reads on a thread whose stack the deepest document cannot exhaust.
pub fn on_a_deep_stack<T: Send>(read: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("canopy-topology".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, &read) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Better with less stack than not at all.
            Err(_) => read(),
        }
    })
}

/// Reads the healthy network of a source that names none that is stored, and the meaning of its faults there.
///
/// # Errors
/// The network cannot be read, a fault is not one of it, or `stop` says so.
pub fn read_punctured(
    source: Option<v1::TopologySource>,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(Topology, Vec<Fault>), ServiceError> {
    let Sourced { topology, faults } = sourced(source)?;
    let (topology, _) = on_a_deep_stack(|| read_topology(&topology, limits, &stop))?;
    let faults = Directory::new(&topology).resolve(&faults).map_err(PlanError::FaultMeaning)?;
    Ok((topology, faults))
}
