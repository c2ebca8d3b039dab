//! `canopy tools path`: one message on several paths at once.

use canopy_proto::Exact as _;
use canopy_proto::v1::{FindPathsRequest, FindPathsResponse, PathForwarding};
use canopy_topology::Ratio;
use serde::Serialize;

use crate::args;
use crate::commands::operate::{CommonArgs, ask};
use crate::exit::Failure;
use crate::known_faults::{say_warning, worth_saying};
use crate::output::print_json;
use crate::request;
use crate::sizes::in_words;
use crate::stdout::print;
use crate::table::{Table, count};

/// Divide a message between two ranks among paths without a link in common, so that all parts arrive at the same time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy tools path kautz:d=4,n=2,lat=1us 0 10 --size 1MiB
  canopy tools path dgx-h100:boxes=2 0 1 --size 1GiB --forwarding through
  canopy tools path topo.yaml 3 5 --size 64KiB --paths 2 --json")]
pub(crate) struct PathArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    /// Rank that has the message
    #[arg(value_name = "SRC")]
    source: u32,
    /// Rank that is to have it
    #[arg(value_name = "DST")]
    target: u32,
    /// Size of the message, such as 1MiB
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    size: u64,
    /// Most paths, at most 64 [default: all, up to 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    paths: Option<u32>,
    /// When a node passes on what it receives
    #[arg(long, value_name = "WHEN", value_enum, default_value = "whole")]
    forwarding: ForwardingName,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ForwardingName {
    /// Once it has all of a part: every link costs its latency and the time of the part
    Whole,
    /// As it comes in: every link costs its latency, and the slowest one the time of the part
    Through,
}

/// Asks, and prints the paths.
pub(crate) async fn run(args: PathArgs) -> Result<(), Failure> {
    let topology = request::topology(&args.topology)?;
    let forwarding = match args.forwarding {
        ForwardingName::Whole => PathForwarding::Whole,
        ForwardingName::Through => PathForwarding::Through,
    };
    let request = FindPathsRequest {
        topology: Some(topology),
        source_rank: args.source,
        target_rank: args.target,
        size_bytes: args.size,
        paths_max: args.paths,
        forwarding: forwarding.into(),
    };
    let reply: FindPathsResponse =
        ask(&args.common, async |client, left| client.find_paths(request.clone(), left).await).await?;
    worth_saying(&reply.warnings, false).for_each(say_warning);
    if args.common.json { print_json("path", &Found::new(&args, reply)) } else { print(&readable(&args, &reply)?) }
}

/// JSON object of the command. Times are fractions of a nanosecond.
#[derive(Serialize)]
struct Found {
    source_rank: u32,
    target_rank: u32,
    size_bytes: u64,
    forwarding: ForwardingName,
    disjoint_paths: u32,
    time_ns: String,
    whole_time_ns: String,
    even_time_ns: String,
    single: Single,
    paths: Vec<Row>,
}

/// The fastest path found for the whole message.
#[derive(Serialize)]
struct Single {
    nodes: Vec<String>,
    time_ns: String,
}

#[derive(Serialize)]
struct Row {
    nodes: Vec<String>,
    bytes: u64,
    share_bytes: String,
    latency_ns: String,
    ns_per_byte: String,
}

impl Found {
    fn new(args: &PathArgs, reply: FindPathsResponse) -> Self {
        let rows = reply.paths.into_iter().map(|path| Row {
            nodes: path.nodes,
            bytes: path.size_bytes,
            share_bytes: path.share_bytes.exact().to_owned(),
            latency_ns: path.latency_ns.exact().to_owned(),
            ns_per_byte: path.ns_per_byte.exact().to_owned(),
        });
        Self {
            source_rank: args.source,
            target_rank: args.target,
            size_bytes: args.size,
            forwarding: args.forwarding,
            disjoint_paths: reply.disjoint_paths,
            time_ns: reply.time_ns.exact().to_owned(),
            whole_time_ns: reply.whole_time_ns.exact().to_owned(),
            even_time_ns: reply.even_time_ns.exact().to_owned(),
            single: Single { nodes: reply.single_nodes, time_ns: reply.single_time_ns.exact().to_owned() },
            paths: rows.collect(),
        }
    }
}

/// A fraction that a server sent, for people.
fn number(text: &str) -> Result<f64, Failure> {
    let ratio: Result<Ratio, _> = text.parse();
    ratio
        .map(|ratio| ratio.to_f64())
        .map_err(|error| Failure::fault(format!("the server sent an invalid time: {error}")))
}

fn microseconds(text: &str) -> Result<String, Failure> {
    Ok(format!("{:.3} us", number(text)? / 1e3))
}

/// Paths, and what is gained by them.
fn readable(args: &PathArgs, reply: &FindPathsResponse) -> Result<String, Failure> {
    let paths = count(reply.paths.len(), "path");
    let mut lines = vec![
        format!("{} from rank {} to rank {}", in_words(args.size), args.source, args.target),
        format!(
            "time       {} on {paths}, of {} without a common link",
            microseconds(reply.whole_time_ns.exact())?,
            reply.disjoint_paths
        ),
        format!("in equal   {} if the message is divided equally", microseconds(reply.even_time_ns.exact())?),
        format!("on one     {} by {}", microseconds(reply.single_time_ns.exact())?, reply.single_nodes.join(" > ")),
    ];
    let mut table = Table::new(&["BYTES#", "LINKS#", "LATENCY#", "NS/BYTE#", "PATH"]);
    for path in &reply.paths {
        table.row([
            path.size_bytes.to_string(),
            path.nodes.len().saturating_sub(1).to_string(),
            microseconds(path.latency_ns.exact())?,
            format!("{:.6}", number(path.ns_per_byte.exact())?),
            path.nodes.join(" > "),
        ]);
    }
    lines.push(table.text());
    Ok(lines.join("\n"))
}
