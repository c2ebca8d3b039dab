//! `canopy server drain`: ends a server in order.

use canopy_client::{ClientError, RequestId};
use canopy_proto::v1::DrainRequest;

use crate::connection::ask;
use crate::exit::Failure;
use crate::output::print_member;
use crate::stdout::print;

use super::CommonArgs;

/// Drain the server: it refuses new requests, finishes running jobs and stops
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server drain --server unix:/run/canopy/canopy.sock

Answers at once; the server ends when its jobs have, or when its drain time-out has passed. A service manager may start
it again. Over TCP it is refused, unless it comes from the server's host and the server runs with --allow-loopback-drain.")]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Asks the server to end.
pub(crate) async fn run(args: DrainArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let request_id = RequestId::random().to_string();
    let reply = ask(&args.common.server, Some(args.common.deadline), async |connection, left| {
        if connection.is_own() {
            return Ok(None);
        }
        match connection.shared().drain(DrainRequest { request_id: request_id.clone() }, left).await {
            Ok(reply) => Ok(Some(reply)),
            // It is about to end already, perhaps on our own word that came through before the connection broke.
            Err(ClientError::Refused(refusal)) if refusal.reason.as_deref() == Some("DRAINING") => {
                Ok(Some(canopy_proto::v1::DrainResponse::default()))
            }
            Err(error) => Err(error),
        }
    })
    .await?;
    let Some(reply) = reply else {
        return Err(Failure::input("no server runs on the data folder; there is nothing to drain")
            .help("name a server with `--server ADDR`"));
    };
    if args.common.json {
        return print_member("drain", "unfinished", reply.unfinished);
    }
    print(&format!("the server is draining; unfinished jobs: {}", reply.unfinished))
}
