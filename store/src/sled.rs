//! The default engine: sled, with records cut into pieces.
//!
//! sled never gives back the space of values above about 130 kB, so none is larger than 64 KiB. Its `flush_async`
//! can deadlock and is never called. `flush` alone survives a killed process; the sync of the file after it survives
//! a power cut as well.

use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use canopy_planner::PlanKey;
use sled::transaction::{TransactionError, Transactional as _};
use sled::{Batch, Db, Tree};

use super::engine::{DirectoryLock, Engine, OpenFailure};
use super::{Durability, Space, Store, StoreError};

/// Greatest value given to sled, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Memory sled may use for pages; its own default of 1 GiB is out of proportion for a command-line process.
const CACHE_BYTES: u64 = 8 << 20;
const SCHEMA_VERSION: &[u8] = b"schema_version";

/// A sled database: the tree `meta`, and three trees per space.
#[derive(Debug)]
pub(super) struct SledEngine {
    /// In the order of [`Space::ALL`].
    trees: Vec<[Tree; 3]>,
    files: Arc<Files>,
}

/// What all spaces of a database share.
#[derive(Debug)]
struct Files {
    meta: Tree,
    database: Db,
    path: PathBuf,
    // Dropped last, when the database has let go of its files.
    _lock: Arc<DirectoryLock>,
}

/// One space: records and quarantine in pieces under key and number, and summaries.
#[derive(Debug)]
pub(super) struct SledSpace {
    records: Tree,
    summaries: Tree,
    quarantine: Tree,
    files: Arc<Files>,
}

impl Engine for SledEngine {
    type Space = SledSpace;

    fn open(path: &Path, lock: &Arc<DirectoryLock>) -> Result<Self, OpenFailure> {
        let database = open_database(path)?;
        let tree = |name: &str| database.open_tree(name).map_err(|error| OpenFailure::Damaged(error.to_string()));
        let meta = tree("meta")?;
        let mut trees = Vec::with_capacity(Space::ALL.len());
        for space in Space::ALL {
            let [records, summaries, quarantine] = space.trees();
            trees.push([tree(records)?, tree(summaries)?, tree(quarantine)?]);
        }
        let (path, lock) = (path.to_owned(), Arc::clone(lock));
        Ok(Self { trees, files: Arc::new(Files { meta, database, path, _lock: lock }) })
    }

    fn space(&self, space: Space) -> SledSpace {
        let [records, summaries, quarantine] = self.trees[space as usize].clone();
        SledSpace { records, summaries, quarantine, files: Arc::clone(&self.files) }
    }

    /// The log and its blobs hold all data; sled makes its configuration and its snapshots again.
    fn salvage(damaged: &Path, path: &Path) -> io::Result<()> {
        let blobs = path.join("blobs");
        fs::create_dir_all(&blobs)?;
        for blob in fs::read_dir(damaged.join("blobs")).into_iter().flatten() {
            let blob = blob?;
            fs::copy(blob.path(), blobs.join(blob.file_name()))?;
        }
        match fs::copy(damaged.join("db"), path.join("db")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn schema_version(&self) -> Result<Option<u32>, StoreError> {
        let bytes = self.files.meta.get(SCHEMA_VERSION).map_err(self.files.failed("reading its schema version"))?;
        // A value of another length is of no version that ever existed.
        Ok(bytes.map(|bytes| <[u8; 4]>::try_from(bytes.as_ref()).map_or(0, u32::from_be_bytes)))
    }

    fn set_schema_version(&self, version: u32) -> Result<(), StoreError> {
        let written = self.files.meta.insert(SCHEMA_VERSION, &version.to_be_bytes());
        written.map_err(self.files.failed("writing its schema version"))?;
        self.files.sync()
    }

    /// sled lets go of its files a moment after its last handle is gone.
    fn wait_until_closed(path: &Path) -> io::Result<()> {
        let file = File::open(path.join("db"))?;
        for _ in 0..LOCK_ATTEMPTS {
            if file.try_lock().is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "the database does not release its file"))
    }
}

impl Files {
    fn failed(&self, doing: &'static str) -> impl Fn(sled::Error) -> StoreError {
        move |source| StoreError::Engine { directory: self.path.display().to_string(), doing, source: Box::new(source) }
    }

    /// Makes everything written so far survive a killed process and a power cut.
    fn sync(&self) -> Result<(), StoreError> {
        self.database.flush().map_err(self.failed("flushing it"))?;
        let synced = File::open(self.path.join("db")).and_then(|file| file.sync_data());
        synced.map_err(|source| StoreError::Io {
            directory: self.path.display().to_string(),
            doing: "syncing its file",
            source,
        })
    }
}

impl SledSpace {
    fn failed(&self, doing: &'static str) -> impl Fn(sled::Error) -> StoreError {
        self.files.failed(doing)
    }

    fn transaction_failed(&self, doing: &'static str) -> impl Fn(TransactionError<()>) -> StoreError {
        move |error| match error {
            TransactionError::Storage(source) => self.failed(doing)(source),
            TransactionError::Abort(()) => unreachable!("no transaction of this module aborts"),
        }
    }

    /// Adds to `batch` the removal of every piece of a record.
    fn remove_into(&self, key: &PlanKey, batch: &mut Batch) -> Result<(), StoreError> {
        for piece in self.records.scan_prefix(key.as_bytes()).keys() {
            batch.remove(piece.map_err(self.failed("reading a record"))?);
        }
        Ok(())
    }

    /// The first key above `after` that a tree of pieces holds. Two look-ups, whatever the size of its record.
    fn next_key(&self, tree: &Tree, after: Option<&PlanKey>) -> Result<Option<PlanKey>, StoreError> {
        let found = match after {
            Some(key) => tree.get_gt(piece_key(key, u32::MAX)),
            None => tree.first(),
        };
        let found = found.map_err(self.failed("listing its records"))?;
        Ok(found.and_then(|(piece, _)| Some(PlanKey::from_bytes(*piece.first_chunk()?))))
    }
}

impl Store for SledSpace {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let mut record = None;
        for piece in self.records.scan_prefix(key.as_bytes()).values() {
            let piece = piece.map_err(self.failed("reading a record"))?;
            record.get_or_insert_with(Vec::new).extend_from_slice(&piece);
        }
        Ok(record)
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        // A shorter record must not keep the last pieces of a longer one.
        self.remove_into(key, &mut batch)?;
        for (number, piece) in (0_u32..).zip(record.chunks(PIECE_BYTES)) {
            batch.insert(piece_key(key, number).as_slice(), piece);
        }
        (&self.records, &self.summaries)
            .transaction(|(records, summaries)| {
                records.apply_batch(&batch)?;
                summaries.insert(key.as_bytes(), summary)?;
                Ok(())
            })
            .map_err(self.transaction_failed("writing a record"))?;
        self.files.sync()
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        let (mut pieces, mut summaries) = (Batch::default(), Batch::default());
        for (key, record) in records {
            self.remove_into(key, &mut pieces)?;
            for (number, piece) in (0_u32..).zip(record.chunks(PIECE_BYTES)) {
                pieces.insert(piece_key(key, number).as_slice(), piece);
            }
            summaries.insert(key.as_bytes(), &[]);
        }
        (&self.records, &self.summaries)
            .transaction(|(records_tree, summaries_tree)| {
                records_tree.apply_batch(&pieces)?;
                summaries_tree.apply_batch(&summaries)?;
                Ok(())
            })
            .map_err(self.transaction_failed("writing records"))?;
        self.files.sync()
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        for key in keys {
            let mut batch = Batch::default();
            self.remove_into(key, &mut batch)?;
            (&self.records, &self.summaries)
                .transaction(|(records, summaries)| {
                    records.apply_batch(&batch)?;
                    summaries.remove(key.as_bytes())?;
                    Ok(())
                })
                .map_err(self.transaction_failed("removing a record"))?;
        }
        self.files.sync()
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let (mut copies, mut removals) = (Batch::default(), Batch::default());
        for entry in self.records.scan_prefix(key.as_bytes()) {
            let (piece, value) = entry.map_err(self.failed("reading a record"))?;
            removals.remove(piece.clone());
            copies.insert(piece, value);
        }
        (&self.records, &self.summaries, &self.quarantine)
            .transaction(|(records, summaries, quarantine)| {
                quarantine.apply_batch(&copies)?;
                records.apply_batch(&removals)?;
                summaries.remove(key.as_bytes())?;
                Ok(())
            })
            .map_err(self.transaction_failed("quarantining a record"))?;
        self.files.sync()
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let summary = self.summaries.get(key.as_bytes()).map_err(self.failed("reading a summary"))?;
        Ok(summary.map(|bytes| bytes.to_vec()))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        for (key, summary) in summaries {
            batch.insert(key.as_bytes(), summary.as_slice());
        }
        self.summaries.apply_batch(batch).map_err(self.failed("writing summaries"))?;
        match durability {
            Durability::Synced => self.files.sync(),
            // sled writes what is pending twice a second.
            Durability::Lazy => Ok(()),
        }
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_bytes().as_slice()));
        let found = self.summaries.range::<&[u8], _>((from, Bound::Unbounded)).take(limit);
        let mut listed = Vec::new();
        for entry in found {
            let (key, summary) = entry.map_err(self.failed("listing its records"))?;
            // No other key is ever written.
            if let Ok(key) = <[u8; 32]>::try_from(key.as_ref()) {
                listed.push((PlanKey::from_bytes(key), summary.to_vec()));
            }
        }
        Ok(listed)
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let mut keys: Vec<PlanKey> = Vec::new();
        while keys.len() < limit
            && let Some(key) = self.next_key(&self.records, keys.last().or(after))?
        {
            keys.push(key);
        }
        Ok(keys)
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let (mut count, mut last) = (0, None);
        while let Some(key) = self.next_key(&self.quarantine, last.as_ref())? {
            count += 1;
            last = Some(key);
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

/// How often a file that another part of the process still holds is tried.
const LOCK_ATTEMPTS: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Opens the database at a path that this process has locked.
fn open_database(path: &Path) -> Result<Db, OpenFailure> {
    for attempt in 0.. {
        // sled panics on some damaged files instead of returning an error.
        let opened =
            catch_unwind(AssertUnwindSafe(|| sled::Config::new().path(path).cache_capacity(CACHE_BYTES).open()));
        match opened {
            Ok(Ok(database)) => return Ok(database),
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("could not acquire lock") => {
                if attempt == LOCK_ATTEMPTS {
                    return Err(OpenFailure::File(error));
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            Ok(Err(sled::Error::Io(error))) => return Err(OpenFailure::of_io(error)),
            Ok(Err(error)) => return Err(OpenFailure::Damaged(error.to_string())),
            Err(_) => return Err(OpenFailure::Damaged("the engine could not read the files".to_owned())),
        }
    }
    unreachable!("the loop returns after a bounded number of attempts")
}
