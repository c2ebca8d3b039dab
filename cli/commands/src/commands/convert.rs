//! `canopy convert`: makes a file for a runtime of a plan in canopy's JSON, or of a file for another runtime of its kind.
//!
//! What is written has been read back and judged as `canopy verify` judges any file; a conversion that would not be
//! right is refused with the reason, and nothing is written.

mod lowered;
mod versions;
mod xml;

use std::path::{Path, PathBuf};

use canopy_plan::{ExecutorProfile, Format, Instances, Profile, Target};
use serde::Serialize;

use super::plan::file::instances;
use super::plan::loader;
use super::verify::ProgramVerdict;
use crate::args;
use crate::connection::ServerArgs;
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::messages::say;
use crate::output::{FileSummary, print_json};
use crate::running::on_a_thread;
use crate::runtime::{RuntimeProfile, profile_of_several, runtime_help};
use crate::stdout::{print, write_stdout};
use crate::stored_plan::{Wanted, plan_bytes};
use crate::table::count;

/// Make a file for a runtime of a plan in canopy's JSON, or of a file for another runtime
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a plan in canopy's JSON, which knows its network and every transfer, files of all formats are made. A file of a runtime
says which operations are run and no more, so it becomes a file of the same format only: between runtimes of MSCCL XML
spelling, missing attributes, the meaning of maxBytes and fused operations are repaired, between versions of MSCCL++ the
meaning of max_message_size. Each change is reported; the result is proved and run before it is written.

Examples:
  canopy convert plan.json --to mscclpp-0.10 --size 64MiB -o execution.json
  canopy convert plan.json --to oneccl -o plan.xml
  canopy convert plans/0123abcd --to msccl -o plan.xml
  canopy convert ring.xml --from msccl --to msccl-executor -o ring-executor.xml
  canopy convert pairs.xml --from msccl-executor --to rccl-msccl -o pairs-rccl.xml --json

Exit status: 0 when the new file is right, 2 when the file cannot be read or its conversion would not be right, 3 when the
runtime has no room for the plan or no word for what it does.")]
pub(crate) struct ConvertArgs {
    /// A plan in canopy's JSON, MSCCL XML, also with elements that runtimes pass over, an execution plan of MSCCL++, or a plan of a server such as plans/0123abcd
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Runtime the file was made for [default: msccl; of an execution plan: mscclpp-0.10]
    #[arg(long, value_name = "P", value_parser = profile_of_several)]
    from: Option<Target>,
    #[arg(long, value_name = "P", help = runtime_help())]
    to: RuntimeProfile,
    /// Of a plan in canopy's JSON: greatest message in bytes, such as 64MiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    size: Option<u64>,
    /// Of a plan in canopy's JSON: copies of it in an MSCCL file, a number or auto [default: 1]
    #[arg(long, value_name = "N", value_parser = instances)]
    instances: Option<Instances>,
    /// Of a plan in canopy's JSON: output and input share memory [default: for allreduce]
    #[arg(long, conflicts_with = "out_of_place")]
    in_place: bool,
    /// Of a plan in canopy's JSON: output and input are different memory [default: except for allreduce]
    #[arg(long)]
    out_of_place: bool,
    /// File to write, or `-` for standard output, where a plan goes without it unless that is a terminal
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// How a file is made of a plan in canopy's JSON.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Making {
    /// Greatest message in bytes.
    pub(super) size: Option<u64>,
    pub(super) instances: Option<Instances>,
    pub(super) in_place: bool,
    pub(super) out_of_place: bool,
}

impl ConvertArgs {
    const fn making(&self) -> Making {
        let &Self { size, instances, in_place, out_of_place, .. } = self;
        Making { size, instances, in_place, out_of_place }
    }
}

/// A file for a runtime of a plan in canopy's JSON, proved right, and what is unwise about it.
///
/// # Errors
/// The plan is not right; the runtime has no room for it or no word for it.
pub(super) fn file_of_plan(
    making: &Making,
    name: &str,
    bytes: &[u8],
    to: Target,
) -> Result<(String, Vec<String>), Failure> {
    let made = lowered::convert(making, name, bytes, to)?;
    require_right(name, to.profile, &made)?;
    Ok((made.text, made.verdict.warnings))
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Converted {
    from: &'static str,
    to: &'static str,
    changes: Vec<String>,
    warnings: Vec<String>,
    files: Vec<FileSummary>,
}

/// What a file is said to be made of where that is a plan in canopy's JSON.
const PLAN: &str = "json";

/// A file that was made and judged.
struct Made {
    /// What it was made of: a profile, or canopy's own format.
    from: &'static str,
    text: String,
    changes: Vec<String>,
    verdict: ProgramVerdict,
    /// Ranks of each machine, where that is known.
    ranks_per_node: Option<u32>,
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: ConvertArgs) -> Result<(), Failure> {
    let bytes = plan_bytes(&args.file, &args.server, None, Wanted::Any).await?;
    on_a_thread(move || converted(&args, &bytes)).await
}

/// Converts, judges, writes and reports.
fn converted(args: &ConvertArgs, bytes: &[u8]) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let Some(to) = args.to.target() else {
        return Err(Failure::input("NCCL cannot load external plans")
            .help("name a runtime that runs plans, or write tuner advice: `canopy plan bundle --profile nccl`"));
    };
    let format = Format::of(bytes).unwrap_or(Format::MscclXml);
    require_options(args, format, &name)?;
    let output = destination::of_machines(args.output.as_ref(), args.json, "the plan")?;
    // Before anything is made: where the module goes that registers the plan.
    let module = output.filter(|_| to.is_registered()).map(loader::path).transpose()?;
    let made = match (format, args.from) {
        (Format::Json, None) => lowered::convert(&args.making(), &name, bytes, to)?,
        (Format::Json, Some(from)) => return Err(not_of(from.profile, format, &name)),
        _ if format != to.format || format.profiles().len() < 2 => {
            let what = format!(
                "{name} is {}, which cannot be converted for {to}: it does not name its network",
                format.noun()
            );
            return Err(Failure::input(what).help(format!(
                "convert the plan in canopy's JSON, or plan again with `canopy plan --format {}`",
                to.format
            )));
        }
        (_, from) => {
            let from = from.unwrap_or(format.usual());
            if from.format != format {
                return Err(not_of(from.profile, format, &name));
            }
            of_its_kind(&name, bytes, from, to)?
        }
    };
    let ranks_per_node = made.ranks_per_node;
    let said = written(&name, to, made, output)?;
    if let (Some(plan), Some(module)) = (output, &module) {
        loader::write(plan, module, ranks_per_node)?;
    }
    said.say(output, args.json)
}

/// A file for one runtime of a file for another that reads the same format.
fn of_its_kind(name: &str, bytes: &[u8], from: Target, to: Target) -> Result<Made, Failure> {
    let executor = |target: Target| target.profile.parse::<ExecutorProfile>();
    if let (Ok(from), Ok(to)) = (executor(from), executor(to)) {
        return versions::convert(name, bytes, from, to);
    }
    let profile = |target: Target| target.profile.parse::<Profile>();
    match (profile(from), profile(to)) {
        (Ok(from), Ok(to)) => xml::convert(name, bytes, from, to),
        (Err(error), _) | (_, Err(error)) => Err(Failure::fault(error.to_string())),
    }
}

fn not_of(from: &str, format: Format, name: &str) -> Failure {
    Failure::input(format!("--from is {from}, and {name} is {}", format.noun())).help("leave --from out, or correct it")
}

/// Refuses options that mean nothing for a file.
fn require_options(args: &ConvertArgs, format: Format, name: &str) -> Result<(), Failure> {
    let given = [
        ("size", args.size.is_some()),
        ("instances", args.instances.is_some()),
        ("in-place", args.in_place),
        ("out-of-place", args.out_of_place),
    ];
    match given.into_iter().find(|&(_, is_given)| is_given) {
        Some((option, _)) if format != Format::Json => {
            let what = format!("--{option} is for plans in canopy's JSON, and {name} is {}", format.noun());
            Err(Failure::input(what).help(format!("leave --{option} out")))
        }
        _ => Ok(()),
    }
}

/// Refuses a file that something is wrong with.
fn require_right(name: &str, to: &str, Made { from, verdict, .. }: &Made) -> Result<(), Failure> {
    let Some(problem) = verdict.problems.first() else { return Ok(()) };
    let problems = count(verdict.problems.len(), "problem");
    let failure = Failure::input(format!("{name} cannot be made right for {to}: {problems}, first {problem}"));
    Err(match *from {
        PLAN => failure.help(format!("verify the plan itself with `canopy verify {name}`")),
        _ => failure.help(format!("verify the file itself with `canopy verify {name} --profile {from}`")),
    })
}

/// Writes the file, unless something is wrong with it.
fn written(name: &str, target: Target, made: Made, output: Option<&Path>) -> Result<Converted, Failure> {
    let to = target.profile;
    require_right(name, to, &made)?;
    let Made { from, text, changes, verdict, .. } = made;
    let files = match output {
        Some(path) => vec![FileSummary::written(target.format.name(), path, text.as_bytes())?.for_profile(to)],
        None => Vec::new(),
    };
    if files.is_empty() {
        write_stdout(text.as_bytes())?;
    }
    let warnings = verdict.warnings;
    Ok(Converted { from, to, changes, warnings, files })
}

impl Converted {
    /// Says what was done: on standard output, unless the file is there.
    fn say(&self, output: Option<&Path>, is_json: bool) -> Result<(), Failure> {
        let Self { from, to, changes, warnings, .. } = self;
        let Some(path) = output else {
            changes.iter().chain(warnings).for_each(|line| say(line));
            return Ok(());
        };
        if is_json {
            return print_json("convert", self);
        }
        let head = match *from {
            PLAN => format!("{} for {to}", path.display()),
            _ => format!("{} for {to}: {}", path.display(), count(changes.len(), "change")),
        };
        let warnings = warnings.iter().map(|warning| format!("warning    {warning}"));
        print(&std::iter::once(head).chain(changes.iter().cloned()).chain(warnings).collect::<Vec<_>>().join("\n"))
    }
}
