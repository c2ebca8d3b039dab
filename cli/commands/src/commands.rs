//! The commands, one module each, and the help text.

mod about;
mod bound;
mod cluster;
mod convert;
mod draw;
mod explain;
mod families;
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
use families::{Clusters, JobCommand, NetworkCommand, ServerCommand};

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
  canopy network generate torus:4x4 -o torus.yaml

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
    Plan(plan::PlanCommand),
    Bound(bound::BoundArgs),
    Explain(explain::ExplainArgs),
    Verify(verify::VerifyArgs),
    Convert(convert::ConvertArgs),
    Simulate(simulate::SimulateArgs),
    Draw(draw::DrawArgs),
    Algorithms(about::AlgorithmsArgs),
    #[command(subcommand, alias = "topology")]
    Network(NetworkCommand),
    #[command(subcommand)]
    Faults(faults::FaultsCommand),
    #[command(subcommand)]
    Job(JobCommand),
    #[command(subcommand)]
    Server(ServerCommand),
    #[cfg(feature = "tools")]
    #[command(subcommand)]
    Tools(toolbox::Tool),
    Completions(about::CompletionsArgs),
    Man(about::ManArgs),
    Version(about::VersionArgs),
    // Without their family's name; no help lists them.
    Resynth(resynth::ResynthArgs),
    #[command(flatten)]
    OfClusters(Clusters),
    #[command(flatten)]
    OfJob(JobCommand),
    #[command(flatten)]
    OfServer(ServerCommand),
    #[cfg(feature = "tools")]
    #[command(flatten)]
    OfTools(toolbox::Tool),
}

/// The commands under the headings of the help text.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Plans", &["start", "plan", "bound", "explain", "verify", "convert", "simulate", "draw", "algorithms"]),
    ("Families of commands", &["network", "faults", "job", "server", "tools"]),
    ("About canopy", &["completions", "man", "version", "help"]),
];

/// Words that may stand before a command of a family, or be left out.
pub(crate) const FAMILIES: [&str; 3] = ["job", "server", "tools"];

/// All commands, in the order of the help text.
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
        for name in names {
            let own = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            let about = own.or_else(|| handover::about(name)).unwrap_or_default();
            list.push_str(&format!("  {name:<12}{about}\n"));
        }
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}");
    let is_alone = |sub: &&clap::Command| in_groups().all(|listed| listed != sub.get_name());
    let alone: Vec<String> = command.get_subcommands().filter(is_alone).map(|sub| sub.get_name().to_owned()).collect();
    let parser = Cli::command().help_template(template);
    alone.into_iter().fold(parser, |parser, name| parser.mut_subcommand(name, |sub| sub.hide(true)))
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
            Command::Plan(command) => interruptible(plan::run(command)),
            Command::Bound(args) => interruptible(bound::run(args)),
            Command::Explain(args) => interruptible(explain::run(args)),
            Command::Verify(args) => interruptible(verify::run(args)),
            Command::Convert(args) => interruptible(convert::run(args)),
            Command::Simulate(args) => interruptible(simulate::run(args)),
            Command::Draw(args) => interruptible(draw::run(args)),
            Command::Algorithms(args) => about::list_algorithms(&args),
            Command::Network(command) => command.run(),
            Command::OfClusters(command) => command.run(),
            Command::Faults(command) => interruptible(faults::run(command)),
            Command::Resynth(args) => interruptible(resynth::run(args)),
            Command::Job(command) | Command::OfJob(command) => command.run(),
            Command::Server(command) | Command::OfServer(command) => command.run(),
            #[cfg(feature = "tools")]
            Command::Tools(tool) | Command::OfTools(tool) => tool.run(),
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
            .help("make one with `canopy tools calibrate T RUNS -o calibration.yaml`")
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
        "daemon" => Some("use `canopy server serve`, or run `canopyd`"),
        "status" => Some("use `canopy server stats`"),
        "list" | "ls" | "cache" => Some("use `canopy server plans list`"),
        "token" | "login" => {
            Some("use `canopy server tokens create NAME --role ROLE` where the server is, and `--token-file` elsewhere")
        }
        "tenant" | "tenants" => Some("name the tenant with `--tenant NAME`"),
        "show" | "info" => Some("use `canopy network show T` or `canopy server plans show ID`"),
        "check" | "validate" => Some("use `canopy verify FILE`"),
        "synth" | "synthesize" | "generate" => Some("use `canopy plan T -c allgather -o plan.json`"),
        "topo" => Some("use `canopy network`"),
        "clusters" => Some("use `canopy network cluster list`"),
        "families" => Some("use `canopy network families`"),
        "restore" => Some("use `canopy server serve restore FILE` where the server's data is, while it is stopped"),
        "migrate" => Some("use `canopy server serve migrate` where the server's data is, while it is stopped"),
        "check-config" => Some("use `canopy server serve --config FILE check-config`"),
        "print-config" => Some("use `canopy server serve print-config`"),
        "events" => Some("use `canopy job leases watch`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command is listed once, or is in a family.
    #[test]
    fn the_help_lists_every_command() {
        let mut command = command();
        command.build();
        let listed: Vec<&str> = in_groups().collect();
        assert!(listed.len() <= 20, "{listed:?}");
        for sub in command.get_subcommands() {
            let name = sub.get_name();
            let times = listed.iter().filter(|listed| **listed == name).count();
            assert_eq!(times, usize::from(!sub.is_hide_set()), "{name}");
            let mut families = ["network", "faults", "job", "server", "tools"].iter();
            let is_in_one = families.any(|family| named(&command, &format!("{family} {name}")).is_some());
            assert!(times == 1 || is_in_one, "{name} is in no family");
        }
    }

    #[test]
    fn commands_of_families_can_be_called_without_their_family() {
        for line in
            ["job leases list", "leases list", "server stats", "stats", "network show ring:4", "topology show ring:4"]
        {
            let words = std::iter::once("canopy").chain(line.split(' '));
            assert!(command().try_get_matches_from(words).is_ok(), "{line}");
        }
    }

    /// Options of a command, and of those below it, that are not heeded: a third refuses the one that they need, so that
    /// the parser does not ask for it.
    fn dropped(command: &clap::Command, way: &str) -> Vec<String> {
        let mut dropped: Vec<String> = command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
            .flat_map(|sub| dropped(sub, &format!("{way} {}", sub.get_name())))
            .collect();
        // Nothing here is about the form of a value.
        let any_value = |arg: clap::Arg| {
            let takes_values = arg.get_action().takes_values();
            if takes_values { arg.value_parser(clap::value_parser!(std::ffi::OsString)) } else { arg }
        };
        let command = command.clone().no_binary_name(true).mut_args(any_value);
        let written = |arg: &clap::Arg| match (arg.get_long(), arg.get_short()) {
            (Some(long), _) if arg.get_action().takes_values() => format!("--{long}=x"),
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => "x".to_owned(),
        };
        let parsed = |args: &[&clap::Arg]| command.clone().try_get_matches_from(args.iter().map(|arg| written(arg)));
        // For each requirement, the options one of which meets it.
        let missing = |args: &[&clap::Arg]| -> Vec<Vec<&clap::Arg>> {
            let Err(error) = parsed(args) else { return Vec::new() };
            let named = error.get(clap::error::ContextKind::InvalidArg);
            let Some(clap::error::ContextValue::Strings(named)) = named else { return Vec::new() };
            let is_missing = error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
            let of = |named: &String| {
                command.get_arguments().filter(|arg| named.contains(&arg.to_string())).collect::<Vec<_>>()
            };
            named.iter().filter(|_| is_missing).map(of).collect()
        };
        let needed: Vec<&clap::Arg> = missing(&[]).into_iter().flatten().collect();
        let refuses = |one: &clap::Arg, other: &clap::Arg| {
            command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        };
        let is_given = |arg: &clap::Arg| needed.iter().any(|given| given.get_id() == arg.get_id());
        for option in command.get_opts().filter(|option| !is_given(option)) {
            let wanted = missing(&[needed.as_slice(), &[option]].concat());
            let third = |other: &&clap::Arg| {
                let stops = |wanted: &&clap::Arg| refuses(wanted, other) || refuses(other, wanted);
                wanted.iter().flatten().any(stops) && !wanted.iter().flatten().any(|wanted| wanted == other)
            };
            for other in command.get_opts().filter(third) {
                let mut given = [needed.as_slice(), &[option, other]].concat();
                // The third may need others in turn.
                while let Some(&more) = missing(&given).first().and_then(|others| others.first()) {
                    given.push(more);
                }
                let is_met = |wanted: &Vec<&clap::Arg>| wanted.iter().any(|wanted| given.contains(wanted));
                if !wanted.iter().all(is_met) && parsed(&given).is_ok() {
                    dropped.push(format!("{way}: {option} beside {other}"));
                }
            }
        }
        dropped
    }

    #[test]
    fn no_option_is_dropped_because_the_one_that_it_needs_is_refused() {
        let mut command = command();
        command.build();
        let dropped = dropped(&command, "canopy");
        assert!(dropped.is_empty(), "let these refuse each other: {dropped:#?}");
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
        // A family, and a command of another one.
        known.retain(|name| *name != "tools" && !name.contains(' '));
        found.sort_unstable();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
