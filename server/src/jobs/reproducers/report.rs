//! What stands in a report: JSON for a person, with every field of the request as it was read.

use canopy_plan::{SwitchUse, Target};
use canopy_planner::{Group, JointRequest, JointTask, Making, PLANNER_CLASS, Request as Order};
use canopy_synth::{SumOptions, TreeLimits};
use serde::Serialize;

use super::{Refused, command};

/// The version of the layout. Fields are only ever added within one.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    canopy: &'static str,
    revision: &'static str,
    planner_class: &'static str,
    time: String,
    plan: String,
    plan_key: String,
    request_key: String,
    algorithm: &'static str,
    reason: &'static str,
    problem: &'a str,
    /// The file with the network as it was asked for: without faults, and with all of its ranks.
    topology: &'a str,
    /// Each makes the plan with one of the files that were asked for, in an empty data directory, where nothing is
    /// known; none where the request has what no command line can state.
    commands: Vec<String>,
    request: Asked<'a>,
}

/// A request, without its topology.
#[derive(Serialize)]
struct Asked<'a> {
    collective: &'static str,
    root: Option<u32>,
    faults: Vec<String>,
    shares: &'a [u64],
    ranks: Option<&'a [u32]>,
    transit: Option<&'static str>,
    placement: Option<Vec<String>>,
    size_bytes_min: u64,
    size_bytes_max: u64,
    is_size_stated: bool,
    alpha_ns: u64,
    in_place: bool,
    algorithm: &'static str,
    trees_per_root: Option<u64>,
    chunks: Option<u64>,
    max_chunks: Option<u64>,
    max_depth: Option<u32>,
    tolerance: Option<String>,
    form: Option<&'static str>,
    root_policy: String,
    in_network: bool,
    seed: u64,
    making: &'static str,
    joint: Option<Joint<'a>>,
    outputs: Vec<Output>,
    tenant: Option<&'a str>,
}

#[derive(Serialize)]
struct Joint<'a> {
    position: usize,
    tasks: Vec<Task<'a>>,
}

#[derive(Serialize)]
struct Task<'a> {
    ranks: &'a [u32],
    collective: &'static str,
    root: Option<u32>,
    size_bytes: u64,
    chunks: u64,
}

#[derive(Serialize)]
struct Output {
    format: &'static str,
    profile: &'static str,
    instances: String,
    switch_channels: bool,
    max_layers: Option<u32>,
}

/// The report of a plan whose topology is in a file of this name beside it.
pub(super) fn written(refused: &Refused, topology: &str, unix_ms: u64) -> Vec<u8> {
    let Refused { order, request, plan, algorithm, reason, problem } = refused;
    let report = Report {
        format: FORMAT,
        canopy: env!("CARGO_PKG_VERSION"),
        revision: env!("CANOPY_BUILD_REVISION"),
        planner_class: PLANNER_CLASS,
        time: canopy_wire::timestamp(unix_ms).to_string(),
        plan: plan.plan_id(),
        plan_key: plan.to_string(),
        request_key: request.to_string(),
        algorithm,
        reason,
        problem,
        topology,
        commands: command::lines(order, topology),
        request: asked(order),
    };
    let mut text = serde_json::to_vec_pretty(&report).expect("texts and numbers have a JSON form");
    text.push(b'\n');
    text
}

/// Names every field, so that one that is added must be decided on here.
fn asked(order: &Order) -> Asked<'_> {
    let Order {
        topology: _,
        faults,
        kind,
        root,
        shares,
        group,
        placement,
        size_bytes_min,
        size_bytes_max,
        states_default_size: _,
        alpha_ns,
        in_place,
        algorithm,
        limits,
        sums: SumOptions { form, roots, in_network },
        seed,
        making,
        joint,
        outputs,
        tenant,
    } = order;
    let TreeLimits { trees_per_root, chunks, max_chunks, max_depth, tolerance } = *limits;
    Asked {
        collective: kind.name(),
        root: *root,
        faults: faults.iter().map(ToString::to_string).collect(),
        shares,
        ranks: group.as_ref().map(|group| group.ranks.as_slice()),
        transit: group.as_ref().map(|Group { transit, .. }| command::transit_name(*transit)),
        placement: placement.as_ref().map(|slots| command::devices(slots)),
        size_bytes_min: *size_bytes_min,
        size_bytes_max: *size_bytes_max,
        is_size_stated: order.is_size_stated(),
        alpha_ns: *alpha_ns,
        in_place: *in_place,
        algorithm: algorithm.name(),
        trees_per_root: trees_per_root.map(Into::into),
        chunks: chunks.map(Into::into),
        max_chunks: max_chunks.map(Into::into),
        max_depth: max_depth.map(Into::into),
        tolerance: tolerance.map(command::part),
        form: form.map(canopy_schedule::AllreduceForm::name),
        root_policy: roots.to_string(),
        in_network: *in_network,
        seed: *seed,
        making: match making {
            Making::Searched => "searched",
            Making::Repaired => "repaired",
        },
        joint: joint.as_ref().map(joined),
        outputs: outputs.iter().map(output).collect(),
        tenant: tenant.as_ref().map(canopy_planner::TenantName::as_str),
    }
}

fn joined<'a>(JointRequest { tasks, position }: &'a JointRequest) -> Joint<'a> {
    let task = |JointTask { ranks, kind, root, size_bytes, chunks }: &'a JointTask| Task {
        ranks,
        collective: kind.name(),
        root: *root,
        size_bytes: size_bytes.get(),
        chunks: chunks.get(),
    };
    Joint { position: *position, tasks: tasks.iter().map(task).collect() }
}

fn output(Target { format, profile, instances, switches, layers_max }: &Target) -> Output {
    Output {
        format: format.name(),
        profile,
        instances: command::instances(*instances),
        switch_channels: *switches == SwitchUse::Offered,
        max_layers: layers_max.map(Into::into),
    }
}
