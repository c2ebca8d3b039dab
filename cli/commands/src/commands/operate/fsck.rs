//! `canopy server fsck`: has a server verify all that it stores.

use std::sync::Mutex;

use canopy_proto::v1::{CheckStoreEntry, StoreProblem};
use serde::Serialize;

use crate::connection;
use crate::exit::Failure;
use crate::output::{bytes_in_words, print_json};
use crate::stdout::print;

use super::{CommonArgs, Entry, table};

/// Verify everything the server stores, while it runs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server fsck --deadline 10m --server unix:/run/canopy/canopy.sock

Changes nothing, and exits with status 2 if anything is wrong. A damaged record goes into quarantine when it is read
next; `canopyd fsck --repair` does so for all, while no server uses the data directory.")]
pub(crate) struct FsckArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Checked {
    spaces: Vec<Row>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Row {
    space: String,
    intact: u64,
    bytes: u64,
    damaged: u64,
    without_summary: u64,
    without_record: u64,
    quarantined: u64,
}

#[derive(Serialize)]
struct Problem {
    space: String,
    key: String,
    problem: String,
}

impl Entry for Row {
    const NAME: &'static str = "spaces";
    const HEADING: &'static [&'static str] =
        &["SPACE", "INTACT#", "SIZE#", "DAMAGED#", "INCONSISTENT#", "QUARANTINED#"];

    fn cells(self) -> Vec<String> {
        let inconsistent = self.without_summary + self.without_record;
        let numbers = [self.damaged, inconsistent, self.quarantined].map(|number| number.to_string());
        [self.space, self.intact.to_string(), bytes_in_words(self.bytes)].into_iter().chain(numbers).collect()
    }
}

/// Asks and prints.
pub(crate) async fn run(args: FsckArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let found = Mutex::new(Checked { spaces: Vec::new(), problems: Vec::new() });
    let limit = Some(args.common.deadline);
    let checked = connection::ask(&args.common.server, limit, async |connection, left| {
        *hold(&found) = Checked { spaces: Vec::new(), problems: Vec::new() };
        connection.shared().check_store(left, |entry| hold(&found).add(entry)).await
    });
    checked.await?;
    let checked = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let wrong: u64 = checked.spaces.iter().map(|row| row.damaged + row.without_summary + row.without_record).sum();
    if args.common.json {
        print_json("fsck", &checked)?;
    } else {
        for Problem { space, key, problem } in &checked.problems {
            print(&format!("{space} {key}: {problem}"))?;
        }
        print(&table(checked.spaces))?;
    }
    match wrong {
        0 => Ok(()),
        1 => Err(refused("one record is not in order")),
        count => Err(refused(&format!("{count} records are not in order"))),
    }
}

fn refused(what: &str) -> Failure {
    Failure::input(what).help("stop the server and run `canopyd fsck --repair`, or restore a backup")
}

fn hold(found: &Mutex<Checked>) -> std::sync::MutexGuard<'_, Checked> {
    found.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Checked {
    fn add(&mut self, entry: CheckStoreEntry) {
        let CheckStoreEntry { space, intact, bytes, damaged, without_summary, without_record, quarantined, problems } =
            entry;
        let problem = |StoreProblem { key, problem }| Problem { space: space.clone(), key, problem };
        self.problems.extend(problems.into_iter().map(problem));
        self.spaces.push(Row { space, intact, bytes, damaged, without_summary, without_record, quarantined });
    }
}
