//! `canopy plan`: asks a server for a plan and writes its file.

mod bundle;
mod later;
pub(super) mod loader;
mod receive;
mod report;
pub(super) mod target;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use canopy_client::{ClientError, Retries, RetryPolicy};
use canopy_plan::Instances;
use canopy_proto::v1::output_spec::Instancing;
use canopy_proto::v1::{self, PlanRequest};
use canopy_synth::Algorithm;
use clap::ValueEnum;

use crate::args::{self, CollectiveArgs, CollectiveName, LimitArgs, PartArgs, RankList};
use crate::clock::{self, Deadline};
use crate::connection::{Connections, ServerArgs};
use crate::exit::Failure;
use crate::known_faults::FaultArgs;
use crate::output::cannot_write;
use crate::placement::PlacementArgs;
use crate::request;

use bundle::BundleArgs;
use bundle::joint::JointArgs;
use later::Later;
use receive::Receiver;
use target::{Format, Target};

/// Make a plan and write its file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy plan ring:8 --collective allgather > plan.json
  canopy plan dgx-a100:boxes=2 --collective allreduce --format msccl-xml --size 64MiB -o plan.xml --json
  canopy plan dgx-a100:boxes=2 --collective allreduce --format mscclpp-json --profile mscclpp-0.10 -o plan.json
  canopy plan dgx-a100:boxes=2 --collective allgather --ranks 4-11 --shares 1,0,2x6 -o plan.json
  canopy plan torus:4x4 --collective all-to-all-v --blocks tokens.csv -o plan.json
  canopy plan ring:8 --collective allreduce --format msccl-xml --instances auto -o plan.xml
  canopy plan dgx-a100:boxes=2 --collective allgather --placement gpu[07-08]:0-7 -o plan.json
  canopy plan dgx-a100:boxes=2 -c allgather,allreduce --sizes 1KiB-1GiB --format msccl-xml -o plans
  canopy plan mesh:6x6 --joint up=0-17:allgather:18MiB --joint down=18-35:broadcast@35:1MiB -o plans
  canopy plan cluster.yaml --collective reduce-scatter --deadline 10s --server unix:/run/canopy/canopyd.sock -o plan.json

Without --server and CANOPY_SERVER, the command runs a server of its own on the data folder, or joins one that runs there.")]
pub(crate) struct PlanArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    /// allgather, reduce-scatter, allreduce, broadcast, reduce, gather, scatter, all-to-all or all-to-all-v; with
    /// --sizes several, separated by commas
    #[arg(long, short, value_name = "C", value_delimiter = ',', value_parser = args::collective_name)]
    collective: Vec<CollectiveName>,
    /// Root of broadcast, reduce, gather and scatter; rank 0 if not given
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// Greatest message in bytes, such as 64MiB [default: the server's, 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    size: Option<u64>,
    #[command(flatten)]
    bundle: BundleArgs,
    #[command(flatten)]
    joint: JointArgs,
    /// Format of the file: json, msccl-xml, mscclpp-json, oneccl-xml or routes-xml
    #[arg(long, short, value_name = "FORMAT", default_value = "json")]
    format: Format,
    /// Runtime the file is for, for formats of runtimes [default: msccl; of mscclpp-json:
    /// mscclpp-0.10]
    #[arg(long, value_name = "P")]
    profile: Option<Target>,
    /// Copies of the plan in the file, each on channels of its own: a number, or auto for as many as fit the runtime
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = instances)]
    instances: Option<Instances>,
    /// In mscclpp-json, ranks reach each other's memory one by one, whatever switches multicast or aggregate
    #[arg(long)]
    no_switch_channels: bool,
    /// In routes-xml, most layers that keep routes free of deadlocks; where the plan's own need more, chunks take other
    /// ways [default: as many as it takes]
    #[arg(long, value_name = "L")]
    max_layers: Option<NonZeroU32>,
    /// File to write, standard output if not given; with --sizes and --joint the folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to find the plan: auto, forest, flow, bfb, tsmcf, tacos, tacos-ilp, tacos-published, direct-xy, ring-xy, expansion, kautz, kautz-m, dfc2, dfc2-do, multitree, direct, ring, sssp, ewsp, dor, pmcf, pmcf-shortest, ilp-disjoint, ilp-shortest, pairwise, bruck, recursive-doubling, binomial, double-tree or local-ring
    #[arg(long, value_name = "A", default_value = "auto")]
    algorithm: Algorithm,
    #[command(flatten)]
    limits: LimitArgs,
    /// Longest time until the plan is there, such as 30s [default: the server's, 30s]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// What to do if the plan does not come in time or cannot be made [default: fail]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_miss: Option<OnMiss>,
    /// Output and input share memory [default: for allreduce]
    #[arg(long, conflicts_with = "out_of_place")]
    in_place: bool,
    /// Output and input are different memory [default: except for allreduce]
    #[arg(long)]
    out_of_place: bool,
    #[command(flatten)]
    faults: FaultArgs,
    /// Print one JSON object as the last line of standard output; needs --output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    later: Later,
}

/// What to do without the plan that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnMiss {
    /// Report a failure
    Fail,
    /// Take a checked plan of algorithm `direct`
    Fallback,
    /// Take the best of that and of plans within 1/4 and 1/64 of the best rate, as far as they come in time
    BestSoFar,
}

impl OnMiss {
    fn policy(self) -> v1::QualityPolicy {
        let on_miss = match self {
            Self::Fail => v1::OnMiss::Fail,
            Self::Fallback => v1::OnMiss::Fallback,
            Self::BestSoFar => v1::OnMiss::BestSoFar,
        };
        v1::QualityPolicy { on_miss: on_miss.into(), ..v1::QualityPolicy::default() }
    }
}

/// Reads `auto` or a number from 1.
pub(super) fn instances(text: &str) -> Result<Instances, String> {
    if text == "auto" {
        return Ok(Instances::Auto);
    }
    let number = text.parse().map(Instances::Exactly);
    number.map_err(|_| format!("`{text}` is not a number of instances; use a number from 1, or auto"))
}

/// The same on the wire.
fn instancing(instances: Option<Instances>) -> Option<Instancing> {
    instances.map(|instances| match instances {
        Instances::Exactly(instances) => Instancing::Instances(instances.get()),
        Instances::Auto => Instancing::AutomaticInstances(v1::AutomaticInstances {}),
    })
}

/// Makes the plan, writes the file, says what came of it.
pub(crate) async fn run(args: PlanArgs) -> Result<(), Failure> {
    args.later.refuse()?;
    if args.bundle.is_given() {
        return bundle::run(args).await;
    }
    if args.joint.is_given() {
        return bundle::joint::run(args).await;
    }
    if args.json && args.output.is_none() {
        return Err(Failure::input("--json needs a file for the plan: standard output is for the JSON object")
            .help("add `-o FILE`"));
    }
    let request = plan_request(&args)?;
    let module = module(&args)?;
    let mut receiver = Receiver::new(args.output.as_deref())?;
    let mut connections = Connections::new(&args.server)?;
    let mut connection = connections.open().await?;
    // Opening a store does not count: the first server gets all the time there is, further ones what it left.
    let mut retries = Retries::new(RetryPolicy::STANDARD, clock::jitter());
    let (started, patience) = (clock::now(), Deadline::after(args.deadline));
    let mut limit = args.deadline;
    loop {
        let reply = match connection.client().plan(request.clone(), limit, &mut receiver).await {
            Ok(reply) => reply,
            Err(error) if connections.may_try_another(&connection, &error) => {
                receiver = Receiver::new(args.output.as_deref())?;
                connection = connections.open().await?;
                limit = patience.remaining();
                continue;
            }
            Err(error) => {
                if let Some(pause) = retries.pause_after(&error, patience.remaining()) {
                    receiver = Receiver::new(args.output.as_deref())?;
                    tokio::time::sleep(pause).await;
                    limit = patience.remaining();
                    continue;
                }
                connection.close().await;
                return Err(match (error, &args.output) {
                    (ClientError::Write(error), Some(path)) => cannot_write(path, &error),
                    (error, _) => request::in_users_words(error, &args.topology).into(),
                });
            }
        };
        receiver.commit()?;
        if let (Some(plan), Some(module)) = (&args.output, &module) {
            let map = reply.plan.as_ref().and_then(|plan| plan.rank_map.as_ref());
            loader::write(plan, module, map.and_then(loader::ranks_per_node))?;
        }
        let outcome = report::Outcome { reply: &reply, output: args.output.as_deref(), elapsed: started.elapsed() };
        let printed = report::print(&outcome, args.json);
        connection.close().await;
        return printed;
    }
}

/// Where the module goes that registers the plan, where the runtime needs one.
fn module(args: &PlanArgs) -> Result<Option<PathBuf>, Failure> {
    let target = args.profile.or(args.format.usual());
    let is_registered = target.is_some_and(|target| args.format == Format::MscclppJson && target.is_registered());
    args.output.as_deref().filter(|_| is_registered).map(loader::path).transpose()
}

/// Other formats than routes-xml have no layers.
fn check_layers(args: &PlanArgs) -> Result<(), Failure> {
    if args.max_layers.is_some() && args.format != Format::RoutesXml {
        let name = args.format.name();
        return Err(Failure::input(format!("--max-layers is for routes-xml, and {name} has nothing like them"))
            .help("leave --max-layers out, or add `--format routes-xml`"));
    }
    Ok(())
}

/// Other formats than mscclpp-json have no channels of switches to leave out.
fn check_channels(args: &PlanArgs) -> Result<(), Failure> {
    if args.no_switch_channels && args.format != Format::MscclppJson {
        let name = args.format.name();
        return Err(Failure::input(format!(
            "--no-switch-channels is for mscclpp-json, and {name} has nothing like them"
        ))
        .help("leave --no-switch-channels out, or add `--format mscclpp-json`"));
    }
    Ok(())
}

/// The request as it goes to the server, which judges all that needs the topology.
fn plan_request(args: &PlanArgs) -> Result<PlanRequest, Failure> {
    if let [_, second, ..] = args.collective.as_slice() {
        let second = second.kind();
        return Err(Failure::input(format!("one plan is for one collective, and {second} is given, too"))
            .help("name one, or add `--sizes FROM-TO` for a folder with the plans of all"));
    }
    let collective = CollectiveArgs { collective: args.collective.first().copied(), root: args.root };
    let kind = collective.kind()?;
    if args.profile == Some(Target::Nccl) {
        return Err(Failure::input("nccl runs no plan of anybody else's")
            .help("add `--sizes FROM-TO` for advice for its tuner, or name the profile of a runtime that runs plans"));
    }
    let profile = target::profile_name(args.format, args.profile, args.instances)?;
    check_channels(args)?;
    check_layers(args)?;
    let topology = request::topology(&args.topology)?;
    let instancing = instancing(args.instances);
    Ok(args.limits.on(PlanRequest {
        topology: Some(topology),
        collective: Some(v1::CollectiveSpec { kind: request::collective(kind).into(), root: args.root }),
        size_bytes_max: args.size,
        in_place: (args.in_place || args.out_of_place).then_some(args.in_place),
        algorithm: args.algorithm.name().to_owned(),
        outputs: vec![v1::OutputSpec {
            format: args.format.on_the_wire().into(),
            profile,
            instancing,
            plain_channels: args.no_switch_channels,
            max_layers: args.max_layers.map_or(0, NonZeroU32::get),
        }],
        quality: args.on_miss.map(OnMiss::policy),
        shares: args.part.weights(&collective)?,
        ranks: args.part.ranks.clone().map(RankList::into_ranks).unwrap_or_default(),
        transit: args.part.transit.map_or(v1::GroupTransit::Unspecified, request::transit).into(),
        placement: args.placement.placement.clone(),
        fault_policy: args.faults.policy().into(),
        ..PlanRequest::default()
    }))
}
