//! What was found of a job, as `manifest.json` and as the command prints it.

use canopy_job::{Class, Comparison, Job, JobGroup, JobRates};
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_topology::{Rank, Ratio, Topology};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{FORMAT_VERSION, FileSummary, GROUPS_KIND};
use crate::request::missing;

/// What is in the folder. Times are in seconds, `num/den`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Manifest {
    canopy: u32,
    kind: &'static str,
    pub(super) ranks: u32,
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
    pub(super) groups: usize,
    /// Members of each.
    pub(super) ranks: usize,
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
    /// By rank of the plan: its number in the network.
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
    pub(super) fn of(topology: &Topology, job: &Job, rates: &JobRates, others: &Comparison) -> Self {
        let class = |((number, class), alone): ((usize, &Class), &Ratio)| {
            let mut groups = job.groups.iter().filter(|group| group.class == number);
            let first = groups.next();
            ClassSummary {
                name: class.name.clone(),
                collective: first.map_or("", |group| group.collective.kind().name()),
                groups: groups.count() + usize::from(first.is_some()),
                ranks: first.map_or(0, |group| group.ranks.len()),
                size_bytes: class.size_bytes.get(),
                seconds_alone: alone.to_string(),
            }
        };
        let long = topology.links().iter().zip(&rates.lengths).filter(|(_, length)| **length > 0);
        let links = long.map(|(link, length)| LinkLength {
            from: topology.node(link.from).id.clone(),
            to: topology.node(link.to).id.clone(),
            latency_ns: link.latency.nanos(),
            length: length.to_string(),
        });
        Self {
            canopy: FORMAT_VERSION,
            kind: GROUPS_KIND,
            ranks: job.rank_count,
            seconds: rates.seconds.to_string(),
            seconds_bound: rates.seconds_min.to_string(),
            seconds_rings: others.rings.to_string(),
            seconds_phases: others.phases.to_string(),
            seconds_alone: others.alone.to_string(),
            classes: job.classes.iter().enumerate().zip(&others.classes).map(class).collect(),
            certificate: Certificate { links: links.collect() },
            groups: Vec::new(),
        }
    }
}

impl PlannedGroup {
    /// Without files.
    pub(super) fn of(group: &JobGroup, plan: &v1::Plan) -> Result<Self, Failure> {
        let quality = plan.quality.as_ref().ok_or_else(|| missing("the quality of a plan"))?;
        let kind: CollectiveKind = group.collective.kind();
        Ok(Self {
            name: group.name.clone(),
            collective: kind.name(),
            root: group.collective.root().map(Rank::number),
            ranks: group.ranks.iter().map(|rank| rank.number()).collect(),
            size_bytes: group.size_bytes.get(),
            plan: plan.id.clone(),
            achieved: quality.achieved.clone(),
            files: Vec::new(),
        })
    }
}
