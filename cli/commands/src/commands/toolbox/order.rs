//! `canopy tools order`: in which order to number machines, so that what stock runtimes do loads the fabric least.

mod files;
mod served;

use std::path::PathBuf;
use std::time::Duration;

use canopy_order::{Group, Report, report};
use clap::ArgGroup;
use serde::Serialize;

use crate::args;
use crate::clock::Deadline;
use crate::commands::order_gain::{Comparison, TimesSummary, refused};
use crate::connection::NamedServerArgs;
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::input;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::table::{Table, count};
use crate::whole_file::write_file;
use files::{HostFile, torchrun};

/// Machines that are listed for people.
const SHOWN_MAX: usize = 16;

/// Order machines so that rings of stock NCCL, RCCL or MPI load the fabric least, and write the host file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A ring takes the time of its busiest link. Where switches make levels, no order is better than part after part.

Examples:
  canopy tools order job.yaml
  canopy tools order cluster.yaml --nodes 'gpu[001-064]'    # the others share the links
  canopy tools order job.yaml --group tp=8 --group ep=16:all-to-all --group dp=4    # from the innermost
  canopy tools order 'clusters/hall1:gpu[001-064]' --server 127.0.0.1:7433
  canopy tools order job.yaml --to slurm -o hosts
  SLURM_HOSTFILE=hosts srun --distribution=arbitrary -n 64 ./train   # rank i is line i; SLURM_PROCID counts, not SLURM_NODEID
  canopy tools order job.yaml --to openmpi -o hosts && mpirun --hostfile hosts ./train
  canopy tools order job.yaml --to mpich -o hosts && mpiexec -f hosts ./train
  canopy tools order job.yaml --to nodes -o hosts    # one line for each machine: torchrun --node-rank is the line, from 0
  eval \"$(canopy tools order job.yaml --host $(hostname -s))\" && torchrun --nnodes $NNODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR train.py
  canopy tools order job.yaml --to configmap -o order.yaml && kubectl apply -f order.yaml    # host -> node rank, for pods by spec.nodeName")]
#[command(group = ArgGroup::new("written").args(["to", "host"]))]
pub(crate) struct OrderArgs {
    /// Generator expression or file; ranks must name their hosts or boxes
    #[arg(value_name = "T")]
    topology: String,
    /// Machines of the job in the order of their ranks, such as gpu[001-064]; the others share the links [default: all]
    #[arg(long, value_name = "HOSTLIST", conflicts_with = "nodes_file")]
    nodes: Option<String>,
    /// File of them, a line each
    #[arg(long, value_name = "FILE")]
    nodes_file: Option<PathBuf>,
    /// Groups of ranks, from the innermost kind to the outermost: NAME=SIZE, NAME=SIZE:PATTERN or NAME=SIZE:PATTERN:WEIGHT,
    /// with ring (default), trees or all-to-all [default: all ranks in one group]
    #[arg(long = "group", value_name = "NAME=SIZE")]
    groups: Vec<Group>,
    /// Kind of the file
    #[arg(long, value_name = "KIND", value_enum, requires = "output")]
    to: Option<HostFile>,
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", requires = "written")]
    output: Option<Destination>,
    /// Print what torchrun needs on this machine: NODE_RANK, MASTER_ADDR and NNODES
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    host: Option<String>,
    /// Longest time to look for an order, such as 5s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: NamedServerArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct OrderSummary {
    topology: TopologySummary,
    machines: Vec<MachineSummary>,
    /// What the times of groups are of.
    groups: Vec<GroupSummary>,
    given: TimesSummary,
    by_name: TimesSummary,
    /// If it is another order than that by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_number: Option<TimesSummary>,
    found: TimesSummary,
    /// Whether no order is better.
    best: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

#[derive(Serialize)]
struct MachineSummary {
    host: String,
    node_rank: usize,
    ranks: u32,
    /// Its number before.
    given: usize,
}

#[derive(Serialize)]
struct GroupSummary {
    name: String,
    pattern: &'static str,
}

/// Orders the machines, here on a thread of its own.
pub(crate) async fn run(args: OrderArgs) -> Result<(), Failure> {
    let nodes = input::nodes(args.nodes.as_deref(), args.nodes_file.as_deref())?;
    let summary = match args.server.named() {
        Some(server) => served::found(&args, nodes, &server).await?,
        None => {
            let (topology, groups, deadline) = (args.topology.clone(), args.groups.clone(), args.deadline);
            on_a_thread(move || ordered(&topology, nodes.as_deref(), &groups, deadline)).await?
        }
    };
    written(&args, summary)
}

fn ordered(
    topology: &str,
    nodes: Option<&[String]>,
    groups: &[Group],
    deadline: Duration,
) -> Result<OrderSummary, Failure> {
    let deadline = Deadline::after(Some(deadline));
    let topology = input::topology_until(topology, deadline)?;
    let found = report(&topology, nodes, groups, &|| deadline.is_past()).map_err(|error| refused(&error))?;
    Ok(OrderSummary::of(TopologySummary::of(&topology), groups, &found))
}

/// Writes the file, and prints the rest.
fn written(args: &OrderArgs, mut summary: OrderSummary) -> Result<(), Failure> {
    if let Some(host) = &args.host {
        let text = torchrun(&summary.machines, host)?;
        return match destination::file(args.output.as_ref()) {
            Some(path) => write_file(path, format!("{text}\n").as_bytes()),
            None => print(&text),
        };
    }
    if let Some(kind) = args.to {
        let text = kind.text(&summary.machines);
        match destination::beside_json(args.output.as_ref(), args.json, "the hosts")? {
            Some(path) => {
                write_file(path, text.as_bytes())?;
                summary.files.push(FileSummary::written(kind.name(), path, text.as_bytes())?);
            }
            None => return print(text.trim_end()),
        }
    }
    if args.json { print_json("order", &summary) } else { print(&readable(&args.topology, &summary)) }
}

/// What so many times of groups are of.
fn groups(groups: &[Group], count: usize) -> Vec<GroupSummary> {
    let named = groups.iter().map(|group| GroupSummary { name: group.name.clone(), pattern: group.pattern.name() });
    let whole = ["ring", "trees"].map(|pattern| GroupSummary { name: "all".to_owned(), pattern });
    if groups.is_empty() { whole.into_iter().take(count).collect() } else { named.take(count).collect() }
}

impl OrderSummary {
    fn of(topology: TopologySummary, of: &[Group], report: &Report) -> Self {
        let machine = |(node_rank, (given, host, ranks)): (usize, (usize, &str, u32))| MachineSummary {
            host: host.to_owned(),
            node_rank,
            ranks,
            given,
        };
        let [given, by_name, found] = report.times.each_ref().map(TimesSummary::of);
        Self {
            topology,
            machines: report.machines().enumerate().map(machine).collect(),
            groups: groups(of, given.group_times.len()),
            given,
            by_name,
            by_number: report.by_number.as_ref().map(TimesSummary::of),
            found,
            best: report.found.is_best,
            files: Vec::new(),
        }
    }
}

fn readable(name: &str, summary: &OrderSummary) -> String {
    let machines = &summary.machines;
    let mut lines = vec![format!("{} on {name}", count(machines.len(), "machine"))];
    let of_group = |group: &GroupSummary| match group.name.as_str() {
        "all" => group.pattern.to_uppercase(),
        name => format!("{} {}", name.to_uppercase(), group.pattern.to_uppercase()),
    };
    let is_several = summary.groups.len() > 1 && summary.groups.iter().any(|group| group.name != "all");
    let mut columns = vec!["ORDER".to_owned()];
    columns.extend(is_several.then(|| "TIME#".to_owned()));
    columns.extend(summary.groups.iter().map(|group| format!("{}#", of_group(group))));
    columns.extend(summary.given.fair_share.map(|_| "FAIR SHARE#".to_owned()));
    columns.extend(["HASHED#", "LINKS PASSED#"].map(str::to_owned));
    let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    let by_number = summary.by_number.as_ref().map(|times| ("by number", times));
    let rows = [("given", &summary.given), ("by name", &summary.by_name)].into_iter().chain(by_number);
    for (name, times) in rows.chain([("new", &summary.found)]) {
        let total = is_several.then_some(times.time);
        let all = total.iter().chain(&times.group_times).chain(&times.fair_share).chain([&times.hashed]);
        let row = std::iter::once(name.to_owned()).chain(all.map(|time| format!("{time:.3}")));
        table.row(row.chain([times.hops.to_string()]));
    }
    lines.push(table.text());
    lines.push("times      beside the least that any order could take with links of its own".to_owned());
    if summary.given.fair_share.is_some() {
        lines.push("fair share if the job had of each link what its machines are among all below it".to_owned());
    }
    lines.push("hashed     if each connection took one of the shortest ways at random".to_owned());
    let OrderSummary { given, found, best, .. } = summary;
    let is_kept = machines.iter().all(|machine| machine.given == machine.node_rank);
    let (label, text) = Comparison { given, found, is_best: *best, is_kept }.in_words();
    lines.push(format!("{label:<11}{text}"));
    let shown: Vec<&str> = machines.iter().take(SHOWN_MAX).map(|machine| machine.host.as_str()).collect();
    let more = machines.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    lines.push(format!("order      {}{more}", shown.join(" ")));
    lines.extend(summary.files.iter().map(|file| format!("wrote      {}", file.path)));
    lines.join("\n")
}
