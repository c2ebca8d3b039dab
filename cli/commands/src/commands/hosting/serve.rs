//! `canopy server serve`: runs the server in the foreground, or works on its settings and data.

use std::io;

use canopy_client::ErrorClass;
use canopy_server::{ServerCommand, ServerFlags, StartError, run_command, run_server};

use crate::exit::Failure;

/// Run a server in the foreground, as canopyd does, or check its settings and data
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server serve --dev
  canopy server serve --tls-certificate server.pem --tls-key server.key --access access.toml --listen 0.0.0.0:7423
  canopy server serve print-config > canopyd.toml
  canopy server serve --config canopyd.toml check-config
  canopy server serve --data-dir /var/lib/canopy restore plans.canopy

It ends in order on SIGTERM or Ctrl-C, and at once on the second. Its commands do without a running server: options stand
before them.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: Option<ServerCommand>,
}

/// Serves until asked to stop, or does what is asked instead.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    if let Some(command) = &args.command {
        return run_command(command, args.server, &mut io::stdout()).map_err(|error| {
            let class = ErrorClass::ALL.into_iter().find(|class| class.exit_status() == error.exit_status());
            Failure::new(class.unwrap_or(ErrorClass::Fault), error.to_string())
        });
    }
    run_server(args.server).map_err(|error| {
        let class = match error.start_error() {
            Some(StartError::Config(_) | StartError::Credentials(_)) => ErrorClass::Input,
            Some(start) if start.is_in_use() => ErrorClass::Busy,
            _ => ErrorClass::Fault,
        };
        Failure::new(class, error.to_string())
    })
}
