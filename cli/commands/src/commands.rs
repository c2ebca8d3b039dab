//! The commands, one module each, and the help text.

mod about;
mod bound;
mod cluster;
mod convert;
mod draw;
mod explain;
mod faults;
#[cfg(feature = "embedded")]
mod hosting;
mod job;
mod leases;
mod operate;
mod order_gain;
mod plan;
mod render;
mod resynth;
mod simulate;
mod start;
#[cfg(feature = "tools")]
mod toolbox;
mod topology;
mod verify;

use canopy_calibrate::{OVERLAY_BYTES_MAX, Overlay};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::calibration::{self, CalibrationArgs};
use crate::exit::{Failure, words};
use crate::handover;
use crate::input;
use crate::messages::VerbosityArgs;
use crate::running::interruptible;

/// Provably optimal collective-communication plans for a network.
#[derive(Debug, Parser)]
#[command(
    name = "canopy",
    // In `canopy-tools`, too.
    bin_name = "canopy",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    after_help = "\
T is a generator expression (`ring:8`, `dgx-h100:boxes=2`) or a file (canopy YAML or JSON, NCCL XML and others); an existing file wins.

Examples:
  canopy bound dgx-a100:boxes=2 --collective allgather
  canopy plan dgx-a100:boxes=2 --collective allgather --format msccl-xml -o plan.xml
  canopy verify plan.xml --collective allgather
  canopy simulate plan.json --sizes 1KiB..1GiB
  canopy topology generate torus:4x4 -o torus.yaml

Exit status: 0 success, 2 bad input or failed check, 3 infeasible, 4 fault, 5 deadline, 6 busy or unavailable, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    verbosity: VerbosityArgs,
    #[command(flatten)]
    calibration: CalibrationArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Start(start::StartArgs),
    Plan(plan::PlanArgs),
    Resynth(resynth::ResynthArgs),
    Bound(bound::BoundArgs),
    #[command(subcommand)]
    Faults(faults::FaultsCommand),
    #[command(subcommand)]
    Leases(leases::LeasesCommand),
    Verify(verify::VerifyArgs),
    Convert(convert::ConvertArgs),
    Render(render::RenderArgs),
    Simulate(simulate::SimulateArgs),
    Explain(explain::ExplainArgs),
    Draw(draw::DrawArgs),
    #[command(subcommand)]
    Topology(topology::TopologyCommand),
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    #[command(subcommand)]
    Plans(operate::plans::PlansCommand),
    #[command(subcommand)]
    Jobs(operate::jobs::JobsCommand),
    Stats(operate::stats::StatsArgs),
    Config(operate::config::ConfigArgs),
    LogFilter(operate::log_filter::LogFilterArgs),
    Quota(operate::quota::QuotaArgs),
    Backup(operate::archive::BackupArgs),
    Fsck(operate::fsck::FsckArgs),
    Reload(operate::reload::ReloadArgs),
    Drain(operate::drain::DrainArgs),
    Prefetch(job::prefetch::PrefetchArgs),
    Fetch(job::fetch::FetchArgs),
    Env(job::env::EnvArgs),
    Release(job::release::ReleaseArgs),
    Algorithms(about::AlgorithmsArgs),
    Completions(about::CompletionsArgs),
    Man(about::ManArgs),
    Version(about::VersionArgs),
    #[cfg(feature = "tools")]
    #[command(flatten)]
    Tool(toolbox::Tool),
    #[cfg(feature = "embedded")]
    #[command(flatten)]
    Hosting(hosting::Hosting),
}

/// The commands under the headings of the help text.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Plans",
        &[
            "start",
            "plan",
            "plan-job",
            "plan-moving",
            "bound",
            "explain",
            "simulate",
            "verify",
            "convert",
            "render",
            "draw",
            "export",
            "run",
            "lab",
            "doctor",
            "algorithms",
        ],
    ),
    ("Networks", &["topology", "cluster", "find", "path", "order", "advise", "calibrate"]),
    ("Faults and running jobs", &["faults", "resynth", "leases"]),
    ("Hooks of a scheduler", &["prefetch", "fetch", "env", "release"]),
    (
        "Server",
        &[
            "serve",
            "tokens",
            "audit",
            "plans",
            "jobs",
            "stats",
            "top",
            "quota",
            "backup",
            "fsck",
            "config",
            "log-filter",
            "reload",
            "drain",
            "bench",
        ],
    ),
    ("About canopy", &["completions", "man", "version", "help"]),
];

/// All commands, in the order of the help text.
#[cfg(test)]
pub(crate) fn in_groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// The parser, with its commands listed in groups.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        list.push_str(&format!("\n{heading}:\n"));
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {:<12}{about}\n", sub.get_name()));
        }
    }
    let mut elsewhere = handover::COMMANDS.iter().filter(|(name, _)| named(&command, name).is_none()).peekable();
    if elsewhere.peek().is_some() {
        list.push_str("\nIn canopy-tools:\n");
    }
    for (name, about) in elsewhere {
        list.push_str(&format!("  {name:<15}{about}\n"));
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}");
    Cli::command().help_template(template)
}

/// The command that these words name.
pub(crate) fn named<'a>(root: &'a clap::Command, words: &str) -> Option<&'a clap::Command> {
    words.split(' ').try_fold(root, |command, name| command.find_subcommand(name))
}

/// Parses the arguments of the process.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut matches = command().try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches)
}

impl Cli {
    /// Runs the command to its end, or until the user interrupts it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.verbosity.apply();
        match calibrated(&self.calibration) {
            Err(failure) if is_forgiving_hook() => {
                let _said = failure.report();
                return Ok(());
            }
            applied => applied?,
        }
        match self.command {
            Command::Start(args) => interruptible(start::run(args)),
            Command::Plan(args) => interruptible(plan::run(args)),
            Command::Resynth(args) => interruptible(resynth::run(args)),
            Command::Bound(args) => interruptible(bound::run(args)),
            Command::Faults(command) => interruptible(faults::run(command)),
            Command::Leases(command) => interruptible(leases::run(command)),
            Command::Verify(args) => interruptible(verify::run(args)),
            Command::Convert(args) => interruptible(convert::run(args)),
            Command::Render(args) => interruptible(render::run(args)),
            Command::Simulate(args) => interruptible(simulate::run(args)),
            Command::Explain(args) => interruptible(explain::run(args)),
            Command::Draw(args) => interruptible(draw::run(args)),
            Command::Topology(command) => interruptible(topology::run(command)),
            Command::Cluster(command) => interruptible(cluster::run(command)),
            Command::Plans(command) => interruptible(operate::plans::run(command)),
            Command::Jobs(command) => interruptible(operate::jobs::run(command)),
            Command::Stats(args) => interruptible(operate::stats::run(args)),
            Command::Quota(args) => interruptible(operate::quota::run(args)),
            Command::Backup(args) => interruptible(operate::archive::backup(args)),
            Command::Fsck(args) => interruptible(operate::fsck::run(args)),
            Command::Reload(args) => interruptible(operate::reload::run(args)),
            Command::Config(args) => interruptible(operate::config::run(args)),
            Command::LogFilter(args) => interruptible(operate::log_filter::run(args)),
            Command::Drain(args) => interruptible(operate::drain::run(args)),
            Command::Prefetch(args) => job::prefetch::run(args),
            Command::Fetch(args) => job::fetch::run(args),
            Command::Env(args) => job::env::run(args),
            Command::Release(args) => job::release::run(args),
            Command::Algorithms(args) => about::list_algorithms(&args),
            Command::Completions(args) => about::completions(&args, command()),
            Command::Man(args) => about::man(&args, command()),
            Command::Version(args) => about::version(&args),
            #[cfg(feature = "tools")]
            Command::Tool(tool) => tool.run(),
            #[cfg(feature = "embedded")]
            Command::Hosting(command) => command.run(),
        }
    }
}

/// Has networks be taken as they were measured, if that is asked for.
fn calibrated(args: &CalibrationArgs) -> Result<(), Failure> {
    let Some(path) = args.path() else { return Ok(()) };
    let overlay = Overlay::read(&input::text(path, OVERLAY_BYTES_MAX)?).map_err(|error| {
        Failure::input(format!("{}: {}", path.display(), words(&error)))
            .help("make one with `canopy calibrate T RUNS -o calibration.yaml`")
    })?;
    calibration::put_over(overlay);
    Ok(())
}

/// Whether the process was called as a hook that must not fail, whatever its other arguments are.
pub(crate) fn is_forgiving_hook() -> bool {
    job::must_not_fail(&std::env::args_os().collect::<Vec<_>>())
}

/// A hint for a word that other programs have as a command.
pub(crate) fn hint_for(word: &str) -> Option<&'static str> {
    match word {
        "server" | "daemon" => Some("this build of canopy has no server in it; run `canopyd`"),
        "status" => Some("use `canopy stats`"),
        "list" | "ls" | "cache" => Some("use `canopy plans list`"),
        "token" | "login" => {
            Some("use `canopy tokens create NAME --role ROLE` where the server is, and `--token-file` elsewhere")
        }
        "tenant" | "tenants" => Some("name the tenant with `--tenant NAME`"),
        "show" | "info" => Some("use `canopy topology show T` or `canopy plans show ID`"),
        "check" | "validate" => Some("use `canopy verify FILE`"),
        "synth" | "synthesize" | "generate" => Some("use `canopy plan T -c allgather -o plan.json`"),
        "topo" | "network" => Some("use `canopy topology`"),
        "clusters" => Some("use `canopy cluster list`"),
        "families" => Some("use `canopy topology families`"),
        "restore" => Some("use `canopy serve restore FILE` where the server's data is, while it is stopped"),
        "migrate" => Some("use `canopy serve migrate` where the server's data is, while it is stopped"),
        "check-config" => Some("use `canopy serve --config FILE check-config`"),
        "print-config" => Some("use `canopy serve print-config`"),
        "events" => Some("use `canopy leases watch`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups are written by hand: each command must be in one of them.
    #[test]
    fn the_help_lists_every_command() {
        let mut command = Cli::command();
        command.build();
        let listed: Vec<&str> = in_groups().collect();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let times = listed.iter().filter(|name| **name == sub.get_name()).count();
            assert_eq!(times, 1, "{}", sub.get_name());
        }
    }
    /// A lean build describes them without having them.
    #[test]
    fn commands_that_are_handed_over_are_described_as_they_describe_themselves() {
        let command = Cli::command();
        for (name, about) in handover::COMMANDS {
            let own = named(&command, name).map(|sub| sub.get_about().unwrap().to_string());
            assert!(own.is_none_or(|own| own == about), "{name}");
        }
    }

    #[cfg(all(feature = "tools", feature = "embedded"))]
    #[test]
    fn commands_behind_features_are_handed_over() {
        let command =
            hosting::Hosting::augment_subcommands(toolbox::Tool::augment_subcommands(clap::Command::new("all")));
        let mut found: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut known: Vec<&str> = handover::COMMANDS.iter().map(|(name, _)| *name).chain(handover::INNER).collect();
        known.retain(|name| !name.contains(' '));
        found.sort_unstable();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
