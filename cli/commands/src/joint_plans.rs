//! The manifest of a folder of plans that were made in common, as `canopy plan joint` writes it.
//!
//! What a manifest lacks counts as empty.

use serde::{Deserialize, Serialize};

use crate::output::FileSummary;

/// Content of the folder. Times are in seconds, `num/den`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Manifest {
    pub(crate) canopy: u32,
    pub(crate) kind: String,
    pub(crate) steps: u64,
    pub(crate) seconds: String,
    pub(crate) seconds_one_by_one: String,
    pub(crate) seconds_longest_alone: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) seconds_bound: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bound_direction: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) bound_sets: Vec<Vec<String>>,
    pub(crate) plans: Vec<Planned>,
}

/// One of the plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) collective: String,
    /// By its number in the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<u32>,
    /// By rank of the plan: its number in the network of all.
    pub(crate) ranks: Vec<u32>,
    pub(crate) size_bytes: u64,
    pub(crate) chunks: u64,
    pub(crate) plan: String,
    pub(crate) steps_alone: u64,
    pub(crate) seconds_alone: String,
    pub(crate) seconds_bound: String,
    pub(crate) files: Vec<FileSummary>,
}
