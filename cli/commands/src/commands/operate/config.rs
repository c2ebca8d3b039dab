//! `canopy server config`: the settings of a server that are in effect.

use canopy_proto::v1::{GetConfigRequest, GetConfigResponse};
use serde::Serialize;

use super::{CommonArgs, ask};
use crate::exit::Failure;
use crate::messages::warn;
use crate::output::print_json;
use crate::stdout::print;

/// Show the settings of the server that are in effect
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server config
  canopy server config --server unix:/run/canopy/canopyd.sock > canopyd.toml

Warns of settings whose files or variables have changed since the start: they wait for the next one. Needs the role operator.")]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Configured {
    toml: String,
    log_filter: String,
    pending: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pending_error: String,
}

/// Asks and prints.
pub(crate) async fn run(args: ConfigArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let reply = ask(&args.common, async |client, left| client.get_config(GetConfigRequest {}, left).await).await?;
    let GetConfigResponse { toml, log_filter, pending, pending_error } = reply;
    if args.common.json {
        return print_json("config", &Configured { toml, log_filter, pending, pending_error });
    }
    print(toml.trim_end())?;
    let has_filter =
        toml.lines().any(|line| line.strip_prefix("log = ").is_some_and(|set| set.trim_matches('"') == log_filter));
    if !has_filter {
        warn(format_args!("the log filter in effect is `{log_filter}`"));
    }
    if !pending.is_empty() {
        warn(format_args!("changed since the start, in effect after the next one: {}", pending.join(", ")));
    }
    if !pending_error.is_empty() {
        warn(format_args!("the server would not start again: {pending_error}"));
    }
    Ok(())
}
