//! `canopy`: the command line.
//!
//! Parses arguments, runs one command and turns its outcome into words on standard error and an exit status. What a
//! command prints for machines stands in `output`, what it does in `commands`.

mod args;
mod blocks;
mod certificate;
mod clock;
mod commands;
mod connection;
mod exit;
mod explain;
mod family;
mod fault_messages;
mod form;
mod input;
mod known_faults;
mod material;
mod output;
mod path_choice;
mod placement;
mod progress;
mod protocol_words;
mod request;
mod runtime;
mod stored_plan;
mod table;
mod time_proof;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::Cli;
use crate::exit::{Failure, say};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // A scheduler's hook must not fail, not even for a word that is misspelt in it.
        Err(error) if commands::is_forgiving_hook() => {
            let _told = usage(&error);
            return ExitCode::SUCCESS;
        }
        Err(error) => return usage(&error),
    };
    // A panic has printed its message; what is missing is the exit status of a fault.
    let outcome = std::panic::catch_unwind(|| cli.run()).unwrap_or_else(|_| {
        Err(Failure::fault("canopy failed unexpectedly").help("this is a bug in canopy; please report it"))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints what the parser has to say: help on standard output, errors on standard error with status 2.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match error.print() {
            // A closed pipe is the reader's choice.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Failure::input(format!("cannot write to standard output: {error}")).report()
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let _ = error.print();
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(hint) = commands::not_yet(word)
    {
        say(&hint);
    }
    ExitCode::from(canopy_client::ErrorClass::Input.exit_status())
}
