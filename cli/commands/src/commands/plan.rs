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
    /// Ids of options of its own.
    takes: &'static [&'static str],
    /// Ids of options that it refuses, besides those of one plan.
    refuses: &'static [&'static str],
    examples: &'static str,
}

const FOLDERS: [FolderCommand; 2] = [
    FolderCommand {
        name: "bundle",
        about: "Make a folder of plans by message size, each for the sizes at which it is fastest",
        needs: "sizes",
        takes: &["communicator", "strict", "margin", "alpha"],
        refuses: &["joint", "max_layers"],
        examples: "\
Examples:
  canopy plan bundle dgx-a100:boxes=2 -c allgather,allreduce --sizes 1KiB..1GiB --format msccl-xml -o plans
  canopy plan bundle dgx-a100:boxes=2 -c allreduce --sizes 1KiB..1GiB --communicator tp0=0-7 --profile nccl -o plans",
    },
    FolderCommand {
        name: "joint",
        about: "Make a folder of plans for collectives that run at the same time, so that they share the network",
        needs: "joint",
        takes: &["published"],
        refuses: &["sizes", "collective", "root", "placement", "in_place", "out_of_place"],
        examples: "\
Examples:
  canopy plan joint mesh:6x6 --joint up=0-17:allgather:18MiB --joint down=18-35:broadcast@35:1MiB -o plans",
    },
];

/// Options of one plan alone: folders of plans refuse them.
const OF_ONE: [&str; 15] = [
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
    "transit",
    "shares",
    "blocks",
];

impl FolderCommand {
    /// Whether an option is its own.
    fn has(&self, id: &str) -> bool {
        self.needs == id || self.takes.contains(&id)
    }

    /// Ids of the options that it refuses. Those that need an option of another folder are among them: the parser does
    /// not ask for what is refused.
    fn refused(&self) -> impl Iterator<Item = &'static str> {
        let others = FOLDERS.iter().filter(|other| other.name != self.name).flat_map(|other| other.takes);
        OF_ONE.iter().chain(self.refuses).chain(others).copied()
    }

    /// Its help has the options that it takes.
    fn command(self) -> Command {
        let hidden: Vec<&str> = self.refused().collect();
        arguments(Command::new(self.name))
            .about(self.about)
            .after_help(self.examples)
            .mut_arg("output", |arg| arg.help("Folder to write").value_name("FOLDER"))
            .mut_arg(self.needs, |arg| arg.required(true))
            .mut_args(|arg| if hidden.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
    }
}

/// Gives a command the arguments of all three.
fn arguments(command: Command) -> Command {
    PlanArgs::augment_args(command).mut_args(|arg| {
        let is_of = |folder: &&FolderCommand| folder.has(arg.get_id().as_str());
        match FOLDERS.iter().find(is_of) {
            Some(folder) => arg.conflicts_with_all(folder.refused()),
            None => arg,
        }
    })
}

impl clap::Args for PlanCommand {
    fn augment_args(command: Command) -> Command {
        let is_of_folders = |id: &str| FOLDERS.iter().any(|folder| folder.has(id));
        arguments(command)
            .about("Make a plan and write its file")
            .after_help(EXAMPLES)
            .mut_args(|arg| if is_of_folders(arg.get_id().as_str()) { arg.hide(true) } else { arg })
            .subcommands(FOLDERS.map(FolderCommand::command))
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

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use clap::error::ErrorKind;

    use super::*;

    /// Options that one folder or both refuse, as they are written.
    const REFUSED: [&str; 22] = [
        "--size=1MiB",
        "--algorithm=ring",
        "--trees=2",
        "--chunks=2",
        "--max-chunks=2",
        "--max-depth=2",
        "--tolerance=1/10",
        "--seed=3",
        "--form=trees",
        "--root-policy=spread",
        "--on-miss=fallback",
        "--ranks=0-1",
        "--shares=1,2",
        "--sizes=1KiB..1MiB",
        "--collective=allgather",
        "--root=1",
        "--in-place",
        "--out-of-place",
        "--max-layers=2",
        "--joint=a=all:allgather",
        "--published=ring",
        "--strict",
    ];

    #[test]
    fn folders_refuse_what_their_help_hides() {
        let plan = PlanCommand::augment_args(Command::new("plan"));
        let given = [("bundle", "--sizes=1KiB..1MiB"), ("joint", "--joint=a=all:allgather")];
        for (name, needed) in given {
            let command = plan.find_subcommand(name).expect("a command of plan");
            let hidden = |option: &str| {
                let long = option.trim_start_matches("--").split('=').next();
                let arg = command.get_arguments().find(|arg| arg.get_long() == long);
                arg.expect("an option").is_hide_set()
            };
            for option in REFUSED.into_iter().filter(|option| hidden(option)) {
                let parsed = plan.clone().try_get_matches_from(["plan", name, "ring:4", needed, option]);
                assert_eq!(
                    parsed.expect_err(option).kind(),
                    ErrorKind::ArgumentConflict,
                    "canopy plan {name} {option}"
                );
            }
            assert!(hidden("--seed=3") && !hidden("--output"));
        }
    }
}
