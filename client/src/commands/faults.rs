//! `canopy faults`: what is broken in a network, who says so, and what it costs.

mod what_if;

use clap::Subcommand;

use crate::commands::on_a_thread;
use crate::exit::Failure;

/// Faults of a network: rank, report, list, clear
#[derive(Debug, Subcommand)]
pub(crate) enum FaultsCommand {
    WhatIf(what_if::WhatIfArgs),
}

/// Runs one of them.
pub(crate) async fn run(command: FaultsCommand) -> Result<(), Failure> {
    match command {
        FaultsCommand::WhatIf(args) => on_a_thread(move || what_if::run(&args)).await,
    }
}
