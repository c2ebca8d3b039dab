//! An engine with files: opened under the lock of its directory, and started anew where its files are damaged.

use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use canopy_planner::chain;

use super::{Space, Store, StoreError};

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
        Err(_) => Err(OpenFailure::Damaged("the engine could not read the files".to_owned())),
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

/// How often it is tried to lock a directory: a process that this one has just started shares its locks until it runs another
/// program.
const LOCK_ATTEMPTS: usize = 10;
/// Time between two attempts.
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// Held by the process that owns a data directory.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Creates the directory for its owner alone, and locks it for as long as what is returned lives.
pub fn lock_directory(directory: &Path) -> Result<DirectoryLock, StoreError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(io_error(directory, "creating its directory"))?;
    #[cfg(unix)]
    keep_to_owner(directory)?;
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(directory.join("lock"));
    let file = file.map_err(io_error(directory, "opening its lock"))?;
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(DirectoryLock { _file: file }),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_INTERVAL),
            Err(TryLockError::Error(source)) => return Err(io_error(directory, "locking it")(source)),
        }
    }
    Err(StoreError::InUse { directory: directory.display().to_string() })
}

/// Sees to it that other users neither change nor read what a directory holds. A group may have its part in it, as where
/// containers get their volumes so.
#[cfg(unix)]
fn keep_to_owner(directory: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let metadata = fs::metadata(directory).map_err(io_error(directory, "looking at it"))?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(StoreError::OpenToAll { directory: directory.display().to_string(), mode: mode & 0o777 });
    }
    // Where it is another user's, that user decides who reads it.
    if mode & 0o007 != 0 && metadata.uid() == rustix::process::geteuid().as_raw() {
        let closed = fs::Permissions::from_mode(mode & !0o007);
        fs::set_permissions(directory, closed).map_err(io_error(directory, "closing it to other users"))?;
        tracing::info!(directory = %directory.display(), "other users could read the data directory; it is closed to them now");
    }
    Ok(())
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
