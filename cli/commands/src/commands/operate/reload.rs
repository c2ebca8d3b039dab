//! `canopy server reload`: has a server read its configuration again.

use canopy_proto::v1::{ReloadConfigRequest, ReloadedConfig};
use serde::Serialize;

use crate::connection::ask;
use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;

use super::CommonArgs;

/// Have the server read its log filter, rules of access and certificates again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server reload --server unix:/run/canopy/canopy.sock

Does what SIGHUP does, and says what came of it. A file that cannot be used changes nothing, and the command fails with
exit status 2. Other settings take effect at the next start of the server.")]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Reloads {
    parts: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    part: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

impl Part {
    /// What it is, for people.
    fn name(&self) -> &str {
        match &*self.part {
            "configuration" => "log filter",
            "access" => "rules of access",
            "tls" => "certificates",
            other => other,
        }
    }
}

/// Asks and prints.
pub(crate) async fn run(args: ReloadArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let reply = ask(&args.common.server, Some(args.common.deadline), async |connection, left| {
        if connection.is_own() {
            return Ok(None);
        }
        connection.shared().reload_config(ReloadConfigRequest::default(), left).await.map(Some)
    });
    let Some(reply) = reply.await? else {
        return Err(Failure::input("no server runs on the data folder; there is nothing to reload")
            .help("name a server with `--server ADDR`"));
    };
    let part = |ReloadedConfig { what, error }| Part { part: what, error };
    let parts: Vec<Part> = reply.parts.into_iter().map(part).collect();
    let refused = parts.iter().find(|part| !part.error.is_empty());
    let failure = refused.map(|part| {
        Failure::input(format!("the {} cannot be used: {}", part.name(), part.error))
            .note("what was in effect before stays in effect")
            .help("correct the file, and reload again")
    });
    if args.common.json {
        print_json("reload", &Reloads { parts })?;
    } else {
        for part in parts.iter().filter(|part| part.error.is_empty()) {
            print(&format!("{}: read again", part.name()))?;
        }
    }
    failure.map_or(Ok(()), Err)
}
