//! `canopy server plans get`: writes a file of a cached plan, made here where the server has none of the kind.

use canopy_plan::Format;
use canopy_proto::v1::{Artifact, OutputFormat};
use canopy_wire::{format_of_wire, format_on_the_wire};
use serde::Serialize;

use super::CommonArgs;
use crate::args;
use crate::commands::convert::{self, Making};
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::messages::warn;
use crate::output::{FileSummary, print_json};
use crate::running::on_a_thread;
use crate::runtime::{RuntimeProfile, format_help, format_name, profile_name};
use crate::stdout::{print, write_stdout};
use crate::stored_plan::{artifacts, content, file_name, plan_id};

/// Arguments of `get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// Plan, such as plans/0123abcd; the first digits of its id are enough where no other plan has the same
    #[arg(value_name = "PLAN")]
    plan: String,
    #[arg(long, short, value_name = "F", help = format_help() + FORMAT_DEFAULT)]
    format: Option<Format>,
    /// Runtime that the file is for [default: the usual one of the format]
    #[arg(long, value_name = "P")]
    profile: Option<RuntimeProfile>,
    /// Where the file is made here: greatest message in bytes, such as 64MiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    size: Option<u64>,
    /// File to write, or `-` for standard output, where a plan goes without it unless that is a terminal
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    common: CommonArgs,
}

/// What help says of the format where none is named.
const FORMAT_DEFAULT: &str = " [default: what --profile reads, else json, or the only file of a plan without]";

/// JSON object of `get`.
#[derive(Serialize)]
struct Got {
    plan: String,
    /// Whether the file was made here of the plan in canopy's JSON.
    converted: bool,
    warnings: Vec<String>,
    files: Vec<FileSummary>,
}

/// Fetches the file, or makes it of the plan in canopy's JSON.
pub(super) async fn run(args: GetArgs) -> Result<(), Failure> {
    if let Some(RuntimeProfile::Nccl) = args.profile {
        return Err(Failure::input("NCCL cannot load external plans").help(
            "name the profile of a runtime that runs plans, or write tuner advice: `canopy plan bundle --profile nccl`",
        ));
    }
    let output = destination::of_machines(args.output.as_ref(), args.common.json, "the plan")?;
    let (server, deadline) = (&args.common.server, Some(args.common.deadline));
    let plan = plan_id(&args.plan, server, deadline).await?;
    let there = artifacts(&plan, server, deadline).await?;
    let (format, profile) = match only_one(&args, &there) {
        Some(file) => file,
        None => {
            let format = args.format.or(args.profile.and_then(RuntimeProfile::format)).unwrap_or(Format::Json);
            (format, profile_name(format, args.profile, None)?)
        }
    };
    let is_wanted = |file: &&Artifact| file.format() == format_on_the_wire(format) && file.profile == profile;
    let (bytes, warnings, converted) = match there.iter().find(is_wanted).filter(|_| args.size.is_none()) {
        Some(file) => (content(&file_name(&plan, file), server, deadline).await?, Vec::new(), false),
        None => {
            let Some(json) = there.iter().find(|file| file.format() == OutputFormat::Json) else {
                return Err(lacking(&plan, format, &there));
            };
            let source = content(&file_name(&plan, json), server, deadline).await?;
            let runtime = args.profile.or(RuntimeProfile::usual(format));
            let Some(to) = runtime.and_then(RuntimeProfile::target) else {
                return Err(
                    Failure::input("--size is for files of runtimes, and json is canopy's own").help("leave it out")
                );
            };
            let (making, name) = (Making { size: args.size, ..Making::default() }, plan.clone());
            let made = on_a_thread(move || convert::file_of_plan(&making, &name, &source, to));
            let (text, warnings) = made.await?;
            (text.into_bytes(), warnings, true)
        }
    };
    let Some(path) = output else {
        warnings.iter().for_each(|warning| warn(format_args!("{warning}")));
        return write_stdout(&bytes);
    };
    let files = vec![FileSummary::written(format.name(), path, &bytes)?.for_profile(&profile)];
    if args.common.json {
        return print_json("plans get", &Got { plan, converted, warnings, files });
    }
    warnings.iter().for_each(|warning| warn(format_args!("{warning}")));
    let made = if converted { ", made here of the plan in canopy's JSON" } else { "" };
    print(&format!("{plan} to {}{made}", path.display()))
}

/// Format and profile of the only file that may be meant, where nothing says which runtime it is for and none can be made.
fn only_one(args: &GetArgs, there: &[Artifact]) -> Option<(Format, String)> {
    let can_be_made = there.iter().any(|file| file.format() == OutputFormat::Json);
    if can_be_made || args.profile.is_some() || args.size.is_some() {
        return None;
    }
    let known = there.iter().filter_map(|file| Some((format_of_wire(file.format().into())?, file.profile.clone())));
    let mut fitting = known.filter(|(format, _)| args.format.is_none_or(|asked| asked == *format));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

/// Why no file can be had: the plan's own are listed.
fn lacking(plan: &str, format: Format, there: &[Artifact]) -> Failure {
    let named = |file: &Artifact| {
        let format = format_name(file.format());
        if file.profile.is_empty() { format.to_owned() } else { format!("{format} for {}", file.profile) }
    };
    let files: Vec<String> = there.iter().map(named).collect();
    let what = format!(
        "{plan} is kept without canopy's JSON, of which {} could be made: it has {}",
        format.name(),
        files.join(", ")
    );
    Failure::input(what)
        .help("name one of these with --format and --profile, or ask for the plan again with `canopy plan --format`")
}
