//! Calls about cached plans: their files, and explanations of their quality.

use canopy_plan::{
    Figure, MSCCL_OWN_BYTES_MAX, Profile, ProfileError, Program, ProgramFigures, RankFileOptions, SliceError,
    parse_msccl_xml_until, rank_file, read_rule,
};
use canopy_proto::Exact as _;
use canopy_proto::v1::certificate::Kind;
use canopy_proto::v1::{
    Artifact, ArtifactFacts, CutDirection, FetchPlanFileRequest, MscclFacts, OutputFormat, Plan, PlanExplanation,
    Quality, RuntimeLimit,
};
use canopy_topology::Rate;
use canopy_wire::fraction;
use canopy_wire::{
    OUTPUT_FORMATS, RequestError, StoredPlan, format_of_wire, format_on_the_wire, parts_of_wire, plan_header,
    sha256_hex,
};

use crate::failure::shown;
use crate::failure::{CallFailure, PlanFailure};

/// Most names of nodes in a sentence.
const NAMES_MAX: usize = 12;

/// A file of a plan that is to be sent.
#[derive(Debug)]
pub(in crate::rpc) struct ChosenFile {
    /// Its place in the plan.
    pub(in crate::rpc) position: u32,
    /// The file with its content.
    pub(in crate::rpc) artifact: Artifact,
    /// Where to begin, at most its size.
    pub(in crate::rpc) offset: usize,
}

/// The file that a request names.
pub(in crate::rpc) fn choose(stored: &StoredPlan, request: &FetchPlanFileRequest) -> Result<ChosenFile, CallFailure> {
    let (format, profile) = wanted(request)?;
    let instances = request.instances;
    let is_wanted = |file: &Artifact| {
        let found = if file.format() == OutputFormat::MscclXml { instances_of(file) } else { 0 };
        let is_instanced = instances.is_none_or(|instances| found == instances);
        file.format == i32::from(format) && file.profile == profile && is_instanced
    };
    let found = (0_u32..).zip(&stored.plan.artifacts).find(|(_, file)| is_wanted(file));
    if let Some(made) = of_one_rank(stored, request, (format, &profile)).transpose()? {
        return from_offset(request, u32::MAX, made);
    }
    let Some((position, artifact)) = found else {
        return Err(CallFailure::ArtifactUnknown {
            plan: stored.plan.name.clone(),
            format: format.as_str_name(),
            profile,
            instances: instances.unwrap_or(0),
        });
    };
    let artifact = match request.ranks.is_empty() {
        true => artifact.clone(),
        false => slice(artifact, &request.ranks)?,
    };
    from_offset(request, position, artifact)
}

/// A file from where it is asked for.
fn from_offset(request: &FetchPlanFileRequest, position: u32, artifact: Artifact) -> Result<ChosenFile, CallFailure> {
    let error = CallFailure::Offset { offset: request.offset, size: artifact.size_bytes };
    if request.offset > artifact.size_bytes {
        return Err(error);
    }
    let offset = usize::try_from(request.offset).map_err(|_| error)?;
    Ok(ChosenFile { position, artifact, offset })
}

/// The file of one rank, where one is asked for, the plan is a rule, and it has no file that can be cut: made of the rule.
fn of_one_rank(
    stored: &StoredPlan,
    request: &FetchPlanFileRequest,
    (format, profile): (OutputFormat, &str),
) -> Option<Result<Artifact, CallFailure>> {
    let &[rank] = request.ranks.as_slice() else { return None };
    let files = &stored.plan.artifacts;
    let is_kept = |file: &&Artifact| file.format == i32::from(format) && file.profile == profile;
    if format != OutputFormat::Json && files.iter().any(|file| is_kept(&file)) {
        return None;
    }
    let json = files.iter().find(|file| file.format() == OutputFormat::Json)?;
    let rule = read_rule(json.content.as_deref().unwrap_or_default()).ok()?;
    let target = format_of_wire(format.into())?.usual();
    let target = target
        .format
        .profiles()
        .into_iter()
        .find(|known| *known == profile)
        .map_or(target, |profile| canopy_plan::Target { profile, ..target });
    let valid = stored.plan.valid_for.unwrap_or_default();
    let options = RankFileOptions {
        name: format!("canopy-{}-{}-{:.12}", rule.collective.kind(), rule.rank_count, stored.plan.content_key),
        in_place: valid.in_place,
        bytes_max: valid.size_bytes_max,
    };
    let made = rank_file(&rule, rank, target, &options).map_err(CallFailure::RankFile);
    Some(made.map(|content| Artifact {
        format: format.into(),
        profile: target.profile.to_owned(),
        size_bytes: content.len() as u64,
        sha256: sha256_hex(&content),
        content: Some(content.into()),
        ..Artifact::default()
    }))
}

/// Instances of the plan in an MSCCL file; those of before there were instances have one.
fn instances_of(file: &Artifact) -> u32 {
    file.instances.unwrap_or(1)
}

/// What some ranks need of a file. The same ranks get the same bytes, so a transfer of them can go on. O(file).
fn slice(artifact: &Artifact, ranks: &[u32]) -> Result<Artifact, CallFailure> {
    let (content, ranks) = (artifact.content.as_deref().unwrap_or_default(), ranks.iter().copied().collect());
    let slice = format_of_wire(artifact.format)
        .and_then(|format| format.slice(content, &ranks))
        .ok_or(CallFailure::NotSliced { format: artifact.format().as_str_name() })?;
    let content = slice.map_err(|error| match error {
        SliceError::Unreadable(what) => CallFailure::Broken { what },
        SliceError::NoSuchRank(error) => error.into(),
    })?;
    Ok(Artifact {
        size_bytes: content.len() as u64,
        sha256: sha256_hex(&content),
        content: Some(content.into()),
        ..artifact.clone()
    })
}

fn wanted(request: &FetchPlanFileRequest) -> Result<(OutputFormat, String), CallFailure> {
    let Some(format) = format_of_wire(request.format) else {
        let (field, number) = ("format".to_owned(), request.format);
        let error = RequestError::UnknownValue { field, number, known: &OUTPUT_FORMATS };
        return Err(CallFailure::Plan(PlanFailure::Request(error)));
    };
    let profile = request.profile.as_deref().map_or_else(|| format.usual().profile.to_owned(), shown);
    Ok((format_on_the_wire(format), profile))
}

/// Says what limits a plan and what is in its files.
pub(in crate::rpc) fn explain(stored: &StoredPlan) -> Result<PlanExplanation, CallFailure> {
    let broken = |what: &str| CallFailure::Broken { what: format!("{}: {what}", stored.plan.name) };
    let quality = stored.plan.quality.as_ref().ok_or_else(|| broken("no quality"))?;
    // A ratio is a rate of one per second as far as its digits go, and rates show theirs.
    let optimality: Rate = quality.optimality.read().ok_or_else(|| broken("optimality"))?;
    let (achieved, whole) = optimality.parts();
    if achieved > whole {
        return Err(broken("better than its bound"));
    }
    let artifacts = stored.plan.artifacts.iter().map(|artifact| facts(artifact).map_err(|error| broken(&error)));
    Ok(PlanExplanation {
        gap: fraction(&format!("{}/{whole}", &whole - achieved)),
        limit: limit(&stored.plan, quality).ok_or_else(|| broken("no certificate"))?,
        artifacts: artifacts.collect::<Result<_, _>>()?,
        plan: Some(plan_header(&stored.plan, 0)),
    })
}

/// What is in a file.
fn facts(artifact: &Artifact) -> Result<ArtifactFacts, String> {
    let is_msccl = artifact.format() == OutputFormat::MscclXml;
    let msccl = is_msccl.then(|| msccl_facts(artifact)).transpose()?;
    Ok(ArtifactFacts { artifact: Some(Artifact { content: None, ..artifact.clone() }), msccl })
}

/// A stored MSCCL file, read.
fn msccl_program(artifact: &Artifact) -> Result<(Profile, Program), String> {
    let profile: Profile = artifact.profile.parse().map_err(|error: ProfileError| error.to_string())?;
    let content = artifact.content.as_deref().unwrap_or_default();
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let program =
        parse_msccl_xml_until(text, profile, MSCCL_OWN_BYTES_MAX, &|| false).map_err(|error| error.to_string())?;
    Ok((profile, program))
}

fn msccl_facts(artifact: &Artifact) -> Result<MscclFacts, String> {
    let (profile, program) = msccl_program(artifact)?;
    let figures = ProgramFigures::of(&program, profile);
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let room = figures.room(instances_of(artifact), program.rank_count, profile);
    Ok(MscclFacts {
        channels: program.channel_count,
        chunks_per_loop: program.chunk_count,
        thread_blocks_max: count(figures.blocks.need),
        steps_max: count(figures.steps.need),
        scratch_chunks_max: figures.scratch_chunks,
        size_bytes_min: program.bytes_min.unwrap_or(0),
        size_bytes_max: program.bytes_max.unwrap_or(0),
        rank_steps_max: count(figures.steps_per_rank),
        nops: figures.nops,
        binding: Some(runtime_limit(figures.binding())),
        instances_max: room.instances_max,
        instances_limit: Some(runtime_limit(room.stopped_by)),
    })
}

fn runtime_limit(figure: Figure) -> RuntimeLimit {
    let Figure { name, need, limit, rank } = figure;
    RuntimeLimit { name: name.to_owned(), need, limit, rank }
}

/// The limit in a sentence.
fn limit(plan: &Plan, quality: &Quality) -> Option<String> {
    let class = if quality.with_in_network.is_none() { "" } else { " if switches only forward" };
    let so = format!("so no schedule exceeds {} bytes/s{class}", quality.bound.exact());
    match quality.certificate.as_ref()?.kind.as_ref()? {
        Kind::Cut(cut) => {
            let verb = match cut.direction() {
                CutDirection::In => "enter",
                CutDirection::Out => "leave",
                CutDirection::Unspecified => return None,
            };
            let set = cut.set.as_ref()?;
            let ranks = plan.topology.as_ref().map_or(0, |topology| topology.ranks);
            Some(format!(
                "the links that {verb} the set of {} have a total capacity of {} bytes/s; the set holds {} of {ranks} ranks, {so}",
                names(&set.nodes),
                cut.capacity,
                set.ranks.len(),
            ))
        }
        Kind::Partition(partition) => {
            let listed =
                || partition.sets.iter().take(NAMES_MAX).map(|set| names(&set.nodes)).collect::<Vec<_>>().join("; ");
            let sets = match parts_of_wire(partition) {
                Some(parts) => format!("{} {}", partition.set_count, parts.name()),
                None => format!("{} sets {}", partition.sets.len(), listed()),
            };
            Some(format!(
                "the links that leave the {sets} have a total capacity of {} bytes/s, {so}",
                partition.capacity,
            ))
        }
        Kind::Sum(sum) => Some(format!(
            "the boundaries of {} sets together can be passed by {} bytes/s, as what enters a switch must leave it, and {} times the message has to, {so}",
            sum.terms.len(),
            sum.capacity,
            sum.data.exact(),
        )),
        Kind::LpDual(dual) => Some(format!(
            "with the certificate's link lengths, capacity × length is {} bytes/s in all, and the distances between all pairs of ranks add up to {}, {so}",
            dual.volume, dual.distance,
        )),
    }
}

/// Names in a row, not too many.
fn names(names: &[String]) -> String {
    let mut text = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_MAX {
        text += &format!(" and {} more", names.len() - NAMES_MAX);
    }
    text
}
