//! `canopy network show | generate | convert | compose | replicate | hash | same | cost`, which need no server, and
//! `put | list | get | check | delete`, which ask one.

mod cluster;
#[cfg(feature = "tools")]
mod cost;
mod direct;
mod families;
mod shape;
mod stored;
mod symmetry;

pub(in crate::commands) use self::stored::download;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use canopy_topology::{NodeKind, SCHEMA, Topology, generate, to_json, to_yaml};
pub(in crate::commands) use cluster::{ReportSummary, file_and_hosts};
use direct::Direct;
use serde::Serialize;
use symmetry::Symmetry;

use crate::args::name_of;
use crate::clock::Deadline;
use crate::destination::{self, Destination};
use crate::exit::{Failure, words};
use crate::family::FamilySummary;
use crate::input;
use crate::output::{FileSummary, TopologySummary, print_json, stated_rate};
use crate::stdout::{print, write_stdout};

/// Most rows of the capacity table in JSON.
const CAPACITY_ROWS_JSON_MAX: usize = 1000;
/// Most rows of the capacity table for people.
const CAPACITY_ROWS_TEXT_MAX: usize = 16;

/// Networks one by one.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TopologyCommand {
    #[command(flatten)]
    Offline(OfflineCommand),
    #[command(flatten)]
    Stored(stored::StoredCommand),
}

/// Those that need no server.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum OfflineCommand {
    /// Hash, family, counts, balance, connectivity, symmetry, ports and steps of a topology
    Show {
        /// Generator expression or file
        #[arg(value_name = "T")]
        topology: String,
        /// Print one JSON object as the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Print the hash of a topology as it is numbered, and that of its shape, which does not depend on names and ranks
    Hash {
        /// Generator expression or file
        #[arg(value_name = "T")]
        topology: String,
        /// Print one JSON object as the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Say how the ranks of two topologies correspond, or what tells them apart (exit status 2)
    Same {
        /// Generator expression or file
        #[arg(value_name = "A")]
        a: String,
        /// Generator expression or file
        #[arg(value_name = "B")]
        b: String,
        /// Print one JSON object as the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Write the topology of a generator expression
    Generate {
        /// Generator expression, such as `ring:8`
        #[arg(value_name = "EXPR")]
        expression: String,
        #[command(flatten)]
        target: Target,
    },
    /// Read a topology file and write it in canopy's own format
    Convert {
        /// canopy YAML or JSON, or a file of another program, such as NCCL XML
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Join machines by a fabric: the network of the machines that take part
    Compose(cluster::ComposeArgs),
    /// Make several of one machine and join them by a layout
    Replicate(cluster::ReplicateArgs),
    /// List the families of networks that expressions name, with an example and the keys of each, or what keys of one mean
    Families {
        /// Explain this one
        #[arg(value_name = "FAMILY")]
        name: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of topology files, by which editors complete and check them
    Schema {
        /// File to write, or `-` for standard output, where it goes without it
        #[arg(long, short, value_name = "FILE")]
        output: Option<Destination>,
    },
    /// Count the cables and switches of networks and say what they cost, in all and for each endpoint
    #[cfg(feature = "tools")]
    Cost(cost::CostArgs),
}

/// Where a topology is written, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// yaml or json; if not given, as the name of the output file says, else yaml
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Option<Format>,
    /// File to write, or `-` for standard output, where the topology goes without it
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    /// Print one JSON object as the last line of standard output; needs --output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Yaml,
    Json,
}

impl Format {
    /// The format that is asked for, else the one that the name of the file says, else YAML.
    fn chosen(asked: Option<Self>, output: Option<&Path>) -> Self {
        let named_json = output.is_some_and(|path| path.extension().is_some_and(|end| end == "json"));
        asked.unwrap_or(if named_json { Self::Json } else { Self::Yaml })
    }
}

/// Runs one of the topology commands.
pub(crate) async fn run(command: TopologyCommand) -> Result<(), Failure> {
    match command {
        TopologyCommand::Offline(command) => crate::running::on_a_thread(move || run_offline(&command)).await,
        TopologyCommand::Stored(command) => stored::run(command).await,
    }
}

fn run_offline(command: &OfflineCommand) -> Result<(), Failure> {
    match command {
        OfflineCommand::Show { topology, json } => show(topology, *json),
        OfflineCommand::Hash { topology, json } => shape::hash(topology, *json),
        OfflineCommand::Same { a, b, json } => shape::same([a, b], *json),
        OfflineCommand::Generate { expression, target } => {
            let topology = generate(&input::completed(expression)?, &input::limits()?).map_err(|error| {
                let failure = Failure::input(format!("`{expression}`: {}", words(&error)));
                if Path::new(expression).exists() {
                    failure.help(format!("`{expression}` is a file; use `canopy network convert {expression}`"))
                } else {
                    failure
                }
            })?;
            write("topology generate", &topology, None, target)
        }
        OfflineCommand::Convert { file, target } => {
            let bytes = input::bytes(file, input::limits()?.bytes_max)?;
            let topology = input::document(&file.display().to_string(), bytes, Deadline::after(None))?;
            write("topology convert", &topology, None, target)
        }
        OfflineCommand::Compose(args) => cluster::run_compose(args),
        OfflineCommand::Replicate(args) => cluster::run_replicate(args),
        OfflineCommand::Families { name, json } => families::run(name.as_deref(), *json),
        OfflineCommand::Schema { output } => match destination::file(output.as_ref()) {
            None => write_stdout(SCHEMA.as_bytes()),
            Some(path) => FileSummary::written("json-schema", path, SCHEMA.as_bytes()).map(|_| ()),
        },
        #[cfg(feature = "tools")]
        OfflineCommand::Cost(args) => cost::run(args),
    }
}

/// JSON object of `generate`, `convert`, `compose` and `replicate`.
#[derive(Serialize)]
struct Written {
    topology: TopologySummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportSummary>,
    files: Vec<FileSummary>,
}

fn write(
    command: &'static str,
    topology: &Topology,
    report: Option<ReportSummary>,
    target: &Target,
) -> Result<(), Failure> {
    let output = destination::beside_json(target.output.as_ref(), target.json, "the topology")?;
    let format = Format::chosen(target.to, output);
    let text = match format {
        Format::Yaml => to_yaml(topology),
        Format::Json => to_json(topology),
    };
    let Some(path) = output else {
        return write_stdout(text.as_bytes());
    };
    let file = FileSummary::written(name_of(&format), path, text.as_bytes())?;
    if target.json {
        let topology = TopologySummary::of(topology);
        print_json(command, &Written { topology, report, files: vec![file] })?;
    }
    Ok(())
}

/// JSON object of `show`.
#[derive(Serialize)]
struct Shown {
    topology: TopologySummary,
    name: Option<String>,
    family: FamilySummary,
    kinds: Kinds,
    #[serde(flatten)]
    wiring: Wiring,
    symmetry: Symmetry,
    direct: Option<Direct>,
    capacities: Vec<CapacityRow>,
    capacities_omitted: usize,
}

/// Nodes of each kind; a switch with both capabilities counts in both.
#[derive(Serialize)]
struct Kinds {
    compute: usize,
    /// Compute devices without rank; not there where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    forwarder: usize,
    switch: usize,
    multicast: usize,
    aggregate: usize,
}

/// Whether links balance at every node, and lead from every rank to every other.
#[derive(Serialize)]
struct Wiring {
    eulerian: bool,
    unbalanced: Option<Unbalanced>,
    connected: bool,
    unreachable: Option<Unreachable>,
}

/// The first node whose links do not balance, with its sums in bytes/s.
#[derive(Serialize)]
struct Unbalanced {
    node: String,
    #[serde(rename = "in")]
    entering: String,
    #[serde(rename = "out")]
    leaving: String,
}

/// Two ranks without a path from the first to the second.
#[derive(Serialize)]
struct Unreachable {
    from: End,
    to: End,
}

#[derive(Serialize)]
struct End {
    rank: u32,
    node: String,
}

/// Links that agree in the kinds they join, in capacity and in latency.
#[derive(Serialize)]
struct CapacityRow {
    from: &'static str,
    to: &'static str,
    capacity: String,
    latency_ns: u64,
    links: u64,
}

fn show(text: &str, json: bool) -> Result<(), Failure> {
    let shown = describe(&input::topology(text)?)?;
    if json { print_json("topology show", &shown) } else { print(&readable(&shown)) }
}

fn describe(topology: &Topology) -> Result<Shown, Failure> {
    let node_id = |index: usize| topology.nodes()[index].id.clone();
    let unbalanced = topology.first_unbalanced().map(|(node, entering, leaving)| Unbalanced {
        node: node_id(node.index()),
        entering: entering.to_string(),
        leaving: leaving.to_string(),
    });
    let end = |rank: canopy_topology::Rank| End { rank: rank.number(), node: node_id(rank.index()) };
    let unreachable = topology.first_unreachable().map(|(from, to)| Unreachable { from: end(from), to: end(to) });
    let mut capacities = capacity_rows(topology);
    let capacities_omitted = capacities.len().saturating_sub(CAPACITY_ROWS_JSON_MAX);
    capacities.truncate(CAPACITY_ROWS_JSON_MAX);
    Ok(Shown {
        topology: TopologySummary::of(topology),
        name: topology.name().map(str::to_owned),
        family: FamilySummary::of(topology, symmetry::BUDGET).map_err(|error| Failure::fault(error.to_string()))?,
        kinds: kinds(topology),
        wiring: Wiring::new(unbalanced, unreachable),
        symmetry: Symmetry::of(topology)?,
        direct: Direct::of(topology)?,
        capacities,
        capacities_omitted,
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn kinds(topology: &Topology) -> Kinds {
    let mut kinds = Kinds { compute: 0, forwarder: 0, switch: 0, multicast: 0, aggregate: 0 };
    for node in topology.nodes() {
        match node.kind {
            NodeKind::Compute => kinds.compute += 1,
            NodeKind::Forwarder => kinds.forwarder += 1,
            NodeKind::Switch { multicast, aggregate } => {
                kinds.switch += 1;
                kinds.multicast += usize::from(multicast);
                kinds.aggregate += usize::from(aggregate);
            }
        }
    }
    kinds
}

/// Rows by number of links, most first.
fn capacity_rows(topology: &Topology) -> Vec<CapacityRow> {
    let kind_of = |node: canopy_topology::NodeIndex| match topology.node(node).kind {
        NodeKind::Compute => "compute",
        NodeKind::Forwarder => "forwarder",
        NodeKind::Switch { .. } => "switch",
    };
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for link in topology.links() {
        *counts.entry((kind_of(link.from), kind_of(link.to), link.capacity, link.latency)).or_default() += 1;
    }
    let mut rows: Vec<CapacityRow> = counts
        .into_iter()
        .map(|((from, to, capacity, latency), links)| CapacityRow {
            from,
            to,
            capacity: capacity.bytes_per_sec().to_string(),
            latency_ns: latency.nanos(),
            links,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.links));
    rows
}

impl Wiring {
    /// By what breaks either, if anything does.
    const fn new(unbalanced: Option<Unbalanced>, unreachable: Option<Unreachable>) -> Self {
        Self { eulerian: unbalanced.is_none(), unbalanced, connected: unreachable.is_none(), unreachable }
    }

    /// A line about each.
    fn lines(&self) -> [String; 2] {
        let balance = match &self.unbalanced {
            None => "balanced   yes: every node receives as much as it sends".to_owned(),
            Some(Unbalanced { node, entering, leaving }) => {
                let (entering, leaving) = (stated_rate(entering), stated_rate(leaving));
                format!("balanced   no: node {node} receives {entering} and sends {leaving}")
            }
        };
        let connection = match &self.unreachable {
            None => "connected  yes: every rank reaches every other".to_owned(),
            Some(Unreachable { from: End { rank, node }, to }) => {
                format!("connected  no: rank {rank} ({node}) does not reach rank {} ({})", to.rank, to.node)
            }
        };
        [balance, connection]
    }
}

fn readable(shown: &Shown) -> String {
    let mut lines = Vec::new();
    if let Some(name) = &shown.name {
        lines.push(format!("name       {name}"));
    }
    let TopologySummary { hash, hash_kind, ranks, nodes, links } = &shown.topology;
    lines.push(format!("hash       {hash} ({hash_kind})"));
    lines.push(shown.family.line());
    lines.push(format!("ranks      {ranks}"));
    let Kinds { forwarder, switch, multicast, aggregate, .. } = shown.kinds;
    let mut switches = format!("{switch} of them switches");
    if multicast + aggregate > 0 {
        switches += &format!(", {multicast} with multicast, {aggregate} with aggregation");
    }
    if forwarder > 0 {
        switches += &format!(", {forwarder} compute devices that only forward");
    }
    lines.push(format!("nodes      {nodes}, {switches}"));
    lines.push(format!("links      {links} directed"));
    lines.extend(shown.wiring.lines());
    lines.push(shown.symmetry.line());
    lines.extend(shown.direct.iter().flat_map(Direct::lines));
    for row in shown.capacities.iter().take(CAPACITY_ROWS_TEXT_MAX) {
        let CapacityRow { from, to, capacity, latency_ns, links } = row;
        let noun = if *links == 1 { "link" } else { "links" };
        let capacity = stated_rate(capacity);
        lines.push(format!("           {links} {noun} {from} -> {to} of {capacity}, latency {latency_ns} ns"));
    }
    let more = (shown.capacities.len() + shown.capacities_omitted).saturating_sub(CAPACITY_ROWS_TEXT_MAX);
    if more > 0 {
        lines.push(format!("           and {more} more combinations"));
    }
    lines.join("\n")
}
