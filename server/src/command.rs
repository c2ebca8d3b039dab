//! What a server's program does instead of serving.

use std::io::{self, Write};

use crate::ops::config::{ServerFlags, print_sample};
use crate::ops::maintenance::{MaintenanceCommand, MaintenanceError, run_maintenance};
use crate::process::check_config;
use crate::server::StartError;

/// Work on a server's settings and data, instead of serving.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ServerCommand {
    /// Print a configuration file with every key, its default and its meaning.
    PrintConfig,
    /// Check the configuration without starting, and print the effective settings.
    CheckConfig {
        /// Leave out the files of rules, tokens and certificates that it names: they are elsewhere.
        #[arg(long)]
        without_files: bool,
    },
    #[command(flatten)]
    #[expect(missing_docs, reason = "it has a line for each of its commands")]
    Maintenance(MaintenanceCommand),
}

/// Why a command of a server's program failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are those of the sources")]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] StartError),
    #[error("{}", .0.describe())]
    Maintenance(#[source] MaintenanceError),
    #[error("cannot write the answer")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// The exit status of canopy: 2 for bad input or a failed check, 6 for busy, 4 for everything else.
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Maintenance(error) => error.exit_status(),
            Self::Output(_) => 4,
        }
    }
}

/// Runs a command with the settings of the flags, and reports on `output`.
///
/// # Errors
/// The command failed, or its answer could not be written.
pub fn run_command(command: &ServerCommand, flags: ServerFlags, output: &mut dyn Write) -> Result<(), CommandError> {
    match command {
        ServerCommand::PrintConfig => output.write_all(print_sample().as_bytes())?,
        ServerCommand::CheckConfig { without_files } => {
            output.write_all(check_config(flags, !without_files)?.as_bytes())?;
        }
        ServerCommand::Maintenance(command) => {
            run_maintenance(command, flags, output).map_err(CommandError::Maintenance)?;
        }
    }
    Ok(())
}
