//! The bound without a plan.

use canopy_canonical::families::with_boxes;
use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_schedule::{Bound, Collective, CollectiveKind, Shares, certified_bound};
use canopy_stock::nccl::with_nvls;
use canopy_synth::{PlainBounds, Stop, are_listed, bound, plain_bounds};
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

/// All that is known of the best rate without a plan.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// That of the network as it is.
    pub found: Bound,
    /// If switches only forwarded, where some do more.
    pub without_switches: Option<Bound>,
    /// If NVSwitches multicast and add up, where that is more: see [`bound_with_nvls`].
    pub with_nvls: Option<Bound>,
    /// Limits by counting alone, of an all-to-all of equal blocks whose network can be searched.
    pub plain: Option<PlainBounds>,
}

impl Bounds {
    /// Those of a collective on a network that has been read.
    ///
    /// # Errors
    /// As [`bounded`].
    pub fn of(
        topology: &Topology,
        collective: Collective,
        shares: &Shares,
        limits: &TopologyLimits,
        stop: &dyn Stop,
    ) -> Result<Self, PlanError> {
        let found = proven_bound(topology, collective, shares, stop);
        let found = found.map_err(|failure| failure.with_parts(topology))?;
        let is_searched = topology.nodes().len() <= TopologyLimits::SEARCHED.nodes_max;
        let is_counted = collective.kind() == CollectiveKind::AllToAll && *shares == Shares::Equal && is_searched;
        let count = || plain_bounds(topology, topology.ports(limits).as_ref(), stop);
        Ok(Self {
            without_switches: bound_without_switches(topology, collective, shares, stop)?,
            with_nvls: bound_with_nvls(topology, collective, shares, &found, stop)?,
            plain: is_counted.then(count).transpose().map_err(PlanError::Bound)?,
            found,
        })
    }
}

/// The bound where switches only forward, of a network with switches that multicast or aggregate; `None` of others.
///
/// # Errors
/// As [`bounded`].
fn bound_without_switches(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Option<Bound>, PlanError> {
    let plain = topology.with_plain_switches();
    plain.map(|plain| proven_bound(&plain, collective, shares, stop)).transpose()
}

/// The bound if NVSwitches multicast and add up, as runtimes from NVLink 4 on have them do (NVLS); `None` if it is no higher
/// than `plain`, the bound of the network as it is, or if there are no such switches.
///
/// # Errors
/// As [`bounded`].
pub fn bound_with_nvls(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    plain: &Bound,
    stop: &dyn Stop,
) -> Result<Option<Bound>, PlanError> {
    // All others are bounded by cuts, over which everything passes once, whatever switches do.
    if collective.kind() != CollectiveKind::Allreduce {
        return Ok(None);
    }
    let Some(capable) = with_nvls(topology) else { return Ok(None) };
    // A certificate that proves as much of such switches leaves nothing to find.
    if certified_bound(&capable, collective, shares, &plain.certificate).as_ref() == Ok(&plain.upper) {
        return Ok(None);
    }
    let found = proven_bound(&capable, collective, shares, stop)?;
    Ok(Some(found).filter(|found| found.upper > plain.upper))
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
