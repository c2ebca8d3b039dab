//! Reads a plan file, straight into the tables of a plan.

mod certificate;
mod forest;
mod shapes;

use std::fmt;

use canopy_schedule::{
    Action, AllreduceForm, Blocks, Bound, Certificate, Collective, CollectiveKind, Flow, Forest, FormChoice,
    FormReason, InNetwork, Pace, Pattern, Patterns, PatternsError, RootError, Schedule, Shape, Shares, Steps,
    UnknownCollective,
};
use canopy_topology::{DocumentFormat, FractionError, Rank, Rate, ReadError, Topology, TopologyLimits, read_document};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::{FORMAT_VERSION, PlanFile, Provenance};
use certificate::CertificateDocument;
use forest::{Routes, Trees};
use shapes::{Paths, Sends};

/// Most bytes of a plan file: 1 GiB. What is read takes at most a few times the bytes of its text, sends up to 32 times; patterns
/// stand for what their own limit says.
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
    #[error("schedule.{field} is missing, and a schedule of shape `{shape}` needs it")]
    MissingField { field: &'static str, shape: &'static str },
    #[error("schedule.{field} does not belong to a schedule of shape `{shape}`; leave it out")]
    ForeignField { field: &'static str, shape: &'static str },
    #[error("schedule.{0}")]
    Patterns(PatternsError),
    #[error("form.{field} is `{found}`; use {known}")]
    Form { field: &'static str, found: String, known: String },
    #[error("certificate.{field} is missing, and the kind `{kind}` needs it")]
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
            Self::MissingField { field, .. } | Self::ForeignField { field, .. } => Some(format!("schedule.{field}")),
            Self::Patterns(error) => Some(format!("schedule.{}", error.field())),
            Self::Form { field, .. } => Some(format!("form.{field}")),
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
/// O(bytes) time; memory for the plan itself, at most a few times the bytes, of schedules in steps up to 32 times, of
/// flows by patterns up to some gigabytes.
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
    let algorithm = document.schedule.algorithm.clone();
    let shape = document.schedule.into_shape(&topology, document.chunks_per_share)?;
    Ok(PlanFile {
        topology,
        schedule: Schedule { collective, algorithm, shares: document.shares.0, shape },
        form: document.form.map(FormDocument::into_choice).transpose()?,
        bound: document.bound.into_bound(document.certificate.into_certificate()?)?,
        achieved: rate("achieved.algbw", &document.achieved.algbw)?,
        in_network: document.achieved.in_network.map(InNetworkDocument::into_weighed).transpose()?,
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
    shares: SharesDocument,
    chunks_per_share: u64,
    schedule: ScheduleDocument,
    form: Option<FormDocument>,
    bound: BoundDocument,
    certificate: CertificateDocument,
    achieved: AchievedDocument,
    provenance: ProvenanceDocument,
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let found = u64::deserialize(deserializer)?;
    let unknown = || {
        D::Error::custom(format_args!(
            "format version {found} is not known; this program reads `canopy: 1` to `canopy: {FORMAT_VERSION}`"
        ))
    };
    (1..=FORMAT_VERSION).contains(&found).then_some(()).ok_or_else(unknown)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Plan,
}

/// `"uniform"`, a list of weights, or rows of weights of blocks.
struct SharesDocument(Shares);

impl<'de> Deserialize<'de> for SharesDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SharesVisitor)
    }
}

struct SharesVisitor;

impl<'de> Visitor<'de> for SharesVisitor {
    type Value = SharesDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`uniform`, a list of weights, one for each rank, or for all-to-all a list of such lists")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<SharesDocument, E> {
        match name {
            "uniform" => Ok(SharesDocument(Shares::Equal)),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut weights: A) -> Result<SharesDocument, A::Error> {
        let (mut list, mut rows, mut row_length) = (Vec::new(), 0_u32, None);
        while let Some(entry) = weights.next_element()? {
            match entry {
                Weights::One(weight) if rows == 0 => list.push(weight),
                Weights::Row(row) if rows > 0 || list.is_empty() => {
                    let expected = *row_length.get_or_insert(row.len());
                    if row.len() != expected {
                        let found = row.len();
                        let what = format_args!("row {rows} of shares has {found} weights, the first {expected}");
                        return Err(serde::de::Error::custom(what));
                    }
                    list.extend(row);
                    rows += 1;
                }
                Weights::One(_) | Weights::Row(_) => {
                    return Err(serde::de::Error::custom("shares are all weights, or all rows of weights"));
                }
            }
        }
        if rows == 0 {
            return Ok(SharesDocument(Shares::Weighted(list)));
        }
        let blocks = Blocks::new(rows, list).map_err(serde::de::Error::custom)?;
        Ok(SharesDocument(Shares::Blocks(blocks)))
    }
}

/// A weight of a share, or a row of weights of blocks.
enum Weights {
    One(u64),
    Row(Vec<u64>),
}

impl<'de> Deserialize<'de> for Weights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WeightsVisitor)
    }
}

struct WeightsVisitor;

impl<'de> Visitor<'de> for WeightsVisitor {
    type Value = Weights;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a weight, an integer of at least 0, or a list of them")
    }

    fn visit_u64<E: serde::de::Error>(self, weight: u64) -> Result<Weights, E> {
        Ok(Weights::One(weight))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut weights: A) -> Result<Weights, A::Error> {
        let mut row = Vec::new();
        while let Some(weight) = weights.next_element()? {
            row.push(weight);
        }
        Ok(Weights::Row(row))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ShapeName {
    Forest,
    Steps,
    Flow,
}

impl ShapeName {
    const fn name(self) -> &'static str {
        match self {
            Self::Forest => "forest",
            Self::Steps => "steps",
            Self::Flow => "flow",
        }
    }
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

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PaceName {
    Barriers,
    InTurn,
}

impl From<PaceName> for Pace {
    fn from(name: PaceName) -> Self {
        match name {
            PaceName::Barriers => Self::Barriers,
            PaceName::InTurn => Self::InTurn,
        }
    }
}

/// Any shape. Not an enum, for which serde would keep all of its text in memory a second time.
#[derive(Deserialize)]
struct ScheduleDocument {
    shape: ShapeName,
    algorithm: String,
    routes: Routes,
    phases: Option<Trees>,
    pace: Option<PaceName>,
    sends: Option<Sends>,
    paths: Option<Paths>,
    ports: Option<u32>,
    /// Chunks and places of each.
    patterns: Option<Vec<(u64, Vec<u32>)>>,
}

impl ScheduleDocument {
    fn into_shape(self, topology: &Topology, chunks_per_share: u64) -> Result<Shape, PlanFileError> {
        let Self { shape, routes: Routes(routes), phases, pace, sends, paths, ports, patterns, .. } = self;
        let needed: &[&str] = match shape {
            ShapeName::Forest => &["phases"],
            ShapeName::Steps => &["pace", "sends"],
            ShapeName::Flow if patterns.is_some() => &["ports", "patterns"],
            ShapeName::Flow => &["paths"],
        };
        let given = [
            ("phases", phases.is_some()),
            ("pace", pace.is_some()),
            ("sends", sends.is_some()),
            ("paths", paths.is_some()),
            ("ports", ports.is_some()),
            ("patterns", patterns.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|&(field, given)| given && !needed.contains(&field)) {
            return Err(PlanFileError::ForeignField { field, shape: shape.name() });
        }
        let missing = |field| PlanFileError::MissingField { field, shape: shape.name() };
        Ok(match shape {
            ShapeName::Forest => {
                let Trees { carriers, hops, phases } = phases.ok_or_else(|| missing("phases"))?;
                Shape::Forest(Forest { chunks_per_share, routes, carriers, hops, phases })
            }
            ShapeName::Steps => {
                let Sends { carriers, sends } = sends.ok_or_else(|| missing("sends"))?;
                let pace = pace.map_or(Pace::Barriers, Pace::from);
                Shape::Steps(Steps { chunks_per_share, pace, routes, carriers, sends })
            }
            ShapeName::Flow => {
                let Some(patterns) = patterns else {
                    let Paths { hops, paths } = paths.ok_or_else(|| missing("paths"))?;
                    return Ok(Shape::Flow(Flow { chunks_per_share, routes, hops, paths }));
                };
                let ports = ports.ok_or_else(|| missing("ports"))?;
                let patterns = patterns.into_iter().map(|(chunk_count, hops)| Pattern { chunk_count, hops }).collect();
                let flow = Patterns { ports, patterns }.flow(topology, chunks_per_share, routes, &|| false);
                Shape::Flow(flow.map_err(PlanFileError::Patterns)?)
            }
        })
    }
}

#[derive(Deserialize)]
struct FormDocument {
    name: String,
    reason: String,
    two_phases: Option<String>,
}

impl FormDocument {
    fn into_choice(self) -> Result<FormChoice, PlanFileError> {
        let form = AllreduceForm::ALL.into_iter().find(|form| form.name() == self.name);
        let reason = FormReason::ALL.into_iter().find(|reason| reason.name() == self.reason);
        let unknown = |field, found: &str, known: Vec<&str>| PlanFileError::Form {
            field,
            found: found.chars().take(80).collect(),
            known: known.join(", "),
        };
        let forms = || unknown("name", &self.name, AllreduceForm::ALL.map(AllreduceForm::name).to_vec());
        let reasons = || unknown("reason", &self.reason, FormReason::ALL.map(FormReason::name).to_vec());
        Ok(FormChoice {
            form: form.ok_or_else(forms)?,
            reason: reason.ok_or_else(reasons)?,
            two_phases: self.two_phases.as_deref().map(|text| rate("form.two_phases", text)).transpose()?,
        })
    }
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

#[derive(Deserialize)]
struct AchievedDocument {
    algbw: String,
    in_network: Option<InNetworkDocument>,
}

#[derive(Deserialize)]
struct InNetworkDocument {
    traffic_without: String,
    traffic: String,
    algbw: String,
}

impl InNetworkDocument {
    fn into_weighed(self) -> Result<InNetwork, PlanFileError> {
        let ratio =
            |field: &'static str, text: &str| text.parse().map_err(|source| PlanFileError::Rate { field, source });
        Ok(InNetwork {
            traffic_without: ratio("achieved.in_network.traffic_without", &self.traffic_without)?,
            traffic: ratio("achieved.in_network.traffic", &self.traffic)?,
            algbw: rate("achieved.in_network.algbw", &self.algbw)?,
        })
    }
}

#[derive(Deserialize)]
struct ProvenanceDocument {
    algorithm: String,
}
