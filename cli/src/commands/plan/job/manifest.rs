//! What was found of a job, as `manifest.json` and as the command prints it.

use canopy_client::PlannedGroups;
use canopy_proto::v1::{GroupClassRates, GroupLinkLength, GroupPlan, Plan};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{FORMAT_VERSION, FileSummary, GROUPS_KIND};
use crate::request::{collective_name, missing};

/// What is in the folder. Times are in seconds, `num/den`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Manifest {
    canopy: u32,
    kind: &'static str,
    /// Those that faults have left.
    pub(super) ranks: u32,
    /// Ranks of the layout that faults have taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lost_ranks: Vec<u32>,
    /// Whether ranks forward for groups that they are not in.
    forward: bool,
    /// All groups at once, each for its size.
    pub(super) seconds: String,
    /// What nothing beats.
    pub(super) seconds_bound: String,
    pub(super) seconds_rings: String,
    pub(super) seconds_phases: String,
    pub(super) seconds_alone: String,
    pub(super) classes: Vec<ClassSummary>,
    pub(super) certificate: Certificate,
    /// By group, where plans were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<PlannedGroup>,
}

/// Groups that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ClassSummary {
    pub(super) name: String,
    pub(super) collective: &'static str,
    pub(super) groups: u32,
    /// Members of the largest.
    pub(super) ranks: u32,
    pub(super) size_bytes: u64,
    /// The class alone on the network, jointly optimal.
    pub(super) seconds_alone: String,
}

/// A length for each link: added up with capacities and cheapest schedules, they prove the bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Certificate {
    /// Links of length 0 are left out.
    links: Vec<LinkLength>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LinkLength {
    from: String,
    to: String,
    latency_ns: u64,
    /// A whole number, which may have more than 64 bits.
    length: String,
}

/// A group and its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PlannedGroup {
    name: String,
    collective: &'static str,
    /// By its number in the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    /// By rank of the plan: its number in the layout.
    ranks: Vec<u32>,
    size_bytes: u64,
    plan: String,
    /// algbw of the plan in the group's shares, in bytes per second.
    pub(super) achieved: String,
    pub(super) files: Vec<FileSummary>,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
pub(super) struct Printed<'a> {
    pub(super) job: &'a Manifest,
}

impl Manifest {
    /// Without plans.
    pub(super) fn of(PlannedGroups { rates, lengths, .. }: &PlannedGroups, forward: bool) -> Self {
        let class = |class: &GroupClassRates| ClassSummary {
            name: class.name.clone(),
            collective: collective_name(class.collective()).unwrap_or_default(),
            groups: class.groups,
            ranks: class.ranks,
            size_bytes: class.size_bytes,
            seconds_alone: class.seconds_alone.clone(),
        };
        let link = |link: &GroupLinkLength| LinkLength {
            from: link.from.clone(),
            to: link.to.clone(),
            latency_ns: link.latency_ns,
            length: link.length.clone(),
        };
        Self {
            canopy: FORMAT_VERSION,
            kind: GROUPS_KIND,
            ranks: rates.topology.as_ref().map_or(0, |topology| topology.ranks),
            lost_ranks: rates.lost_ranks.clone(),
            forward,
            seconds: rates.seconds.clone(),
            seconds_bound: rates.seconds_bound.clone(),
            seconds_rings: rates.seconds_rings.clone(),
            seconds_phases: rates.seconds_phases.clone(),
            seconds_alone: rates.seconds_alone.clone(),
            classes: rates.classes.iter().map(class).collect(),
            certificate: Certificate { links: lengths.iter().map(link).collect() },
            groups: Vec::new(),
        }
    }
}

impl PlannedGroup {
    /// Without files.
    pub(super) fn of(group: &GroupPlan, plan: &Plan) -> Result<Self, Failure> {
        let quality = plan.quality.as_ref().ok_or_else(|| missing("the quality of a plan"))?;
        let collective = group.collective.as_ref().ok_or_else(|| missing("the collective of a group"))?;
        Ok(Self {
            name: group.name.clone(),
            collective: collective_name(collective.kind()).unwrap_or_default(),
            root: collective.root,
            ranks: group.ranks.clone(),
            size_bytes: group.size_bytes,
            plan: plan.id.clone(),
            achieved: quality.achieved.clone(),
            files: Vec::new(),
        })
    }
}
