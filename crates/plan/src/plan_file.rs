//! The plan file (format `json`): a topology, a schedule on it, and the proof of how good it is, in one document.
//!
//! A file is self-contained and compact: trees with multiplicities, paths with chunk counts, runs of sends alike, paths
//! that look alike from every rank, trees of paths, rules of exchanges on a network that an expression makes, routes once
//! each, indices instead of ids. It is written and read as a
//! stream: nothing but the plan itself is held in memory. Reading makes sure that a file is well-formed, not that its plan
//! is right: compile and check the schedule, and re-derive the bound, to know that.

mod orbits;
mod origin;
mod read;
mod rule;
mod rules;
mod stages;
mod write;

use canopy_schedule::{Bound, FormChoice, InNetwork, Schedule};
use canopy_topology::{Rate, Topology};

pub(crate) use read::read_plan_on;
pub use read::{PlanFileError, read_plan};
pub use rule::{PlanRule, read_rule};
pub use write::write_plan;
pub(crate) use write::write_plan_on;

/// Latest version of the format. The value of `canopy` in a file is the first version that can express it: 7 for
/// exchanges in stages and orbit forests, 6 for flows by trees and hops by routes, 5 for steps in turn, 4 for flows by patterns and blocks of different sizes, 3 for steps
/// with runs of sends alike, 2 for other steps, flows, weighted shares and `lp-dual` certificates, else 1.
const FORMAT_VERSION: u64 = 8;

/// JSON Schema (draft 2020-12) of what [`write_plan`] writes.
pub const PLAN_SCHEMA: &str = include_str!("../schema/plan.schema.json");

/// A plan and everything needed to judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    /// The network it was made for.
    pub topology: Topology,
    /// The plan, in its natural shape.
    pub schedule: Schedule,
    /// The form of an allreduce by trees and the reason for it; `None` for other plans, or if it is not known.
    pub form: Option<FormChoice>,
    /// Bounds on the best possible algbw, with their certificate.
    pub bound: Bound,
    /// algbw of the schedule.
    pub achieved: Rate,
    /// Savings by switches that multicast or aggregate, if the network has any.
    pub in_network: Option<InNetwork>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Where a plan comes from. It has no time stamp, so equal requests yield equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Version of canopy that wrote the file.
    pub version: String,
    /// Name of the requested algorithm, such as `auto`; the schedule names the algorithm that made it.
    pub algorithm: String,
}
