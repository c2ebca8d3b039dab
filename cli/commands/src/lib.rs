//! The command line, for the programs `canopy` and `canopy-tools`.
//!
//! Parses arguments, runs one command and turns its outcome into words on standard error and an exit status. What a
//! command prints for machines stands in `output`, what it does in `commands`.

// What only some commands use is judged in the complete build.
#![cfg_attr(not(all(feature = "tools", feature = "embedded")), allow(dead_code))]

mod args;
mod around;
mod axis;
mod blocks;
mod calibration;
mod certificate;
mod clock;
mod commands;
mod connection;
mod destination;
mod exit;
mod explain;
mod family;
mod fault_messages;
mod form;
mod group_plans;
mod handover;
mod input;
mod joint_plans;
mod known_faults;
mod lines;
mod local;
mod material;
mod messages;
mod nvls;
mod output;
mod path_choice;
mod placement;
mod progress;
mod protocol_words;
#[cfg(all(test, feature = "tools", feature = "embedded"))]
mod reference;
mod refused;
mod request;
mod rule;
mod running;
mod runtime;
mod sizes;
mod stdout;
mod stock;
mod stored_plan;
mod table;
mod time_proof;
mod usage;
mod whole_file;

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::exit::Failure;

/// Runs the command that the arguments of the process name.
pub fn main() -> ExitCode {
    let cli = match commands::parse() {
        Ok(cli) => cli,
        // A scheduler's hook must not fail, not even for a word that is misspelt in it.
        Err(error) if commands::is_forgiving_hook() => {
            let _said = refuse(&error);
            return ExitCode::SUCCESS;
        }
        Err(error) => return refuse(&error),
    };
    // A panic has printed its message; what is missing is the exit status of a fault.
    let outcome = std::panic::catch_unwind(|| cli.run()).unwrap_or_else(|_| {
        Err(Failure::fault("canopy failed unexpectedly").help("this is a bug in canopy; please report it"))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::NoServer) => {
            let status = handover::to_tools().report();
            if commands::is_forgiving_hook() { ExitCode::SUCCESS } else { status }
        }
        Err(failure) => failure.report(),
    }
}

/// Prints what the parser has to say: help on standard output, errors on standard error with status 2.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match error.print() {
            // A closed pipe is the reader's choice.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Failure::input(format!("cannot write to standard output: {error}")).report()
            }
            _ => ExitCode::SUCCESS,
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(canopy_client::ErrorClass::Input.exit_status());
    }
    let elsewhere = usage::unknown_command(error).and_then(|name| handover::command(&name));
    elsewhere.unwrap_or_else(|| usage::failure(error)).report()
}
