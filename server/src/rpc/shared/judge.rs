//! Judges imported plans by their own statements.
//!
//! Records travel with digests, which show that nothing happened to them on the way; here is looked at what they say.

mod request;

use canopy_plan::Stated;
use canopy_plan::oneccl::device_list;
use canopy_proto::Exact as _;
use canopy_proto::v1::{Artifact, Plan};
use canopy_topology::TopologyLimits;
use canopy_wire::{collective_of_wire, format_of_wire, sha256_hex, slots};

pub(crate) use self::request::{Verdict, judge_request};

/// Whether a plan is what it says it is, as far as that can be seen without making it again.
///
/// Every file must have its length and digest, and be what its format makes of what is stated: see [`Format::judge`].
///
/// # Errors
/// What is wrong, for people. O(size of the transfer graph, or of the paths of a flow), some tenth of what making the plan
/// took.
///
/// [`Format::judge`]: canopy_plan::Format::judge
pub(crate) fn judge_plan(plan: &Plan, limits: &TopologyLimits) -> Result<(), String> {
    let slots = plan.rank_map.as_ref().map(slots).transpose().map_err(|error| error.to_string())?;
    let rank_map = slots.as_deref().map(device_list);
    for artifact in &plan.artifacts {
        let content = artifact.content.as_deref().unwrap_or_default();
        if artifact.size_bytes != content.len() as u64 || artifact.sha256 != sha256_hex(content) {
            return Err("a file does not match its stated length or digest".to_owned());
        }
        let format = format_of_wire(artifact.format).ok_or("a file has a format that this version does not know")?;
        format.judge(content, &stated(plan, artifact, rank_map.as_deref(), limits))?;
    }
    Ok(())
}

/// What a plan states of itself and of one of its files.
fn stated<'a>(
    plan: &'a Plan,
    artifact: &'a Artifact,
    rank_map: Option<&'a str>,
    limits: &'a TopologyLimits,
) -> Stated<'a> {
    Stated {
        profile: &artifact.profile,
        instances: artifact.instances.unwrap_or(0),
        layers: artifact.layers.unwrap_or(0),
        collective: plan.collective.as_ref().map(|spec| (collective_of_wire(spec.kind), spec.root)),
        ranks: plan.topology.as_ref().map(|topology| topology.ranks),
        rank_map,
        algorithm: &plan.algorithm,
        shares: &plan.shares,
        quality: plan
            .quality
            .as_ref()
            .map(|quality| [quality.bound.exact(), quality.achieved.exact(), quality.optimality.exact()]),
        limits,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use canopy_plan::{Format, Profile, Target};
    use canopy_schedule::CollectiveKind;

    use canopy_wire::fraction;

    use super::*;
    use crate::jobs::pipeline::Pipeline;
    use crate::jobs::planner::{Planner as _, Watch};
    use canopy_planner::Request as Order;

    struct Nobody;

    impl Watch for Nobody {
        fn stage(&self, _: &'static str, _: u64, _: u64) {}
        fn bound(&self, _: &canopy_topology::Rate) {}
        fn incumbent(&self, _: &canopy_topology::Rate) {}
    }

    fn plan() -> Plan {
        let pipeline = Pipeline::new(TopologyLimits::STANDARD);
        let order = Order {
            size_bytes_max: 1 << 20,
            outputs: vec![Format::Json.usual(), Target::from(Profile::Msccl)],
            ..Order::on("ring:4", CollectiveKind::Allgather)
        };
        let prepared = pipeline.prepare(&order, &|| false).unwrap();
        pipeline.produce(&order, &prepared, &|| false, &Nobody).unwrap().plan.plan
    }

    /// Replaces a text in a file, with a digest to match.
    fn forged(position: usize, from: &str, to: &str) -> Plan {
        let mut plan = plan();
        let artifact = &mut plan.artifacts[position];
        let text = String::from_utf8(artifact.content.take().unwrap().to_vec()).unwrap();
        assert!(text.contains(from), "`{from}` is not in {text}");
        let text = text.replacen(from, to, 1);
        artifact.size_bytes = text.len() as u64;
        artifact.sha256 = sha256_hex(text.as_bytes());
        artifact.content = Some(Bytes::from(text));
        plan
    }

    #[track_caller]
    fn refused(plan: &Plan, words: &str) {
        let problem = judge_plan(plan, &TopologyLimits::STANDARD).unwrap_err();
        assert!(problem.contains(words), "{problem}");
    }

    #[test]
    fn what_the_planner_makes_is_accepted() {
        assert_eq!(judge_plan(&plan(), &TopologyLimits::STANDARD), Ok(()));
    }

    #[test]
    fn files_that_are_not_what_is_stated_are_refused() {
        let mut damaged = plan();
        damaged.artifacts[0].size_bytes += 1;
        refused(&damaged, "its stated length or digest");
        refused(&forged(0, "\"allgather\"", "\"broadcast\""), "");
        refused(&forged(1, "nchunksperloop", "nchunksperlop"), "");
        refused(
            &forged(1, "type=\"s\" srcbuf=\"i\" srcoff=\"0\"", "type=\"s\" srcbuf=\"i\" srcoff=\"1\""),
            "its MSCCL file",
        );
        let mut unknown = plan();
        unknown.artifacts[0].format = 99;
        refused(&unknown, "a format that this version does not know");
        let mut json = plan();
        json.artifacts[0].instances = Some(1);
        refused(&json, "json file has instances");
        let mut msccl = plan();
        assert_eq!(msccl.artifacts[1].instances, Some(1));
        msccl.artifacts[1].instances = Some(3);
        refused(&msccl, "cannot have the 3 instances");
        // As files of before there were instances say.
        msccl.artifacts[1].instances = Some(0);
        assert_eq!(judge_plan(&msccl, &TopologyLimits::STANDARD), Ok(()));
    }

    #[test]
    fn a_quality_that_is_made_up_is_refused() {
        let mut plan = plan();
        plan.quality.as_mut().unwrap().achieved = fraction("1");
        refused(&plan, "another quality");
        let mut plan = self::plan();
        plan.collective.as_mut().unwrap().set_kind(canopy_proto::v1::Collective::Allreduce);
        refused(&plan, "another collective");
        let mut plan = self::plan();
        plan.topology.as_mut().unwrap().ranks = 5;
        refused(&plan, "another collective, rank count");
    }
}
