//! `manifest.json` of plans that were made in common: whose each is, and what they take together.
//!
//! It depends on the answer alone: the same plans have the same bytes, wherever and whenever they are written.

use std::path::Path;

use canopy_proto::Exact as _;
use canopy_proto::v1::{JointBundle, JointItem};
use serde::Serialize;

use super::super::super::simulate::published::BaselineTime;
use crate::exit::Failure;
use crate::joint_plans::{Manifest, Planned};
use crate::output::{FORMAT_VERSION, JOINT_KIND};
use crate::protocol_words::stated;
use crate::request::{self, missing};

/// JSON object of the command: the manifest, where it is, and what the cache had to do with each plan.
#[derive(Debug, Serialize)]
pub(super) struct Printed<'a> {
    folder: String,
    cache: Vec<String>,
    joint: &'a Manifest,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    published: Vec<BaselineTime>,
}

impl<'a> Printed<'a> {
    pub(super) fn new<'b>(
        (joint, published): (&'a Manifest, Vec<BaselineTime>),
        folder: &Path,
        items: impl Iterator<Item = &'b JointItem>,
    ) -> Result<Self, Failure> {
        let cache = items.map(|item| {
            let cache = stated(item.cache().as_str_name(), "CACHE_OUTCOME");
            cache.ok_or_else(|| missing("what the cache had to do with it"))
        });
        let cache = cache.collect::<Result<_, _>>()?;
        Ok(Self { folder: folder.display().to_string(), cache, joint, published })
    }
}

impl Manifest {
    /// The manifest of an answer, without files.
    pub(super) fn of(joint: &JointBundle) -> Result<Self, Failure> {
        let times = joint.times.as_ref().ok_or_else(|| missing("the times"))?;
        Ok(Self {
            canopy: FORMAT_VERSION,
            kind: JOINT_KIND.to_owned(),
            steps: times.steps,
            seconds: times.seconds.exact().to_owned(),
            seconds_one_by_one: times.seconds_one_by_one.exact().to_owned(),
            seconds_longest_alone: times.seconds_longest_alone.exact().to_owned(),
            seconds_bound: joint.seconds_bound.exact().to_owned(),
            bound_direction: stated(joint.bound_direction().as_str_name(), "CUT_DIRECTION"),
            bound_sets: joint.bound_sets.iter().map(|set| set.nodes.clone()).collect(),
            plans: joint.items.iter().map(Planned::of).collect::<Result<_, _>>()?,
        })
    }
}

impl Planned {
    fn of(item: &JointItem) -> Result<Self, Failure> {
        let plan = item.plan.as_ref().ok_or_else(|| missing("a plan"))?;
        let joint = plan.joint.as_ref().ok_or_else(|| missing("a plan's place among the others"))?;
        let collective = plan.collective.as_ref().ok_or_else(|| missing("a collective"))?;
        Ok(Self {
            name: item.name.clone(),
            collective: request::collective_name(collective.kind()).ok_or_else(|| missing("a collective"))?.to_owned(),
            root: collective.root,
            ranks: joint.ranks.clone(),
            size_bytes: joint.size_bytes,
            chunks: plan.chunks_per_rank,
            plan: plan.name.clone(),
            steps_alone: joint.steps_alone,
            seconds_alone: joint.seconds_alone.exact().to_owned(),
            seconds_bound: joint.seconds_bound.exact().to_owned(),
            files: Vec::new(),
        })
    }
}
