//! The commands of those who run a server: `plans`, `jobs`, `stats` and `drain`.

pub(super) mod drain;
pub(super) mod jobs;
pub(super) mod plans;
pub(super) mod show;
pub(super) mod stats;

use std::time::Duration;

use crate::args;
use crate::connection::ServerArgs;

/// What all of them take.
#[derive(Debug, clap::Args)]
pub(super) struct CommonArgs {
    /// Longest time to wait for the server, such as 10s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Most entries the server puts on a page.
const PAGE_MAX: u32 = 1000;

/// How many entries to ask for where so many are wanted and so many are there.
fn page_size(limit: usize, there: usize) -> u32 {
    u32::try_from(limit.saturating_sub(there)).unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX)
}

/// Names such as `plans/…`, where the part before the stroke may be left out.
fn full_name(folder: &str, name: &str) -> String {
    if name.starts_with(folder) { name.to_owned() } else { format!("{folder}{name}") }
}
