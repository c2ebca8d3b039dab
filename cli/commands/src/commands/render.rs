//! `canopy job render`: the file of one rank of a plan in stages, made of its rule on the machine that runs the rank.

use std::path::{Path, PathBuf};

use canopy_client::ErrorClass;
use canopy_plan::{Format, PlanFileError, RankFileOptions, Target, chain, rank_file, read_rule};
use canopy_schedule::CollectiveKind;
use serde::Serialize;

use crate::args;
use crate::connection::ServerArgs;
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::output::{FileSummary, print_json};
use crate::running::on_a_thread;
use crate::runtime::RuntimeProfile;
use crate::stdout::{print, write_stdout};
use crate::stored_plan::{Wanted, plan_bytes};

/// Make the file of one rank of a plan in stages, from its rule
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A plan for 131,072 ranks in stages is a rule of some hundred bytes, and what one rank does follows from it in milliseconds:
a file for all ranks would have hundreds of gigabytes. The plan is passed to every machine, which makes the files of its
ranks. They fit together, as all follow from one rule; `canopy verify` checks the rule once. All ranks need the same
options.

Examples:
  canopy job render plan.json --rank 5
  canopy job render plan.json --rank 5 --to oneccl -o plan-5.xml
  canopy job render plans/0123abcd --rank 70000 --to mscclpp-0.10 --size 64MiB -o execution-70000.json

Exit status: 0 when the file is made, 2 when the plan has no rule or no such rank, 3 when the runtime has no room for it.")]
pub(crate) struct RenderArgs {
    /// A plan in canopy's JSON, or one of a server such as plans/0123abcd
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The rank
    #[arg(long, value_name = "R")]
    rank: u32,
    /// Runtime the file is for, such as oneccl or mscclpp-0.10; without it, the steps of the rank in canopy's JSON
    #[arg(long, value_name = "P")]
    to: Option<RuntimeProfile>,
    /// Greatest message in bytes, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, default_value = "1GiB")]
    size: u64,
    /// Output and input share memory [default: for allreduce]
    #[arg(long, conflicts_with = "out_of_place")]
    in_place: bool,
    /// Output and input are different memory [default: except for allreduce]
    #[arg(long)]
    out_of_place: bool,
    /// File to write, or `-` for standard output, where it goes without it unless that is a terminal
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Rendered {
    collective: &'static str,
    ranks: u32,
    rank: u32,
    files: Vec<FileSummary>,
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: RenderArgs) -> Result<(), Failure> {
    let bytes = plan_bytes(&args.file, &args.server, None, Wanted::Json).await?;
    on_a_thread(move || rendered(&args, &bytes)).await
}

/// Makes, writes and reports.
fn rendered(args: &RenderArgs, bytes: &[u8]) -> Result<(), Failure> {
    let name = args.file.display();
    let target = target_of(args.to)?;
    let output = destination::of_machines(args.output.as_ref(), args.json, "the file")?;
    let rule = read_rule(bytes).map_err(|error| match error {
        PlanFileError::NoRule { .. } => Failure::input(format!("{name}: {error}")),
        error => Failure::input(format!("{name} is no plan in canopy's JSON: {}", chain(&error))),
    })?;
    let kind = rule.collective.kind();
    let options = RankFileOptions {
        name: format!("canopy-{kind}-{}", rule.rank_count),
        in_place: args.in_place || (!args.out_of_place && kind == CollectiveKind::Allreduce),
        bytes_max: args.size,
    };
    let made = rank_file(&rule, args.rank, target, &options);
    let content = made.map_err(|error| match error.is_of_runtime() {
        true => Failure::new(ErrorClass::Infeasible, chain(&error)),
        false => Failure::input(chain(&error)),
    })?;
    let Some(path) = output else { return write_stdout(&content) };
    let files = vec![summary(target, path, &content)?];
    if args.json {
        let (collective, ranks, rank) = (kind.name(), rule.rank_count, args.rank);
        return print_json("render", &Rendered { collective, ranks, rank, files });
    }
    print(&format!("rank {} of {} written to {}", args.rank, rule.rank_count, path.display()))
}

fn summary(target: Target, path: &Path, content: &[u8]) -> Result<FileSummary, Failure> {
    let summary = FileSummary::written(target.format.name(), path, content)?;
    Ok(if target.profile.is_empty() { summary } else { summary.for_profile(target.profile) })
}

/// What the file is for; canopy's own format where nothing is stated.
fn target_of(to: Option<RuntimeProfile>) -> Result<Target, Failure> {
    let Some(to) = to else { return Ok(Format::Json.usual()) };
    to.target().ok_or_else(|| {
        Failure::input("NCCL cannot load external plans").help("name a runtime that runs plans, such as oneccl")
    })
}
