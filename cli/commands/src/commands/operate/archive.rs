//! `canopy server plans export` and `canopy server plans import`: plans, pins and topologies in one file; `canopy server backup`: leases and
//! faults as well.

use std::fs::File;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use canopy_client::{ArchiveReceiver, ClientError, RequestId};
use canopy_proto::v1::{ArchiveContents, ArchiveEnd, ImportPlansResponse, SkippedPlan};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args;
use crate::connection::{Connection, ServerArgs, ask};
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::input::{STDIN, cannot_read};
use crate::messages::say;
use crate::output::{FileSummary, print_json};
use crate::progress::ProgressLine;
use crate::stdout::print;
use crate::table::count;
use crate::whole_file::AtomicFile;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// All plans
    #[arg(long, required_unless_present = "filter", conflicts_with = "filter")]
    all: bool,
    /// Only plans that match, as for `list`; stored topologies are written in any case
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// File to write, such as plans.canopy, or `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    output: Destination,
    #[command(flatten)]
    transfer: TransferArgs,
}

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// File that `export`, `canopy server backup` or `canopyd backup` wrote, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    transfer: TransferArgs,
}

/// Back up the server while it runs: plans, topologies, clusters, leases and faults
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server backup all.canopy --server unix:/run/canopy/canopy.sock

Leases, events and faults are those of one moment. Restore the file with `canopyd restore`, while no server uses the data
directory. Without a server, the command backs up the data folder.")]
pub(in crate::commands) struct BackupArgs {
    /// File to write, or `-` for standard output; it appears once it is complete
    #[arg(value_name = "FILE")]
    output: Destination,
    #[command(flatten)]
    transfer: TransferArgs,
}

/// What all of them take.
#[derive(Debug, clap::Args)]
struct TransferArgs {
    /// Longest time in all, such as 10m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// JSON object of `export` and `backup`.
#[derive(Serialize)]
struct Exported {
    #[serde(flatten)]
    contents: Contents,
    #[serde(flatten)]
    beside: Option<Beside>,
    damaged_plans: u64,
    files: Vec<FileSummary>,
}

/// What only a backup holds.
#[derive(Clone, Copy, Serialize)]
struct Beside {
    clusters: u64,
    leases: u64,
    faults: u64,
}

/// JSON object of `import`.
#[derive(Serialize)]
struct Imported {
    #[serde(flatten)]
    contents: Contents,
    plans_added: u64,
    topologies_added: u64,
    /// Pinned at the server, and left as they are.
    plans_kept: u64,
    plans_skipped: u64,
    /// The first of these.
    skipped: Vec<Skipped>,
}

/// A plan that the server left out.
#[derive(Serialize)]
struct Skipped {
    id: String,
    reason: String,
}

/// What is in an archive.
#[derive(Clone, Copy, Serialize)]
struct Contents {
    plans: u64,
    pinned: u64,
    topologies: u64,
}

impl Contents {
    fn of(contents: Option<ArchiveContents>) -> Self {
        let ArchiveContents { plans, pinned_plans: pinned, topologies, .. } = contents.unwrap_or_default();
        Self { plans, pinned, topologies }
    }

    fn words(self) -> String {
        let Self { plans, pinned, topologies } = self;
        format!("{}, {pinned} of them pinned, and {}", count(plans, "plan"), count(topologies, "topology"))
    }
}

/// Writes the file, which appears whole or not at all.
pub(super) async fn export(args: &ExportArgs) -> Result<(), Failure> {
    let filter = args.filter.clone().unwrap_or_default();
    if !args.all && filter.trim().is_empty() {
        return Err(Failure::input("the filter is empty").help("say --all to export all plans"));
    }
    let call = async |connection: &Connection, left, writer: &mut Writer| {
        connection.shared().export_plans(&filter, left, writer).await
    };
    let (path, end) = received(&args.output, &args.transfer, call).await?;
    let contents = Contents::of(end.contents);
    report("plans export", (path, &args.transfer), contents.words(), end, None)
}

/// Writes a backup, which appears whole or not at all.
pub(in crate::commands) async fn backup(args: BackupArgs) -> Result<(), Failure> {
    let call =
        async |connection: &Connection, left, writer: &mut Writer| connection.shared().back_up(left, writer).await;
    let (path, end) = received(&args.output, &args.transfer, call).await?;
    let ArchiveContents { plans, topologies, clusters, leases, faults, .. } = end.contents.unwrap_or_default();
    let words = format!(
        "{}, {}, {}, {} and {}",
        count(plans, "plan"),
        count(topologies, "topology"),
        count(clusters, "cluster"),
        count(leases, "lease"),
        count(faults, "fault"),
    );
    report("backup", (path, &args.transfer), words, end, Some(Beside { clusters, leases, faults }))
}

/// Has a call write the file.
async fn received<'a>(
    output: &'a Destination,
    transfer: &TransferArgs,
    call: impl AsyncFn(&Connection, Option<Duration>, &mut Writer) -> Result<ArchiveEnd, ClientError>,
) -> Result<(Option<&'a Path>, ArchiveEnd), Failure> {
    let output = destination::beside_json(Some(output), transfer.json, "the archive")?;
    let received = ask(&transfer.server, Some(transfer.deadline), async |connection, left| {
        let failed = |failure: &Failure| ClientError::Write(std::io::Error::other(failure.sentence()));
        let file = AtomicFile::at(output).map_err(|failure| failed(&failure))?;
        let mut writer = Writer { file, progress: ProgressLine::start(), bytes: 0, bytes_about: 0 };
        let end = call(connection, left, &mut writer).await?;
        Ok((writer.file, end))
    });
    let (file, end) = received.await?;
    file.commit()?;
    Ok((output, end))
}

/// Says what was written, and what could not be.
fn report(
    command: &'static str,
    (path, transfer): (Option<&Path>, &TransferArgs),
    words: String,
    end: ArchiveEnd,
    beside: Option<Beside>,
) -> Result<(), Failure> {
    let (contents, damaged_plans) = (Contents::of(end.contents), end.contents.unwrap_or_default().damaged_plans);
    if damaged_plans > 0 {
        say(&format!("{}: damaged, and left out; `canopy server fsck` names them", count(damaged_plans, "plan")));
    }
    let Some(path) = path else {
        say(&format!("{words} to standard output, {} bytes", end.size_bytes));
        return Ok(());
    };
    if transfer.json {
        let file = FileSummary::new("canopy-archive", path, end.size_bytes, end.sha256);
        return print_json(command, &Exported { contents, beside, damaged_plans, files: vec![file] });
    }
    print(&format!("{words} to {}, {} bytes", path.display(), end.size_bytes))
}

/// Takes an archive as it comes in.
struct Writer {
    file: AtomicFile,
    progress: ProgressLine,
    bytes: u64,
    /// A little less than the archive will have.
    bytes_about: u64,
}

impl ArchiveReceiver for Writer {
    fn contents(&mut self, contents: &ArchiveContents) {
        self.bytes_about = contents.record_bytes;
    }

    fn content(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.file.as_write().write_all(data)?;
        self.bytes += data.len() as u64;
        self.progress.receiving(self.bytes, self.bytes_about.max(self.bytes));
        Ok(())
    }
}

/// Sends the file.
pub(super) async fn import(args: &ImportArgs) -> Result<(), Failure> {
    let transfer = &args.transfer;
    // A stream is sent again where a connection is lost: it waits on disk.
    let copy = (args.file == Path::new(STDIN)).then(copy_of_stdin).transpose()?;
    let file = copy.as_ref().map_or(args.file.as_path(), NamedTempFile::path);
    let size_bytes = open(file)?.1;
    let progress = Arc::new(ProgressLine::start());
    // One id for all tries: an import whose answer was lost is not done again.
    let request_id = RequestId::random();
    let imported = ask(&transfer.server, Some(transfer.deadline), async |connection, left| {
        let failed = |failure: Failure| ClientError::Read(std::io::Error::other(failure.sentence()));
        let (file, _) = open(file).map_err(failed)?;
        let shown = Arc::clone(&progress);
        let sent = move |bytes| shown.sending(bytes, size_bytes);
        connection.shared().import_plans(file, request_id, left, sent).await
    });
    let reply = imported.await?;
    drop(progress);
    let contents = Contents::of(reply.contents);
    let ImportPlansResponse { plans_added, topologies_added, plans_kept, plans_skipped, .. } = reply;
    let skipped = reply.skipped.into_iter().map(|SkippedPlan { name: id, reason }| Skipped { id, reason });
    if transfer.json {
        let skipped = skipped.collect();
        return print_json(
            "plans import",
            &Imported { contents, plans_added, topologies_added, plans_kept, plans_skipped, skipped },
        );
    }
    print(&format!(
        "{}: {} and {} were not there before",
        contents.words(),
        count(plans_added, "plan"),
        count(topologies_added, "topology")
    ))?;
    if plans_kept > 0 {
        print(&format!("pinned at the server, and as before: {}", count(plans_kept, "plan")))?;
    }
    if plans_skipped > 0 {
        print(&format!("left out: {}", count(plans_skipped, "plan")))?;
        let told = skipped.len() as u64;
        skipped.map(|Skipped { id, reason }| format!("  {id}: {reason}")).try_for_each(|line| print(&line))?;
        if told < plans_skipped {
            print(&format!("  and {} more", plans_skipped - told))?;
        }
    }
    Ok(())
}

/// All that comes over standard input, in a file.
fn copy_of_stdin() -> Result<NamedTempFile, Failure> {
    let refused = |error| Failure::input(format!("cannot keep standard input: {error}"));
    let mut copy = NamedTempFile::new().map_err(refused)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut copy).map_err(refused)?;
    Ok(copy)
}

/// The file and its length.
fn open(path: &Path) -> Result<(File, u64), Failure> {
    let refused = |error: std::io::Error| cannot_read(path, &error);
    let file = File::open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if metadata.is_dir() {
        return Err(cannot_read(path, &"it is a folder"));
    }
    Ok((file, metadata.len()))
}
