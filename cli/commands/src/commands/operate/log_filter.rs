//! `canopy server log-filter`: which lines a server logs.

use std::time::Duration;

use canopy_proto::v1::SetLogFilterRequest;
use serde::Serialize;

use super::{CommonArgs, ask};
use crate::args;
use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;

/// Change which lines the server logs, for a while or until its next reload
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server log-filter debug --for 5m
  canopy server log-filter info,canopy_server::jobs=trace --for 1m --server unix:/run/canopy/canopyd.sock
  canopy server reload    # back to what is configured

Without --for, it is in effect until `canopy server reload`, SIGHUP or the end of the server. Needs the role admin.")]
pub(crate) struct LogFilterArgs {
    /// A level (error, warn, info, debug, trace, off), or targets with levels
    #[arg(value_name = "FILTER")]
    filter: String,
    /// How long, such as 5m; the configured filter returns afterwards
    #[arg(long = "for", value_name = "TIME", value_parser = args::duration)]
    lasts: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Changed {
    filter: String,
    before: String,
}

/// Asks and prints.
pub(crate) async fn run(args: LogFilterArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let lasts = args.lasts.map(prost_types::Duration::try_from).transpose();
    let lasts = lasts.map_err(|_| Failure::input("--for is too long").help("leave it out, or use some days"))?;
    let request = SetLogFilterRequest { filter: args.filter.clone(), lasts, ..SetLogFilterRequest::default() };
    let reply = ask(&args.common, async |client, left| client.set_log_filter(request.clone(), left).await).await?;
    let (filter, before) = (args.filter, reply.before);
    if args.common.json {
        return print_json("log-filter", &Changed { filter, before });
    }
    print(&format!("log filter: {filter}, before: {before}"))
}
