//! `canopy order`: in which order to number machines, so that stock rings load the fabric least.

use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_order::{Cost, Fabric, Ordered, order};
use serde::Serialize;

use crate::args;
use crate::clock::Deadline;
use crate::commands::on_a_thread;
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::input;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::stdout::print;
use crate::table::{Table, count};
use crate::whole_file::write_file;

/// What stands before the machines in a ConfigMap.
const CONFIGMAP_HEAD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: canopy-order
# By machine (spec.nodeName of a pod): its node rank. That of 0 is MASTER_ADDR.
data:
";

/// Machines that are listed for people.
const SHOWN_MAX: usize = 16;

/// Order machines so that rings of stock NCCL, RCCL or MPI load the fabric least, and write the host file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A ring takes the time of its busiest link. Where switches make levels, no order is better than part after part.

Examples:
  canopy order job.yaml
  canopy order job.yaml --to slurm -o hosts
  SLURM_HOSTFILE=hosts srun --distribution=arbitrary -n 64 ./train   # rank i is line i; SLURM_PROCID counts, not SLURM_NODEID
  canopy order job.yaml --to openmpi -o hosts && mpirun --hostfile hosts ./train
  canopy order job.yaml --to mpich -o hosts && mpiexec -f hosts ./train
  canopy order job.yaml --to nodes -o hosts    # one line for each machine: torchrun --node-rank is the line, from 0
  eval \"$(canopy order job.yaml --host $(hostname -s))\" && torchrun --nnodes $NNODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR train.py
  canopy order job.yaml --to configmap -o order.yaml && kubectl apply -f order.yaml    # host -> node rank, for pods by spec.nodeName")]
pub(crate) struct OrderArgs {
    /// Generator expression or file; ranks must name their hosts or boxes
    #[arg(value_name = "T")]
    topology: String,
    /// Kind of the file
    #[arg(long, value_name = "KIND", value_enum, requires = "output")]
    to: Option<HostFile>,
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", requires = "to")]
    output: Option<Destination>,
    /// Print what torchrun needs on this machine: NODE_RANK, MASTER_ADDR and NNODES
    #[arg(long, value_name = "NAME", conflicts_with_all = ["to", "json"])]
    host: Option<String>,
    /// Longest time to look for an order, such as 5s
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Files that say the order of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HostFile {
    /// A line with its machine for each rank, for SLURM_HOSTFILE
    Slurm,
    /// `host slots=8`, for `mpirun --hostfile`
    Openmpi,
    /// `host:8`, for `mpiexec -f`; also of Intel MPI
    Mpich,
    /// A line for each machine
    Nodes,
    /// A Kubernetes ConfigMap from machine to node rank
    Configmap,
}

/// JSON object of the command.
#[derive(Serialize)]
struct OrderSummary {
    topology: TopologySummary,
    machines: Vec<MachineSummary>,
    /// Time of a ring beside the least that any order takes.
    given: CostSummary,
    by_name: CostSummary,
    found: CostSummary,
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

#[derive(Clone, Copy, Serialize)]
struct CostSummary {
    ring_time: f64,
    hops: u64,
}

/// Orders the machines, on a thread of its own.
pub(crate) async fn run(args: OrderArgs) -> Result<(), Failure> {
    on_a_thread(move || ordered(&args)).await
}

fn ordered(args: &OrderArgs) -> Result<(), Failure> {
    let deadline = Deadline::after(Some(args.deadline));
    let topology = input::topology_until(&args.topology, deadline)?;
    let fabric = Fabric::of(&topology).map_err(|error| {
        Failure::input(error.to_string()).help("compose the network with `canopy topology compose`, or add `host`")
    })?;
    let found = order(&fabric, &|| deadline.is_past())
        .map_err(|error| Failure::new(ErrorClass::Deadline, error.to_string()).help("raise `--deadline`"))?;
    let mut files = Vec::new();
    if let Some(host) = &args.host {
        return print(&torchrun(&fabric, &found.order, host)?);
    }
    if let Some(kind) = args.to {
        let text = kind.text(&fabric, &found.order);
        match destination::beside_json(args.output.as_ref(), args.json, "the hosts")? {
            Some(path) => {
                write_file(path, text.as_bytes())?;
                files.push(FileSummary::written(kind.name(), path, text.as_bytes())?);
            }
            None => return print(text.trim_end()),
        }
    }
    let summary = OrderSummary::of(TopologySummary::of(&topology), &fabric, &found, files);
    if args.json { print_json("order", &summary) } else { print(&readable(&args.topology, &summary)) }
}

impl HostFile {
    const fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Openmpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Nodes => "nodes",
            Self::Configmap => "configmap",
        }
    }

    /// A line or several for each machine, in this order.
    fn text(self, fabric: &Fabric, order: &[usize]) -> String {
        let machine = |&number: &usize| Some((fabric.machines().get(number)?, *fabric.rank_counts().get(number)?));
        let line = |(place, (host, ranks)): (usize, (&String, u32))| match self {
            Self::Slurm => format!("{host}\n").repeat(ranks as usize),
            Self::Openmpi => format!("{host} slots={ranks}\n"),
            Self::Mpich => format!("{host}:{ranks}\n"),
            Self::Nodes => format!("{host}\n"),
            Self::Configmap => format!("  {host:?}: \"{place}\"\n"),
        };
        let lines: String = order.iter().filter_map(machine).enumerate().map(line).collect();
        let head = if self == Self::Configmap { CONFIGMAP_HEAD } else { "" };
        format!("{head}{lines}")
    }
}

/// What torchrun is told on a machine.
fn torchrun(fabric: &Fabric, order: &[usize], host: &str) -> Result<String, Failure> {
    let names: Vec<&String> = order.iter().filter_map(|&machine| fabric.machines().get(machine)).collect();
    // A machine may know itself by a longer name or a shorter one.
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let exact = names.iter().position(|name| *name == host);
    let alike: Vec<usize> = (0..names.len()).filter(|&place| short(names[place]) == short(host)).collect();
    let rank = exact.or_else(|| alike.first().copied().filter(|_| alike.len() == 1)).ok_or_else(|| {
        Failure::input(format!("`{}` is no machine of the network", input::shortened(host)))
            .help("`canopy order T --to nodes -o -` lists them")
    })?;
    let master = names.first().map_or("", |name| name.as_str());
    Ok(format!("NODE_RANK={rank}\nMASTER_ADDR={master}\nNNODES={}", names.len()))
}

impl OrderSummary {
    fn of(topology: TopologySummary, fabric: &Fabric, found: &Ordered, files: Vec<FileSummary>) -> Self {
        let cost = |cost: Cost| CostSummary { ring_time: cost.times(&found.bound), hops: cost.hops };
        let machine = |(node_rank, &given): (usize, &usize)| {
            let (host, &ranks) = (fabric.machines().get(given)?.clone(), fabric.rank_counts().get(given)?);
            Some(MachineSummary { host, node_rank, ranks, given })
        };
        Self {
            topology,
            machines: found.order.iter().enumerate().filter_map(machine).collect(),
            given: cost(found.given),
            by_name: cost(found.by_name),
            found: cost(found.cost),
            best: found.is_best,
            files,
        }
    }
}

fn readable(name: &str, summary: &OrderSummary) -> String {
    let machines = &summary.machines;
    let mut lines = vec![format!("{} on {name}", count(machines.len(), "machine"))];
    let mut table = Table::new(&["ORDER", "RING TIME#", "LINKS PASSED#"]);
    for (name, cost) in [("given", summary.given), ("by name", summary.by_name), ("new", summary.found)] {
        table.row([name.to_owned(), format!("{:.3}", cost.ring_time), cost.hops.to_string()]);
    }
    lines.push(table.text());
    lines.push("ring time  beside the least that any order could take; links passed by all flows together".to_owned());
    let gain = summary.given.ring_time / summary.found.ring_time;
    let is_kept = machines.iter().all(|machine| machine.given == machine.node_rank);
    lines.push(match (is_kept, summary.best) {
        (true, true) => "no gain    no order is better than the one given".to_owned(),
        (true, false) => "no gain    no better order was found than the one given".to_owned(),
        (false, true) => format!("gain       {gain:.3} times as fast as given; no order is better"),
        (false, false) => format!("gain       {gain:.3} times as fast as given; there may be better orders"),
    });
    let shown: Vec<&str> = machines.iter().take(SHOWN_MAX).map(|machine| machine.host.as_str()).collect();
    let more = machines.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    lines.push(format!("order      {}{more}", shown.join(" ")));
    lines.extend(summary.files.iter().map(|file| format!("wrote      {}", file.path)));
    lines.join("\n")
}
