//! What `canopy plan` says of a plan: a summary on standard error, or the JSON object on standard output.

use canopy_proto::Exact as _;
use canopy_wire::ms_of;
use std::path::Path;
use std::time::Duration;

use canopy_proto::v1::{OutputFormat, Plan, PlanResponse, Timings, Warning};
use canopy_topology::Rate;
use serde::Serialize;

use crate::exit::Failure;
use crate::fault_messages;
use crate::form::FormSummary;
use crate::known_faults;
use crate::messages::{detail, say, verdict};
use crate::nvls::{IF_FORWARDING, bound_in_words};
use crate::output::{
    AlgbwSummary, FileSummary, InNetworkSummary, ReachSummary, StepCostSummary, TopologySummary, percent_in_words,
    print_json, to_thousandths,
};
use crate::path_choice::PathChoiceSummary;
use crate::placement;
use crate::protocol_words::stated;
use crate::request::{self, missing};
use crate::time_proof::TimeProofSummary;

/// A plan that is there, and its file in place.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) reply: &'a PlanResponse,
    pub(super) output: Option<&'a Path>,
    /// The format of the file, where it is worth saying.
    pub(super) format: Option<&'static str>,
    /// From the request to the last byte written.
    pub(super) elapsed: Duration,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Planned {
    plan: String,
    cache: String,
    topology: TopologySummary,
    /// The devices of the ranks, as `--placement` takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_map: Option<String>,
    collective: &'static str,
    /// Why the plan stands in for the one that was asked for, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<FallbackSummary>,
    /// Known faults that it is planned around.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    /// Weights of the ranks' shares in lowest terms; not there where all are of one size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shares: Vec<u64>,
    algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<FormSummary>,
    #[serde(flatten)]
    achieved: AlgbwSummary,
    bound: String,
    optimality: String,
    /// The bound if NVSwitches multicast and add up for a runtime, where the network does not count on it and that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_in_network: Option<AlgbwSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_network: Option<InNetworkSummary>,
    chunks: u64,
    steps: u32,
    /// What numbered steps cost; not there where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_cost: Option<StepCostSummary>,
    /// How good the choice of paths is, where an integer program made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<PathChoiceSummary>,
    /// How near to the fastest it is, where that is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<TimeProofSummary>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    reach: Option<ReachSummary>,
    trees: u64,
    checked: Vec<String>,
    timings_ms: TimingsSummary,
    warnings: Vec<WarningSummary>,
    files: Vec<FileSummary>,
}

/// Something that the user should know of the answer.
#[derive(Debug, Serialize)]
struct WarningSummary {
    code: String,
    text: String,
}

/// Why a plan stands in for another.
#[derive(Debug, Serialize)]
struct FallbackSummary {
    reason: String,
    text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    operation: String,
    /// What the plan that was asked for is called, once it is made.
    #[serde(skip_serializing_if = "String::is_empty")]
    plan: String,
}

/// Wall times in milliseconds.
#[derive(Debug, Serialize)]
struct TimingsSummary {
    queue: f64,
    canonical: f64,
    bound: f64,
    synthesis: f64,
    check: f64,
    lower: f64,
    total: f64,
}

/// Prints warnings and the summary or the JSON object.
pub(super) fn print(outcome: &Outcome<'_>, json: bool) -> Result<(), Failure> {
    let warnings = &outcome.reply.warnings;
    let plan = outcome.reply.plan.iter();
    let is_for_runtime = plan.flat_map(|plan| &plan.artifacts).any(|file| file.format() != OutputFormat::Json);
    known_faults::say_warnings(known_faults::worth_saying(warnings, is_for_runtime), "plan");
    let planned = planned(outcome)?;
    if json {
        return print_json("plan", &planned);
    }
    for line in readable(&planned, outcome) {
        say(&line);
    }
    let TimingsSummary { queue, canonical, bound, synthesis, check, lower, .. } = &planned.timings_ms;
    detail(|| {
        format!(
            "queue {queue} ms, canonical form {canonical} ms, bound {bound} ms, synthesis {synthesis} ms, check {check} ms, \
             file {lower} ms"
        )
    });
    Ok(())
}

fn planned(outcome: &Outcome<'_>) -> Result<Planned, Failure> {
    let plan = outcome.reply.plan.as_ref().ok_or_else(|| missing("the plan"))?;
    let quality = plan.quality.as_ref().ok_or_else(|| missing("the plan's quality"))?;
    let achieved: Rate = quality.achieved.read().ok_or_else(|| missing("the plan's algbw"))?;
    let collective = plan.collective.as_ref().ok_or_else(|| missing("the collective"))?;
    let faults = outcome.reply.puncture.iter().flat_map(|puncture| &puncture.faults);
    Ok(Planned {
        plan: plan.name.clone(),
        cache: stated(outcome.reply.cache().as_str_name(), "CACHE_OUTCOME")
            .ok_or_else(|| missing("what the cache had to do with it"))?,
        topology: plan.topology.as_ref().and_then(TopologySummary::of_server).ok_or_else(|| missing("the topology"))?,
        rank_map: plan.rank_map.as_ref().map(placement::in_words),
        collective: request::collective_name(collective.kind()).ok_or_else(|| missing("the collective"))?,
        fallback: outcome.reply.fallback.as_ref().map(|fallback| FallbackSummary {
            reason: fallback.reason.clone(),
            text: fallback.text.clone(),
            operation: fallback.operation.clone(),
            plan: fallback.plan.clone(),
        }),
        faults: faults.filter_map(fault_messages::text).collect(),
        root: collective.root,
        shares: plan.shares.clone(),
        algorithm: plan.algorithm.clone(),
        form: FormSummary::of(plan),
        achieved: AlgbwSummary::of(&achieved),
        bound: quality.bound.exact().to_owned(),
        optimality: quality.optimality.exact().to_owned(),
        with_in_network: AlgbwSummary::stated(quality.with_in_network.exact()),
        in_network: quality.in_network.as_ref().map(InNetworkSummary::new),
        chunks: plan.chunks_per_rank,
        steps: plan.steps,
        steps_cost: StepCostSummary::of(plan),
        search: PathChoiceSummary::of(plan),
        time: TimeProofSummary::of(plan),
        reach: ReachSummary::of(plan),
        trees: plan.trees,
        checked: plan.checked.clone(),
        timings_ms: timings(outcome.reply.timings.unwrap_or_default(), outcome.elapsed),
        warnings: warnings(&outcome.reply.warnings),
        files: files(plan, outcome.output),
    })
}

fn warnings(warnings: &[Warning]) -> Vec<WarningSummary> {
    let summary = |Warning { code, text }: &Warning| WarningSummary { code: code.clone(), text: text.clone() };
    warnings.iter().map(summary).collect()
}

fn timings(stages: Timings, elapsed: Duration) -> TimingsSummary {
    TimingsSummary {
        queue: to_thousandths(ms_of(stages.queue.as_ref())),
        canonical: to_thousandths(ms_of(stages.canonical.as_ref())),
        bound: to_thousandths(ms_of(stages.bound.as_ref())),
        synthesis: to_thousandths(ms_of(stages.synthesis.as_ref())),
        check: to_thousandths(ms_of(stages.check.as_ref())),
        lower: to_thousandths(ms_of(stages.lower.as_ref())),
        total: to_thousandths(elapsed.as_secs_f64() * 1e3),
    }
}

fn files(plan: &Plan, output: Option<&Path>) -> Vec<FileSummary> {
    let Some(path) = output else { return Vec::new() };
    let describe = |artifact: &canopy_proto::v1::Artifact| FileSummary {
        instances: artifact.instances,
        layers: artifact.layers,
        ..FileSummary::of_artifact(artifact, path)
    };
    plan.artifacts.iter().map(describe).collect()
}

fn readable(planned: &Planned, outcome: &Outcome<'_>) -> Vec<String> {
    let Planned { collective, topology, algorithm, plan, cache, .. } = planned;
    // What is planned through switches is judged with them.
    let switched = planned.in_network.as_ref().filter(|with| with.is_more_than(&planned.achieved));
    let optimality = switched.map_or(planned.optimality.as_str(), InNetworkSummary::optimality);
    let rate = switched.map_or_else(|| format!("{} GB/s", planned.achieved.gigabytes), InNetworkSummary::rate);
    let class = match (switched, &planned.with_in_network) {
        (Some(_), _) => " with switches that replicate and add",
        (None, Some(_)) => IF_FORWARDING,
        (None, None) => "",
    };
    let quality = match optimality {
        "1/1" => verdict(true, format_args!("proven optimal{class}")),
        ratio => verdict(false, format_args!("{} of the proven bound{class}", percent_in_words(ratio))),
    };
    let place = outcome.output.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
    let instances = outcome.reply.plan.iter().flat_map(|plan| &plan.artifacts).filter_map(|file| file.instances);
    let place = match instances.max() {
        Some(instances @ 2..) => format!("{place} in {instances} instances"),
        _ => place,
    };
    let place = match outcome.format {
        Some(format) => format!("{place} as {format}"),
        None => place,
    };
    let properties = [
        planned.with_in_network.as_ref().map(|with| format!("with NVLS: {}", bound_in_words(with))),
        switched.map(|_| format!("forwarded: {} GB/s where switches only forward", planned.achieved.gigabytes)),
        planned.in_network.as_ref().map(|with| with.words(switched.is_some())),
        planned.form.as_ref().map(FormSummary::words),
        planned.time.as_ref().map(TimeProofSummary::words),
        planned.search.as_ref().map(|search| search.words().to_owned()),
        planned.steps_cost.as_ref().map(StepCostSummary::readable),
    ];
    let mut lines = vec![format!("{collective} on {} ranks by {algorithm}: {rate}, {quality}", topology.ranks)];
    lines.extend(properties.into_iter().flatten());
    lines.push(format!("checks passed: {}", planned.checked.join(", ")));
    lines.push(format!("{plan} written to {place} in {} ms (cache {cache})", planned.timings_ms.total));
    lines
}
