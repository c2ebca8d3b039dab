//! Judges plans that come from elsewhere by what they say of themselves.
//!
//! Records travel with digests, which show that nothing happened to them on the way; here is looked at what they say.

mod request;

use std::str::FromStr as _;

use canopy_plan::{
    ExecutorProfile, MSCCL_OWN_BYTES_MAX, Profile, oneccl, parse_execution_plan, parse_msccl_xml_until, prove,
    prove_execution_plan, read_plan, routes,
};
use canopy_proto::v1::{Artifact, OutputFormat, Plan};
use canopy_schedule::{Collective, CollectiveKind, certified_bound, judge_until};
use canopy_topology::{Rank, TopologyLimits};

pub(crate) use self::request::{Verdict, judge_request};
use canopy_wire::collective_on_the_wire;
use canopy_wire::sha256_hex;
use canopy_wire::{ONECCL_PROFILE, ROUTES_PROFILE};

/// Whether a plan is what it says it is, as far as that can be seen without making it again.
///
/// Every file must have its length and digest. A `json` file must hold a plan of the collective, rank count, bound and
/// rate that are stated, whose certificate proves the bound and whose transfers are right and reach the rate. An MSCCL
/// file must be readable and proven free of what its format's checks find (deadlocks, races, wrong meaning), for the
/// collective and rank count that are stated, and could hold as many instances; it is not run on bytes again.
///
/// # Errors
/// What is wrong, for people. O(size of the transfer graph, or of the paths of a flow), some tenth of what making the plan
/// took.
pub(crate) fn judge_plan(plan: &Plan, limits: &TopologyLimits) -> Result<(), String> {
    for artifact in &plan.artifacts {
        let content = artifact.content.as_deref().unwrap_or_default();
        if artifact.size_bytes != content.len() as u64 || artifact.sha256 != sha256_hex(content) {
            return Err("a file does not have the length or the digest that is stated".to_owned());
        }
        match artifact.format() {
            OutputFormat::Json if artifact.instances > 0 => {
                return Err("a json file is said to have instances, which are for files of runtimes".to_owned());
            }
            OutputFormat::Json => judge_json(plan, content, limits)?,
            OutputFormat::MscclXml => judge_msccl(plan, artifact, content)?,
            OutputFormat::OnecclXml => judge_oneccl(plan, artifact, content)?,
            OutputFormat::RoutesXml => judge_routes(plan, artifact, content)?,
            OutputFormat::MscclppJson => judge_execution_plan(plan, artifact, content)?,
            OutputFormat::Unspecified => return Err("a file is of no format that this version knows".to_owned()),
        }
    }
    Ok(())
}

fn judge_json(plan: &Plan, content: &[u8], limits: &TopologyLimits) -> Result<(), String> {
    let limits = TopologyLimits { bytes_max: usize::MAX, ..*limits };
    let file = read_plan(content, &limits).map_err(|error| error.to_string())?;
    let quality = plan.quality.as_ref().ok_or("it states no quality")?;
    let collective = file.schedule.collective;
    let stated = plan.collective.as_ref().ok_or("it states no collective")?;
    let ranks = plan.topology.as_ref().map(|topology| topology.ranks);
    if stated.kind() != collective_on_the_wire(collective.kind())
        || stated.root != collective.root().map(Rank::number)
        || ranks != Some(file.topology.rank_count())
        || plan.algorithm != file.schedule.algorithm
        || plan.shares != file.schedule.shares.weights()
    {
        return Err("its json file is for another collective, rank count, algorithm or shares".to_owned());
    }
    let verdict = judge_until(&file.topology, &file.schedule, &|| false).map_err(|error| error.to_string())?;
    let proven = certified_bound(&file.topology, collective, &file.schedule.shares, &file.bound.certificate);
    let proven = proven.map_err(|error| error.to_string())?;
    let optimality = verdict.algbw.ratio_to(&proven).ok_or("its bound is zero")?;
    if verdict.algbw > proven || proven != file.bound.upper || verdict.algbw != file.achieved {
        return Err("its json file states a rate or bound that its transfers and certificate do not have".to_owned());
    }
    let found = [proven.to_string(), verdict.algbw.to_string(), optimality.to_string()];
    if found != [quality.bound.as_str(), quality.achieved.as_str(), quality.optimality.as_str()] {
        return Err("it states another quality than its json file has".to_owned());
    }
    Ok(())
}

fn judge_msccl(plan: &Plan, artifact: &Artifact, content: &[u8]) -> Result<(), String> {
    let profile = Profile::from_str(&artifact.profile).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let program =
        parse_msccl_xml_until(text, profile, MSCCL_OWN_BYTES_MAX, &|| false).map_err(|error| error.to_string())?;
    let stated = plan.collective.as_ref().ok_or("it states no collective")?;
    let ranks = plan.topology.as_ref().map(|topology| topology.ranks);
    let found = program.purpose.collective().map(collective_on_the_wire);
    if Some(stated.kind()) != found || ranks != Some(program.rank_count) {
        return Err("its MSCCL file is for another collective or rank count".to_owned());
    }
    // Each instance has the same chunks and channels.
    let instances = artifact.instances.max(1);
    if !program.chunk_count.is_multiple_of(instances) || !program.channel_count.is_multiple_of(instances) {
        return Err(format!("its MSCCL file cannot have the {instances} instances that are stated"));
    }
    match prove(&program, profile).problems.first() {
        Some(problem) => Err(format!("its MSCCL file: {}: {}: {}", problem.check, problem.place, problem.message)),
        None => Ok(()),
    }
}

fn judge_oneccl(plan: &Plan, artifact: &Artifact, content: &[u8]) -> Result<(), String> {
    if artifact.instances > 0 || artifact.profile != ONECCL_PROFILE {
        return Err("its oneCCL file is said to have instances or another profile than oneccl".to_owned());
    }
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let program = oneccl::parse_until(text, oneccl::OWN_BYTES_MAX, &|| false).map_err(|error| error.to_string())?;
    let stated = plan.collective.as_ref().ok_or("it states no collective")?;
    let ranks = plan.topology.as_ref().map(|topology| topology.ranks);
    let root = program.collective.root().map(Rank::number);
    if stated.kind() != collective_on_the_wire(program.collective.kind())
        || stated.root != root
        || ranks != Some(program.rank_count)
    {
        return Err("its oneCCL file is for another collective, root or rank count".to_owned());
    }
    match oneccl::prove(&program).problems.first() {
        Some(problem) => Err(format!("its oneCCL file: {}: {problem}", problem.check)),
        None => Ok(()),
    }
}

fn judge_routes(plan: &Plan, artifact: &Artifact, content: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let program = routes::parse(text).map_err(|error| error.to_string())?;
    if artifact.instances > 0 || artifact.profile != ROUTES_PROFILE || artifact.layers != program.layer_count {
        return Err("its route file is said to have instances, other layers or another profile than routes".to_owned());
    }
    let stated = plan.collective.as_ref().ok_or("it states no collective")?;
    let ranks = plan.topology.as_ref().map(|topology| topology.ranks);
    if stated.kind() != collective_on_the_wire(program.collective.kind())
        || stated.root != program.collective.root().map(Rank::number)
        || ranks != Some(program.rank_count)
    {
        return Err("its route file is for another collective, root or rank count".to_owned());
    }
    match routes::prove(&program).problems.first() {
        Some(problem) => Err(format!("its route file: {}: {problem}", problem.check)),
        None => Ok(()),
    }
}

fn judge_execution_plan(plan: &Plan, artifact: &Artifact, content: &[u8]) -> Result<(), String> {
    let profile = ExecutorProfile::from_str(&artifact.profile).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let file = parse_execution_plan(text).map_err(|error| error.to_string())?;
    let stated = plan.collective.as_ref().ok_or("it states no collective")?;
    let ranks = plan.topology.as_ref().map_or(0, |topology| topology.ranks);
    let kind = CollectiveKind::ALL.into_iter().find(|kind| collective_on_the_wire(*kind) == stated.kind());
    let asked = kind.and_then(|kind| Collective::new(kind, stated.root.map(Rank::new), ranks).ok());
    let asked = asked.ok_or("it states no collective of its ranks")?;
    if artifact.instances > 0 || u32::try_from(file.ranks.len()) != Ok(ranks) {
        return Err("its execution plan is for another rank count, or is said to have instances".to_owned());
    }
    let proof = prove_execution_plan(&file, Some(asked), profile, &|| false).map_err(|error| error.to_string())?;
    match proof.problems.first() {
        Some(problem) => Err(format!("its execution plan: {}: {}: {}", problem.check, problem.place, problem.message)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use canopy_plan::Instances;

    use super::*;
    use crate::order::{Order, Output};
    use crate::pipeline::Pipeline;
    use crate::planner::{Planner as _, Watch};

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
            outputs: vec![Output::Json, Output::MscclXml(Profile::Msccl, Instances::ONE)],
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
        refused(&damaged, "length or the digest");
        refused(&forged(0, "\"allgather\"", "\"broadcast\""), "");
        refused(&forged(1, "nchunksperloop", "nchunksperlop"), "");
        refused(
            &forged(1, "type=\"s\" srcbuf=\"i\" srcoff=\"0\"", "type=\"s\" srcbuf=\"i\" srcoff=\"1\""),
            "its MSCCL file",
        );
        let mut unknown = plan();
        unknown.artifacts[0].format = 99;
        refused(&unknown, "no format");
        let mut json = plan();
        json.artifacts[0].instances = 1;
        refused(&json, "json file is said to have instances");
        let mut msccl = plan();
        assert_eq!(msccl.artifacts[1].instances, 1);
        msccl.artifacts[1].instances = 3;
        refused(&msccl, "cannot have the 3 instances");
        // As files of before there were instances say.
        msccl.artifacts[1].instances = 0;
        assert_eq!(judge_plan(&msccl, &TopologyLimits::STANDARD), Ok(()));
    }

    #[test]
    fn a_quality_that_is_made_up_is_refused() {
        let mut plan = plan();
        plan.quality.as_mut().unwrap().achieved = "1".to_owned();
        refused(&plan, "another quality");
        let mut plan = self::plan();
        plan.collective.as_mut().unwrap().set_kind(canopy_proto::v1::Collective::Allreduce);
        refused(&plan, "another collective");
        let mut plan = self::plan();
        plan.topology.as_mut().unwrap().ranks = 5;
        refused(&plan, "another collective, rank count");
    }
}
