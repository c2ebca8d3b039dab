//! `canopy plan`: asks a server for plans and writes their files.
//!
//! Three commands: a plan and its file (`one`); `canopy plan bundle`, a folder of plans by message size; `canopy plan joint`, a
//! folder of plans that were made in common. Here is what the user writes, and which of them it is.

mod bundle;
pub(super) mod file;
mod folder;
#[cfg(feature = "tools")]
pub(super) mod job;
mod joint;
pub(super) mod loader;
#[cfg(feature = "tools")]
pub(super) mod moving;
mod one;
mod receive;
mod report;

use std::time::Duration;

use canopy_synth::Algorithm;
use clap::{ArgMatches, Args as _, Command, FromArgMatches};

use crate::args::{self, CollectiveName, LimitArgs, MemoryArgs, PartArgs};
use crate::around::AroundArgs;
use crate::connection::{CallError, ServerArgs};
use crate::exit::Failure;
use crate::known_faults::FaultArgs;
use crate::placement::PlacementArgs;
use crate::request;

use bundle::BundleArgs;
use file::FileArgs;
use joint::JointArgs;
use one::OnMiss;

/// Make a plan and write its file
#[derive(Debug)]
pub(crate) struct PlanCommand(PlanArgs);

/// `--help` of the command without a command of its own.
const EXAMPLES: &str = "\
Examples:
  canopy plan ring:8 --collective allgather > plan.json
  canopy plan dgx-a100:boxes=2 --collective allreduce --format msccl-xml --size 64MiB -o plan.xml --json
  canopy plan dgx-a100:boxes=2 --collective allreduce --format mscclpp-json --profile mscclpp-0.10 -o plan.json
  canopy plan dgx-a100:boxes=2 --collective allgather --ranks 4-11 --shares 1,0,2x6 -o plan.json
  canopy plan torus:4x4 --collective all-to-all-v --blocks tokens.csv -o plan.json
  canopy plan ring:8 --collective allreduce --format msccl-xml --instances auto -o plan.xml
  canopy plan dgx-a100:boxes=2 --collective allgather --placement gpu[07-08]:0-7 -o plan.json
  canopy plan bundle dgx-a100:boxes=2 -c allgather,allreduce --sizes 1KiB..1GiB --format msccl-xml -o plans
  canopy plan joint mesh:6x6 --joint up=0-17:allgather:18MiB --joint down=18-35:broadcast@35:1MiB -o plans
  canopy plan cluster.yaml --collective reduce-scatter --deadline 10s --server unix:/run/canopy/canopyd.sock -o plan.json

Without --server and CANOPY_SERVER, the command makes the plan itself and keeps it in the data folder, or asks a server that runs there.";

/// Options of all three commands. The help of each hides those of the others.
#[derive(Debug, clap::Args)]
struct PlanArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    #[command(flatten, next_help_heading = "Collective")]
    call: CallArgs,
    #[command(flatten, next_help_heading = "Plans by message size")]
    bundle: BundleArgs,
    #[command(flatten, next_help_heading = "Plans that run at the same time")]
    joint: JointArgs,
    #[command(flatten, next_help_heading = "File")]
    file: FileArgs,
    // The names, as the table of algorithms lists them.
    #[arg(
        long,
        value_name = "A",
        default_value = "auto",
        value_parser = canopy_baselines::algorithm,
        help_heading = "Search",
        help = "How to find the plan; `canopy algorithms` lists and explains them",
    )]
    algorithm: Algorithm,
    #[command(flatten, next_help_heading = "Search")]
    limits: LimitArgs,
    /// Longest time until the plan is there, such as 30s [default: the server's, 30s]
    #[arg(long, value_name = "TIME", value_parser = args::duration, help_heading = "Search")]
    deadline: Option<Duration>,
    /// What to do if the plan does not come in time or cannot be made [default: fail]
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Search")]
    on_miss: Option<OnMiss>,
    #[command(flatten, next_help_heading = "Collective")]
    memory: MemoryArgs,
    #[command(flatten)]
    around: AroundArgs,
    #[command(flatten, next_help_heading = "Search")]
    faults: FaultArgs,
    /// Print one JSON object as the last line of standard output; needs --output
    #[arg(long, help_heading = "File")]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// The calls that plans are for.
#[derive(Debug, clap::Args)]
struct CallArgs {
    /// allgather, reduce-scatter, allreduce, broadcast, reduce, gather, scatter, all-to-all or all-to-all-v; for
    /// a bundle several, separated by commas
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
}

/// A command that makes a folder of plans.
#[derive(Clone, Copy)]
struct FolderCommand {
    name: &'static str,
    about: &'static str,
    /// Id of the option that it cannot do without.
    needs: &'static str,
    examples: &'static str,
}

const FOLDERS: [FolderCommand; 2] = [
    FolderCommand {
        name: "bundle",
        about: "Make a folder of plans by message size, each for the sizes at which it is fastest",
        needs: "sizes",
        examples: "\
Examples:
  canopy plan bundle dgx-a100:boxes=2 -c allgather,allreduce --sizes 1KiB..1GiB --format msccl-xml -o plans
  canopy plan bundle dgx-a100:boxes=2 -c allreduce --sizes 1KiB..1GiB --communicator tp0=0-7 --profile nccl -o plans",
    },
    FolderCommand {
        name: "joint",
        about: "Make a folder of plans for collectives that run at the same time, so that they share the network",
        needs: "joint",
        examples: "\
Examples:
  canopy plan joint mesh:6x6 --joint up=0-17:allgather:18MiB --joint down=18-35:broadcast@35:1MiB -o plans",
    },
];

/// Options of one plan alone.
const OF_ONE: [&str; 16] = [
    "size",
    "algorithm",
    "trees",
    "chunks",
    "max_chunks",
    "max_depth",
    "tolerance",
    "seed",
    "form",
    "root_policy",
    "on_miss",
    "ranks",
    "shares",
    "blocks",
    "max_layers",
    "transit",
];
/// Options of bundles alone, and of joint plans alone.
const OF_BUNDLE: [&str; 5] = ["sizes", "communicator", "strict", "margin", "alpha"];
const OF_JOINT: [&str; 2] = ["joint", "published"];
/// Options of calls that joint plans state in their own way.
const OF_CALL: [&str; 3] = ["collective", "root", "placement"];

/// A command of `plan` whose help has the options that it takes.
fn folder(FolderCommand { name, about, needs, examples }: FolderCommand) -> Command {
    let hidden = match name {
        "bundle" => [OF_ONE.as_slice(), &OF_JOINT].concat(),
        _ => [OF_ONE.as_slice(), &OF_CALL, &OF_BUNDLE].concat(),
    };
    PlanArgs::augment_args(Command::new(name))
        .about(about)
        .after_help(examples)
        .mut_arg("output", |arg| arg.help("Folder to write"))
        .mut_arg(needs, |arg| arg.required(true))
        .mut_args(|arg| if hidden.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
}

impl clap::Args for PlanCommand {
    fn augment_args(command: Command) -> Command {
        let others = [OF_BUNDLE.as_slice(), &OF_JOINT].concat();
        PlanArgs::augment_args(command)
            .about("Make a plan and write its file")
            .after_help(EXAMPLES)
            .mut_args(|arg| if others.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
            .subcommands(FOLDERS.map(folder))
            .subcommand_negates_reqs(true)
            .disable_help_subcommand(true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PlanCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        PlanArgs::from_arg_matches(matches.subcommand().map_or(matches, |(_, matches)| matches)).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What all three commands are told.
#[derive(Debug)]
struct Common {
    /// T, as given.
    topology: String,
    file: FileArgs,
    deadline: Option<Duration>,
    faults: FaultArgs,
    json: bool,
    server: ServerArgs,
}

impl Common {
    /// The failure of a call in the words of the user, who called the network T.
    fn told(&self, error: CallError) -> Failure {
        error.told(|error| request::in_users_words(error, &self.topology))
    }
}

/// Does what the arguments ask for.
pub(crate) async fn run(PlanCommand(args): PlanCommand) -> Result<(), Failure> {
    let PlanArgs { topology, call, bundle, joint, file, algorithm, limits, on_miss, memory, .. } = args;
    let PlanArgs { deadline, around, faults, json, server, .. } = args;
    around.apply();
    let common = Common { topology, file, deadline, faults, json, server };
    if bundle.is_given() {
        bundle::run(common, &bundle, &call, memory).await
    } else if joint.is_given() {
        joint::run(common, joint).await
    } else {
        one::run(common, one::Asked { call, algorithm, limits, on_miss, memory }).await
    }
}
