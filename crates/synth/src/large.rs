//! Networks of so many ranks that a tree for each cannot be written down, and their bounds.

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::{Bound, Certificate, Collective, CollectiveKind, Shares, actions_of, certified_bound};
use canopy_topology::{Rate, Ratio, Topology};

use crate::bound::BoundError;
use crate::parts::HOPS_MAX;
use crate::reach::first_unreachable;
use crate::symmetric::{BoxNetwork, likely_boxes, slowest};

/// Whether a tree for each rank may be written down, for collectives that need one: up to 5,792 ranks, in an allreduce
/// 4,096.
pub fn are_listed(kind: CollectiveKind, rank_count: u32) -> bool {
    let phases = actions_of(kind).map_or(0, <[_]>::len);
    u64::from(rank_count).pow(2).saturating_mul(phases as u64) <= HOPS_MAX
}

/// The bound of the slowest rank, box or pod, with the boxes that were looked at: of more ranks than cuts are searched
/// among. What is reached is for a plan to say.
///
/// * **Errors.** Ranks that are not connected; stopped. **Cost.** O(links · different numbers of links that switches
///   have).
pub(crate) fn bound_of_parts(
    topology: &Topology,
    collective: Collective,
    stop: &dyn Stop,
) -> Result<(Bound, Vec<BoxNetwork>), BoundError> {
    if let Some((from, to)) = first_unreachable(topology, collective, &Shares::Equal) {
        let id = |rank| topology.node(canopy_topology::Rank::node(rank)).id.clone();
        let (from_rank, to_rank) = (from.number(), to.number());
        return Err(BoundError::Disconnected { from: id(from), from_rank, to: id(to), to_rank });
    }
    let mut least: Option<Bound> = None;
    let networks = likely_boxes(topology);
    for network in networks.iter().map(Some).chain(networks.is_empty().then_some(None)) {
        if stop.is_requested() {
            return Err(BoundError::Stopped);
        }
        let certificate = slowest(topology, network, collective.kind());
        let broken = |error: canopy_schedule::CertificateError| BoundError::Broken { what: error.to_string() };
        let upper = certified_bound(topology, collective, &Shares::Equal, &certificate).map_err(broken)?;
        if least.as_ref().is_none_or(|least| upper < least.upper) {
            least = Some(Bound { upper, lower: Rate::zero(), certificate });
        }
    }
    let least = least.ok_or_else(|| BoundError::Broken { what: "the network has no ranks".to_owned() })?;
    Ok((least, networks))
}

/// The part of the rate that a certificate says no plan exceeds, which is reached by a plan for equal shares that keeps
/// its busiest link for this time, in seconds for each byte of a share.
pub(crate) fn part_reached(
    topology: &Topology,
    collective: Collective,
    certificate: &Certificate,
    time: Fraction,
) -> Option<Ratio> {
    let shares = u128::from(topology.rank_count());
    let reached = time.denominator.checked_mul(shares).and_then(|shares| Rate::new(shares, time.numerator));
    let bound = certified_bound(topology, collective, &Shares::Equal, certificate).ok();
    reached?.ratio_to(&bound?)
}
