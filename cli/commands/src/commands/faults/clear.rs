//! `canopy faults clear`: an operator's word that elements are sound.

use canopy_client::RequestId;
use canopy_proto::v1::{ClearFaultsRequest, ClearFaultsResponse};
use canopy_wire::loss_on_the_wire;
use serde::Serialize;

use super::network::Subject;
use crate::commands::operate::{CommonArgs, ask};
use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;
use crate::table::count;

/// Clear faults at once, from all sources
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy faults clear dgx-a100:boxes=2 nic:b0g3
  canopy faults clear topologies/0123abcd --all
  canopy faults clear nic:gpu01:3
  canopy faults clear --job 18 --all
  canopy faults clear --all")]
pub(crate) struct ClearArgs {
    /// Generator expression, file, or id of a stored topology, if one is meant; then what is healthy, such as nic:b0g3 or nic:gpu01:3
    #[arg(value_name = "[T] FAULT", required_unless_present_any = ["job", "all"])]
    names: Vec<String>,
    /// Job whose leases say which network is meant and on which machines it is
    #[arg(long, value_name = "J")]
    job: Option<String>,
    /// All of the topology, or of the job's networks and machines; without T and --job, all that the server knows
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Cleared {
    topology: String,
    cleared: u32,
    active: u32,
}

/// Clears them.
pub(crate) async fn run(args: &ClearArgs) -> Result<(), Failure> {
    let (subject, named) = Subject::read(&args.names, args.job.as_deref(), &args.common).await?;
    match (named.is_empty(), args.all) {
        (true, false) => {
            let help = "name a fault that is over, such as `nic:b0g3`, or add `--all`";
            return Err(Failure::input("no fault is named").help(help));
        }
        (false, true) => {
            return Err(Failure::input("--all is given, and faults as well").help("leave out one of the two"));
        }
        (true, true) | (false, false) => {}
    }
    args.common.server.require_server().await?;
    let faults = named.iter().map(loss_on_the_wire).collect();
    let (topology, job) = subject.on_the_wire(&args.common).await?;
    let all = args.all && matches!(subject, Subject::Machines);
    let request_id = RequestId::random().to_string();
    let request = ClearFaultsRequest { topology: topology.clone(), job, faults, request_id, all };
    let ClearFaultsResponse { cleared, active } =
        ask(&args.common, async |client, left| client.clear_faults(request.clone(), left).await).await?;
    if args.common.json {
        return print_json("faults clear", &Cleared { topology, cleared, active });
    }
    let of = if all { "all networks and machines".to_owned() } else { subject.words(&topology) };
    print(&format!("{of}: {} cleared, {active} still broken or slow", count(cleared as usize, "element")))
}
