//! `canopy serve`: runs the server in the foreground.

use canopy_client::ErrorClass;
use canopy_server::{ServerFlags, StartError, run_server};

use crate::exit::Failure;

/// Run a server in the foreground, as canopyd does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy serve --dev
  canopy serve --tls-certificate server.pem --tls-key server.key --access access.toml --listen 0.0.0.0:7423

It ends in order on SIGTERM or Ctrl-C, and at once on the second.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    server: ServerFlags,
}

/// Serves until asked to stop.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    run_server(args.server).map_err(|error| {
        let class = match error.start_error() {
            Some(StartError::Config(_) | StartError::Credentials(_)) => ErrorClass::Input,
            Some(start) if start.is_in_use() => ErrorClass::Busy,
            _ => ErrorClass::Fault,
        };
        Failure::new(class, error.to_string())
    })
}
