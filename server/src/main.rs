//! `canopyd`: the server process.

use std::io::{self, Write as _};
use std::process::ExitCode;

use canopy_server::{
    MaintenanceCommand, ServerFlags, StartError, check_config, flush_log, print_sample, run_maintenance, run_server,
};
use clap::{Parser, Subcommand};

/// Serves plans for collective communication over gRPC (canopy.v1).
#[derive(Debug, Parser)]
#[command(name = "canopyd", version)]
struct Arguments {
    /// Print a configuration file with every key, its default and its meaning, then exit.
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the configuration without starting, and print the effective settings.
    CheckConfig {
        /// Leave out the files of rules, tokens and certificates that it names: they are elsewhere.
        #[arg(long)]
        without_files: bool,
    },
    #[command(flatten)]
    Maintenance(MaintenanceCommand),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        _ if arguments.print_config => print(&print_sample()),
        Some(Command::CheckConfig { without_files }) => match check_config(arguments.server, !without_files) {
            Ok(text) => print(&text),
            Err(error) => {
                let _unread = writeln!(io::stderr(), "canopyd: {error}");
                ExitCode::from(2)
            }
        },
        Some(Command::Maintenance(command)) => maintain(&command, arguments.server),
        None => {
            canopy_allocator::begin_again_thriftily();
            serve(arguments.server)
        }
    }
}

fn maintain(command: &MaintenanceCommand, flags: ServerFlags) -> ExitCode {
    match run_maintenance(command, flags, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unread = writeln!(io::stderr(), "canopyd: {}", error.describe());
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

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(4),
    }
}
