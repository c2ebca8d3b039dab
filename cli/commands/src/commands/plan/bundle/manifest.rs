//! `manifest.json` of a bundle: which file is for which calls, and what was known when it was made.
//!
//! It depends on the answer alone: the same bundle has the same bytes, wherever and whenever it is written.

use std::path::Path;

use canopy_bundle::Runtime;
use canopy_proto::Exact as _;
use canopy_proto::v1::{self, PlanBundleResponse};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{BUNDLE_KIND, FORMAT_VERSION, listable};
use crate::placement;
use crate::request::{self, missing};

/// What is in the folder of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Manifest {
    canopy: u32,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    profile: String,
    model: Model,
    pub(super) items: Vec<Item>,
    env: Vec<Variable>,
    warnings: Vec<Warning>,
}

/// How times were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Model {
    alpha_ns: u64,
    piece_bytes: u64,
    margin: String,
    sync: &'static str,
    sharing: &'static str,
}

/// A collective of a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Item {
    pub(super) communicator: String,
    pub(super) collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    pub(super) ranks: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks_per_node: Option<u32>,
    /// `host:index` of each rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_map: Option<Vec<String>>,
    in_place: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) served_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ItemError>,
    pub(super) files: Vec<BundleFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) advice: Vec<Advice>,
    candidates: Vec<Candidate>,
    pub(super) warnings: Vec<Warning>,
}

/// A file and the sizes it is for: from `size_bytes_min` up to but not including `size_bytes_end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct BundleFile {
    path: String,
    plan: String,
    bytes: u64,
    sha256: String,
    pub(super) size_bytes_min: u64,
    pub(super) size_bytes_end: u64,
    alignment_elements: u64,
    pub(super) candidate: String,
    pub(super) algorithm: String,
    optimality: String,
    pub(super) times: Vec<Time>,
}

/// Sizes, and which of the runtime's own algorithms is fastest there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Advice {
    pub(super) size_bytes_min: u64,
    pub(super) size_bytes_end: u64,
    pub(super) algorithm: String,
    pub(super) times: Vec<Time>,
}

/// How long a message takes by the simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Time {
    pub(super) size_bytes: u64,
    pub(super) time_ps: u64,
}

/// A plan that was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Candidate {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    algorithm: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    same_as: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ItemError {
    #[serde(skip)]
    pub(super) code: i32,
    pub(super) reason: String,
    pub(super) message: String,
}

/// What to know although there is an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Warning {
    pub(super) code: String,
    pub(super) text: String,
}

/// A variable whose value has `{dir}` for the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Variable {
    name: String,
    value: String,
    purpose: String,
}

/// JSON object of the command: the manifest, and where it is.
#[derive(Debug, Serialize)]
pub(super) struct Printed<'a> {
    folder: String,
    bundle: &'a Manifest,
}

impl<'a> Printed<'a> {
    pub(super) fn new(bundle: &'a Manifest, folder: &Path) -> Self {
        Self { folder: folder.display().to_string(), bundle }
    }
}

impl Manifest {
    /// The manifest of an answer.
    pub(super) fn of(reply: &PlanBundleResponse, format: Option<&'static str>) -> Result<Self, Failure> {
        let model = reply.model.as_ref().ok_or_else(|| missing("the model"))?;
        let margin = model.margin.as_ref().ok_or_else(|| missing("the margin"))?;
        let items = reply.items.iter().map(|item| {
            let collective = item.collective.as_ref().ok_or_else(|| missing("a collective"))?;
            let devices = |map| placement::devices(map, item.ranks).ok_or_else(|| missing("the device of a rank"));
            Ok(Item {
                communicator: item.communicator.clone(),
                collective: request::collective_name(collective.kind()).ok_or_else(|| missing("a collective"))?,
                root: collective.root,
                ranks: item.ranks,
                ranks_per_node: item.ranks_per_node,
                rank_map: item.rank_map.as_ref().map(devices).transpose()?,
                in_place: item.in_place,
                served_by: Some(item.served_by.clone()).filter(|name| !name.is_empty()),
                error: item.error.as_ref().map(ItemError::of),
                files: item.files.iter().map(BundleFile::of).collect::<Option<_>>().ok_or_else(|| missing("a file"))?,
                advice: item.advice.iter().map(Advice::of).collect::<Option<_>>().ok_or_else(|| missing("a range"))?,
                candidates: item.candidates.iter().map(Candidate::of).collect(),
                warnings: item.warnings.iter().map(Warning::of).collect(),
            })
        });
        let variable = |found: &v1::EnvVar| Variable {
            name: found.name.clone(),
            value: found.value.clone(),
            purpose: found.purpose.clone(),
        };
        Ok(Self {
            canopy: FORMAT_VERSION,
            kind: BUNDLE_KIND,
            format,
            profile: reply.profile.clone(),
            model: Model {
                alpha_ns: model.alpha_ns,
                piece_bytes: model.piece_bytes,
                margin: margin.exact.clone(),
                sync: "deps",
                sharing: "fair",
            },
            items: items.collect::<Result<_, Failure>>()?,
            env: reply.env.iter().map(variable).collect(),
            warnings: reply.warnings.iter().map(Warning::of).collect(),
        })
    }

    /// All files.
    pub(super) fn files(&self) -> impl Iterator<Item = &BundleFile> {
        self.items.iter().flat_map(|item| &item.files)
    }

    /// Whether the runtime has to be told of its files.
    pub(super) fn needs_loader(&self) -> bool {
        let runtime = self.profile.parse::<Runtime>();
        runtime.is_ok_and(Runtime::is_registered) && self.files().next().is_some()
    }

    /// The variables as a shell reads them, with the folder in its place.
    pub(super) fn environment(&self, folder: &Path) -> Result<String, Failure> {
        let folder = listable(folder)?;
        let folder = folder.to_str().ok_or_else(|| Failure::input("the path of the folder is not UTF-8"))?;
        let line = |variable: &Variable| {
            let value = variable.value.replace("{dir}", folder).replace('\'', r"'\''");
            format!("# {}\nexport {}='{value}'\n", variable.purpose, variable.name)
        };
        Ok(self.env.iter().map(line).collect())
    }
}

impl BundleFile {
    fn of(file: &v1::BundleFile) -> Option<Self> {
        let artifact = file.artifact.as_ref().filter(|_| file.size_bytes_min < file.size_bytes_end)?;
        Some(Self {
            path: file.path.clone(),
            plan: file.plan.clone(),
            bytes: artifact.size_bytes,
            sha256: artifact.sha256.clone(),
            size_bytes_min: file.size_bytes_min,
            size_bytes_end: file.size_bytes_end,
            alignment_elements: file.alignment_elements,
            candidate: file.candidate.clone(),
            algorithm: file.algorithm.clone(),
            optimality: file.optimality.exact().to_owned(),
            times: file.times.iter().map(Time::of).collect(),
        })
    }
}

impl Time {
    fn of(time: &v1::PredictedTime) -> Self {
        Self { size_bytes: time.size_bytes, time_ps: time.time_ps }
    }
}

impl Advice {
    fn of(advice: &v1::BundleAdvice) -> Option<Self> {
        let v1::BundleAdvice { size_bytes_min, size_bytes_end, algorithm, times } = advice.clone();
        let times = times.iter().map(Time::of).collect();
        (size_bytes_min < size_bytes_end).then_some(Self { size_bytes_min, size_bytes_end, algorithm, times })
    }
}

impl Candidate {
    fn of(candidate: &v1::BundleCandidate) -> Self {
        let v1::BundleCandidate { name, algorithm, same_as, error } = candidate.clone();
        Self { name, algorithm, same_as, error: error.as_ref().map(ItemError::of) }
    }
}

impl ItemError {
    fn of(error: &v1::ErrorStatus) -> Self {
        Self { code: error.code, reason: canopy_wire::reason_of(error), message: error.message.clone() }
    }
}

impl Warning {
    fn of(warning: &v1::Warning) -> Self {
        Self { code: warning.code.clone(), text: warning.text.clone() }
    }
}
