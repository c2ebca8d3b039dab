//! How a certificate is shown: as JSON and as a line of text.

use canopy_proto::Exact as _;
use canopy_proto::v1;
use canopy_schedule::{Certificate, Collective, NamedParts, Shares};
use canopy_topology::Topology;
use canopy_wire::{certificate, parts_of_wire};
use serde::Serialize;

use crate::output::stated_rate;
use crate::protocol_words::stated;
use crate::table::count;

/// Most names a line of text lists.
const NAMES_MAX: usize = 8;
/// Most sets of a partition the text lists.
const SETS_MAX: usize = 4;

/// The `certificate` member of JSON objects. Capacities are texts: they may exceed 64 bits.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum CertificateSummary {
    /// The links that cross the boundary of one set bind.
    Cut { direction: String, nodes_in_cut: Vec<String>, ranks_in_cut: Vec<u32>, capacity: String, checked: bool },
    /// The links that leave any of the sets bind, together.
    Partition {
        sets: Vec<Vec<String>>,
        ranks: Vec<Vec<u32>>,
        /// What the sets are where they are not listed, and how many.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        set_count: Option<u32>,
        capacity: String,
        checked: bool,
    },
    /// Several cuts or partitions at once, with potentials of switches.
    Sum { terms: Vec<SumTerm>, potentials: Vec<Potential>, capacity: String, data: String, checked: bool },
    /// Data that travels far, by the lengths of links, takes up capacity on the way.
    #[serde(rename = "lp-dual")]
    LpDual { lengths: Vec<LinkLength>, volume: String, distance: String, checked: bool },
}

/// A cut or a partition and how often it counts.
#[derive(Debug, Serialize)]
pub(crate) struct SumTerm {
    weight: u64,
    certificate: CertificateSummary,
}

/// The potential of a switch.
#[derive(Debug, Serialize)]
pub(crate) struct Potential {
    node: String,
    potential: i64,
}

/// A link of length other than 0.
#[derive(Debug, Serialize)]
pub(crate) struct LinkLength {
    from: String,
    to: String,
    length: u64,
}

impl CertificateSummary {
    /// Names what a certificate numbers that was added up again and proves the bound beside it.
    pub(crate) fn of(topology: &Topology, collective: Collective, shares: &Shares, found: &Certificate) -> Self {
        Self::of_server(certificate(topology, collective, shares, found)).expect("every certificate is of some kind")
    }

    /// The same as a server says it, which has re-added it.
    pub(crate) fn of_server(certificate: v1::Certificate) -> Option<Self> {
        use v1::certificate::Kind;
        let checked = true;
        Some(match certificate.kind? {
            Kind::Cut(cut) => {
                let direction = stated(cut.direction().as_str_name(), "CUT_DIRECTION")?;
                let v1::CutCertificate { set, capacity, .. } = cut;
                let v1::NodeSet { nodes: nodes_in_cut, ranks: ranks_in_cut } = set?;
                Self::Cut { direction, nodes_in_cut, ranks_in_cut, capacity, checked }
            }
            Kind::Partition(partition) => {
                let parts = parts_of_wire(&partition).map(NamedParts::name);
                let v1::PartitionCertificate { sets, capacity, set_count, .. } = partition;
                let (sets, ranks) = sets.into_iter().map(|set| (set.nodes, set.ranks)).unzip();
                let set_count = parts.map(|_| set_count);
                Self::Partition { sets, ranks, parts, set_count, capacity, checked }
            }
            Kind::Sum(v1::SumCertificate { terms, potentials, capacity, data }) => {
                let term = |v1::SumTerm { weight, certificate }: v1::SumTerm| {
                    let is_simple = |kind: &Kind| !matches!(kind, Kind::Sum(_));
                    let certificate = certificate.filter(|one| one.kind.as_ref().is_some_and(is_simple))?;
                    Some(SumTerm { weight, certificate: Self::of_server(certificate)? })
                };
                let potential = |v1::NodePotential { node, potential }| Potential { node, potential };
                let terms = terms.into_iter().map(term).collect::<Option<_>>()?;
                Self::Sum {
                    terms,
                    potentials: potentials.into_iter().map(potential).collect(),
                    capacity,
                    data: data.exact().to_owned(),
                    checked,
                }
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
                let verb = if direction == "out" { "leave" } else { "enter" };
                let (nodes, capacity) = (list(nodes_in_cut), stated_rate(capacity));
                match nodes_in_cut.len() {
                    1 => format!("cut        {nodes}: {capacity} {verb} it"),
                    _ => {
                        let ranks = count(ranks_in_cut.len(), "rank");
                        format!("cut        {nodes}, {ranks} together: {capacity} {verb} them")
                    }
                }
            }
            Self::Partition { parts: Some(parts), set_count: Some(count), capacity, .. } => {
                format!("partition  {count} {parts}: {}", leaving(capacity, *count as usize))
            }
            Self::Partition { sets, capacity, .. } => {
                let mut text = format!("partition  {}: {}", count(sets.len(), "set"), leaving(capacity, sets.len()));
                for set in sets.iter().take(SETS_MAX) {
                    text += &format!("\n           {}", list(set));
                }
                if sets.len() > SETS_MAX {
                    text += &format!("\n           and {} more", sets.len() - SETS_MAX);
                }
                text
            }
            Self::Sum { terms, potentials, .. } => {
                let switches: Vec<String> = potentials.iter().map(|one| one.node.clone()).collect();
                let sets = count(terms.len(), "cut");
                match switches.as_slice() {
                    [] => format!("proof      {sets} together"),
                    _ => format!("proof      {sets} together, as what enters a switch leaves it: {}", list(&switches)),
                }
            }
            Self::LpDual { lengths, .. } => {
                format!("proof      prices of {}, by linear programming", count(lengths.len(), "link"))
            }
        }
    }
}

/// Capacity of the links out of so many sets, and the data that they must carry: one sum and one result for each set but
/// one.
fn leaving(capacity: &str, sets: usize) -> String {
    format!("{} leave them together, for {} times the data", stated_rate(capacity), 2 * sets.saturating_sub(1))
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(" ");
    if names.len() > NAMES_MAX { format!("{shown} and {} more", names.len() - NAMES_MAX) } else { shown }
}
