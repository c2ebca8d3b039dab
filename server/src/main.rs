//! `canopyd`: the server process.

use std::process::ExitCode;

use canopy_server::{ServerFlags, StartError, run_server, start_logging};
use clap::Parser;

/// Serves plans of collective communication over gRPC (canopy.v1.Planner).
#[derive(Debug, Parser)]
#[command(name = "canopyd", version)]
struct Arguments {
    #[command(flatten)]
    server: ServerFlags,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logging();
    match run_server(arguments.server) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %error, "canopyd ends");
            // The exit status of canopy: 2 for bad input, 6 for busy, 4 for everything else.
            ExitCode::from(match error.start_error() {
                Some(StartError::Config(_)) => 2,
                Some(error) if error.is_in_use() => 6,
                _ => 4,
            })
        }
    }
}
