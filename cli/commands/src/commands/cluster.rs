//! `canopy network cluster`: clusters that a server keeps, whose machines requests name.

use std::path::Path;

use canopy_client::RequestId;
use canopy_import::{Layout, Rates};
use canopy_proto::v1::cluster_description::Fabric;
use canopy_proto::v1::{
    self, ClusterDescription, DeleteClusterRequest, FabricLayout, GetClusterRequest, HostKind, ListClustersRequest,
    PutClusterRequest, TopologyDocument,
};
use clap::Subcommand;
use serde::Serialize;

use crate::commands::operate::{CommonArgs, Entry, ListArgs, Page, ask, full_name, list};
use crate::commands::topology::{ReportSummary, file_and_hosts};
use crate::exit::{Failure, words};
use crate::input::{self, CLUSTERS};
use crate::output::print_json;
use crate::request;
use crate::running::on_a_thread;
use crate::stdout::print;

/// Clusters that a server keeps: store, list, show, delete
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A request for a part of a stored cluster names machines: its T is clusters/NAME:HOSTLIST, or clusters/NAME for all of them.

Examples:
  canopy network cluster put prod --host h100.xml --fabric topology.conf --rates nic=400Gb/s
  canopy network cluster put lab --host node.xml --fabric rail --nodes 'lab[1-8]'
  canopy plan 'clusters/prod:gpu[001-016]' --collective allreduce -o plan.json
  canopy network get 'clusters/prod:gpu[001-016]' -o job.yaml
  canopy faults report clusters/prod switch:leaf2
  canopy network cluster show prod")]
pub(crate) enum ClusterCommand {
    /// Store a cluster at a server, or replace the one of this name
    Put(PutArgs),
    /// List the clusters that a server keeps
    #[command(after_help = "\
Fields: name, nodes, ranks, switches, size_bytes, created, updated. Sorted by name unless --sort says otherwise, such as -ranks.")]
    List(ListArgs),
    /// Show a cluster that a server keeps, and its machines
    Show(NameArgs),
    /// Remove a cluster that a server keeps
    Delete(NameArgs),
}

/// Arguments of `put`.
#[derive(Debug, clap::Args)]
pub(crate) struct PutArgs {
    /// Name of the cluster: letters, digits and `- _ .`
    #[arg(value_name = "NAME")]
    name: String,
    /// Dump or table of a machine, for all nodes or as FILE=HOSTLIST for some; without it each node is one rank
    #[arg(long, value_name = "FILE[=HOSTLIST]")]
    host: Vec<String>,
    /// What joins the machines: a file of Slurm or of the fabric, or a layout such as rail or leaf-spine:hosts=4,spines=2
    #[arg(long, value_name = "FILE|LAYOUT", required_unless_present = "network")]
    fabric: Option<String>,
    /// Machines of a layout in their order, such as gpu[001-016]
    #[arg(long, value_name = "HOSTLIST")]
    nodes: Option<String>,
    /// A whole network that names the machine of each rank, in place of hosts and fabric: expression or file
    #[arg(long, value_name = "T", conflicts_with_all = ["fabric", "host", "nodes", "rates"])]
    network: Option<String>,
    /// Rates that the files do not state, such as nic=400Gb/s,leaf-spine=800Gb/s,oversub=2
    #[arg(long, value_name = "RATES", default_value = "", hide_default_value = true)]
    rates: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `show` and `delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Cluster, such as prod or clusters/prod
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of `put`.
#[derive(Serialize)]
struct Put {
    created: bool,
    changed: bool,
    #[serde(flatten)]
    cluster: Row,
    #[serde(flatten)]
    report: ReportSummary,
}

/// JSON object of `show`.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    cluster: Row,
    rates: Option<String>,
    machines: Vec<String>,
}

/// JSON object of `delete`.
#[derive(Serialize)]
struct Deleted {
    name: String,
    freed_bytes: u64,
}

/// A stored cluster.
#[derive(Serialize)]
struct Row {
    name: String,
    nodes: u32,
    ranks: u32,
    switches: u32,
    bytes: u64,
    created_at: Option<String>,
    updated_at: Option<String>,
}

impl Row {
    fn of(cluster: v1::Cluster) -> Self {
        let v1::Cluster { name, nodes, ranks, switches, size_bytes: bytes, create_time, update_time } = cluster;
        let [created_at, updated_at] = [create_time, update_time].map(|time| time.map(|time| time.to_string()));
        Self { name, nodes, ranks, switches, bytes, created_at, updated_at }
    }
}

impl Entry for Row {
    const NAME: &'static str = "clusters";
    const HEADING: &'static [&'static str] = &["CLUSTER", "NODES#", "RANKS#", "SWITCHES#", "BYTES#", "UPDATED"];

    fn cells(self) -> Vec<String> {
        let [nodes, ranks, switches] = [self.nodes, self.ranks, self.switches].map(|count| count.to_string());
        vec![self.name, nodes, ranks, switches, self.bytes.to_string(), self.updated_at.unwrap_or_default()]
    }
}

/// Runs one of the commands.
pub(crate) async fn run(command: ClusterCommand) -> Result<(), Failure> {
    match command {
        ClusterCommand::Put(args) => put(args).await,
        ClusterCommand::List(args) => list_clusters(&args).await,
        ClusterCommand::Show(args) => show(&args).await,
        ClusterCommand::Delete(args) => delete(&args).await,
    }
}

async fn put(args: PutArgs) -> Result<(), Failure> {
    let (args, description) = on_a_thread(move || {
        let description = described(&args)?;
        Ok((args, description))
    })
    .await?;
    let (name, request_id) = (full_name(CLUSTERS, &args.name), RequestId::random().to_string());
    let request = PutClusterRequest { name, description: Some(description), request_id };
    let reply = ask(&args.common, async |client, left| client.put_cluster(request.clone(), left).await).await?;
    let v1::PutClusterResponse { cluster, created, changed, understood, assumed, left_out } = reply;
    let (cluster, report) = (Row::of(cluster.unwrap_or_default()), ReportSummary { understood, assumed, left_out });
    if args.common.json {
        return print_json("cluster put", &Put { created, changed, cluster, report });
    }
    report.tell();
    let outcome = match (created, changed) {
        (true, _) => "",
        (false, true) => " is replaced",
        (false, false) => " was there already",
    };
    print(&format!("{}{outcome}", cluster.name))
}

/// The description that the arguments and their files give.
fn described(args: &PutArgs) -> Result<ClusterDescription, Failure> {
    if let Some(text) = &args.network {
        let network = Some(Fabric::Network(request::topology(text)?));
        return Ok(ClusterDescription { fabric: network, ..ClusterDescription::default() });
    }
    args.rates.parse::<Rates>().map_err(|error| Failure::input(format!("--rates: {}", words(&error))))?;
    let fabric = args.fabric.as_deref().unwrap_or_default();
    let fabric = match (Path::new(fabric).exists(), &args.nodes) {
        (true, None) => Fabric::File(file(Path::new(fabric))?),
        (true, Some(_)) => {
            let problem = format!("`{fabric}` is a file, which names its machines; leave out --nodes");
            return Err(Failure::input(problem));
        }
        (false, nodes) => {
            let refused = |error| {
                let failure = Failure::input(format!("--fabric: {}", words(&error)));
                failure.help("no file of this name exists, so it is taken for a layout")
            };
            fabric.parse::<Layout>().map_err(refused)?;
            let missing = || {
                Failure::input(format!("layout `{fabric}` does not name machines"))
                    .help("name them with --nodes, such as --nodes 'gpu[001-016]'")
            };
            let nodes = nodes.clone().ok_or_else(missing)?;
            Fabric::Layout(FabricLayout { layout: fabric.to_owned(), nodes })
        }
    };
    let hosts = args.host.iter().map(|text| host(text)).collect::<Result<_, _>>()?;
    Ok(ClusterDescription { fabric: Some(fabric), hosts, rates: args.rates.clone() })
}

fn host(text: &str) -> Result<HostKind, Failure> {
    let (path, nodes) = file_and_hosts(text);
    Ok(HostKind { file: Some(file(path)?), nodes: nodes.unwrap_or_default().to_owned() })
}

fn file(path: &Path) -> Result<TopologyDocument, Failure> {
    let content = input::bytes(path, input::limits()?.bytes_max)?.into();
    Ok(TopologyDocument { content, ..TopologyDocument::default() })
}

async fn list_clusters(args: &ListArgs) -> Result<(), Failure> {
    let listed = list("cluster list", args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page = client.list_clusters(ListClustersRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.clusters.into_iter().map(Row::of).collect(), page.next_page_token, page.total_size))
    });
    listed.await
}

async fn show(args: &NameArgs) -> Result<(), Failure> {
    let request = GetClusterRequest { name: full_name(CLUSTERS, &args.name) };
    let reply = ask(&args.common, async |client, left| client.get_cluster(request.clone(), left).await).await?;
    let cluster = Row::of(reply.cluster.unwrap_or_default());
    let rates = reply.description.map(|description| description.rates).filter(|rates| !rates.is_empty());
    let shown = Shown { cluster, rates, machines: reply.nodes };
    if args.common.json {
        return print_json("cluster show", &shown);
    }
    let Row { name, nodes, ranks, switches, bytes, updated_at, .. } = &shown.cluster;
    let mut lines = vec![name.clone(), format!("ranks      {ranks}"), format!("switches   {switches}")];
    lines.extend(shown.rates.iter().map(|rates| format!("rates      {rates}")));
    lines.push(format!("size       {bytes} bytes"));
    lines.extend(updated_at.iter().map(|time| format!("updated    {time}")));
    lines.push(format!("nodes      {nodes}"));
    lines.extend(shown.machines.iter().map(|machine| format!("  {machine}")));
    print(&lines.join("\n"))
}

async fn delete(args: &NameArgs) -> Result<(), Failure> {
    let name = full_name(CLUSTERS, &args.name);
    let request = DeleteClusterRequest { name: name.clone(), request_id: RequestId::random().to_string() };
    let reply = ask(&args.common, async |client, left| client.delete_cluster(request.clone(), left).await).await?;
    let freed_bytes = reply.freed_bytes;
    if args.common.json {
        return print_json("cluster delete", &Deleted { name, freed_bytes });
    }
    print(&format!("{name} is deleted, {freed_bytes} bytes"))
}
