//! The networks of a job's communicators, as far as files depend on them.

use std::collections::BTreeMap;

use canopy_bundle::Communicator;
use canopy_canonical::{Analysis, Budget, Stopped, WORK_SERVED, analyse, boxes, form_hash, graph_of};
use canopy_planner::{PlanError, seen_by};
use canopy_proto::v1::ErrorStatus;
use canopy_stock::nccl::{Seen, Stock, Version};
use canopy_synth::{Algorithm, family_algorithms};
use canopy_topology::{Fault, Rank, Topology, Transit, content_hash, names_hosts};

use super::seats::{Places, Seat};
use crate::error::ServiceError;

/// Most ranks of a host. Boxes of more are domains of NVLink.
const HOST_RANKS_MAX: u32 = 8;

/// Most ranks of a network that is looked at for its family: some milliseconds.
const FAMILY_RANKS_MAX: u32 = 1024;

/// A communicator whose network is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Party {
    /// Number of its ranks.
    pub(super) ranks: u32,
    /// Its ranks on each host, where that is one number that is known.
    pub(super) ranks_per_node: Option<u32>,
    /// What NCCL sees of it.
    pub(super) nccl: Stock,
    /// Algorithms that are made for networks of its family.
    pub(super) family: &'static [Algorithm],
    /// Where its ranks are; `None`: the request has no placement.
    pub(super) places: Option<Places>,
    /// Why there is no plan for what faults leave of it.
    pub(super) failure: Option<ErrorStatus>,
    /// Equal for two exactly where some renaming of switches and links makes one of the other, rank by rank; as far as
    /// that can be told within the budget of the canonical form, else where they are equal as they stand.
    wiring: Vec<u8>,
}

impl Party {
    /// The same for those who compare.
    pub(super) fn communicator(&self) -> Communicator<'_> {
        let Self { ranks, ranks_per_node, places, wiring, .. } = self;
        let devices = places.as_ref().map(Places::positions);
        Communicator { ranks: *ranks, ranks_per_node: *ranks_per_node, devices, wiring }
    }
}

/// The networks of some groups of ranks, as faults leave them; an empty list is all of them.
///
/// # Errors
/// Ranks that are no group of the topology; stopped.
pub(super) fn parties(
    topology: &Topology,
    faults: &[Fault],
    seats: &[Seat],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Party>, ServiceError> {
    let party = |Seat { members, places }: &Seat| {
        let group = match members.is_empty() {
            true => topology.clone(),
            false => {
                let ranks: Vec<Rank> = members.iter().copied().map(Rank::new).collect();
                topology.group(&ranks, Transit::Unused).map_err(PlanError::Group)?
            }
        };
        // Where too little is left, it is the healthy network that is told from others.
        let left = Some(seen_by(&group, faults)).filter(|seen| !seen.is_empty()).map(|seen| group.puncture(&seen));
        let (group, places, failure) = match left {
            None => (group, places.clone(), None),
            Some(Ok(left)) => (left.topology, places.as_ref().map(|places| places.of(&left.survivors)), None),
            Some(Err(error)) => (group, None, Some(ServiceError::from(PlanError::Fault(error)).operation_error())),
        };
        let wiring = wiring(&group, stop).map_err(|_| PlanError::Stopped)?;
        let is_small = group.rank_count() <= FAMILY_RANKS_MAX;
        let family = if is_small { family_algorithms(&group) } else { &[] };
        let (ranks_per_node, nccl) = (per_host(&group), stock(&group));
        Ok(Party { ranks: group.rank_count(), ranks_per_node, nccl, family, places, failure, wiring })
    };
    seats.iter().map(party).collect()
}

/// Each rank in a role of its own, so that a form that is equal has equal ranks in equal places.
fn wiring(topology: &Topology, stop: &dyn Fn() -> bool) -> Result<Vec<u8>, Stopped> {
    let roles: Vec<u32> = (0..topology.rank_count()).collect();
    if let Some(graph) = graph_of(topology, &roles) {
        let analysis = analyse(&graph, Budget { work_max: WORK_SERVED, stop })?;
        if let Some(solution) = Analysis::solution(&analysis) {
            return Ok([b"form", form_hash(&solution.form(&graph)).as_bytes().as_slice()].concat());
        }
    }
    Ok([b"as it stands", content_hash(topology).as_bytes().as_slice()].concat())
}

/// NCCL on the boxes of a network, or RCCL on those of AMD; on ranks, each a machine of its own, where some state no box or
/// boxes are not alike.
fn stock(topology: &Topology) -> Stock {
    let seen = Seen::of(topology, &boxes(topology)).unwrap_or_else(|_| Seen::of_ranks(topology));
    seen.stock(None).unwrap_or_else(|_| Stock::nccl(Version::default(), seen.machine, seen.nodes))
}

/// The number of ranks in each box that has any, where it is one.
fn per_box(topology: &Topology) -> Option<u32> {
    let boxes = boxes(topology);
    let mut counts: Vec<u32> = Vec::new();
    // Ranks are the first nodes.
    for number in boxes.into_iter().take(topology.rank_count() as usize) {
        let number = number? as usize;
        if counts.len() <= number {
            counts.resize(number + 1, 0);
        }
        counts.iter_mut().skip(number).take(1).for_each(|count| *count += 1);
    }
    counts.retain(|&count| count > 0);
    one_number(counts)
}

/// The number of ranks on each host: by the hosts that the network names, else by its boxes, unless they have more ranks than
/// a host. Those are domains of NVLink, whose hosts are not known.
fn per_host(topology: &Topology) -> Option<u32> {
    if !names_hosts(topology) {
        return per_box(topology).filter(|&ranks| ranks <= HOST_RANKS_MAX);
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for node in topology.nodes().iter().take(topology.rank_count() as usize) {
        *counts.entry(node.attributes.host.as_deref()?).or_default() += 1;
    }
    one_number(counts.into_values())
}

fn one_number(counts: impl IntoIterator<Item = u32>) -> Option<u32> {
    let mut counts = counts.into_iter();
    let first = counts.next()?;
    counts.all(|count| count == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate, read_document};

    use canopy_wire::reason_of;

    use super::*;

    const fn seat(members: Vec<u32>) -> Seat {
        Seat { members, places: None }
    }

    fn wirings(expression: &str, members: &[&[u32]]) -> Vec<Party> {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let members: Vec<Seat> = members.iter().map(|ranks| seat(ranks.to_vec())).collect();
        parties(&topology, &[], &members, &|| false).unwrap()
    }

    #[test]
    fn boxes_of_one_kind_are_wired_alike_and_pairs_across_them_are_not() {
        let found = wirings("dgx-a100:boxes=2", &[&[0, 1], &[8, 9], &[0, 8], &[9, 8]]);
        assert_eq!(found[0], found[1]);
        assert_ne!(found[0].wiring, found[2].wiring);
        // Both ranks of a pair are alike here, so their order does not matter.
        assert_eq!(found[1].wiring, found[3].wiring);
        assert_eq!((found[0].ranks_per_node, found[2].ranks_per_node), (Some(2), Some(1)));
    }

    /// A rack of GB200 is one domain of NVLink of many hosts: it has 72 ranks for NCCL, and hosts say how many MSCCL++ counts.
    #[test]
    fn hosts_are_told_from_domains_of_nvlink() {
        let found = wirings("gb200-nvl72:racks=2", &[&[]]);
        assert_eq!((found[0].nccl.ranks(), found[0].nccl.nodes(), found[0].ranks_per_node), (144, 2, None));
        let with_hosts = |ranks_of_host: u32| {
            let node = |rank: u32| format!("  - {{id: g{rank}, box: rack, host: h{}}}\n", rank / ranks_of_host);
            let link = |rank: u32| format!("  - {{from: g{rank}, to: nv, bandwidth: 900GB/s, both: true}}\n");
            let (nodes, links): (String, String) = ((0..6).map(node).collect(), (0..6).map(link).collect());
            let text = format!("canopy: 1\nnodes:\n{nodes}  - {{id: nv, kind: switch, box: rack}}\nlinks:\n{links}");
            let topology = read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology;
            (per_box(&topology), per_host(&topology))
        };
        assert_eq!([with_hosts(2), with_hosts(3)], [(Some(6), Some(2)), (Some(6), Some(3))]);
        assert_eq!(with_hosts(4), (Some(6), None));
    }

    #[test]
    fn machines_and_nics_are_those_of_the_boxes() {
        let found = wirings("dgx-h100:boxes=4", &[&[], &[0, 1, 2, 3], &[0, 8]]);
        let seen: Vec<_> =
            found.iter().map(|party| (party.nccl.nodes(), party.nccl.nics(), party.nccl.channels())).collect();
        assert_eq!(seen[..2], [(4, 8, 16), (1, 4, 24)]);
        assert_eq!((seen[2].0, seen[2].1), (2, 1));
        let ring = wirings("ring:6", &[&[]]);
        assert_eq!((ring[0].nccl.nodes(), ring[0].nccl.nics(), ring[0].nccl.channels()), (6, 2, 4));
    }

    /// Of a network of its own, whatever it is a part of.
    #[test]
    fn communicators_have_families() {
        let found = wirings("dfc2:3x4", &[&[], &[0, 1, 4, 5], &[0, 1, 2, 3], &[0, 1, 2, 4, 5, 6, 8, 9, 10]]);
        let families: Vec<_> = found.iter().map(|party| party.family).collect();
        let own: &[Algorithm] = &[Algorithm::Dfc2, Algorithm::Dfc2Do];
        // A line is joined completely.
        assert_eq!(families, [own, own, &[], own]);
    }

    #[test]
    fn the_order_of_ranks_counts() {
        let found = wirings("torus:4x4", &[&[0, 1, 2, 3], &[4, 5, 6, 7], &[0, 2, 1, 3], &[1, 2, 3, 0]]);
        assert_eq!(found[0], found[1]);
        assert_ne!(found[0].wiring, found[2].wiring);
        assert_eq!(found[0].wiring, found[3].wiring);
        assert_eq!(found[0].ranks_per_node, None);
    }

    #[test]
    fn faults_leave_communicators_smaller_or_on_other_wiring() {
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let faults = [Fault::Node { id: "b0g3".to_owned() }, Fault::Node { id: "b1nv".to_owned() }];
        let of_box = |first: u32| (first..first + 8).collect::<Vec<u32>>();
        let members = [of_box(0), of_box(8), vec![2, 3]].map(seat);
        let found = parties(&topology, &faults, &members, &|| false).unwrap();
        assert_eq!(found.iter().map(|party| party.ranks).collect::<Vec<_>>(), [7, 8, 2]);
        let failures: Vec<_> = found.iter().map(|party| party.failure.as_ref().map(reason_of)).collect();
        assert_eq!(failures, [None, None, Some("TOO_FEW_RANKS".to_owned())]);
        let healthy = parties(&topology, &[], &members, &|| false).unwrap();
        assert_eq!(healthy[0].wiring, healthy[1].wiring);
        assert_ne!(found[1].wiring, healthy[1].wiring);
    }

    #[test]
    fn what_is_no_group_is_refused() {
        let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        for wrong in [vec![0, 9], vec![1, 1], vec![2]] {
            assert!(matches!(
                parties(&topology, &[], &[seat(wrong)], &|| false),
                Err(ServiceError::Plan(PlanError::Group(_)))
            ));
        }
    }
}
