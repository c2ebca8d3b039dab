//! Textbook schedules under the names that users choose.

use canopy_optimize::Stop;
use canopy_schedule::{Collective, Schedule};
use canopy_topology::Topology;

use super::{SteppedError, with_shares};
use crate::algorithm::{SynthesisRequest, Synthesized, Task};
use crate::error::SynthesisError;
use crate::reach::require_reach;

/// Plans by one of these.
///
/// * **Errors.** Ranks out of reach, and what the algorithm says.
pub fn planned(
    task: &Task<'_>,
    builder: impl FnOnce(&Topology, Collective, &dyn Stop) -> Result<Schedule, SteppedError>,
) -> Result<Synthesized, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, .. } = task.request;
    require_reach(task.topology, collective, shares)?;
    let schedule = builder(task.topology, collective, task.stop);
    let schedule = schedule.and_then(|schedule| with_shares(schedule, shares.clone()));
    schedule.map(|schedule| task.planned(schedule.shape)).map_err(|error| match error {
        SteppedError::Stopped => SynthesisError::Stopped,
        SteppedError::Unsupported { collective, .. } => task.algorithm.unsupported(collective),
        error => SynthesisError::Stepped(error),
    })
}
