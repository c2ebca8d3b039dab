//! `canopy tools find`: networks of so many nodes and ports that are best for collectives.

mod model;
mod plot;
mod report;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_proto::v1::{FindNetworksRequest, FindNetworksResponse};
use canopy_topology::Capacity;

use self::model::{Costs, Model, Network, Workload};
use crate::args;
use crate::commands::operate::{CommonArgs, ask};
use crate::destination;
use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;
use crate::whole_file::write_file;

/// Find the best networks for a number of nodes and ports, as generator expressions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy tools find --nodes 1024 --degree 4
  canopy tools find --nodes 64 --degree 4 --workload allreduce:1MiB --alpha 10us --node-bw 100Gbps
  canopy tools find --nodes 1024 --degree 4 --workload allreduce:1MiB --reduce-rate 400GB/s --launch 20us
  canopy tools find --nodes 48 --degree 6 --bidirectional --workload all-to-all:64MiB --json
  canopy tools find --nodes 256 --degree 4 --svg frontier.svg
  canopy plan 'line:1(bipartite:4x4)' --collective allreduce --algorithm expansion -o plan.json")]
pub(crate) struct FindArgs {
    /// Number of nodes
    #[arg(long, value_name = "N")]
    nodes: u32,
    /// Ports of each node: the number of links that leave it, and that enter it
    #[arg(long, value_name = "D")]
    degree: u32,
    /// Only networks with as many links from any node to any other as back
    #[arg(long)]
    bidirectional: bool,
    /// What to choose by: allreduce, allgather, reduce-scatter or all-to-all, and of how many bytes, such as allreduce:1MiB
    #[arg(long, value_name = "WORKLOAD")]
    workload: Option<Workload>,
    /// Latency of a step
    #[arg(long, value_name = "TIME", default_value = "10us", value_parser = args::duration)]
    alpha: Duration,
    /// Rate at which a node sends over all its ports
    #[arg(long, value_name = "RATE", default_value = "100Gbps", value_parser = Capacity::from_str)]
    node_bw: Capacity,
    /// What a call takes once, before its first step (epsilon), such as 20us [default: nothing]
    #[arg(long, value_name = "TIME", value_parser = args::duration_or_zero)]
    launch: Option<Duration>,
    /// Rate at which a node adds up what it receives (1/gamma), such as 400GB/s [default: sums take no time]
    #[arg(long, value_name = "RATE", value_parser = Capacity::from_str)]
    reduce_rate: Option<Capacity>,
    /// Draw the networks, and their times over sizes, in this file
    #[arg(long, short = 'o', value_name = "FILE", value_parser = destination::file_only)]
    svg: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Asks, and prints what was found.
pub(crate) async fn run(args: FindArgs) -> Result<(), Failure> {
    let costs = Costs::new(args.alpha, args.launch, args.node_bw, args.reduce_rate)?;
    let model = Model::new(args.nodes, args.degree, costs);
    let FindArgs { nodes, degree, bidirectional, .. } = args;
    let request = FindNetworksRequest { nodes, degree, bidirectional };
    let reply: FindNetworksResponse =
        ask(&args.common, async |client, left| client.find_networks(request, left).await).await?;
    if reply.topologies.is_empty() {
        let links = if bidirectional { " with links both ways" } else { "" };
        return Err(Failure::new(
            ErrorClass::Infeasible,
            format!("no network of the catalogue has {nodes} nodes of {degree} ports{links}"),
        )
        .help(if bidirectional {
            "leave --bidirectional out, or take an even number of ports"
        } else {
            "take other numbers"
        }));
    }
    let networks = reply.topologies.iter().map(Network::read).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.svg {
        let title = format!("{nodes} nodes of {degree} ports");
        write_file(path, plot::draw(&title, &networks, &model, args.workload).as_bytes())?;
    }
    let found = report::Found::new(&request, &reply, &networks, &model, args.workload)?;
    if args.common.json { print_json("find", &found) } else { print(&found.readable()) }
}
