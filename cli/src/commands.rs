//! The commands, one module each, and the help text.

mod about;
mod advise;
#[cfg(feature = "embedded")]
mod audit;
mod bench;
mod bound;
mod calibrate;
mod cluster;
mod convert;
mod doctor;
mod draw;
mod explain;
mod export;
mod faults;
mod find;
mod job;
mod lab;
mod leases;
mod operate;
mod order;
mod path;
mod plan;
mod render;
mod resynth;
mod run;
#[cfg(feature = "embedded")]
mod serve;
mod simulate;
mod start;
#[cfg(feature = "embedded")]
mod tokens;
mod top;
mod topology;
mod verify;

use canopy_calibrate::{OVERLAY_BYTES_MAX, Overlay};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::calibration::{self, CalibrationArgs};
use crate::exit::{Failure, words};
use crate::input;
use crate::messages::VerbosityArgs;
use crate::running::interruptible;

/// Provably optimal collective-communication plans for a network.
#[derive(Debug, Parser)]
#[command(
    name = "canopy",
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
    PlanJob(plan::job::PlanJobArgs),
    PlanMoving(plan::moving::PlanMovingArgs),
    Resynth(resynth::ResynthArgs),
    Bound(bound::BoundArgs),
    Find(find::FindArgs),
    Path(path::PathArgs),
    Order(order::OrderArgs),
    Advise(advise::AdviseArgs),
    Calibrate(calibrate::CalibrateArgs),
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
    Export(export::ExportArgs),
    Run(run::RunArgs),
    Lab(lab::LabArgs),
    Doctor(doctor::DoctorArgs),
    #[command(hide = true)]
    RunRank(run::rank::RankArgs),
    #[command(hide = true)]
    RunHost(run::host::HostArgs),
    #[command(hide = true)]
    LabInside(lab::inside::InsideArgs),
    #[command(hide = true)]
    LabRank(lab::rank::RankArgs),
    #[command(subcommand)]
    Topology(topology::TopologyCommand),
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    #[command(subcommand)]
    Plans(operate::plans::PlansCommand),
    #[command(subcommand)]
    Jobs(operate::jobs::JobsCommand),
    Stats(operate::stats::StatsArgs),
    Top(top::TopArgs),
    Config(operate::config::ConfigArgs),
    LogFilter(operate::log_filter::LogFilterArgs),
    Quota(operate::quota::QuotaArgs),
    Backup(operate::archive::BackupArgs),
    Fsck(operate::fsck::FsckArgs),
    Reload(operate::reload::ReloadArgs),
    Drain(operate::drain::DrainArgs),
    Bench(bench::BenchArgs),
    Prefetch(job::prefetch::PrefetchArgs),
    Fetch(job::fetch::FetchArgs),
    Env(job::env::EnvArgs),
    Release(job::release::ReleaseArgs),
    #[cfg(feature = "embedded")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "embedded")]
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    #[cfg(feature = "embedded")]
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    Algorithms(about::AlgorithmsArgs),
    Completions(about::CompletionsArgs),
    Man(about::ManArgs),
    Version(about::VersionArgs),
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
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}");
    Cli::command().help_template(template)
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
            Command::PlanJob(args) => interruptible(plan::job::run(args)),
            Command::PlanMoving(args) => interruptible(plan::moving::run(args)),
            Command::Resynth(args) => interruptible(resynth::run(args)),
            Command::Bound(args) => interruptible(bound::run(args)),
            Command::Find(args) => interruptible(find::run(args)),
            Command::Path(args) => interruptible(path::run(args)),
            Command::Order(args) => interruptible(order::run(args)),
            Command::Advise(args) => interruptible(advise::run(args)),
            Command::Calibrate(args) => interruptible(calibrate::run(args)),
            Command::Faults(command) => interruptible(faults::run(command)),
            Command::Leases(command) => interruptible(leases::run(command)),
            Command::Verify(args) => interruptible(verify::run(args)),
            Command::Convert(args) => interruptible(convert::run(args)),
            Command::Render(args) => interruptible(render::run(args)),
            Command::Simulate(args) => interruptible(simulate::run(args)),
            Command::Explain(args) => interruptible(explain::run(args)),
            Command::Draw(args) => interruptible(draw::run(args)),
            Command::Export(args) => interruptible(export::run(args)),
            Command::Run(args) => interruptible(run::run(args)),
            Command::Lab(args) => interruptible(lab::run(args)),
            Command::Doctor(args) => interruptible(doctor::run(args)),
            // Ends with the command that started it.
            Command::RunRank(args) => run::rank::run(&args),
            Command::RunHost(args) => run::host::run(&args),
            Command::LabInside(args) => lab::inside::run(&args),
            Command::LabRank(args) => lab::rank::run(&args),
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
            Command::Top(args) => interruptible(top::run(args)),
            Command::Drain(args) => interruptible(operate::drain::run(args)),
            Command::Bench(args) => interruptible(bench::run(args)),
            Command::Prefetch(args) => job::prefetch::run(args),
            Command::Fetch(args) => job::fetch::run(args),
            Command::Env(args) => job::env::run(args),
            Command::Release(args) => job::release::run(args),
            // A server ends in order when it is interrupted.
            #[cfg(feature = "embedded")]
            Command::Serve(args) => serve::run(args),
            #[cfg(feature = "embedded")]
            Command::Tokens(command) => tokens::run(command),
            #[cfg(feature = "embedded")]
            Command::Audit(command) => audit::run(command),
            Command::Algorithms(args) => about::list_algorithms(&args),
            Command::Completions(args) => about::completions(&args, command()),
            Command::Man(args) => about::man(&args, command()),
            Command::Version(args) => about::version(&args),
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
        "serve" | "server" | "daemon" => Some("this build of canopy has no server in it; run `canopyd`"),
        "top" | "status" => Some("use `canopy stats`"),
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
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let times = listed.iter().filter(|name| **name == sub.get_name()).count();
            assert_eq!(times, 1, "{}", sub.get_name());
        }
    }
}
