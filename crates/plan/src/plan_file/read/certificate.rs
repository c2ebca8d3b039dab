//! Reads the proof of a bound.

use canopy_schedule::{Certificate, CutDirection};
use canopy_topology::NodeIndex;
use serde::Deserialize;

use super::PlanFileError;

/// Any kind of certificate. Not an enum, for which serde would keep all of its text in memory a second time.
#[derive(Deserialize)]
pub(super) struct CertificateDocument {
    kind: CertificateName,
    direction: Option<DirectionName>,
    nodes: Option<Vec<u32>>,
    sets: Option<Vec<Vec<u32>>>,
    lengths: Option<Vec<u64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CertificateName {
    Cut,
    Partition,
    LpDual,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DirectionName {
    Out,
    In,
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
