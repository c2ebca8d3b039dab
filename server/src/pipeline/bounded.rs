//! The bound alone, for who asks for no plan.

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_families::with_boxes;
use canopy_proto::v1;
use canopy_schedule::{Bound, Collective, Shares, certified_bound};
use canopy_synth::{Stop, bound};
use canopy_topology::Topology;

use super::describe;
use crate::failure::PlanFailure;
use crate::planner::Prepared;

/// The best that any plan for an order can reach, with its proof, on the wire.
///
/// * **Errors.** No plan can be, the certificate does not hold, or stopped.
/// * **Cost.** That of [`bound`], and of finding boxes in networks that name none.
pub(crate) fn bounded(prepared: &Prepared, stop: &dyn Stop) -> Result<v1::BoundReply, PlanFailure> {
    let Prepared { topology, topology_key, collective, shares, warnings, puncture, .. } = prepared;
    let boxed = with_boxes(topology, Budget { work_max: WORK_STANDARD, stop: &|| stop.is_requested() });
    let boxed = boxed.map_err(|_| PlanFailure::Stopped)?;
    let network = boxed.as_ref().map_or(topology, |boxed| &boxed.topology);
    let found = bound(network, *collective, shares, stop).map_err(PlanFailure::Bound);
    let found = found.map_err(|failure| failure.with_parts(topology))?;
    let found = proven(topology, *collective, shares, found)?;
    Ok(v1::BoundReply {
        bound: found.upper.to_string(),
        lower: found.lower.to_string(),
        tight: found.is_tight(),
        certificate: Some(describe::certificate(topology, shares, &found.certificate)),
        topology: Some(describe::topology_summary(topology, topology_key)),
        puncture: puncture.as_deref().cloned(),
        warnings: warnings.clone(),
    })
}

/// A bound, with the certificate's own word for it.
pub(super) fn proven(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    bound: Bound,
) -> Result<Bound, PlanFailure> {
    let rejected = |problem: String| PlanFailure::Rejected { check: "certificate", problem };
    let proven = certified_bound(topology, collective, shares, &bound.certificate);
    let proven = proven.map_err(|error| rejected(error.to_string()))?;
    if proven != bound.upper {
        return Err(rejected(format!("the certificate proves {proven}, stated is {}", bound.upper)));
    }
    if bound.lower > bound.upper {
        return Err(rejected(format!("{} is said to be reachable beyond the bound {}", bound.lower, bound.upper)));
    }
    Ok(bound)
}
