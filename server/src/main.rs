//! `canopyd`: the server process.

use std::io::{self, Write as _};
use std::process::ExitCode;

use canopy_server::{ServerCommand, ServerFlags, StartError, flush_log, run_command, run_server};
use clap::Parser;

/// Serves plans for collective communication over gRPC (canopy.v1).
#[derive(Debug, Parser)]
#[command(name = "canopyd", version)]
struct Arguments {
    /// Print a configuration file, as the command print-config does, then exit.
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: Option<ServerCommand>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match if arguments.print_config { Some(ServerCommand::PrintConfig) } else { arguments.command } {
        Some(command) => work(&command, arguments.server),
        None => {
            canopy_allocator::begin_again_thriftily();
            serve(arguments.server)
        }
    }
}

fn work(command: &ServerCommand, flags: ServerFlags) -> ExitCode {
    match run_command(command, flags, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unread = writeln!(io::stderr(), "canopyd: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

fn serve(flags: ServerFlags) -> ExitCode {
    match run_server(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %error, "canopyd failed");
            flush_log();
            // The exit status of canopy: 2 for bad input, 6 for busy, 4 for everything else.
            ExitCode::from(match error.start_error() {
                Some(StartError::Config(_) | StartError::Credentials(_)) => 2,
                Some(error) if error.is_in_use() => 6,
                _ => 4,
            })
        }
    }
}
