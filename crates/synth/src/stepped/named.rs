//! Textbook schedules under the names that users choose.

use canopy_optimize::Stop;
use canopy_schedule::{Collective, Schedule, Shape};
use canopy_topology::Topology;

use super::{SteppedError, binomial, bruck, double_tree, local_ring, pairwise, recursive_doubling, with_shares};
use crate::algorithm::Algorithm;
use crate::error::SynthesisError;
use crate::reach::require_reach;
use crate::request::SynthesisRequest;

type Builder = fn(&Topology, Collective, &dyn Stop) -> Result<Schedule, SteppedError>;

/// Plans by one of the algorithms that know ranks by number only.
///
/// * **Errors.** Ranks out of reach, and what the algorithm says.
pub(crate) fn plan(topology: &Topology, request: &SynthesisRequest, stop: &dyn Stop) -> Result<Shape, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, algorithm, .. } = request;
    let builder: Builder = match algorithm {
        Algorithm::Pairwise => pairwise,
        Algorithm::Bruck => bruck,
        Algorithm::RecursiveDoubling => recursive_doubling,
        Algorithm::Binomial => binomial,
        Algorithm::DoubleTree => double_tree,
        Algorithm::LocalRing => local_ring,
        other => return Err(SynthesisError::Broken { what: format!("{other} is no textbook schedule") }),
    };
    require_reach(topology, collective, shares)?;
    let schedule = builder(topology, collective, stop).and_then(|schedule| with_shares(schedule, shares.clone()));
    schedule.map(|schedule| schedule.shape).map_err(|error| match error {
        SteppedError::Stopped => SynthesisError::Stopped,
        SteppedError::Unsupported { collective, .. } => SynthesisError::Unsupported { algorithm, collective },
        error => SynthesisError::Stepped(error),
    })
}
