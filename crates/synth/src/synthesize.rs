//! The one entry point: picks the synthesizer and refuses what none of them plans.

use canopy_optimize::Stop;
use canopy_schedule::{Schedule, Shape};
use canopy_topology::Topology;

use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::error::SynthesisError;
use crate::forest;
use crate::progress::Progress;

/// Finds a schedule for a collective on a topology.
///
/// * **Source.** [`Algorithm::Forest`]: Zhao 2026, chapter 4 and appendix B; see `forest.rs` for departures.
/// * **In.** Any topology whose ranks reach each other; where switches carry traffic, as much enters each of them as
///   leaves. **Out.** A schedule that reaches the bound exactly for allgather, reduce-scatter, broadcast and reduce. Allreduce is
///   a reduce-scatter followed by an allgather, which is optimal on most regular networks, not on all. Equal arguments
///   give equal schedules.
/// * **Errors.** [`SynthesisError`]; [`SynthesisError::Stopped`] within some milliseconds of a request to stop.
/// * **Cost.** Polynomial and independent of the number of trees; 16 to 32 ranks take some milliseconds.
pub fn synthesize(
    topology: &Topology,
    request: &SynthesisRequest,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Schedule, SynthesisError> {
    let algorithm = match request.algorithm {
        Algorithm::Auto | Algorithm::Forest => Algorithm::Forest,
    };
    let forest = forest::plan(topology, request.collective, stop, progress)?;
    Ok(Schedule {
        collective: request.collective,
        algorithm: algorithm.name().to_owned(),
        shape: Shape::Forest(forest),
    })
}
