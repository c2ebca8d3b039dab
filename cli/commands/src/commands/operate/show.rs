//! `canopy server plans show`: what a cached plan is, and why it is no better.

use canopy_proto::Exact as _;
use canopy_proto::v1::{
    Artifact, ExplainPlanRequest, GetPlanRequest, GetPlanSummaryRequest, JointPlan, MscclFacts, Plan, PlanExplanation,
    PlanSummary, RejectedRival, RuntimeLimit,
};
use serde::Serialize;

use crate::exit::Failure;
use crate::form::FormSummary;
use crate::nvls::{IF_FORWARDING, bound_in_words};
use crate::output::{
    AlgbwSummary, InNetworkSummary, ReachSummary, StepCostSummary, percent_in_words, print_json, shares_in_words,
    stated_rate, to_thousandths,
};
use crate::path_choice::PathChoiceSummary;
use crate::placement::{self, PlacementArgs};
use crate::request::{collective_name, missing};
use crate::runtime::format_name;
use crate::stdout::print;
use crate::stored_plan::plan_id;
use crate::time_proof::TimeProofSummary;

use super::{CommonArgs, ask};
use crate::table::count;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Plan, such as plans/0123abcd
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Say what limits the plan and what is in its files
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    placement: PlacementArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of `show`.
#[derive(Serialize)]
struct Shown {
    plan: String,
    content_key: String,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    /// Weights of the ranks' shares in lowest terms; not there where all are of one size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shares: Vec<u64>,
    algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<FormSummary>,
    version: String,
    wall_ms: f64,
    provenance: Origin,
    record: Kept,
    topology: Topology,
    /// Its name, and what was broken or slow in it.
    #[serde(skip_serializing_if = "String::is_empty")]
    network: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    without: String,
    /// The member of a family whose boxes it was planned with.
    #[serde(skip_serializing_if = "String::is_empty")]
    family: String,
    /// The devices of the ranks, as `--placement` takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_map: Option<String>,
    /// What it is among plans that were made in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    joint: Option<InCommon>,
    algbw: String,
    bound: String,
    tight: bool,
    optimality: String,
    /// The bound if NVSwitches multicast and add up for a runtime, where the network does not count on it and that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_in_network: Option<AlgbwSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_network: Option<InNetworkSummary>,
    chunks: u64,
    steps: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    reach: Option<ReachSummary>,
    /// What numbered steps cost; not there where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_cost: Option<StepCostSummary>,
    /// How good the choice of paths is, where an integer program made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<PathChoiceSummary>,
    /// How near to the fastest it is, where that is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<TimeProofSummary>,
    trees: u64,
    checked: Vec<String>,
    valid_for: ValidFor,
    files: Vec<FileRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

/// What the plan was asked for as, and by which request and class of planners it was made.
#[derive(Serialize)]
struct Origin {
    algorithm_requested: String,
    /// These are not known of plans of older servers.
    #[serde(skip_serializing_if = "String::is_empty")]
    planner_class: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    request: String,
    /// Whose plan it is alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
    /// What is kept for other networks of the shape.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedules: Vec<String>,
    /// What it was compared with and was wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
}

/// A schedule that was left out by a fault of the planner's own.
#[derive(Serialize)]
struct Rejected {
    algorithm: String,
    /// The check that refused it, or `broken`.
    reason: String,
    problem: String,
}

/// What the cache knows of the plan.
#[derive(Serialize)]
struct Kept {
    bytes: u64,
    created: Option<String>,
    age_seconds: i64,
    last_used: Option<String>,
    hits: u64,
    pinned: bool,
    /// The plan that this one stood in for, and which is there by now.
    #[serde(skip_serializing_if = "String::is_empty")]
    superseded_by: String,
}

impl Kept {
    fn of(summary: PlanSummary) -> Self {
        Self {
            bytes: summary.size_bytes,
            created: summary.create_time.map(|time| time.to_string()),
            age_seconds: summary.age.map_or(0, |age| age.seconds),
            last_used: summary.last_use_time.map(|time| time.to_string()),
            hits: summary.hits,
            pinned: summary.pinned,
            superseded_by: summary.superseded_by,
        }
    }

    fn words(&self) -> String {
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
        format!(
            "{} bytes, {} hits, {} s old, stored {}, last used {}{}",
            self.bytes,
            self.hits,
            self.age_seconds,
            time(&self.created),
            time(&self.last_used),
            if self.pinned { ", pinned" } else { "" },
        )
    }
}

#[derive(Serialize)]
struct Topology {
    hash: String,
    ranks: u32,
    nodes: u32,
    links: u32,
}

/// A plan among several that were made in common; times in seconds, `num/den`.
#[derive(Serialize)]
struct InCommon {
    position: u32,
    collectives: u32,
    /// By rank of the plan: its number in the network of all.
    ranks: Vec<u32>,
    steps: u64,
    steps_alone: u64,
    seconds: String,
    seconds_alone: String,
}

impl InCommon {
    fn of(joint: &JointPlan) -> Self {
        let together = joint.together.clone().unwrap_or_default();
        Self {
            position: joint.position,
            collectives: together.collectives,
            ranks: joint.ranks.clone(),
            steps: together.steps,
            steps_alone: joint.steps_alone,
            seconds: together.seconds.exact().to_owned(),
            seconds_alone: joint.seconds_alone.exact().to_owned(),
        }
    }
}

#[derive(Serialize)]
struct ValidFor {
    ranks: u32,
    size_bytes_min: u64,
    size_bytes_max: u64,
    in_place: bool,
    alignment_elements: u64,
}

#[derive(Serialize)]
struct FileRow {
    format: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    profile: String,
    bytes: u64,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    msccl: Option<Msccl>,
}

#[derive(Serialize)]
struct Msccl {
    channels: u32,
    chunks_per_loop: u32,
    thread_blocks_max: u32,
    steps_max: u32,
    scratch_chunks_max: u32,
    rank_steps_max: u32,
    nops: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<Binding>,
    instances: u32,
    instances_max: u32,
    /// What one more than `instances_max` would exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances_limit: Option<Binding>,
}

/// A limit of the runtime, and what a file needs of it.
#[derive(Serialize)]
struct Binding {
    name: String,
    need: u64,
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
}

#[derive(Serialize)]
struct Explanation {
    gap: String,
    limit: String,
}

/// Asks for the plan and prints it.
pub(super) async fn run(args: &ShowArgs) -> Result<(), Failure> {
    let name = plan_id(&args.plan, &args.common.server, Some(args.common.deadline)).await?;
    let explained = ask(&args.common, async |client, left| {
        let (name, placement) = (name.clone(), args.placement.placement.clone());
        let told = if args.explain {
            client.explain_plan(ExplainPlanRequest { name: name.clone(), placement }, left).await?
        } else {
            let plan = client.get_plan(GetPlanRequest { name: name.clone(), placement }, left).await?;
            PlanExplanation { plan: Some(plan), ..PlanExplanation::default() }
        };
        Ok((told, client.get_plan_summary(GetPlanSummaryRequest { name }, left).await?))
    })
    .await?;
    let shown = shown(explained.0, args.explain, explained.1)?;
    if args.common.json { print_json("plans show", &shown) } else { print(&readable(&shown)) }
}

fn shown(told: PlanExplanation, explained: bool, kept: PlanSummary) -> Result<Shown, Failure> {
    let plan: Plan = told.plan.ok_or_else(|| missing("the plan"))?;
    let (reach, steps_cost, form) = (ReachSummary::of(&plan), StepCostSummary::of(&plan), FormSummary::of(&plan));
    let (search, time) = (PathChoiceSummary::of(&plan), TimeProofSummary::of(&plan));
    let quality = plan.quality.ok_or_else(|| missing("the plan's quality"))?;
    let provenance = plan.provenance.unwrap_or_default();
    let topology = plan.topology.ok_or_else(|| missing("the topology"))?;
    let valid = plan.valid_for.ok_or_else(|| missing("where the plan is valid"))?;
    let collective = plan.collective.ok_or_else(|| missing("the collective"))?;
    let facts = told.artifacts.iter().map(|facts| facts.msccl.clone()).chain(std::iter::repeat(None));
    Ok(Shown {
        plan: plan.name,
        content_key: plan.content_key,
        collective: collective_name(collective.kind()).ok_or_else(|| missing("the collective"))?,
        root: collective.root,
        shares: plan.shares,
        algorithm: plan.algorithm,
        form,
        version: provenance.version,
        wall_ms: to_thousandths(canopy_wire::ms_of(provenance.wall_time.as_ref())),
        provenance: Origin {
            algorithm_requested: provenance.algorithm_requested,
            planner_class: provenance.planner_class,
            request: provenance.request_key,
            tenant: provenance.tenant,
            schedules: provenance.schedules,
            rejected: provenance.rejected.into_iter().map(rejected).collect(),
        },
        record: Kept::of(kept),
        topology: Topology { hash: topology.hash, ranks: topology.ranks, nodes: topology.nodes, links: topology.links },
        network: plan.network,
        without: plan.without,
        family: plan.family,
        rank_map: plan.rank_map.as_ref().map(placement::in_words),
        joint: plan.joint.as_ref().map(InCommon::of),
        algbw: quality.achieved.exact().to_owned(),
        bound: quality.bound.exact().to_owned(),
        tight: quality.tight,
        optimality: quality.optimality.exact().to_owned(),
        with_in_network: AlgbwSummary::stated(quality.with_in_network.exact()),
        in_network: quality.in_network.as_ref().map(InNetworkSummary::new),
        chunks: plan.chunks_per_rank,
        steps: plan.steps,
        reach,
        steps_cost,
        search,
        time,
        trees: plan.trees,
        checked: plan.checked,
        valid_for: ValidFor {
            ranks: valid.ranks,
            size_bytes_min: valid.size_bytes_min,
            size_bytes_max: valid.size_bytes_max,
            in_place: valid.in_place,
            alignment_elements: valid.alignment_elements,
        },
        files: plan.artifacts.into_iter().zip(facts).map(|(artifact, facts)| file(artifact, facts)).collect(),
        explanation: explained.then_some(Explanation { gap: told.gap.exact().to_owned(), limit: told.limit }),
    })
}

fn rejected(RejectedRival { algorithm, reason, problem }: RejectedRival) -> Rejected {
    Rejected { algorithm, reason, problem }
}

fn file(artifact: Artifact, facts: Option<MscclFacts>) -> FileRow {
    let limit = |RuntimeLimit { name, need, limit, rank }| Binding { name, need, limit, rank };
    let instances = artifact.instances.unwrap_or(1);
    FileRow {
        format: format_name(artifact.format()),
        profile: artifact.profile,
        bytes: artifact.size_bytes,
        sha256: artifact.sha256,
        msccl: facts.map(|facts| Msccl {
            channels: facts.channels,
            chunks_per_loop: facts.chunks_per_loop,
            thread_blocks_max: facts.thread_blocks_max,
            steps_max: facts.steps_max,
            scratch_chunks_max: facts.scratch_chunks_max,
            rank_steps_max: facts.rank_steps_max,
            nops: facts.nops,
            binding: facts.binding.map(limit),
            instances,
            instances_max: facts.instances_max.max(instances),
            instances_limit: facts.instances_limit.map(limit),
        }),
    }
}

fn readable(shown: &Shown) -> String {
    let Topology { hash, ranks, nodes, links } = &shown.topology;
    let root = shown.root.map_or(String::new(), |root| format!(", root {root}"));
    let tight = if shown.tight { ", tight" } else { "" };
    let class = shown.with_in_network.as_ref().map_or("", |_| IF_FORWARDING);
    let mut lines = vec![
        shown.plan.clone(),
        format!("collective {}{root}", shown.collective),
        format!("topology   {ranks} ranks, {nodes} nodes, {}, {hash}", count(*links, "link")),
        format!("algorithm  {}, canopy {}, {} ms", shown.algorithm, shown.version, shown.wall_ms),
        format!("algbw      {}", stated_rate(&shown.algbw)),
        format!("bound      {}{tight}{class}", stated_rate(&shown.bound)),
        format!("optimality {} of optimal", percent_in_words(&shown.optimality)),
        format!(
            "schedule   {} per rank, {}, {}",
            count(shown.chunks, "chunk"),
            count(shown.steps, "step"),
            count(shown.trees, "tree")
        ),
        format!("checked    {}", shown.checked.join(" ")),
        format!(
            "valid for  {} to {} bytes, {}, multiples of {} elements",
            shown.valid_for.size_bytes_min,
            shown.valid_for.size_bytes_max,
            if shown.valid_for.in_place { "in place" } else { "out of place" },
            shown.valid_for.alignment_elements
        ),
    ];
    if !shown.network.is_empty() || !shown.without.is_empty() {
        let without = if shown.without.is_empty() { String::new() } else { format!("without {}", shown.without) };
        lines.insert(2, format!("network    {} {without}", shown.network).trim_end().to_owned());
    }
    if let Some(map) = &shown.rank_map {
        lines.insert(3, format!("rank map   {map}"));
    }
    if !shown.shares.is_empty() {
        lines.insert(2, format!("shares     {}", shares_in_words(&shown.shares, *ranks as usize)));
    }
    lines.extend(history(shown));
    lines.extend(properties(shown));
    shown.files.iter().for_each(|file| lines.extend(of_file(file)));
    if let Some(Explanation { gap, limit }) = &shown.explanation {
        lines.push(format!("gap        {gap}"));
        lines.push(format!("limit      {limit}"));
    }
    lines.join("\n")
}

/// Where the plan comes from, and what became of it.
fn history(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    let Origin { algorithm_requested, planner_class, request, tenant, schedules, rejected } = &shown.provenance;
    if !request.is_empty() {
        lines.push(format!(
            "requested  algorithm {algorithm_requested}, request {request}, planner class {planner_class}"
        ));
    }
    if !tenant.is_empty() {
        lines.push(format!("tenant     {tenant} only"));
    }
    if !schedules.is_empty() {
        lines.push(format!("schedules  {}", schedules.join(", ")));
    }
    for Rejected { algorithm, reason, problem } in rejected {
        lines.push(format!("left out   {algorithm}: {reason}: {problem} (please report this bug)"));
    }
    lines.push(format!("cache      {}", shown.record.words()));
    if !shown.record.superseded_by.is_empty() {
        lines.push(format!("superseded by {}; this plan was provisional", shown.record.superseded_by));
    }
    if let Some(InCommon { position, collectives, steps, steps_alone, .. }) = &shown.joint {
        lines.push(format!(
            "joint      plan {} of {collectives} that run at the same time; {steps} steps together, {steps_alone} alone",
            position + 1
        ));
    }
    if !shown.family.is_empty() {
        lines.push(format!("family     {} (its boxes were used for planning)", shown.family));
    }
    lines
}

/// What only some plans have, a line each.
fn properties(shown: &Shown) -> Vec<String> {
    let properties = [
        ("with NVLS", shown.with_in_network.as_ref().map(bound_in_words)),
        ("form", shown.form.as_ref().map(FormSummary::words)),
        ("in network", shown.in_network.as_ref().map(|with| with.words(false))),
        ("cost", shown.steps_cost.as_ref().map(StepCostSummary::readable)),
        ("search", shown.search.as_ref().map(|search| search.words().to_owned())),
        ("time", shown.time.as_ref().map(TimeProofSummary::words)),
        ("reach", shown.reach.as_ref().map(|reach| reach.readable(shown.steps))),
    ];
    properties.into_iter().filter_map(|(name, words)| Some(format!("{name:<10} {}", words?))).collect()
}

/// A file, and what it needs of its runtime.
fn of_file(file: &FileRow) -> Vec<String> {
    let mut lines = Vec::new();
    let profile = if file.profile.is_empty() { String::new() } else { format!(" for {}", file.profile) };
    lines.push(format!("file       {}{profile}, {} bytes, {}", file.format, file.bytes, file.sha256));
    if let Some(msccl) = &file.msccl {
        lines.push(format!(
            "           {} channels, {} chunks per loop, at most {} thread blocks per rank and {} steps per block",
            msccl.channels, msccl.chunks_per_loop, msccl.thread_blocks_max, msccl.steps_max
        ));
        lines.push(format!(
            "           at most {} steps and {} scratch chunks per rank; {} steps of all ranks only wait",
            msccl.rank_steps_max, msccl.scratch_chunks_max, msccl.nops
        ));
        if let Some(Binding { name, need, limit, rank }) = &msccl.binding {
            let who = rank.map_or(String::new(), |rank| format!(" by rank {rank}"));
            lines.push(format!("           binding limit: {name}, {need} of {limit} used{who}"));
        }
        if let Some(Binding { name, need, limit, .. }) = &msccl.instances_limit {
            let (instances, most) = (msccl.instances, msccl.instances_max);
            let more = most.saturating_add(1);
            lines.push(format!(
                "           instances of the plan: {instances}, room for {most}; {more} would exceed: {name}, {need} of \
                 {limit}"
            ));
        }
    }
    lines
}
