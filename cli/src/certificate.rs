//! How a certificate is shown: as JSON and as a line of text.

use canopy_proto::v1;
use canopy_schedule::{Certificate, CutDirection, Shares, lp_dual_sums};
use canopy_topology::{NodeIndex, Topology};
use serde::Serialize;

/// Most names a line of text lists.
const NAMES_MAX: usize = 8;
/// Most sets of a partition the text lists.
const SETS_MAX: usize = 4;

/// The `certificate` member of JSON objects. Capacities are texts: they may exceed 64 bits.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum CertificateSummary {
    /// The links that cross the boundary of one set bind.
    Cut { direction: &'static str, nodes_in_cut: Vec<String>, ranks_in_cut: Vec<u32>, capacity: String, checked: bool },
    /// The links that leave any of the sets bind, together.
    Partition { sets: Vec<Vec<String>>, ranks: Vec<Vec<u32>>, capacity: String, checked: bool },
    /// Data that travels far, by the lengths of links, takes up capacity on the way.
    #[serde(rename = "lp-dual")]
    LpDual { lengths: Vec<LinkLength>, volume: String, distance: String, checked: bool },
}

/// A link of length other than 0.
#[derive(Debug, Serialize)]
pub(crate) struct LinkLength {
    from: String,
    to: String,
    length: u64,
}

impl CertificateSummary {
    /// Names what a certificate numbers. `checked`: whether it was re-added and proves the bound beside it.
    pub(crate) fn of(topology: &Topology, shares: &Shares, certificate: &Certificate, checked: bool) -> Self {
        match certificate {
            Certificate::Cut { direction, nodes } => Self::Cut {
                direction: direction.name(),
                nodes_in_cut: ids(topology, nodes),
                ranks_in_cut: ranks(topology, nodes),
                capacity: crossing(topology, nodes, *direction).to_string(),
                checked,
            },
            Certificate::Partition { sets } => Self::Partition {
                sets: sets.iter().map(|nodes| ids(topology, nodes)).collect(),
                ranks: sets.iter().map(|nodes| ranks(topology, nodes)).collect(),
                capacity: leaving(topology, sets).to_string(),
                checked,
            },
            Certificate::LpDual { lengths } => {
                let sums = lp_dual_sums(topology, shares, lengths).expect("the certificate has been re-added");
                let id = |node: NodeIndex| topology.node(node).id.clone();
                let lengths = topology.links().iter().zip(lengths).filter(|&(_, &length)| length > 0);
                Self::LpDual {
                    lengths: lengths
                        .map(|(link, &length)| LinkLength { from: id(link.from), to: id(link.to), length })
                        .collect(),
                    volume: sums.volume.to_string(),
                    distance: sums.distance.to_string(),
                    checked,
                }
            }
        }
    }

    /// The same as a server says it, which has re-added it.
    pub(crate) fn of_server(certificate: v1::Certificate) -> Option<Self> {
        use v1::certificate::Kind;
        let checked = true;
        Some(match certificate.kind? {
            Kind::Cut(cut) => {
                let direction = match cut.direction() {
                    v1::CutDirection::Out => CutDirection::Out,
                    v1::CutDirection::In => CutDirection::In,
                    v1::CutDirection::Unspecified => return None,
                };
                let v1::CutCertificate { set, capacity, .. } = cut;
                let v1::NodeSet { nodes: nodes_in_cut, ranks: ranks_in_cut } = set?;
                Self::Cut { direction: direction.name(), nodes_in_cut, ranks_in_cut, capacity, checked }
            }
            Kind::Partition(v1::PartitionCertificate { sets, capacity }) => {
                let (sets, ranks) = sets.into_iter().map(|set| (set.nodes, set.ranks)).unzip();
                Self::Partition { sets, ranks, capacity, checked }
            }
            Kind::LpDual(v1::LpDualCertificate { lengths, volume, distance }) => {
                let link = |v1::LinkLength { from, to, length }| LinkLength { from, to, length };
                Self::LpDual { lengths: lengths.into_iter().map(link).collect(), volume, distance, checked }
            }
        })
    }

    /// What binds, in a few lines for people.
    pub(crate) fn readable(&self) -> String {
        match self {
            Self::Cut { direction, nodes_in_cut, ranks_in_cut, capacity, .. } => {
                let verb = if *direction == "out" { "leave" } else { "enter" };
                let (ranks, nodes) = (ranks_in_cut.len(), list(nodes_in_cut));
                format!("cut        {capacity} bytes/s {verb} a set with {}: {nodes}", count(ranks, "rank"))
            }
            Self::Partition { sets, capacity, .. } => {
                let mut text = format!("partition  {capacity} bytes/s leave {}", count(sets.len(), "set"));
                for set in sets.iter().take(SETS_MAX) {
                    text += &format!("\n           {}", list(set));
                }
                if sets.len() > SETS_MAX {
                    text += &format!("\n           and {} more", sets.len() - SETS_MAX);
                }
                text
            }
            Self::LpDual { lengths, volume, distance, .. } => {
                let links = count(lengths.len(), "link");
                format!("lp-dual    {volume} bytes/s × length on {links}, {distance} between all pairs of ranks")
            }
        }
    }
}

fn ids(topology: &Topology, nodes: &[NodeIndex]) -> Vec<String> {
    nodes.iter().map(|&node| topology.node(node).id.clone()).collect()
}

fn ranks(topology: &Topology, nodes: &[NodeIndex]) -> Vec<u32> {
    nodes.iter().filter_map(|&node| topology.rank_of(node)).map(canopy_topology::Rank::number).collect()
}

/// Capacity of the links that leave a set, or enter it. At most 100 bits by the invariant of `Topology`.
fn crossing(topology: &Topology, nodes: &[NodeIndex], direction: CutDirection) -> u128 {
    let mut inside = vec![false; topology.nodes().len()];
    for node in nodes {
        inside[node.index()] = true;
    }
    let crosses = |link: &&canopy_topology::Link| {
        let (from, to) = (inside[link.from.index()], inside[link.to.index()]);
        match direction {
            CutDirection::Out => from && !to,
            CutDirection::In => !from && to,
        }
    };
    topology.links().iter().filter(crosses).map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
}

/// Capacity of the links that leave any of the disjoint sets, in one pass over the links.
fn leaving(topology: &Topology, sets: &[Vec<NodeIndex>]) -> u128 {
    let mut set_of = vec![None; topology.nodes().len()];
    for (number, nodes) in sets.iter().enumerate() {
        nodes.iter().for_each(|node| set_of[node.index()] = Some(number));
    }
    let leaves = |link: &&canopy_topology::Link| {
        let from = set_of[link.from.index()];
        from.is_some() && from != set_of[link.to.index()]
    };
    topology.links().iter().filter(leaves).map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(" ");
    if names.len() > NAMES_MAX { format!("{shown} and {} more", names.len() - NAMES_MAX) } else { shown }
}

/// `1 rank`, `2 ranks`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
