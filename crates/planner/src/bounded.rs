//! The bound without a plan.

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_families::with_boxes;
use canopy_schedule::{Bound, Collective, Shares, certified_bound};
use canopy_synth::{Stop, are_listed, bound};
use canopy_topology::{Topology, TopologyLimits};

use crate::error::PlanError;
use crate::prepared::Prepared;

/// The best rate that any plan for a request can reach, with its proof.
///
/// * **Errors.** No plan can be, the certificate does not hold, or stopped.
/// * **Cost.** That of [`bound`], and of finding boxes in networks that name none.
pub fn bounded(prepared: &Prepared, stop: &dyn Stop) -> Result<Bound, PlanError> {
    let Prepared { topology, collective, shares, .. } = prepared;
    proven_bound(topology, *collective, shares, stop).map_err(|failure| failure.with_parts(topology))
}

/// The bound where switches only forward, of a network with switches that multicast or aggregate; `None` of others.
///
/// # Errors
/// As [`bounded`].
pub fn bound_without_switches(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Option<Bound>, PlanError> {
    let plain = topology.with_plain_switches();
    plain.map(|plain| proven_bound(&plain, collective, shares, stop)).transpose()
}

/// The best rate that any plan of a collective can reach on a network that has been read, with its proof.
///
/// # Errors
/// As [`bounded`].
pub fn proven_bound(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Bound, PlanError> {
    let (nodes, limit) = (topology.nodes().len(), TopologyLimits::SEARCHED.nodes_max);
    let is_searched = nodes <= limit;
    if !is_searched && (are_listed(collective.kind(), topology.rank_count()) || *shares != Shares::Equal) {
        return Err(PlanError::Scale { nodes, limit });
    }
    let boxed = match is_searched {
        true => with_boxes(topology, Budget { work_max: WORK_STANDARD, stop: &|| stop.is_requested() }),
        false => Ok(None),
    };
    let boxed = boxed.map_err(|_| PlanError::Stopped)?;
    let network = boxed.as_ref().map_or(topology, |boxed| &boxed.topology);
    let found = bound(network, collective, shares, stop).map_err(PlanError::Bound)?;
    proven(topology, collective, shares, found)
}

/// A bound, with the certificate's own word for it.
pub(crate) fn proven(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    bound: Bound,
) -> Result<Bound, PlanError> {
    let rejected = |problem: String| PlanError::Rejected { check: "certificate", problem };
    let proven = certified_bound(topology, collective, shares, &bound.certificate);
    let proven = proven.map_err(|error| rejected(error.to_string()))?;
    if proven != bound.upper {
        return Err(rejected(format!("the certificate proves {proven}, but {} is stated", bound.upper)));
    }
    if bound.lower > bound.upper {
        return Err(rejected(format!("{} is stated as reachable but exceeds the bound {}", bound.lower, bound.upper)));
    }
    Ok(bound)
}
