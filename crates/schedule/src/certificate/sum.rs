//! Several cuts and partitions at once.

use canopy_topology::{Link, LinkIndex, NodeIndex, Ratio, Topology};
use num_bigint::BigUint;

use super::{CertificateError, crosses, cut_demand, leaves, partition_demand, unit};
use crate::bound::{Certificate, CutDirection};
use crate::collective::Collective;
use crate::shares::Shares;

/// Most partitions in a sum: each costs as much as all links.
const PARTITIONS_MAX: usize = 64;

/// Most cuts in a sum, for each node: each costs as much as what it lists.
const CUTS_PER_NODE_MAX: usize = 16;

/// What all terms of a sum count of the capacities of links, in bytes per second, and what must pass them, as a multiple of the
/// message: more than 0.
///
/// * **In.** As [`certified_bound`](super::certified_bound). **Errors.** As there.
/// * **Cost.** O(nodes + links), and the links of the nodes that cuts list; O(nodes + links) for each partition.
pub fn sum_parts(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    terms: &[(u64, Certificate)],
    potentials: &[(NodeIndex, i64)],
) -> Result<(BigUint, Ratio), CertificateError> {
    let node_count = topology.nodes().len();
    let partitions = terms.iter().filter(|(_, term)| matches!(term, Certificate::Partition { .. })).count();
    let limit = PARTITIONS_MAX + CUTS_PER_NODE_MAX * node_count;
    for (found, limit, what) in [(partitions, PARTITIONS_MAX, "partitions"), (terms.len(), limit, "terms")] {
        if found > limit {
            return Err(CertificateError::TooManyTerms { found, limit, what });
        }
    }
    // By link, how often it counts.
    let mut counts = vec![0_i128; topology.links().len()];
    for (counted, rise) in counts.iter_mut().zip(rises(topology, potentials)?) {
        *counted = rise;
    }
    let entering = entering(topology);
    let mut set_of = vec![None; node_count];
    let unit = unit(topology, collective.kind(), shares);
    let mut demand = BigUint::ZERO;
    for (weight, term) in terms {
        let weighted = i128::from(*weight);
        match term {
            Certificate::Cut { direction, nodes } => {
                demand += cut_demand(topology, collective, (shares, unit), (*direction, nodes), &mut set_of)?
                    * BigUint::from(*weight);
                for &node in nodes {
                    let links: &mut dyn Iterator<Item = LinkIndex> = match direction {
                        CutDirection::Out => &mut topology.links_from(node),
                        CutDirection::In => &mut entering[node.index()].iter().copied(),
                    };
                    let counted = links.filter(|&link| crosses(&set_of, *direction, topology.link(link)));
                    counted.for_each(|link| counts[link.index()] += weighted);
                }
                nodes.iter().for_each(|node| set_of[node.index()] = None);
            }
            Certificate::Partition { sets } => {
                demand += partition_demand(topology, collective.kind(), sets, &mut set_of)? * BigUint::from(*weight);
                let counted = counts.iter_mut().zip(topology.links()).filter(|(_, link)| leaves(&set_of, link));
                counted.for_each(|(count, _)| *count += weighted);
                set_of.fill(None);
            }
            Certificate::Sum { .. } => return Err(CertificateError::NotSummable { kind: "sum" }),
            Certificate::LpDual { .. } => return Err(CertificateError::NotSummable { kind: "lp-dual" }),
        }
    }
    let data = Ratio::new(demand, unit).filter(|data| *data.parts().0 > BigUint::ZERO);
    let data = data.ok_or(CertificateError::EmptySum)?;
    let capacity = |(link, count): (&Link, i128)| {
        BigUint::from(link.capacity.bytes_per_sec()) * u128::try_from(count).unwrap_or(0)
    };
    Ok((topology.links().iter().zip(counts).map(capacity).sum(), data))
}

/// By link, how much the potential rises along it.
fn rises(topology: &Topology, stated: &[(NodeIndex, i64)]) -> Result<Vec<i128>, CertificateError> {
    let node_count = topology.nodes().len();
    let mut potentials = vec![0_i128; node_count];
    let mut before: Option<NodeIndex> = None;
    for &(node, potential) in stated {
        let place = || "potentials".to_owned();
        if let Some(before) = before.filter(|&before| before >= node) {
            return Err(CertificateError::Unsorted { place: place(), node: before.number(), next: node.number() });
        }
        before = Some(node);
        let unknown = CertificateError::UnknownNode { place: place(), node: node.number(), node_count };
        *potentials.get_mut(node.index()).ok_or(unknown)? = potential.into();
        if topology.rank_of(node).is_some() {
            return Err(CertificateError::PotentialMisplaced { node: node.number() });
        }
    }
    if let Some(node) = topology.capable_nodes().find(|node| potentials[node.index()] != 0) {
        return Err(CertificateError::PotentialMisplaced { node: node.number() });
    }
    let rise = |link: &Link| potentials[link.to.index()] - potentials[link.from.index()];
    Ok(topology.links().iter().map(rise).collect())
}

/// By node, the links that lead to it.
fn entering(topology: &Topology) -> Vec<Vec<LinkIndex>> {
    let mut entering = vec![Vec::new(); topology.nodes().len()];
    for (index, link) in (0_u32..).map(LinkIndex::new).zip(topology.links()) {
        entering[link.to.index()].push(index);
    }
    entering
}
