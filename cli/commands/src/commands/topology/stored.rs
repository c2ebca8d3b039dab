//! `canopy network put | list | get | check | delete`: topologies that a server keeps or reads.

use std::time::Duration;

use canopy_client::{ClientError, RequestId};
use canopy_proto::v1::{
    self, CheckTopologyRequest, CheckTopologyResponse, DeleteTopologyRequest, DocumentFormat, GetTopologyRequest,
    ListTopologiesRequest, PutTopologyRequest, StoredTopology, TopologySource,
};
use canopy_wire::sha256_hex;
use serde::Serialize;

use super::{End, Format, ReportSummary, Unbalanced, Unreachable, Wiring};
use crate::args::name_of;
use crate::commands::operate::{CommonArgs, Entry, ListArgs, Page, ask, full_name, list};
use crate::connection::{self, ServerArgs};
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::input;
use crate::messages::warn;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::request;
use crate::running::on_a_thread;
use crate::stdout::{print, write_stdout};

/// Those that ask a server.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoredCommand {
    /// Store a topology at a server, so that requests can name it
    Put(TopologyArgs),
    /// List the topologies that a server keeps
    #[command(after_help = "\
Fields: id, name, hash, ranks, nodes, links, size_bytes, created. Sorted by id unless --sort says otherwise, such as -ranks,name.")]
    List(ListArgs),
    /// Write a topology that a server keeps
    Get(GetArgs),
    /// Have a server read a topology and say what it is, or what is wrong with it
    Check(TopologyArgs),
    /// Remove a topology that a server keeps
    Delete(NameArgs),
}

/// Arguments of `put` and `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopologyArgs {
    /// Generator expression, file, or id of a stored topology
    #[arg(value_name = "T")]
    topology: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// Topology, such as topologies/0123abcd…, or a part of a cluster, such as clusters/prod:gpu[001-016]
    #[arg(value_name = "ID")]
    id: String,
    /// yaml or json; if not given, as the name of the output file says, else yaml
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Option<Format>,
    /// File to write, or `-` for standard output, where the topology goes without it
    #[arg(long, short, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Topology, such as topologies/0123abcd…
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of `put`.
#[derive(Serialize)]
struct Put {
    created: bool,
    #[serde(flatten)]
    topology: Row,
    warnings: Vec<String>,
}

/// JSON object of `get`.
#[derive(Serialize)]
struct Got {
    #[serde(flatten)]
    topology: Row,
    files: Vec<FileSummary>,
}

/// JSON object of `delete`.
#[derive(Serialize)]
struct Deleted {
    id: String,
    freed_bytes: u64,
}

/// JSON object of `check`.
#[derive(Serialize)]
struct Checked {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Found>,
    /// What the file was read as.
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    report: ReportSummary,
    warnings: Vec<String>,
}

/// What is wrong with a topology.
#[derive(Serialize)]
struct Problem {
    reason: String,
    field: String,
    message: String,
}

/// What a topology is.
#[derive(Serialize)]
struct Found {
    id: String,
    name: Option<String>,
    topology: TopologySummary,
    family: Option<String>,
    #[serde(flatten)]
    wiring: Wiring,
}

/// A stored topology.
#[derive(Serialize)]
struct Row {
    id: String,
    name: Option<String>,
    topology: TopologySummary,
    bytes: u64,
    created_at: Option<String>,
}

impl Row {
    fn of(stored: StoredTopology) -> Self {
        Self {
            id: stored.name,
            name: Some(stored.display_name).filter(|name| !name.is_empty()),
            topology: TopologySummary::said(&stored.summary.unwrap_or_default()),
            bytes: stored.size_bytes,
            created_at: stored.create_time.map(|time| time.to_string()),
        }
    }
}

/// Does what is asked and prints what came of it.
pub(super) async fn run(command: StoredCommand) -> Result<(), Failure> {
    match command {
        StoredCommand::Put(args) => put(&args).await,
        StoredCommand::List(args) => list_topologies(&args).await,
        StoredCommand::Get(args) => get(&args).await,
        StoredCommand::Check(args) => check(&args).await,
        StoredCommand::Delete(args) => delete(&args).await,
    }
}

/// T on the wire. Reads files, so away from the runtime.
async fn source(text: &str) -> Result<TopologySource, Failure> {
    let text = text.to_owned();
    on_a_thread(move || request::topology(&text)).await
}

async fn put(args: &TopologyArgs) -> Result<(), Failure> {
    let topology = Some(source(&args.topology).await?);
    let request = PutTopologyRequest { topology, request_id: RequestId::random().to_string() };
    let reply = ask(&args.common, async |client, left| client.put_topology(request.clone(), left).await).await?;
    let warnings: Vec<String> = reply.warnings.into_iter().map(|warning| warning.text).collect();
    let (created, topology) = (reply.created, Row::of(reply.topology.unwrap_or_default()));
    if args.common.json {
        return print_json("topology put", &Put { created, topology, warnings });
    }
    warnings.iter().for_each(|warning| warn(format_args!("{}: {warning}", args.topology)));
    print(&format!("{}{}", topology.id, if created { "" } else { " was there already" }))
}

impl Entry for Row {
    const NAME: &'static str = "topologies";
    const HEADING: &'static [&'static str] = &["TOPOLOGY", "NAME", "RANKS#", "NODES#", "LINKS#", "BYTES#", "CREATED"];

    fn cells(self) -> Vec<String> {
        let TopologySummary { ranks, nodes, links, .. } = self.topology;
        let [ranks, nodes, links] = [ranks, nodes, links].map(|count| count.to_string());
        let (name, created) = (self.name.unwrap_or_default(), self.created_at.unwrap_or_default());
        vec![self.id, name, ranks, nodes, links, self.bytes.to_string(), created]
    }
}

async fn list_topologies(args: &ListArgs) -> Result<(), Failure> {
    let listed = list("topology list", args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page =
            client.list_topologies(ListTopologiesRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.topologies.into_iter().map(Row::of).collect(), page.next_page_token, page.total_size))
    });
    listed.await
}

async fn get(args: &GetArgs) -> Result<(), Failure> {
    let output = destination::beside_json(args.output.as_ref(), args.common.json, "the topology")?;
    let format = Format::chosen(args.to, output);
    let wire_format = match format {
        Format::Yaml => DocumentFormat::Yaml,
        Format::Json => DocumentFormat::Json,
    };
    let CommonArgs { server, deadline, .. } = &args.common;
    let (stored, document) = download(server, *deadline, &args.id, wire_format).await?;
    let Some(path) = output else { return write_stdout(&document) };
    let files = vec![FileSummary::written(name_of(&format), path, &document)?];
    if args.common.json {
        let topology = Row::of(stored);
        print_json("topology get", &Got { topology, files })?;
    }
    Ok(())
}

/// A topology that a server keeps, and its whole document.
pub(in crate::commands) async fn download(
    server: &ServerArgs,
    deadline: Duration,
    id: &str,
    format: DocumentFormat,
) -> Result<(StoredTopology, Vec<u8>), Failure> {
    let wanted = match input::part_of(id) {
        Some(part) => GetTopologyRequest { cluster: Some(request::nodes(&part)), ..GetTopologyRequest::default() },
        None => GetTopologyRequest { name: full_name("topologies/", id), ..GetTopologyRequest::default() },
    };
    connection::ask(server, Some(deadline), async |connection, left| {
        let mut document: Vec<u8> = Vec::new();
        loop {
            let request = GetTopologyRequest { format: format.into(), offset: document.len() as u64, ..wanted.clone() };
            let reply = connection.shared().get_topology(request, left).await?;
            let part = reply.document.map(|document| document.content).unwrap_or_default();
            document.extend_from_slice(&part);
            if document.len() as u64 == reply.document_size_bytes {
                return match sha256_hex(&document) == reply.document_sha256 {
                    true => Ok((reply.topology.unwrap_or_default(), document)),
                    false => Err(ClientError::Protocol { what: "the document is not the one that was announced" }),
                };
            }
            if part.is_empty() {
                return Err(ClientError::Protocol { what: "a part of the document is missing" });
            }
        }
    })
    .await
}

async fn delete(args: &NameArgs) -> Result<(), Failure> {
    let name = full_name("topologies/", &args.id);
    let request = DeleteTopologyRequest { name: name.clone(), request_id: RequestId::random().to_string() };
    let reply = ask(&args.common, async |client, left| client.delete_topology(request.clone(), left).await).await?;
    let freed_bytes = reply.freed_bytes;
    if args.common.json {
        return print_json("topology delete", &Deleted { id: name, freed_bytes });
    }
    print(&format!("{name} is deleted, {freed_bytes} bytes"))
}

async fn check(args: &TopologyArgs) -> Result<(), Failure> {
    let request = CheckTopologyRequest { topology: Some(source(&args.topology).await?) };
    let reply = ask(&args.common, async |client, left| client.check_topology(request.clone(), left).await).await?;
    let checked = checked(reply);
    if args.common.json {
        print_json("topology check", &checked)?;
    } else {
        let lines: Vec<String> =
            checked.found.as_ref().map(readable).into_iter().chain(checked.report_lines()).collect();
        if !lines.is_empty() {
            print(&lines.join("\n"))?;
        }
    }
    match checked.problem {
        None => Ok(()),
        Some(Problem { field, message, .. }) => Err(Failure::input(format!("{}: {message}", args.topology)).note({
            // In the words of the user, who gave T and no message.
            let inner = field.strip_prefix("topology.document.").or_else(|| field.strip_prefix("topology.inline."));
            format!(
                "at {}",
                inner.map_or_else(|| args.topology.clone(), |inner| format!("{inner} of {}", args.topology))
            )
        })),
    }
}

fn checked(reply: CheckTopologyResponse) -> Checked {
    let warnings = reply.warnings.into_iter().map(|warning| warning.text).collect();
    let report = ReportSummary { understood: reply.understood, assumed: reply.assumed, left_out: reply.left_out };
    let kind = reply.kind;
    if let Some(problem) = reply.problem {
        let v1::TopologyProblem { reason, field, message } = problem;
        let problem = Some(Problem { reason, field, message });
        return Checked { ok: false, problem, found: None, kind, report, warnings };
    }
    let unbalanced =
        reply.unbalanced.map(|v1::UnbalancedNode { node, entering, leaving }| Unbalanced { node, entering, leaving });
    let unreachable = reply.unreachable.map(|pair| Unreachable {
        from: End { rank: pair.from_rank, node: pair.from_node },
        to: End { rank: pair.to_rank, node: pair.to_node },
    });
    let found = Found {
        id: reply.name,
        name: Some(reply.display_name).filter(|name| !name.is_empty()),
        topology: TopologySummary::said(&reply.summary.unwrap_or_default()),
        family: Some(reply.family).filter(|family| !family.is_empty()),
        wiring: Wiring::new(unbalanced, unreachable),
    };
    Checked { ok: true, problem: None, found: Some(found), kind, report, warnings }
}

impl Checked {
    /// How a file was read, where it is one: its kind, then a list for each part that has something.
    fn report_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.kind.is_empty() {
            lines.push(format!("read as    {}", self.kind));
        }
        let ReportSummary { understood, assumed, left_out } = &self.report;
        for (heading, part) in [("understood", understood), ("assumed", assumed), ("left out", left_out)] {
            if !part.is_empty() {
                lines.push(format!("{heading}:"));
                lines.extend(part.iter().map(|line| format!("  {line}")));
            }
        }
        lines
    }
}

fn readable(found: &Found) -> String {
    let mut lines = vec![found.id.clone()];
    lines.extend(found.name.iter().map(|name| format!("name       {name}")));
    let TopologySummary { hash, hash_kind, ranks, nodes, links } = &found.topology;
    lines.push(format!("hash       {hash} ({hash_kind})"));
    lines.extend(found.family.iter().map(|family| format!("family     {family}")));
    lines.push(format!("ranks      {ranks}"));
    lines.push(format!("nodes      {nodes}"));
    lines.push(format!("links      {links} directed"));
    lines.extend(found.wiring.lines());
    lines.join("\n")
}
