//! `canopy tools export`: a plan as the input of another simulator.
//!
//! The plan is judged first, as `canopy verify` would; what is written are the messages that `canopy simulate` sends for
//! the same size and pieces.

mod chakra;

use std::path::{Path, PathBuf};

use canopy_simulate::export::{network, simgrid, traces};
use canopy_simulate::{Message, SimulateError, SimulateOptions, messages};
use canopy_topology::Latency;
use clap::ValueEnum;
use serde::Serialize;

use crate::args;
use crate::commands::simulate::{Piece, judge_bytes, piece};
use crate::connection::ServerArgs;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::stored_plan::{Wanted, plan_bytes};
use crate::table::count;
use crate::whole_file::cannot_write;

/// Most messages and waits together, in the units of a simulation: a gibibyte of them.
const WORK_MAX: u64 = 1 << 24;

/// Write a plan as the input of another simulator: SimGrid, or ASTRA-sim by way of Chakra
#[derive(Debug, clap::Args)]
#[command(after_help = "\
simgrid        platform.xml (SimGrid 4.1) and messages.json, which benches/simgrid/replay.py replays
astra-network  network.yml: the network, if it is a product of rings, fully connected groups and switches
chakra         trace.RANK.et, one for each rank: sends, receives and reductions with what they wait for

Examples:
  canopy tools export plan.json --format simgrid --size 64MiB -o simgrid/
  canopy tools export plan.json --format astra-network -o astra/
  canopy tools export plan.json --format chakra --size 64MiB --piece whole -o astra/

Exit status: 0 when it was written, 2 when the plan cannot be read, is wrong, or the format cannot say it.")]
pub(crate) struct ExportArgs {
    /// A plan in canopy's JSON, or one of a server such as plans/0123abcd
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "F")]
    format: Format,
    /// Size of the collective, such as 64MiB: the vector of all ranks, or the message; of all-to-all, what one rank has for all
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, required_if_eq_any([("format", "simgrid"), ("format", "chakra")]))]
    size: Option<u64>,
    /// Largest message: transfers are cut into as few as possible. `whole` cuts none
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = piece)]
    piece: Piece,
    /// Folder to write into; it is created if it does not exist
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Simgrid,
    AstraNetwork,
    Chakra,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Exported {
    topology: TopologySummary,
    collective: &'static str,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Sent>,
    files: Vec<FileSummary>,
}

/// What the messages are.
#[derive(Debug, Serialize)]
struct Sent {
    size_bytes: u64,
    piece_bytes: Option<u64>,
    messages: u64,
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: ExportArgs) -> Result<(), Failure> {
    let bytes = plan_bytes(&args.plan, &args.server, None, Wanted::Json).await?;
    on_a_thread(move || exported(&args, &bytes)).await
}

/// Judges the plan, makes all files, then writes them.
fn exported(args: &ExportArgs, bytes: &[u8]) -> Result<(), Failure> {
    let judged = judge_bytes(&args.plan, bytes)?;
    let (topology, format) = (&judged.topology, args::name_of(&args.format));
    let cannot = |error: &dyn std::error::Error| {
        Failure::input(format!("cannot export {} as {format}: {}", args.plan.display(), words(error)))
    };
    let list = match args.size {
        Some(size_bytes) if args.format != Format::AstraNetwork => Some(listed(args, &judged, size_bytes)?),
        _ => None,
    };
    let list_or_none = list.as_deref().unwrap_or_default();
    let files: Vec<(String, Vec<u8>)> = match args.format {
        Format::Simgrid => {
            let replay = simgrid(topology, &judged.graph.routes, list_or_none);
            let (platform, messages) = (replay.platform.into_bytes(), replay.messages.into_bytes());
            vec![("platform.xml".to_owned(), platform), ("messages.json".to_owned(), messages)]
        }
        Format::AstraNetwork => {
            let network = network(topology).map_err(|error| {
                cannot(&error).help("--format simgrid says any network, and --format chakra needs none")
            })?;
            vec![("network.yml".to_owned(), network.to_string().into_bytes())]
        }
        Format::Chakra => {
            let traces = traces(topology.rank_count(), list_or_none)
                .map_err(|error| cannot(&error).help("take another --size or --piece"))?;
            let name = |rank: usize| format!("trace.{rank}.et");
            traces.iter().enumerate().map(|(rank, trace)| (name(rank), chakra::encoded(trace))).collect()
        }
    };
    let files = write_all(&args.output, &format, &files)?;
    report(args, &judged, list.as_deref(), format, files)
}

/// The messages of a run at this size.
fn listed(args: &ExportArgs, judged: &Material, size_bytes: u64) -> Result<Vec<Message>, Failure> {
    let usual = SimulateOptions::usual(size_bytes, WORK_MAX);
    let options = SimulateOptions { alpha: Latency::default(), pieces: args.piece.pieces(), ..usual };
    messages(&judged.topology, &judged.graph, &options).map_err(|error| {
        let failure = Failure::input(format!("cannot export {}: {}", args.plan.display(), words(&error)));
        match error {
            SimulateError::TooLarge { .. } => failure.help("raise --piece or lower --size"),
            SimulateError::SizeTooLarge { .. } => failure.help("lower --size"),
            _ => failure,
        }
    })
}

/// Writes files into a folder, which is made if need be.
fn write_all(folder: &Path, format: &str, files: &[(String, Vec<u8>)]) -> Result<Vec<FileSummary>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    files.iter().map(|(name, content)| FileSummary::written(format, &folder.join(name), content)).collect()
}

fn report(
    args: &ExportArgs,
    judged: &Material,
    list: Option<&[Message]>,
    format: String,
    files: Vec<FileSummary>,
) -> Result<(), Failure> {
    let kind = judged.schedule.collective.kind();
    let sent = list.zip(args.size).map(|(list, size_bytes)| Sent {
        size_bytes,
        piece_bytes: args.piece.0,
        messages: list.len() as u64,
    });
    if !args.json {
        let ranks = count(judged.topology.rank_count() as usize, "rank");
        let messages = list.map_or(String::new(), |list| format!(", {}", count(list.len(), "message")));
        let written = match &files[..] {
            [file] => file.path.clone(),
            files => format!("{} in {}", count(files.len(), "file"), args.output.display()),
        };
        return print(&format!("{kind} on {ranks} for {format}{messages}: {written}"));
    }
    print_json(
        "export",
        &Exported { topology: TopologySummary::of(&judged.topology), collective: kind.name(), format, sent, files },
    )
}
