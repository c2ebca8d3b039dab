//! `canopy faults`: what is broken in a network, who says so, and what it costs.

mod clear;
mod feed;
mod list;
mod network;
mod report;
mod what_if;

use clap::Subcommand;

use crate::commands::operate::ListArgs;
use crate::commands::resynth;
use crate::exit::Failure;

/// Faults of a network: what-if, report, list, clear, feed, resynth
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A fault is a target and the fraction that remains: link:A>B, link:A=B (both ways), nic:GPU, nic:GPU>PORT, gpu:GPU, host:NAME, node:ID, switch:ID,
feature:SWITCH:multicast, plane:NAME; nothing is left unless it ends with a fraction such as *1/2. GPU is an id or HOST:INDEX.")]
pub(crate) enum FaultsCommand {
    WhatIf(what_if::WhatIfArgs),
    Report(report::ReportArgs),
    /// List broken and slow elements
    #[command(after_help = "\
Fields: topology, scope, machines, text, state, severity, since, reported. By scope and element unless --sort says otherwise.

Examples:
  canopy faults list
  canopy faults list --filter 'scope=host AND machines=gpu01'
  canopy faults list --filter 'state=held AND severity=fatal' --sort -since --json")]
    List(ListArgs),
    Clear(clear::ClearArgs),
    Feed(feed::FeedArgs),
    Resynth(resynth::ResynthArgs),
}

/// Runs one of them.
pub(crate) async fn run(command: FaultsCommand) -> Result<(), Failure> {
    match command {
        FaultsCommand::WhatIf(args) => what_if::run(args).await,
        FaultsCommand::Report(args) => report::run(&args).await,
        FaultsCommand::List(args) => list::run(&args).await,
        FaultsCommand::Clear(args) => clear::run(&args).await,
        FaultsCommand::Feed(args) => feed::run(args).await,
        FaultsCommand::Resynth(args) => resynth::run(args).await,
    }
}
