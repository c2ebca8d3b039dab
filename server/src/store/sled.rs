//! The embedded store: sled, with records cut into pieces.
//!
//! sled never gives back the space of values above about 130 kB, so none is larger than 64 KiB. Its `flush_async`
//! can deadlock and is never called. `flush` alone survives a killed process; the sync of the file after it survives
//! a power cut as well.

use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_migrations::{current_version, steps_from};
use sled::{Batch, Db, Tree};

use super::{Store, StoreError};
use crate::key::PlanKey;

/// Greatest value given to sled, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Memory sled may use for pages; its own default of 1 GiB is out of proportion for a command-line process.
const CACHE_BYTES: u64 = 64 << 20;
const SCHEMA_VERSION: &[u8] = b"schema_version";

/// Records in a sled database below a data directory that this process alone owns.
#[derive(Debug)]
pub struct SledStore {
    // Dropped in this order: the lock last, when the database has let go of its files.
    records: Tree,
    quarantine: Tree,
    database: Db,
    directory: PathBuf,
    _lock: File,
}

/// A store that has been opened, and what happened to the one that was there before.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: SledStore,
    /// Where a database that could not be opened was moved, with the reason.
    pub moved_aside: Option<(PathBuf, String)>,
}

impl SledStore {
    /// Takes the lock of a data directory, creating it if needed, and opens the store in it.
    ///
    /// A database that does not open is moved aside, and an empty one takes its place: plans can be computed again.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process holds the directory; [`StoreError::Version`] when the data is of a
    /// newer version; otherwise what the file system said.
    pub fn open(directory: &Path) -> Result<Opened, StoreError> {
        let lock = lock_directory(directory)?;
        let path = directory.join("store");
        let io_error =
            |doing| move |source| StoreError::Io { directory: directory.display().to_string(), doing, source };
        let (database, moved_aside) = match open_database(&path) {
            Ok(database) => (database, None),
            Err(OpenFailure::File(source)) => return Err(io_error("opening it")(source)),
            Err(OpenFailure::Damaged(reason)) => {
                let aside = free_name(directory);
                fs::rename(&path, &aside).map_err(io_error("moving the damaged database aside"))?;
                let database = open_database(&path).map_err(|failure| io_error("starting it anew")(failure.into()))?;
                (database, Some((aside, reason)))
            }
        };
        let engine_error =
            |doing| move |source| StoreError::Engine { directory: directory.display().to_string(), doing, source };
        check_version(&database, directory)?;
        let records = database.open_tree("records").map_err(engine_error("opening its records"))?;
        let quarantine = database.open_tree("quarantine").map_err(engine_error("opening its quarantine"))?;
        let store = Self { records, quarantine, database, directory: directory.to_owned(), _lock: lock };
        Ok(Opened { store, moved_aside })
    }

    fn engine_error(&self, doing: &'static str) -> impl Fn(sled::Error) -> StoreError {
        move |source| StoreError::Engine { directory: self.directory.display().to_string(), doing, source }
    }

    /// Makes everything written so far survive a killed process and a power cut.
    fn sync(&self) -> Result<(), StoreError> {
        self.database.flush().map_err(self.engine_error("flushing it"))?;
        let file = self.directory.join("store").join("db");
        File::open(file).and_then(|file| file.sync_data()).map_err(|source| StoreError::Io {
            directory: self.directory.display().to_string(),
            doing: "syncing its file",
            source,
        })
    }

    /// Adds to `batch` the removal of every piece of a record.
    fn remove_into(&self, key: &PlanKey, batch: &mut Batch) -> Result<(), StoreError> {
        for piece in self.records.scan_prefix(key.as_bytes()).keys() {
            batch.remove(piece.map_err(self.engine_error("reading a record"))?);
        }
        Ok(())
    }
}

impl Store for SledStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let mut record = None;
        for piece in self.records.scan_prefix(key.as_bytes()).values() {
            let piece = piece.map_err(self.engine_error("reading a record"))?;
            record.get_or_insert_with(Vec::new).extend_from_slice(&piece);
        }
        Ok(record)
    }

    fn put(&self, key: &PlanKey, record: &[u8]) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        // A shorter record must not keep the last pieces of a longer one.
        self.remove_into(key, &mut batch)?;
        for (number, piece) in (0_u32..).zip(record.chunks(PIECE_BYTES)) {
            batch.insert(piece_key(key, number).as_slice(), piece);
        }
        self.records.apply_batch(batch).map_err(self.engine_error("writing a record"))?;
        self.sync()
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let mut copies = Batch::default();
        for entry in self.records.scan_prefix(key.as_bytes()) {
            let (piece, value) = entry.map_err(self.engine_error("reading a record"))?;
            copies.insert(piece, value);
        }
        self.quarantine.apply_batch(copies).map_err(self.engine_error("quarantining a record"))?;
        let mut removals = Batch::default();
        self.remove_into(key, &mut removals)?;
        self.records.apply_batch(removals).map_err(self.engine_error("quarantining a record"))?;
        self.sync()
    }

    fn count(&self) -> Result<usize, StoreError> {
        let mut count = 0;
        for piece in self.records.iter().keys() {
            let piece = piece.map_err(self.engine_error("counting its records"))?;
            count += usize::from(piece.ends_with(&0_u32.to_be_bytes()));
        }
        Ok(count)
    }
}

/// Key of one piece: the record's key and the big-endian number, so that a scan yields pieces in order.
fn piece_key(key: &PlanKey, number: u32) -> [u8; 36] {
    let mut bytes = [0; 36];
    bytes[..32].copy_from_slice(key.as_bytes());
    bytes[32..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Creates the directory for its owner alone, and locks it for as long as the file returned lives.
fn lock_directory(directory: &Path) -> Result<File, StoreError> {
    let io_error = |doing| move |source| StoreError::Io { directory: directory.display().to_string(), doing, source };
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(io_error("creating its directory"))?;
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(directory.join("lock"));
    let file = file.map_err(io_error("opening its lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { directory: directory.display().to_string() }),
        Err(TryLockError::Error(source)) => Err(io_error("locking it")(source)),
    }
}

/// Why a database did not open.
enum OpenFailure {
    /// The file system refused: permissions, a full disk. Nothing is known to be wrong with the data.
    File(io::Error),
    /// The data cannot be read.
    Damaged(String),
}

impl From<OpenFailure> for io::Error {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::File(error) => error,
            OpenFailure::Damaged(reason) => Self::other(reason),
        }
    }
}

/// Opens the database at a path that this process has locked.
fn open_database(path: &Path) -> Result<Db, OpenFailure> {
    // sled keeps its own lock for a moment after the last handle in an ended process part is gone.
    const ATTEMPTS: u32 = 40;
    for attempt in 0.. {
        // sled panics on some damaged files instead of returning an error.
        let opened =
            catch_unwind(AssertUnwindSafe(|| sled::Config::new().path(path).cache_capacity(CACHE_BYTES).open()));
        match opened {
            Ok(Ok(database)) => return Ok(database),
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("could not acquire lock") => {
                if attempt == ATTEMPTS {
                    return Err(OpenFailure::File(error));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(Err(sled::Error::Io(error))) if is_environment(&error) => return Err(OpenFailure::File(error)),
            Ok(Err(error)) => return Err(OpenFailure::Damaged(error.to_string())),
            Err(_) => return Err(OpenFailure::Damaged("the engine could not make sense of the files".to_owned())),
        }
    }
    unreachable!("the loop returns after a bounded number of attempts")
}

/// Whether an error speaks of the environment and not of the data.
fn is_environment(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// First name `store.damaged-N` that is free.
fn free_name(directory: &Path) -> PathBuf {
    (1_u32..)
        .map(|number| directory.join(format!("store.damaged-{number}")))
        .find(|path| !path.exists())
        .expect("a directory holds fewer than 2³² names")
}

/// Writes the schema version into an empty database, and refuses one of a newer version.
fn check_version(database: &Db, directory: &Path) -> Result<(), StoreError> {
    let engine_error = |source| StoreError::Engine {
        directory: directory.display().to_string(),
        doing: "reading its schema version",
        source,
    };
    let meta = database.open_tree("meta").map_err(engine_error)?;
    let Some(bytes) = meta.get(SCHEMA_VERSION).map_err(engine_error)? else {
        meta.insert(SCHEMA_VERSION, &current_version().to_be_bytes()).map_err(engine_error)?;
        return Ok(());
    };
    // A value of another length is of no version that ever existed.
    let found = <[u8; 4]>::try_from(bytes.as_ref()).map_or(0, u32::from_be_bytes);
    let version_error = |source| StoreError::Version { directory: directory.display().to_string(), source };
    let steps = steps_from(found).map_err(version_error)?;
    assert!(steps.is_empty(), "version 1 is both the first and the current one");
    Ok(())
}
