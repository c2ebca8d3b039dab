//! Reads a plan file, straight into the tables of a plan.

mod forest;

use canopy_schedule::{
    Action, Bound, Certificate, Collective, CollectiveKind, CutDirection, Forest, RootError, Schedule, Shape,
    UnknownCollective,
};
use canopy_topology::{DocumentFormat, FractionError, NodeIndex, Rank, Rate, ReadError, TopologyLimits, read_document};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::value::RawValue;

use super::{FORMAT_VERSION, PlanFile, Provenance};
use forest::{Routes, Trees};

/// Most bytes of a plan file: 1 GiB. What is read takes at most a few times the bytes of its text.
const PLAN_BYTES_MAX: usize = 1 << 30;

/// Why bytes are not a plan file. Each variant says where, what was found, and what would be accepted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFileError {
    #[error("the plan file has {found} bytes, over the limit of {limit}")]
    TooLarge { found: usize, limit: usize },
    #[error("the text is not that of a plan file")]
    Json(#[source] serde_json::Error),
    #[error("topology")]
    Topology(#[source] ReadError),
    #[error("collective")]
    Collective(#[source] UnknownCollective),
    #[error("root")]
    Root(#[source] RootError),
    #[error("root is missing, and {collective} needs one")]
    NoRoot { collective: CollectiveKind },
    #[error("{field}")]
    Rate {
        field: &'static str,
        #[source]
        source: FractionError,
    },
    #[error("certificate.{field} is missing, and a {kind} needs it")]
    Certificate { field: &'static str, kind: &'static str },
    #[error("bound.algbw is {algbw}, but bound.{field} is {found}; it must be {expected}")]
    Bound { field: &'static str, algbw: String, found: String, expected: &'static str },
}

impl PlanFileError {
    /// Path of the field at fault, where one field is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::TooLarge { .. } | Self::Json(_) => None,
            Self::Topology(error) => {
                Some(error.field().map_or_else(|| "topology".to_owned(), |field| format!("topology.{field}")))
            }
            Self::Collective(_) => Some("collective".to_owned()),
            Self::Root(_) | Self::NoRoot { .. } => Some("root".to_owned()),
            Self::Rate { field, .. } => Some((*field).to_owned()),
            Self::Certificate { field, .. } => Some(format!("certificate.{field}")),
            Self::Bound { field, .. } => Some(format!("bound.{field}")),
        }
    }

    /// Whether the file is refused for its size, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::TooLarge { .. } => true,
            Self::Topology(error) => error.is_over_limit(),
            _ => false,
        }
    }
}

/// Reads what [`write_plan`](super::write_plan) writes; fields it does not know are skipped.
///
/// The result is well-formed, not right: ranks, links and routes may not exist, trees may be none, and the bound may be
/// a lie. Compile and check the schedule and re-derive the bound from its certificate before relying on any of it.
///
/// # Errors
/// Whatever is wrong with the text, with line and column or field; a topology over `limits`; over 1 GiB in all. Never
/// panics, whatever the bytes.
///
/// O(bytes) time; memory for the plan itself, at most a few times the bytes.
pub fn read_plan(bytes: &[u8], limits: &TopologyLimits) -> Result<PlanFile, PlanFileError> {
    if bytes.len() > PLAN_BYTES_MAX {
        return Err(PlanFileError::TooLarge { found: bytes.len(), limit: PLAN_BYTES_MAX });
    }
    let document: Document<'_> = serde_json::from_slice(bytes).map_err(PlanFileError::Json)?;
    let imported = read_document(document.topology.get().as_bytes(), Some(DocumentFormat::Json), limits);
    let topology = imported.map_err(PlanFileError::Topology)?.topology;
    let kind: CollectiveKind = document.collective.parse().map_err(PlanFileError::Collective)?;
    if kind.has_root() && document.root.is_none() {
        return Err(PlanFileError::NoRoot { collective: kind });
    }
    let collective = Collective::new(kind, document.root.map(Rank::new), topology.rank_count());
    let collective = collective.map_err(PlanFileError::Root)?;
    let ForestDocument { algorithm, routes: Routes(routes), phases, .. } = document.schedule;
    let Trees { carriers, hops, phases } = phases;
    let forest = Forest { chunks_per_share: document.chunks_per_share, routes, carriers, hops, phases };
    Ok(PlanFile {
        topology,
        schedule: Schedule { collective, algorithm, shape: Shape::Forest(forest) },
        bound: document.bound.into_bound(document.certificate.into_certificate()?)?,
        achieved: rate("achieved.algbw", &document.achieved.algbw)?,
        provenance: Provenance { version: document.version, algorithm: document.provenance.algorithm },
    })
}

fn rate(field: &'static str, text: &str) -> Result<Rate, PlanFileError> {
    text.parse().map_err(|source| PlanFileError::Rate { field, source })
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(rename = "canopy", deserialize_with = "known_version")]
    _canopy: (),
    #[serde(rename = "kind")]
    _kind: KindName,
    version: String,
    #[serde(borrow)]
    topology: &'a RawValue,
    collective: String,
    root: Option<u32>,
    #[serde(rename = "shares")]
    _shares: SharesName,
    chunks_per_share: u64,
    schedule: ForestDocument,
    bound: BoundDocument,
    certificate: CertificateDocument,
    achieved: RateDocument,
    provenance: ProvenanceDocument,
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let found = u64::deserialize(deserializer)?;
    let unknown =
        || D::Error::custom(format_args!("format version {found} is not known; this program reads `canopy: 1`"));
    (found == FORMAT_VERSION).then_some(()).ok_or_else(unknown)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Plan,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SharesName {
    Uniform,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ShapeName {
    Forest,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActionName {
    Copy,
    Reduce,
}

impl From<ActionName> for Action {
    fn from(name: ActionName) -> Self {
        match name {
            ActionName::Copy => Self::Copy,
            ActionName::Reduce => Self::Reduce,
        }
    }
}

#[derive(Deserialize)]
struct ForestDocument {
    #[serde(rename = "shape")]
    _shape: ShapeName,
    algorithm: String,
    routes: Routes,
    phases: Trees,
}

#[derive(Deserialize)]
struct BoundDocument {
    algbw: String,
    tight: bool,
    lower: Option<String>,
    upper: Option<String>,
}

impl BoundDocument {
    /// A tight bound need not repeat itself; one that is not states both ends, and `algbw` is the upper one.
    fn into_bound(self, certificate: Certificate) -> Result<Bound, PlanFileError> {
        let algbw = rate("bound.algbw", &self.algbw)?;
        let end = |field: &'static str, text: &Option<String>| match text {
            Some(text) => rate(field, text),
            None => Ok(algbw.clone()),
        };
        let (lower, upper) = (end("bound.lower", &self.lower)?, end("bound.upper", &self.upper)?);
        let wrong = |field, found: &Rate, expected| {
            let (algbw, found) = (algbw.to_string(), found.to_string());
            Err(PlanFileError::Bound { field, algbw, found, expected })
        };
        match (upper == algbw, lower.cmp(&algbw).is_eq() == self.tight) {
            (false, _) => wrong("upper", &upper, "the same"),
            (true, false) if self.tight => wrong("lower", &lower, "the same, since the bound is tight"),
            (true, false) => wrong("lower", &lower, "less, since the bound is not tight"),
            (true, true) if lower > algbw => wrong("lower", &lower, "less, since the bound is not tight"),
            (true, true) => Ok(Bound { upper, lower, certificate }),
        }
    }
}

/// Either kind of certificate. Not an enum, for which serde would keep all of its text in memory a second time.
#[derive(Deserialize)]
struct CertificateDocument {
    kind: CertificateName,
    direction: Option<DirectionName>,
    nodes: Option<Vec<u32>>,
    sets: Option<Vec<Vec<u32>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CertificateName {
    Cut,
    Partition,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DirectionName {
    Out,
    In,
}

impl CertificateDocument {
    fn into_certificate(self) -> Result<Certificate, PlanFileError> {
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
        }
    }
}

#[derive(Deserialize)]
struct RateDocument {
    algbw: String,
}

#[derive(Deserialize)]
struct ProvenanceDocument {
    algorithm: String,
}
