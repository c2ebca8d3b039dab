//! The manifest of the folder, as it is written and read.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::output::FileSummary;

/// Content of the folder. Times are in seconds, `num/den`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) canopy: u32,
    pub(crate) kind: String,
    /// Number of ranks that faults have left.
    pub(crate) ranks: u32,
    /// Ranks of the network that faults have taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost_ranks: Vec<u32>,
    /// Whether ranks forward for groups that they are not in.
    pub(crate) forward: bool,
    /// All groups at once, each for its size: where there are plans, what these take; else the joint optimum.
    pub(crate) seconds: String,
    /// The joint optimum, if the plans take longer by more than a millionth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds_joint: Option<String>,
    /// Lower limit of the time of all groups at once.
    pub(crate) seconds_bound: String,
    pub(crate) seconds_rings: String,
    pub(crate) seconds_phases: String,
    pub(crate) seconds_alone: String,
    /// Orders of the dimensions, where others than the stated one were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) orders: Vec<OrderSummary>,
    /// Rank of the network for each rank of the layout, if another order is better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rank_order: Vec<u32>,
    pub(crate) classes: Vec<ClassSummary>,
    /// Groups by how long they take, the slowest first, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) levels: Vec<LevelSummary>,
    pub(crate) certificate: Certificate,
    /// Groups and their plans, where plans were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<Group>,
}

/// Groups that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClassSummary {
    pub(crate) name: String,
    pub(crate) collective: String,
    pub(crate) groups: u32,
    /// Members of the largest.
    pub(crate) ranks: u32,
    pub(crate) size_bytes: u64,
    /// The class alone on the network, jointly optimal.
    pub(crate) seconds_alone: String,
}

/// An order of the dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderSummary {
    /// The fastest first.
    pub(crate) layout: String,
    /// None: link prices of a better one prove that it is no faster.
    pub(crate) seconds: Option<String>,
    pub(crate) seconds_bound: String,
    /// Whether the groups are in this order.
    pub(crate) best: bool,
}

/// Groups that take equally long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LevelSummary {
    pub(crate) seconds: String,
    /// Lower limit of their time while slower levels have their rates.
    pub(crate) seconds_bound: String,
    /// Number of groups by the name of their class.
    pub(crate) groups: BTreeMap<String, u32>,
    pub(crate) certificate: Certificate,
}

/// A length for each link: added up with capacities and cheapest schedules, they prove the bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Certificate {
    /// Links of length 0 are left out.
    pub(crate) links: Vec<LinkLength>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkLength {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) latency_ns: u64,
    /// A whole number, which may have more than 64 bits.
    pub(crate) length: String,
}

/// A group and its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) collective: String,
    /// By its number in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<u32>,
    /// By rank of the plan: its number in the network before faults.
    pub(crate) ranks: Vec<u32>,
    pub(crate) size_bytes: NonZeroU64,
    /// Time of its plan in the group's shares.
    pub(crate) seconds: String,
    pub(crate) plan: String,
    /// algbw of the plan in the group's shares, in bytes per second.
    pub(crate) achieved: String,
    pub(crate) files: Vec<FileSummary>,
}
