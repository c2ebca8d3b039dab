//! `canopy faults clear`: an operator's word that elements are sound.

use canopy_client::RequestId;
use canopy_faults::Loss;
use canopy_proto::v1::{ClearFaultsReply, ClearFaultsRequest};
use serde::Serialize;

use super::network::Network;
use super::report::loss;
use super::wire;
use crate::commands::operate::CommonArgs;
use crate::connection::ask;
use crate::exit::Failure;
use crate::output::{FORMAT_VERSION, print, print_json};

/// Take faults out of the book at once, whoever reported them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy faults clear dgx-a100:boxes=2 nic:b0g3
  canopy faults clear topologies/0123abcd --all")]
pub(crate) struct ClearArgs {
    /// Generator expression, file, or id of a stored topology
    #[arg(value_name = "T")]
    topology: String,
    /// What is sound, such as nic:b0g3
    #[arg(value_name = "FAULT", required_unless_present = "all", conflicts_with = "all", value_parser = loss)]
    faults: Vec<Loss>,
    /// All of the topology
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Cleared {
    canopy: u32,
    command: &'static str,
    topology: String,
    cleared: u32,
    active: u32,
}

/// Clears them.
pub(crate) async fn run(args: &ClearArgs) -> Result<(), Failure> {
    let network = Network::read(&args.topology, &args.common).await?;
    let faults = network.named(&args.faults)?.iter().map(wire::fault).collect();
    let topology = network.id(&args.common).await?;
    let request =
        ClearFaultsRequest { topology: topology.clone(), faults, request_id: RequestId::random().to_string() };
    let ClearFaultsReply { cleared, active } =
        ask(&args.common.server, Some(args.common.deadline), async |connection, left| {
            connection.shared().clear_faults(request.clone(), left).await
        })
        .await?;
    if args.common.json {
        return print_json(&Cleared { canopy: FORMAT_VERSION, command: "faults clear", topology, cleared, active });
    }
    print(&format!("{topology}: elements that count as sound again {cleared}, still in the book {active}"))
}
