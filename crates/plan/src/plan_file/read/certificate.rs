//! The proof of a bound.

use canopy_schedule::{Certificate, CutDirection};
use canopy_topology::NodeIndex;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<Vec<Vec<u32>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<Vec<u64>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CertificateName {
    Cut,
    Partition,
    LpDual,
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
        let none = |kind| Self { kind, direction: None, nodes: None, sets: None, lengths: None };
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
            Certificate::LpDual { lengths } => Self { lengths: Some(lengths.clone()), ..none(CertificateName::LpDual) },
        }
    }
}

impl CertificateDocument {
    pub(super) fn into_certificate(self) -> Result<Certificate, PlanFileError> {
        let indices = |nodes: Vec<u32>| nodes.into_iter().map(NodeIndex::new).collect();
        let missing = |field, kind| PlanFileError::Certificate { field, kind };
        match self.kind {
            CertificateName::Cut => {
                let direction = match self.direction.ok_or_else(|| missing("direction", "cut"))? {
                    DirectionName::Out => CutDirection::Out,
                    DirectionName::In => CutDirection::In,
                };
                let nodes = indices(self.nodes.ok_or_else(|| missing("nodes", "cut"))?);
                Ok(Certificate::Cut { direction, nodes })
            }
            CertificateName::Partition => {
                let sets = self.sets.ok_or_else(|| missing("sets", "partition"))?;
                Ok(Certificate::Partition { sets: sets.into_iter().map(indices).collect() })
            }
            CertificateName::LpDual => {
                Ok(Certificate::LpDual { lengths: self.lengths.ok_or_else(|| missing("lengths", "lp-dual"))? })
            }
        }
    }
}
