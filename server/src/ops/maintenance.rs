//! Maintenance of a store while no server runs on it: check, back up, restore, migrate, move.

mod back;
mod copy;
mod import;
mod shared_place;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canopy_database::{SILENCE, SchemaError};
use canopy_planner::{PlanKey, chain};
use canopy_topology::count;

use self::back::bring_back;
use self::import::{WithLeases, import_store};
use self::shared_place::SharedPlace;
use crate::clock;
use crate::ops::config::{ConfigError, ServerFlags};
use crate::replan::EventLog;
use crate::store::{
    ArchiveCounts, ArchiveError, ArchiveKey, ArchivedRecord, CheckReport, Opened, PlanSummary, Recovery, Repair, Space,
    Store, StoreError, check_store, convert_from_redb, is_of_redb, open_store, pending_migration, read_archive,
    write_archive,
};

/// Keys read at a time.
const PAGE: usize = 256;

/// Spaces that hang together: what some of them say of others holds for all of a store, or for none.
const OF_LEASES: [Space; 3] = [Space::Replans, Space::Faults, Space::Leases];

/// Work on the data directory (`--data-dir`), or on the database that servers share (`--database`),
/// while no server uses it.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum MaintenanceCommand {
    /// Verify all stored data.
    Fsck {
        /// Quarantine damaged records and rebuild summaries.
        #[arg(long)]
        repair: bool,
    },
    /// Write all plans with their pins and uses, topologies, clusters, faults and leases into one file. Servers may
    /// use a database meanwhile; `pg_dump` then gives a copy of one moment.
    Backup {
        /// The file; it is replaced once it is complete.
        file: PathBuf,
    },
    /// Restore a backup: its plans, topologies and clusters replace those of equal keys; its faults and leases replace all stored
    /// ones.
    Restore {
        /// The file; a damaged file is refused as a whole.
        file: PathBuf,
    },
    /// Migrate the data, or the schema of the database, to this version, as the next start would.
    Migrate {
        /// Only print what would be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Copy the store in `--data-dir`, but for unfinished jobs, into the database. Records that the database has stay
    /// as they are; the directory is only read. After an interruption, run it again.
    ImportStore {
        /// Copy the database into a new store in `--data-dir` instead.
        #[arg(long)]
        back: bool,
        /// Leave faults, leases and events in the directory; else they are imported, if the database has no others.
        #[arg(long, conflicts_with = "back")]
        without_leases: bool,
    },
}

/// A data directory, or the database in its place.
struct Place {
    directory: PathBuf,
    shared: Option<SharedPlace>,
}

impl Place {
    /// Opens an existing store: creating an empty one would hide a wrong path.
    fn open(&self, output: &mut dyn Write) -> Result<Opened, MaintenanceError> {
        if let Some(shared) = &self.shared {
            shared.require_schema()?;
            return Ok(shared.open()?);
        }
        self.must_exist()?;
        self.open_directory(output)
    }

    fn open_or_make(&self, output: &mut dyn Write) -> Result<Opened, MaintenanceError> {
        match &self.shared {
            Some(shared) => {
                shared.bring_up_to_date(output)?;
                Ok(shared.open()?)
            }
            None => self.open_directory(output),
        }
    }

    /// Opens the store of the directory for reading alone: one that would be changed first is refused.
    fn open_to_read(&self, output: &mut dyn Write) -> Result<Opened, MaintenanceError> {
        self.must_exist()?;
        if pending_migration(&self.directory)?.is_some() {
            return Err(MaintenanceError::OldStore { directory: self.directory.clone() });
        }
        let mut opened = self.open_directory(output)?;
        match opened.moved_aside.take() {
            Some((path, _)) => Err(MaintenanceError::MovedAside { path }),
            None => Ok(opened),
        }
    }

    /// Opens a store in the directory that is to be a new one.
    fn open_new(&self, output: &mut dyn Write) -> Result<Opened, MaintenanceError> {
        match self.must_exist() {
            Ok(()) => self.open_to_read(output).map_err(|error| match error {
                MaintenanceError::OldStore { directory } => MaintenanceError::NotEmpty { directory },
                other => other,
            }),
            Err(_) => self.open_directory(output),
        }
    }

    /// Refuses a database that servers use; `instead` says what else can be done.
    fn require_no_servers(&self, instead: &'static str) -> Result<(), MaintenanceError> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.require_no_servers(instead))
    }

    fn must_exist(&self) -> Result<(), MaintenanceError> {
        let there = self.directory.join("lock").exists();
        if there { Ok(()) } else { Err(MaintenanceError::NoStore { directory: self.directory.clone() }) }
    }

    fn open_directory(&self, output: &mut dyn Write) -> Result<Opened, MaintenanceError> {
        let opened = open_store(&self.directory)?;
        if let Some(done) = &opened.migration {
            let (from, to, records, left) = (done.from, done.to, done.records, done.left_behind);
            writeln!(
                output,
                "migrated {records} records from schema version {from} to {to}; {left} could not be read"
            )?;
        }
        if let Some((path, reason)) = &opened.moved_aside {
            let path = path.display();
            writeln!(
                output,
                "the store could not be opened ({reason}); it was moved to {path}, and a new store holds what could be saved"
            )?;
        }
        let Recovery { restored, lost, quarantined } = opened.recovery;
        for (count, what) in [
            (restored, "records missing from the index were found in files and are served again"),
            (lost, "records without files were removed"),
            (quarantined, "damaged files missing from the index were quarantined"),
        ] {
            if count > 0 {
                writeln!(output, "{count} {what}")?;
            }
        }
        Ok(opened)
    }
}

/// Why maintenance failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MaintenanceError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{} holds no store; name the directory with --data-dir", directory.display())]
    NoStore { directory: PathBuf },
    #[error("cannot use {}", path.display())]
    Archive {
        path: PathBuf,
        #[source]
        source: ArchiveError,
    },
    #[error("cannot write the report")]
    Output(#[from] io::Error),
    #[error("the store has problems; run `canopyd fsck --repair`")]
    Faults,
    #[error("the store could not be opened and was moved aside to {}", path.display())]
    MovedAside { path: PathBuf },
    #[error("the command needs a database; name it with --database")]
    NoDatabase,
    #[error(transparent)]
    Schema(SchemaError),
    #[error("the database holds no store of canopy; name another one with --database")]
    NoSchema,
    #[error(
        "the schema of the database has version {found}, and this build needs {needed}; run `canopyd migrate` first"
    )]
    OldSchema { found: u32, needed: u32 },
    #[error(
        "servers use the database: {names}; stop them{instead}; one that has crashed counts for {} seconds",
        SILENCE.as_secs()
    )]
    ServersThere { names: String, instead: &'static str },
    #[error(
        "the database has {faults} faults, {leases} leases and {replans} events, which cannot be mixed with those of \
         the data directory (nothing was imported); name another database, or add --without-leases"
    )]
    HasLeases { faults: usize, leases: usize, replans: usize },
    #[error(
        "the store in {} is of an older version; run `canopyd migrate` on it without a database first",
        directory.display()
    )]
    OldStore { directory: PathBuf },
    #[error(
        "{} holds a store with records, perhaps of an interrupted import; name a new directory with --data-dir",
        directory.display()
    )]
    NotEmpty { directory: PathBuf },
}

impl MaintenanceError {
    /// The exit status of canopy: 2 for bad input or a failed check, 6 for busy, 4 for everything else.
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Config(_) | Self::NoStore { .. } | Self::Faults | Self::MovedAside { .. } => 2,
            Self::NoDatabase | Self::Schema(_) | Self::NoSchema | Self::OldSchema { .. } => 2,
            Self::HasLeases { .. } | Self::OldStore { .. } | Self::NotEmpty { .. } => 2,
            Self::ServersThere { .. } => 6,
            Self::Archive { source: ArchiveError::Io(_) | ArchiveError::Store(_), .. } => 4,
            Self::Archive { .. } => 2,
            Self::Store(StoreError::InUse { .. }) => 6,
            Self::Store(
                StoreError::OpenToAll { .. }
                | StoreError::Version { .. }
                | StoreError::OfRedb { .. }
                | StoreError::OldRedb { .. },
            ) => 2,
            Self::Store(_) | Self::Output(_) => 4,
        }
    }

    /// The error with all its causes, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Store(StoreError::InUse { directory }) => format!(
                "a server uses the data directory {directory}; stop it, or use `canopy server backup` and `canopy server fsck`, which ask the server"
            ),
            _ => chain(self),
        }
    }
}

/// Runs a maintenance command on the database or in the data directory of the flags, and reports on `output`.
///
/// # Errors
/// The command failed; [`MaintenanceError::Faults`] if a check without repair found something.
pub fn run_maintenance(
    command: &MaintenanceCommand,
    flags: ServerFlags,
    output: &mut dyn Write,
) -> Result<(), MaintenanceError> {
    let options = flags.into_options()?;
    let connections = options.database_connections.get();
    let shared = options.database.map(|address| SharedPlace::new(address, connections)).transpose()?;
    let place = Place { directory: options.data_dir, shared };
    match command {
        MaintenanceCommand::Fsck { repair } => fsck(&place, if *repair { Repair::Fix } else { Repair::Report }, output),
        MaintenanceCommand::Backup { file } => backup(&place, file, output),
        MaintenanceCommand::Restore { file } => restore(&place, file, output),
        MaintenanceCommand::Migrate { dry_run } => migrate(&place, *dry_run, output),
        MaintenanceCommand::ImportStore { back, without_leases } => {
            let shared = place.shared.as_ref().ok_or(MaintenanceError::NoDatabase)?;
            let with_leases = if *without_leases { WithLeases::No } else { WithLeases::Yes };
            if *back { bring_back(&place, shared, output) } else { import_store(&place, shared, with_leases, output) }
        }
    }
}

fn migrate(place: &Place, dry_run: bool, output: &mut dyn Write) -> Result<(), MaintenanceError> {
    if let Some(shared) = &place.shared {
        return shared.migrate(dry_run, output);
    }
    if dry_run {
        place.must_exist()?;
        if is_of_redb(&place.directory) {
            writeln!(output, "would convert the data directory from redb to sled")?;
            return Ok(());
        }
        let pending = pending_migration(&place.directory)?;
        match pending {
            None => writeln!(output, "nothing to do")?,
            Some(pending) => writeln!(
                output,
                "would migrate {} records from schema version {} to {}",
                pending.records, pending.from, pending.to
            )?,
        }
        return Ok(());
    }
    let converted = convert_from_redb(&place.directory)?;
    if let Some(database) = &converted {
        let database = database.display();
        writeln!(output, "the data directory is of sled from now on; {database} is no longer read and may be deleted")?;
    }
    let opened = place.open(output)?;
    if converted.is_none() && opened.migration.is_none() && opened.moved_aside.is_none() {
        writeln!(output, "nothing to do")?;
    }
    fail_if_moved_aside(opened)
}

fn fsck(place: &Place, repair: Repair, output: &mut dyn Write) -> Result<(), MaintenanceError> {
    let opened = place.open(output)?;
    place.require_no_servers(", or use `canopy server fsck`, which asks a server")?;
    let mut clean = true;
    for space in Space::ALL {
        let report = check_store(space, opened.space(space).as_ref(), repair, clock::unix_ms())?;
        describe_check(space, &report, repair, output)?;
        clean &= report.is_clean();
    }
    fail_if_moved_aside(opened)?;
    if clean || repair == Repair::Fix { Ok(()) } else { Err(MaintenanceError::Faults) }
}

fn describe_check(space: Space, report: &CheckReport, repair: Repair, output: &mut dyn Write) -> io::Result<()> {
    let done = |text: &'static str| if repair == Repair::Fix { text } else { "" };
    for (key, damage) in &report.damaged {
        writeln!(output, "{key}: {damage}{}", done("; in quarantine now"))?;
    }
    for key in &report.without_summary {
        writeln!(output, "{key}: its summary is missing or wrong{}", done("; put right"))?;
    }
    for key in &report.without_record {
        writeln!(output, "{key}: a summary without a record{}", done("; removed"))?;
    }
    let CheckReport { intact, bytes, damaged, quarantined, .. } = report;
    let name = space.name();
    writeln!(output, "{intact} {name} of {bytes} bytes intact, {} damaged, {quarantined} in quarantine", damaged.len())
}

fn backup(place: &Place, file: &Path, output: &mut dyn Write) -> Result<(), MaintenanceError> {
    let opened = place.open(output)?;
    let failed = |source: ArchiveError| MaintenanceError::Archive { path: file.to_owned(), source };
    // Whoever has no data directory signs nothing of a database.
    let signs = place.shared.is_none() || place.directory.exists();
    let key = signs.then(|| ArchiveKey::of(&place.directory)).transpose().map_err(|error| failed(error.into()))?;
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let written = File::create(&partial).map_err(ArchiveError::from).and_then(|target| {
        let mut writer = BufWriter::new(target);
        let counts = write_archive(&opened, &mut writer, key.as_ref())?;
        // Complete on the disk before it takes the name that says so.
        writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, file)?;
        Ok(counts)
    });
    let counts = written.map_err(|error| {
        let _nothing_more_to_do = fs::remove_file(&partial);
        failed(error)
    })?;
    writeln!(output, "{} written to {}", in_words(counts), file.display())?;
    fail_if_moved_aside(opened)
}

fn restore(place: &Place, file: &Path, output: &mut dyn Write) -> Result<(), MaintenanceError> {
    let failed = |source: ArchiveError| MaintenanceError::Archive { path: file.to_owned(), source };
    let source = File::open(file).map_err(|error| failed(error.into()))?;
    let opened = place.open_or_make(output)?;
    place.require_no_servers("")?;
    let now = clock::unix_ms();
    let (mut replaces, mut batch) = (false, Batch { opened: &opened, space: Space::Replans, records: Vec::new() });
    let put = |record: ArchivedRecord<'_>| {
        let ArchivedRecord { space, key, record, summary } = record;
        if OF_LEASES.contains(&space) && !std::mem::replace(&mut replaces, true) {
            OF_LEASES.into_iter().map(|space| opened.space(space)).try_for_each(empty)?;
        }
        match space {
            Space::Replans | Space::Faults => batch.put(space, key, record),
            Space::Plans if PlanSummary::decode(key, summary).is_ok_and(|summary| summary.pinned) => {
                opened.pins.put(key, &[], &[]).and_then(|()| opened.space(space).put(key, record, summary))
            }
            _ => opened.space(space).put(key, record, summary),
        }
    };
    let counts = read_archive(&mut BufReader::new(source), now, put).map_err(failed)?;
    batch.write()?;
    if replaces {
        EventLog::part_ways(opened.space(Space::Replans).as_ref(), now)?;
    }
    writeln!(output, "{} restored from {}", in_words(counts), file.display())?;
    Ok(())
}

/// Records without summaries that are many and small, on their way into a space: one wait for the disk for many.
struct Batch<'a> {
    opened: &'a Opened,
    space: Space,
    records: Vec<(PlanKey, Vec<u8>)>,
}

impl Batch<'_> {
    fn put(&mut self, space: Space, key: &PlanKey, record: &[u8]) -> Result<(), StoreError> {
        if self.space != space || self.records.len() >= PAGE {
            self.write()?;
            self.space = space;
        }
        self.records.push((*key, record.to_vec()));
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        match std::mem::take(&mut self.records) {
            records if records.is_empty() => Ok(()),
            records => self.opened.space(self.space).put_all(&records),
        }
    }
}

/// Removes all records of a space.
fn empty(store: &Arc<dyn Store>) -> Result<(), StoreError> {
    loop {
        let keys = store.keys(None, PAGE)?;
        if keys.is_empty() {
            return Ok(());
        }
        store.remove(&keys)?;
    }
}

fn in_words(counts: ArchiveCounts) -> String {
    let ArchiveCounts { plans, topologies, clusters, leases, faults, .. } = counts;
    format!(
        "{}, {}, {}, {} and {}",
        count(plans, "plan"),
        count(topologies, "topology"),
        count(clusters, "cluster"),
        count(leases, "lease"),
        count(faults, "fault")
    )
}

/// A store that had to be started anew is not all that was to be worked on.
fn fail_if_moved_aside(opened: Opened) -> Result<(), MaintenanceError> {
    opened.moved_aside.map_or(Ok(()), |(path, _)| Err(MaintenanceError::MovedAside { path }))
}

#[cfg(test)]
mod tests;
