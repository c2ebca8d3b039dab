//! Reads a plan file, straight into the tables of a plan.

mod certificate;
mod lists;
mod schedule;

use std::fmt;
use std::str::FromStr;

use canopy_schedule::{
    AllreduceForm, Blocks, Bound, Certificate, Collective, CollectiveKind, FormChoice, FormReason, InNetwork,
    PathTreesError, PatternsError, RootError, Schedule, Shares, UnknownCollective,
};
use canopy_topology::{
    DocumentFormat, ExpressionError, FaultError, FractionError, Rank, Rate, ReadError, Topology, TopologyLimits,
    read_document,
};
use serde::de::{Deserializer, Error as _, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::origin::OriginDocument;
use super::{FORMAT_VERSION, PlanFile, Provenance};
pub(super) use certificate::CertificateDocument;
use lists::OneOrMany;
use schedule::{RoutesError, ScheduleDocument};

/// Most bytes of a plan file: 1 GiB. What is read takes at most a few times the bytes of its text, sends up to 32 times; patterns
/// stand for what their own limit says.
const PLAN_BYTES_MAX: usize = 1 << 30;

/// Why bytes are not a plan file. Each variant says where, what was found, and what would be accepted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFileError {
    #[error("the plan file has {found} bytes, over the limit of {limit}")]
    TooLarge { found: usize, limit: usize },
    #[error("the text is not a plan file")]
    Json(#[source] serde_json::Error),
    #[error("topology")]
    Topology(#[source] ReadError),
    #[error("collective")]
    Collective(#[source] UnknownCollective),
    #[error("root")]
    Root(#[source] RootError),
    #[error("root is missing, but {collective} needs one")]
    NoRoot { collective: CollectiveKind },
    #[error("{field}")]
    Rate {
        field: &'static str,
        #[source]
        source: FractionError,
    },
    #[error("schedule.{field} is missing, but a schedule of shape `{shape}` needs it")]
    MissingField { field: &'static str, shape: &'static str },
    #[error("schedule.{field} does not belong to a schedule of shape `{shape}`; remove it")]
    ForeignField { field: &'static str, shape: &'static str },
    #[error("schedule.{0}")]
    Patterns(PatternsError),
    #[error("schedule.{0}")]
    Trees(PathTreesError),
    #[error("schedule.{0}")]
    Hops(RoutesError),
    #[error("form.{field} is `{found}`; use {known}")]
    Form { field: &'static str, found: String, known: String },
    #[error("certificate.{field} is missing, but the kind `{kind}` needs it")]
    Certificate { field: &'static str, kind: &'static str },
    #[error("network.expression")]
    Expression(#[source] ExpressionError),
    #[error("network.without")]
    Without(#[source] FaultError),
    #[error(
        "network.identity is {expected}, but the expression makes the network {found}; use the version of canopy that \
         wrote the file, or plan again"
    )]
    Identity { found: String, expected: String },
    #[error(
        "the plan is a {shape}, and the program of one rank follows from exchanges in stages only; plan with \
         `--algorithm stages`, or convert the whole plan"
    )]
    NoRule { shape: String },
    #[error("neither topology nor network is given; state one of them")]
    NoTopology,
    #[error("schedule.stages.pieces states the pieces from box {from} to box {to} twice; remove one")]
    Twice { from: u32, to: u32 },
    #[error("schedule.stages: the digits and places make more than {limit} seats, or none; state fewer")]
    Seats { limit: u32 },
    #[error("schedule.orbits.templates: the letter of seat {seat} stands for no parent; plan again")]
    Parent { seat: usize },
    #[error("bound.{field} is {found} and bound.algbw is {algbw}; {expected}")]
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
            Self::Trees(error) => Some(format!("schedule.{}", error.field())),
            Self::Hops(error) => Some(format!("schedule.{}", error.field())),
            Self::Form { field, .. } => Some(format!("form.{field}")),
            Self::Certificate { field, .. } => Some(format!("certificate.{field}")),
            Self::Bound { field, .. } => Some(format!("bound.{field}")),
            Self::Expression(_) => Some("network.expression".to_owned()),
            Self::Without(_) => Some("network.without".to_owned()),
            Self::Identity { .. } => Some("network.identity".to_owned()),
            Self::NoRule { .. } => Some("schedule.shape".to_owned()),
            Self::NoTopology => Some("topology".to_owned()),
            Self::Twice { .. } => Some("schedule.stages.pieces".to_owned()),
            Self::Seats { .. } => Some("schedule.stages.digits".to_owned()),
            Self::Parent { .. } => Some("schedule.orbits.templates".to_owned()),
        }
    }

    /// Whether the file is refused for its size, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::TooLarge { .. } => true,
            Self::Topology(error) => error.is_over_limit(),
            Self::Expression(error) => error.is_over_limit(),
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
/// flows by patterns or trees up to some gigabytes.
pub fn read_plan(bytes: &[u8], limits: &TopologyLimits) -> Result<PlanFile, PlanFileError> {
    read_plan_on(bytes, limits, None)
}

/// The same where the network of an expression may be at hand, without faults, as it was generated.
///
/// # Errors
/// As [`read_plan`].
pub(crate) fn read_plan_on(
    bytes: &[u8],
    limits: &TopologyLimits,
    base: Option<&Topology>,
) -> Result<PlanFile, PlanFileError> {
    if bytes.len() > PLAN_BYTES_MAX {
        return Err(PlanFileError::TooLarge { found: bytes.len(), limit: PLAN_BYTES_MAX });
    }
    let document: Document<'_> = serde_json::from_slice(bytes).map_err(PlanFileError::Json)?;
    let topology = match (document.topology, document.network) {
        (Some(text), _) => {
            let imported = read_document(text.get().as_bytes(), Some(DocumentFormat::Json), limits);
            imported.map_err(PlanFileError::Topology)?.topology
        }
        (None, Some(origin)) => origin.topology(limits, base)?,
        (None, None) => return Err(PlanFileError::NoTopology),
    };
    let kind: CollectiveKind = document.collective.parse().map_err(PlanFileError::Collective)?;
    if kind.has_root() && document.root.is_none() {
        return Err(PlanFileError::NoRoot { collective: kind });
    }
    let collective = Collective::new(kind, document.root.map(Rank::new), topology.rank_count());
    let collective = collective.map_err(PlanFileError::Root)?;
    let algorithm = document.schedule.algorithm.clone();
    let shape = document.schedule.into_shape(&topology, document.chunks_per_share)?;
    let certificate = document.certificate.into_certificate(&topology)?;
    Ok(PlanFile {
        topology,
        schedule: Schedule { collective, algorithm, shares: document.shares.0, shape },
        form: document.form.map(FormDocument::into_choice).transpose()?,
        bound: document.bound.into_bound(certificate)?,
        achieved: rate("achieved.algbw", &document.achieved.algbw)?,
        in_network: document.achieved.in_network.map(InNetworkDocument::into_weighed).transpose()?,
        provenance: Provenance { version: document.version, algorithm: document.provenance.algorithm },
    })
}

fn rate<R: FromStr<Err = FractionError>>(field: &'static str, text: &str) -> Result<R, PlanFileError> {
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
    topology: Option<&'a RawValue>,
    network: Option<OriginDocument>,
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

pub(super) fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let found = u64::deserialize(deserializer)?;
    let unknown = || {
        D::Error::custom(format_args!(
            "unknown format version {found}; this program reads `canopy: 1` to `canopy: {FORMAT_VERSION}`"
        ))
    };
    (1..=FORMAT_VERSION).contains(&found).then_some(()).ok_or_else(unknown)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindName {
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
                Weights(OneOrMany::One(weight)) if rows == 0 => list.push(weight),
                Weights(OneOrMany::Many(row)) if rows > 0 || list.is_empty() => {
                    let expected = *row_length.get_or_insert(row.len());
                    if row.len() != expected {
                        let found = row.len();
                        let what =
                            format_args!("row {rows} of shares has {found} weights, but the first has {expected}");
                        return Err(serde::de::Error::custom(what));
                    }
                    list.extend(row);
                    rows += 1;
                }
                Weights(_) => {
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
#[derive(Deserialize)]
struct Weights(#[serde(deserialize_with = "weights")] OneOrMany<u64>);

fn weights<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<u64>, D::Error> {
    OneOrMany::read(deserializer, "a weight, an integer of at least 0, or a list of them", 0)
}

/// The member `form`.
#[derive(Deserialize, Serialize)]
pub(super) struct FormDocument {
    name: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_phases: Option<String>,
}

impl From<&FormChoice> for FormDocument {
    fn from(FormChoice { form, reason, two_phases }: &FormChoice) -> Self {
        let two_phases = two_phases.as_ref().map(Rate::to_string);
        Self { name: form.name().to_owned(), reason: reason.name().to_owned(), two_phases }
    }
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

/// The member `bound`.
#[derive(Deserialize, Serialize)]
pub(super) struct BoundDocument {
    algbw: String,
    tight: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<String>,
}

impl From<&Bound> for BoundDocument {
    fn from(bound: &Bound) -> Self {
        let end = |end: &Rate| (!bound.is_tight()).then(|| end.to_string());
        let (algbw, tight) = (bound.upper.to_string(), bound.is_tight());
        Self { algbw, tight, lower: end(&bound.lower), upper: end(&bound.upper) }
    }
}

impl BoundDocument {
    /// A tight bound need not repeat itself; one that is not states both ends, and `algbw` is the upper one.
    fn into_bound(self, certificate: Certificate) -> Result<Bound, PlanFileError> {
        let algbw: Rate = rate("bound.algbw", &self.algbw)?;
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
            (false, _) => wrong("upper", &upper, "make them equal"),
            (true, false) if self.tight => wrong("lower", &lower, "make them equal, since the bound is tight"),
            (true, false) => wrong("lower", &lower, "make bound.lower less, since the bound is not tight"),
            (true, true) if lower > algbw => {
                wrong("lower", &lower, "make bound.lower less, since the bound is not tight")
            }
            (true, true) => Ok(Bound { upper, lower, certificate }),
        }
    }
}

/// The member `achieved`.
#[derive(Deserialize, Serialize)]
pub(super) struct AchievedDocument {
    algbw: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_network: Option<InNetworkDocument>,
}

impl From<&PlanFile> for AchievedDocument {
    fn from(plan: &PlanFile) -> Self {
        let in_network = plan.in_network.as_ref().map(InNetworkDocument::from);
        Self { algbw: plan.achieved.to_string(), in_network }
    }
}

#[derive(Deserialize, Serialize)]
struct InNetworkDocument {
    traffic_without: String,
    traffic: String,
    algbw: String,
}

impl From<&InNetwork> for InNetworkDocument {
    fn from(InNetwork { traffic_without, traffic, algbw }: &InNetwork) -> Self {
        let (traffic_without, traffic) = (traffic_without.to_string(), traffic.to_string());
        Self { traffic_without, traffic, algbw: algbw.to_string() }
    }
}

impl InNetworkDocument {
    fn into_weighed(self) -> Result<InNetwork, PlanFileError> {
        Ok(InNetwork {
            traffic_without: rate("achieved.in_network.traffic_without", &self.traffic_without)?,
            traffic: rate("achieved.in_network.traffic", &self.traffic)?,
            algbw: rate("achieved.in_network.algbw", &self.algbw)?,
        })
    }
}

/// The member `provenance`.
#[derive(Deserialize, Serialize)]
pub(super) struct ProvenanceDocument {
    pub(super) algorithm: String,
}
