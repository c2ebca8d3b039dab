//! A data directory: its lock, the engine's files in it, and their schema version.
//!
//! | name | what |
//! |---|---|
//! | `lock` | held by the process that owns the directory |
//! | `store`, `store-redb` | the files of the engine |
//! | `records-4` | plans, topologies, schedules and leases, a file each; faults, what became of leases, and pins, in two files each |
//! | `….damaged-N` | files that could not be opened, kept for a person |
//! | `….migrating`, `….migrated`, `….old` | a change of schema under way; removed or finished at the next start |

use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use canopy_migrations::{Version, current_version, steps_from};
use serde::{Deserialize, Serialize};

use super::migrate::{Migration, migrate};
#[cfg(feature = "redb")]
use super::redb::RedbEngine;
use super::sled::SledEngine;
use super::slot::{Slot, SlotSpace};
use super::spaces::{Spaces, records_versions, remove_other_records};
use super::upkeep::{Health, Reopen, Upkeep};
use super::{Space, Store, StoreError};
use canopy_planner::chain;

/// What keeps the records on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreEngine {
    /// sled: small puts are fast.
    Sled,
    /// redb: one file, every put is a transaction with checksums.
    Redb,
}

impl StoreEngine {
    /// Name of the engine's files in a data directory.
    const fn file_name(self) -> &'static str {
        match self {
            Self::Sled => "store",
            Self::Redb => "store-redb",
        }
    }

    /// Name of the engine, as its flag takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sled => "sled",
            Self::Redb => "redb",
        }
    }
}

/// A data directory that has been opened, and what happened on the way. It is this process's as long as any of the
/// spaces lives.
pub struct Opened {
    /// In the order of [`Space::ALL`].
    pub(super) spaces: Vec<Arc<dyn Store>>,
    /// Under the keys of plans that are pinned: what of the summaries must outlive any of them.
    pub pins: Arc<dyn Store>,
    /// Where a database that could not be opened was moved, with the reason.
    pub moved_aside: Option<(PathBuf, String)>,
    /// What was brought up to date.
    pub migration: Option<Migration>,
    /// How far the database and the files beside it had to be brought in line.
    pub recovery: Recovery,
    /// Whether it can be written, and what to do until it can.
    pub upkeep: Upkeep,
}

/// What was done because the database and the files of records beside it did not agree: after a crash for a record or
/// two, for many where the database was damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that only the files knew, and that are served again.
    pub restored: usize,
    /// Records whose file is gone.
    pub lost: usize,
    /// Files that only the folder knew, and that are damaged.
    pub quarantined: usize,
}

impl Recovery {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Opened {
    /// One of the spaces.
    pub fn space(&self, space: Space) -> &Arc<dyn Store> {
        &self.spaces[space as usize]
    }

    /// One of the spaces, and nothing else: the others are closed.
    pub fn into_space(mut self, space: Space) -> Arc<dyn Store> {
        self.spaces.swap_remove(space as usize)
    }
}

/// Takes the lock of a data directory, creating it if needed, and opens the store in it.
///
/// A database that does not open is moved aside, and one with what can be saved of it takes its place; the other plans
/// can be computed again. Data of an older schema version is brought up to date first.
///
/// # Errors
/// [`StoreError::InUse`] when another process holds the directory; [`StoreError::Version`] when the data is of a
/// newer version; [`StoreError::OtherEngine`] when it is of another engine; otherwise what the file system said.
pub fn open_store(directory: &Path, engine: StoreEngine) -> Result<Opened, StoreError> {
    let lock = Arc::new(lock_directory(directory)?);
    match engine {
        StoreEngine::Sled => open_with::<SledEngine>(directory, engine, &lock),
        #[cfg(feature = "redb")]
        StoreEngine::Redb => open_with::<RedbEngine>(directory, engine, &lock),
        #[cfg(not(feature = "redb"))]
        StoreEngine::Redb => {
            Err(StoreError::NotBuilt { engine: engine.name(), directory: directory.display().to_string() })
        }
    }
}

/// What opening the data directory would bring up to date: `None` for nothing. Changes nothing.
///
/// # Errors
/// As [`open_store`]; a database that does not open is an error here.
pub fn pending_migration(directory: &Path, engine: StoreEngine) -> Result<Option<Pending>, StoreError> {
    let lock = Arc::new(lock_directory(directory)?);
    match engine {
        StoreEngine::Sled => pending_with::<SledEngine>(directory, engine, &lock),
        #[cfg(feature = "redb")]
        StoreEngine::Redb => pending_with::<RedbEngine>(directory, engine, &lock),
        #[cfg(not(feature = "redb"))]
        StoreEngine::Redb => {
            Err(StoreError::NotBuilt { engine: engine.name(), directory: directory.display().to_string() })
        }
    }
}

/// A migration that has not been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Version of the data.
    pub from: u32,
    /// Version it would have.
    pub to: u32,
    /// Records it would rewrite.
    pub records: usize,
}

/// An engine with files.
pub(super) trait Engine: Sized {
    /// One space of it. The files stay open as long as any lives.
    type Space: Store;

    /// Opens the files at this path with all spaces, or makes new ones.
    fn open(path: &Path, lock: &Arc<DirectoryLock>) -> Result<Self, OpenFailure>;

    /// One of its spaces.
    fn space(&self, space: Space) -> Self::Space;

    /// Copies those files of a damaged store that suffice to open another one; makes at least its directory.
    fn salvage(damaged: &Path, path: &Path) -> io::Result<()>;

    /// The schema version written last; `None` in a new store.
    fn schema_version(&self) -> Result<Option<u32>, StoreError>;

    /// Writes the schema version down; returns once it survives a crash.
    fn set_schema_version(&self, version: u32) -> Result<(), StoreError>;

    /// Returns once a store that has been dropped has let go of its files.
    fn wait_until_closed(path: &Path) -> io::Result<()>;
}

fn open_with<E: Engine + Send + Sync + 'static>(
    directory: &Path,
    engine: StoreEngine,
    lock: &Arc<DirectoryLock>,
) -> Result<Opened, StoreError> {
    let path = path_of(directory, engine)?;
    clean_up(&path).map_err(io_error(directory, "finishing an interrupted migration"))?;
    let (engine, moved_aside) = open_or_start_anew::<E>(directory, &path, lock)?;
    let (from, steps) = pending_steps(&engine, directory)?;
    let (engine, migration) = if steps.is_empty() {
        engine.set_schema_version(from)?;
        (engine, None)
    } else {
        let (engine, migration) = migrate(engine, directory, &path, lock, from, steps)?;
        (engine, Some(migration))
    };
    let health = Health::of(directory);
    let slot = Arc::new(Slot::new(engine, directory, &path, lock, health.clone()));
    let opened = Spaces::of(|space| SlotSpace::new(&slot, space), directory, current_version(), &health)?;
    let Spaces { spaces, pins, recovery, companions } = opened;
    if moved_aside.is_some() {
        health.damaged("database", 1);
    }
    companions.into_iter().for_each(|companion| slot.accompany(companion));
    let reopen: Weak<dyn Reopen> = Arc::downgrade(&(slot as Arc<dyn Reopen>));
    let upkeep = Upkeep::new(health, reopen);
    remove_other_records(directory, current_version()).map_err(io_error(directory, "finishing a migration"))?;
    Ok(Opened { spaces, pins, moved_aside, migration, recovery, upkeep })
}

/// What [`open_or_start_anew`] gives: the engine, and where a damaged database was moved, with the reason.
type Anew<E> = (E, Option<(PathBuf, String)>);

/// Opens the files at this path; those that are damaged are moved aside, and what can be saved of them takes their place.
pub(super) fn open_or_start_anew<E: Engine>(
    directory: &Path,
    path: &Path,
    lock: &Arc<DirectoryLock>,
) -> Result<Anew<E>, StoreError> {
    match open_sound::<E>(path, lock) {
        Ok(engine) => Ok((engine, None)),
        Err(OpenFailure::File(source)) => Err(io_error(directory, "opening it")(source)),
        Err(OpenFailure::Damaged(reason)) => {
            let aside = free_name(path);
            fs::rename(path, &aside).map_err(io_error(directory, "moving the damaged database aside"))?;
            Ok((start_anew(directory, path, &aside, lock)?, Some((aside, reason))))
        }
    }
}

/// Opens the files at this path and reads through all that is listed in them. Engines may fail, or panic, at a damaged
/// place only when they come to it: better now, when another database can take its place. O(records).
fn open_sound<E: Engine>(path: &Path, lock: &Arc<DirectoryLock>) -> Result<E, OpenFailure> {
    let engine = E::open(path, lock)?;
    let read_through = || -> Result<(), StoreError> {
        engine.schema_version()?;
        for space in Space::ALL {
            let space = engine.space(space);
            space.keys(None, usize::MAX)?;
            space.summaries(None, usize::MAX)?;
            space.quarantined_count()?;
        }
        Ok(())
    };
    match catch_unwind(AssertUnwindSafe(read_through)) {
        Ok(Ok(())) => Ok(engine),
        Ok(Err(error)) => Err(OpenFailure::Damaged(chain(&error))),
        Err(_) => Err(OpenFailure::Damaged("the engine could not make sense of what the files hold".to_owned())),
    }
}

/// Opens a store in place of a damaged one: with what can be saved of it, else an empty one.
fn start_anew<E: Engine>(
    directory: &Path,
    path: &Path,
    damaged: &Path,
    lock: &Arc<DirectoryLock>,
) -> Result<E, StoreError> {
    let failed = io_error(directory, "starting it anew");
    E::salvage(damaged, path).map_err(&failed)?;
    match open_sound::<E>(path, lock) {
        Ok(engine) => Ok(engine),
        Err(OpenFailure::File(source)) => Err(failed(source)),
        Err(OpenFailure::Damaged(_)) => {
            fs::remove_dir_all(path).map_err(&failed)?;
            E::open(path, lock).map_err(|failure| failed(failure.into()))
        }
    }
}

fn pending_with<E: Engine>(
    directory: &Path,
    engine: StoreEngine,
    lock: &Arc<DirectoryLock>,
) -> Result<Option<Pending>, StoreError> {
    let path = path_of(directory, engine)?;
    if !path.exists() {
        return Ok(None);
    }
    let engine = E::open(&path, lock).map_err(|failure| io_error(directory, "opening it")(failure.into()))?;
    let (from, steps) = pending_steps(&engine, directory)?;
    if steps.is_empty() {
        return Ok(None);
    }
    let mut records = 0;
    for space in Spaces::of(|space| engine.space(space), directory, from, &Health::of(directory))?.spaces {
        records += space.keys(None, usize::MAX)?.len();
    }
    Ok(Some(Pending { from, to: current_version(), records }))
}

/// The version of a store and the steps to the current one. A new database has that of the files it stands beside, if
/// there are any.
fn pending_steps(engine: &impl Engine, directory: &Path) -> Result<(u32, &'static [Version]), StoreError> {
    let found = match engine.schema_version()? {
        Some(found) => found,
        None => {
            let versions = records_versions(directory).map_err(io_error(directory, "listing its files"))?;
            versions.into_iter().max().unwrap_or(current_version())
        }
    };
    let version_error = |source| StoreError::Version { directory: directory.display().to_string(), source };
    Ok((found, steps_from(found).map_err(version_error)?))
}

/// Where the engine has its files. Those of another engine must not be passed over in silence.
fn path_of(directory: &Path, engine: StoreEngine) -> Result<PathBuf, StoreError> {
    let other = match engine {
        StoreEngine::Sled => StoreEngine::Redb,
        StoreEngine::Redb => StoreEngine::Sled,
    };
    let path = directory.join(engine.file_name());
    if !path.exists() && directory.join(other.file_name()).exists() {
        let directory = directory.display().to_string();
        return Err(StoreError::OtherEngine { directory, found: other.name(), asked: engine.name() });
    }
    Ok(path)
}

/// Names of a migration's files beside the store.
pub(super) struct Names {
    /// The new store while it is being written.
    pub(super) migrating: PathBuf,
    /// The new store when it is complete.
    pub(super) migrated: PathBuf,
    /// The old store, about to be removed.
    pub(super) old: PathBuf,
}

impl Names {
    pub(super) fn beside(path: &Path) -> Self {
        let with = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self { migrating: with(".migrating"), migrated: with(".migrated"), old: with(".old") }
    }
}

/// Finishes or undoes a migration that was interrupted. A new store counts once it bears the name of a complete one
/// and the old one is out of the way; until then the old one does, and the migration is done again.
fn clean_up(path: &Path) -> io::Result<()> {
    let names = Names::beside(path);
    if !path.exists() && names.migrated.exists() {
        fs::rename(&names.migrated, path)?;
    }
    for leftover in [names.migrating, names.migrated, names.old] {
        if leftover.exists() {
            fs::remove_dir_all(leftover)?;
        }
    }
    Ok(())
}

/// Held by the process that owns a data directory.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
}

/// Creates the directory for its owner alone, and locks it for as long as what is returned lives.
pub(super) fn lock_directory(directory: &Path) -> Result<DirectoryLock, StoreError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(io_error(directory, "creating its directory"))?;
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(directory.join("lock"));
    let file = file.map_err(io_error(directory, "opening its lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(DirectoryLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { directory: directory.display().to_string() }),
        Err(TryLockError::Error(source)) => Err(io_error(directory, "locking it")(source)),
    }
}

/// An error of the file system in a data directory.
pub(super) fn io_error(directory: &Path, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::Io { directory: directory.display().to_string(), doing, source }
}

/// Why a database did not open.
pub(super) enum OpenFailure {
    /// The file system refused: permissions, a full disk. Nothing is known to be wrong with the data.
    File(io::Error),
    /// The data cannot be read.
    Damaged(String),
}

impl OpenFailure {
    /// Tells an error of the environment from one of the data.
    pub(super) fn of_io(error: io::Error) -> Self {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull => Self::File(error),
            _ => Self::Damaged(error.to_string()),
        }
    }
}

impl From<OpenFailure> for io::Error {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::File(error) => error,
            OpenFailure::Damaged(reason) => Self::other(reason),
        }
    }
}

/// First name `….damaged-N` that is free.
fn free_name(path: &Path) -> PathBuf {
    (1_u32..)
        .map(|number| path.with_extension(format!("damaged-{number}")))
        .find(|path| !path.exists())
        .expect("a directory holds fewer than 2³² names")
}
