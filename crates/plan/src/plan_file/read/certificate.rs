//! The proof of a bound.

use canopy_schedule::{Certificate, CutDirection, NamedParts};
use canopy_topology::{NodeIndex, Topology};
use serde::{Deserialize, Serialize};

use super::PlanFileError;

/// Any kind of certificate. Not an enum, for which serde would keep all of its text in memory a second time.
#[derive(Deserialize, Serialize)]
pub(in crate::plan_file) struct CertificateDocument {
    kind: CertificateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<DirectionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<u32>>,
    /// In place of `nodes`: all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<Vec<Vec<u32>>>,
    /// In place of `sets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<SetsName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<Vec<TermDocument>>,
    /// Nodes with their potentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    potentials: Option<Vec<(u32, i64)>>,
}

/// A cut or a partition in a sum.
#[derive(Deserialize, Serialize)]
struct TermDocument {
    weight: u64,
    certificate: CertificateDocument,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CertificateName {
    Cut,
    Partition,
    Sum,
    LpDual,
}

/// What makes the sets of a partition.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SetsName {
    Boxes,
    Ranks,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum DirectionName {
    Out,
    In,
}

impl From<&Certificate> for CertificateDocument {
    fn from(certificate: &Certificate) -> Self {
        let numbers = |nodes: &Vec<NodeIndex>| nodes.iter().map(|node| node.number()).collect();
        let none = |kind| Self {
            kind,
            direction: None,
            nodes: None,
            outside: None,
            sets: None,
            by: None,
            lengths: None,
            terms: None,
            potentials: None,
        };
        match certificate {
            Certificate::Cut { direction, nodes } => {
                let direction = match direction {
                    CutDirection::Out => DirectionName::Out,
                    CutDirection::In => DirectionName::In,
                };
                Self { direction: Some(direction), nodes: Some(numbers(nodes)), ..none(CertificateName::Cut) }
            }
            Certificate::Partition { sets } => {
                Self { sets: Some(sets.iter().map(numbers).collect()), ..none(CertificateName::Partition) }
            }
            Certificate::Sum { terms, potentials } => {
                let term =
                    |(weight, term): &(u64, Certificate)| TermDocument { weight: *weight, certificate: term.into() };
                let potentials = potentials.iter().map(|&(node, potential)| (node.number(), potential)).collect();
                let terms = Some(terms.iter().map(term).collect());
                Self { terms, potentials: Some(potentials), ..none(CertificateName::Sum) }
            }
            Certificate::LpDual { lengths } => Self { lengths: Some(lengths.clone()), ..none(CertificateName::LpDual) },
        }
    }
}

impl CertificateDocument {
    /// The same by what is outside, or by the names of boxes, where that is shorter. O(nodes).
    pub(in crate::plan_file) fn short(certificate: &Certificate, topology: &Topology) -> Self {
        match certificate {
            Certificate::Cut { nodes, .. } if nodes.len() > topology.nodes().len() / 2 => {
                let others = others(topology, nodes.iter().map(|node| node.number()));
                // A set that holds a node twice is written as it is.
                if nodes.len() + others.len() == topology.nodes().len() && nodes.is_sorted() {
                    return Self { nodes: None, outside: Some(others), ..Self::from(certificate) };
                }
            }
            Certificate::Partition { sets } => {
                if let Some(parts) = NamedParts::of(topology, sets) {
                    let none = Certificate::Partition { sets: Vec::new() };
                    return Self { sets: None, by: Some(parts.into()), ..Self::from(&none) };
                }
            }
            Certificate::Sum { terms, .. } => {
                let short = |(weight, term): &(u64, Certificate)| TermDocument {
                    weight: *weight,
                    certificate: Self::short(term, topology),
                };
                return Self { terms: Some(terms.iter().map(short).collect()), ..Self::from(certificate) };
            }
            _ => {}
        }
        Self::from(certificate)
    }

    pub(super) fn into_certificate(self, topology: &Topology) -> Result<Certificate, PlanFileError> {
        let indices = |nodes: Vec<u32>| nodes.into_iter().map(NodeIndex::new).collect();
        let missing = |field, kind| PlanFileError::Certificate { field, kind };
        match self.kind {
            CertificateName::Cut => {
                let direction = match self.direction.ok_or_else(|| missing("direction", "cut"))? {
                    DirectionName::Out => CutDirection::Out,
                    DirectionName::In => CutDirection::In,
                };
                let nodes = self.nodes.or_else(|| Some(others(topology, self.outside?.into_iter())));
                Ok(Certificate::Cut { direction, nodes: indices(nodes.ok_or_else(|| missing("nodes", "cut"))?) })
            }
            CertificateName::Partition => {
                let listed = self.sets.map(|sets| sets.into_iter().map(indices).collect());
                let sets = listed.or_else(|| Some(NamedParts::from(self.by?).sets(topology)));
                Ok(Certificate::Partition { sets: sets.ok_or_else(|| missing("sets", "partition"))? })
            }
            CertificateName::Sum => {
                let term = |term: TermDocument| Ok((term.weight, term.certificate.into_certificate(topology)?));
                let terms = self.terms.ok_or_else(|| missing("terms", "sum"))?;
                let potentials = self.potentials.ok_or_else(|| missing("potentials", "sum"))?;
                Ok(Certificate::Sum {
                    terms: terms.into_iter().map(term).collect::<Result<_, PlanFileError>>()?,
                    potentials: potentials
                        .into_iter()
                        .map(|(node, potential)| (NodeIndex::new(node), potential))
                        .collect(),
                })
            }
            CertificateName::LpDual => {
                Ok(Certificate::LpDual { lengths: self.lengths.ok_or_else(|| missing("lengths", "lp-dual"))? })
            }
        }
    }
}

/// The nodes that are not among these, in order.
fn others(topology: &Topology, nodes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut is_other = vec![true; topology.nodes().len()];
    for node in nodes {
        if let Some(other) = is_other.get_mut(node as usize) {
            *other = false;
        }
    }
    (0..).zip(is_other).filter(|&(_, other)| other).map(|(node, _)| node).collect()
}

impl From<NamedParts> for SetsName {
    fn from(parts: NamedParts) -> Self {
        match parts {
            NamedParts::Boxes => Self::Boxes,
            NamedParts::Ranks => Self::Ranks,
        }
    }
}

impl From<SetsName> for NamedParts {
    fn from(name: SetsName) -> Self {
        match name {
            SetsName::Boxes => Self::Boxes,
            SetsName::Ranks => Self::Ranks,
        }
    }
}
