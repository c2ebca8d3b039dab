//! `canopy network compose | replicate`: machines and what joins them, as one network.

use std::path::{Path, PathBuf};

use canopy_import::{
    Cluster, ComposeError, Content, Fabric, FileKind, ImportError, Layout, Machine, MachineOf, Rates, Report, compose,
    numbered, read_content,
};
use canopy_topology::expand_hosts;
use serde::Serialize;

use super::{Target, write};
use crate::exit::{Failure, words};
use crate::input;
use crate::messages::{say, warn};

/// Arguments of `compose`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy network compose --host h100.xml --fabric topology.conf --nodes 'gpu[001-016]' -o job.yaml
  canopy network compose --host h100.xml='gpu[001-008]' --host a100.xml --fabric fabric.txt --nodes-file hosts
  canopy network compose --fabric topology.conf --nodes 'gpu[001-016]' --rates nic=400Gb/s,leaf-spine=800Gb/s")]
pub(in crate::commands) struct ComposeArgs {
    /// Dump or table of a machine, for all nodes or as FILE=HOSTLIST for some; without it each node is one rank
    #[arg(long, value_name = "FILE[=HOSTLIST]")]
    host: Vec<String>,
    /// What joins the machines: a file of Slurm or of the fabric
    #[arg(long, value_name = "FILE")]
    fabric: PathBuf,
    /// Machines that take part, in the order of their ranks, such as gpu[001-016]; all of the fabric if not given
    #[arg(long, value_name = "HOSTLIST", conflicts_with = "nodes_file")]
    nodes: Option<String>,
    /// File with one machine on each line
    #[arg(long, value_name = "FILE")]
    nodes_file: Option<PathBuf>,
    #[command(flatten)]
    rates: RateArgs,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `replicate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy network replicate h100.xml --boxes 4 --fabric rail -o cluster.yaml
  canopy network replicate h100.xml --boxes 64 --fabric leaf-spine:hosts=8,spines=4 --rates oversub=2 -o cluster.yaml")]
pub(in crate::commands) struct ReplicateArgs {
    /// Dump or table of the machine
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of machines
    #[arg(long, value_name = "N")]
    boxes: usize,
    /// star (one switch), rail (port i of each machine on switch i), rail:spine or leaf-spine:hosts=4,spines=2
    #[arg(long, value_name = "LAYOUT")]
    fabric: Layout,
    #[command(flatten)]
    rates: RateArgs,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct RateArgs {
    /// Rates that the files do not state, such as nic=400Gb/s,leaf-spine=800Gb/s,oversub=2
    #[arg(long, value_name = "RATES", default_value = "", hide_default_value = true)]
    rates: Rates,
}

/// How files were read, as a part of JSON objects.
#[derive(Debug, Default, Serialize)]
pub(in crate::commands) struct ReportSummary {
    pub(in crate::commands) understood: Vec<String>,
    pub(in crate::commands) assumed: Vec<String>,
    pub(in crate::commands) left_out: Vec<String>,
}

impl ReportSummary {
    /// Says how files were read: what is not as they say as warnings.
    pub(in crate::commands) fn tell(&self) {
        self.understood.iter().for_each(|line| say(line));
        self.assumed.iter().for_each(|line| warn(format_args!("assumed: {line}")));
        self.left_out.iter().for_each(|line| warn(format_args!("left out: {line}")));
    }
}

impl From<Report> for ReportSummary {
    fn from(Report { understood, assumed, left_out }: Report) -> Self {
        Self { understood, assumed, left_out }
    }
}

pub(super) fn run_compose(args: &ComposeArgs) -> Result<(), Failure> {
    let fabric = fabric(&args.fabric)?;
    let nodes = input::nodes(args.nodes.as_deref(), args.nodes_file.as_deref())?;
    let nodes = nodes.unwrap_or_else(|| fabric.nodes());
    let machines = match args.host.as_slice() {
        [] => vec![MachineOf { machine: None, hosts: None }],
        hosts => hosts.iter().map(|text| machine_of(text)).collect::<Result<_, _>>()?,
    };
    let cluster = Cluster { machines, fabric, rates: args.rates.rates.clone() };
    finish("topology compose", (&cluster, &nodes), &args.target)
}

pub(super) fn run_replicate(args: &ReplicateArgs) -> Result<(), Failure> {
    let machine = machine(&args.file)?;
    let nodes = numbered(args.boxes).map_err(refused)?;
    let fabric = args.fabric.fabric(machine.ports.len(), nodes.clone()).map_err(refused)?;
    let machines = vec![MachineOf { machine: Some(machine), hosts: None }];
    let cluster = Cluster { machines, fabric, rates: args.rates.rates.clone() };
    finish("topology replicate", (&cluster, &nodes), &args.target)
}

fn finish(command: &'static str, (cluster, nodes): (&Cluster, &[String]), target: &Target) -> Result<(), Failure> {
    let (topology, report) = compose(cluster, nodes, &input::limits()?, &|| false).map_err(refused)?;
    let report = ReportSummary::from(report);
    report.tell();
    write(command, &topology, Some(report), target)
}

fn refused(error: ComposeError) -> Failure {
    Failure::input(words(&error))
}

/// `FILE` or `FILE=HOSTLIST`; a file whose name has a `=` is one.
pub(in crate::commands) fn file_and_hosts(text: &str) -> (&Path, Option<&str>) {
    match text.rsplit_once('=').filter(|_| !Path::new(text).exists()) {
        Some((file, list)) => (Path::new(file), Some(list)),
        None => (Path::new(text), None),
    }
}

fn machine_of(text: &str) -> Result<MachineOf, Failure> {
    let (file, list) = file_and_hosts(text);
    let refused = |error| Failure::input(format!("--host {text}: {error}"));
    let hosts = list.map(expand_hosts).transpose().map_err(refused)?;
    Ok(MachineOf { machine: Some(machine(file)?), hosts })
}

fn machine(path: &Path) -> Result<Machine, Failure> {
    match content(path)? {
        (_, Content::Machine(machine)) => Ok(machine),
        (kind, other) => Err(not_that(path, kind, &other, "a machine", "give the dump of NCCL_TOPO_DUMP_FILE")),
    }
}

fn fabric(path: &Path) -> Result<Fabric, Failure> {
    match content(path)? {
        (_, Content::Fabric(fabric)) => Ok(fabric),
        (kind, other) => Err(not_that(
            path,
            kind,
            &other,
            "what joins machines",
            "give Slurm's topology.conf, or use `canopy network replicate` with a layout",
        )),
    }
}

fn content(path: &Path) -> Result<(FileKind, Content), Failure> {
    let limits = input::limits()?;
    let bytes = input::bytes(path, limits.bytes_max)?;
    let refused = |error: ImportError| Failure::input(format!("{}: {}", path.display(), words(&error)));
    read_content(&bytes, &limits, &|| false).map_err(refused)
}

fn not_that(path: &Path, kind: FileKind, found: &Content, wanted: &str, help: &str) -> Failure {
    let found = match found {
        Content::Network(..) => "a whole network",
        Content::Machine(_) => "a machine",
        Content::Fabric(_) => "what joins machines",
    };
    Failure::input(format!("{}: this is {} ({found}), not {wanted}", path.display(), kind.name())).help(help)
}
