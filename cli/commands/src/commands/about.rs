//! What the command says of itself: version, completions for shells, manual pages, algorithms.

use std::path::PathBuf;

use canopy_baselines::algorithms;
use clap::Command;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::{print, write_stdout};
use crate::table::Table;
use crate::whole_file::write_file;

/// Print the version, the commit and the build
#[derive(Debug, clap::Args)]
pub(crate) struct VersionArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
    profile: &'static str,
    rustc: &'static str,
    /// Whether the command can run a server of its own.
    embedded: bool,
}

impl Version {
    const fn here() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("CANOPY_BUILD_REVISION"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            rustc: env!("CANOPY_BUILD_RUSTC"),
            embedded: cfg!(feature = "embedded"),
        }
    }
}

pub(crate) fn version(args: &VersionArgs) -> Result<(), Failure> {
    let about = Version::here();
    if args.json {
        return print_json("version", &about);
    }
    let Version { version, commit, profile, rustc, embedded } = about;
    let server = if embedded { "with" } else { "without" };
    print(&format!("canopy {version} (commit {commit}, {profile} build, rustc {rustc}, {server} an embedded server)"))
}

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy completions bash > ~/.local/share/bash-completion/completions/canopy
  canopy completions zsh > ~/.zfunc/_canopy
  canopy completions fish > ~/.config/fish/completions/canopy.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    // Commands of families without the family's name would be most of the list.
    let listed = command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned();
    let mut command = Command::new("canopy").args(command.get_arguments()).subcommands(listed);
    clap_complete::generate(args.shell, &mut command, "canopy", &mut script);
    write_stdout(&script)
}

/// Print the manual page, of canopy or of one command, or write the pages of all commands into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy man | man -l -
  canopy man network generate | man -l -
  canopy man -o ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Command whose page is printed, such as `plan` or `network generate`
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
    /// Folder for canopy.1, canopy-plan.1 and the other pages; it must exist
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, mut command: Command) -> Result<(), Failure> {
    command.build();
    let Some(folder) = &args.output else {
        let mut found = &command;
        let mut name = command.get_name().to_owned();
        for word in &args.command {
            found = found.find_subcommand(word).ok_or_else(|| {
                let name = name.replace('-', " ");
                Failure::input(format!("`{name}` has no command `{word}`")).help(format!("`{name} --help` lists them"))
            })?;
            name = format!("{name}-{}", found.get_name());
        }
        return write_stdout(&page(found.clone().display_name(name))?);
    };
    let mut left = vec![("canopy".to_owned(), command)];
    while let Some((name, command)) = left.pop() {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            left.push((format!("{name}-{}", sub.get_name()), sub.clone()));
        }
        write_file(&folder.join(format!("{name}.1")), &page(command.display_name(name))?)?;
    }
    Ok(())
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::fault(format!("cannot write the manual page: {error}")))?;
    Ok(page)
}

/// List the algorithms and what each can plan
#[derive(Debug, clap::Args)]
pub(crate) struct AlgorithmsArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct AlgorithmSummary {
    name: &'static str,
    help: &'static str,
    collectives: Vec<&'static str>,
}

#[derive(Serialize)]
struct Algorithms {
    algorithms: Vec<AlgorithmSummary>,
}

pub(crate) fn list_algorithms(args: &AlgorithmsArgs) -> Result<(), Failure> {
    let rows = algorithms().map(|algorithm| AlgorithmSummary {
        name: algorithm.name(),
        help: algorithm.help,
        collectives: algorithm.collectives.iter().map(|kind| kind.name()).collect(),
    });
    let rows: Vec<AlgorithmSummary> = rows.collect();
    if args.json {
        return print_json("algorithms", &Algorithms { algorithms: rows });
    }
    let mut table = Table::new(&["ALGORITHM", "PLANS", "HOW"]);
    for AlgorithmSummary { name, help, collectives } in rows {
        let all = collectives.len() == canopy_schedule::CollectiveKind::ALL.len();
        let plans = if all { "all collectives".to_owned() } else { collectives.join(", ") };
        table.row([name.to_owned(), plans, help.to_owned()]);
    }
    print(&table.text())
}
