//! The other engine: redb, one file, every change a transaction.
//!
//! Each page carries a checksum. Slower than sled for small puts, since each really waits for the disk.

use std::error::Error;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use canopy_planner::{PlanKey, chain};
use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};

use super::engine::{DirectoryLock, Engine, OpenFailure};
use super::{Durability, Space, Store, StoreError};

/// Whole values: redb gives back the space of large ones.
type Bytes = TableDefinition<'static, [u8; 32], &'static [u8]>;

const META: TableDefinition<'static, &str, u32> = TableDefinition::new("meta");
const SCHEMA_VERSION: &str = "schema_version";
/// Memory for pages; its own default of 1 GiB is out of proportion for a command-line process.
const CACHE_BYTES: usize = 8 << 20;

/// A redb database: the file `db` in a directory of its own, with the table `meta` and three tables per space.
pub(super) struct RedbEngine {
    files: Arc<Files>,
}

/// What all spaces of a database share.
struct Files {
    database: Database,
    path: PathBuf,
    // Dropped last, when the database has let go of its file.
    _lock: Arc<DirectoryLock>,
}

/// One space.
pub(super) struct RedbSpace {
    records: Bytes,
    summaries: Bytes,
    quarantine: Bytes,
    files: Arc<Files>,
}

/// What any call of the engine can fail with.
type Failure = Box<dyn Error + Send + Sync>;

impl Engine for RedbEngine {
    type Space = RedbSpace;

    fn open(path: &Path, lock: &Arc<DirectoryLock>) -> Result<Self, OpenFailure> {
        // redb may panic on a damaged file instead of returning an error, at its first use if not before.
        catch_unwind(AssertUnwindSafe(|| Self::open_files(path, lock)))
            .unwrap_or_else(|_| Err(OpenFailure::Damaged("the engine could not read the file".to_owned())))
    }

    fn space(&self, space: Space) -> RedbSpace {
        let [records, summaries, quarantine] = space.trees().map(Bytes::new);
        RedbSpace { records, summaries, quarantine, files: Arc::clone(&self.files) }
    }

    /// There is one file, and it could not be opened.
    fn salvage(_: &Path, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn schema_version(&self) -> Result<Option<u32>, StoreError> {
        let read = || -> Result<_, Failure> {
            let meta = self.files.database.begin_read()?.open_table(META)?;
            Ok(meta.get(SCHEMA_VERSION)?.map(|version| version.value()))
        };
        read().map_err(self.files.failed("reading its schema version"))
    }

    fn set_schema_version(&self, version: u32) -> Result<(), StoreError> {
        let written = self.files.write(Durability::Synced, |transaction| {
            transaction.open_table(META)?.insert(SCHEMA_VERSION, version)?;
            Ok(())
        });
        written.map_err(self.files.failed("writing its schema version"))
    }

    fn wait_until_closed(_: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl RedbEngine {
    /// Opens the file and looks at what every start needs of it.
    fn open_files(path: &Path, lock: &Arc<DirectoryLock>) -> Result<Self, OpenFailure> {
        fs::create_dir_all(path).map_err(OpenFailure::of_io)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let mut database = match builder.create(path.join("db")) {
            Ok(database) => database,
            Err(redb::DatabaseError::Storage(redb::StorageError::Io(error))) => return Err(OpenFailure::of_io(error)),
            Err(error) => return Err(OpenFailure::Damaged(error.to_string())),
        };
        // Its pages have checksums, but are taken on trust otherwise.
        database.check_integrity().map_err(|error| OpenFailure::Damaged(error.to_string()))?;
        let files = Files { database, path: path.to_owned(), _lock: Arc::clone(lock) };
        let made = files.write(Durability::Synced, |transaction| {
            for name in Space::ALL.into_iter().flat_map(Space::trees) {
                transaction.open_table(Bytes::new(name))?;
            }
            transaction.open_table(META)?;
            Ok(())
        });
        made.map_err(|error| OpenFailure::Damaged(error.to_string()))?;
        let engine = Self { files: Arc::new(files) };
        engine.schema_version().map_err(|error| OpenFailure::Damaged(chain(&error)))?;
        Ok(engine)
    }
}

impl Files {
    fn failed(&self, doing: &'static str) -> impl Fn(Failure) -> StoreError {
        move |source| StoreError::Engine { directory: self.path.display().to_string(), doing, source }
    }

    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(match durability {
            Durability::Synced => redb::Durability::Immediate,
            Durability::Lazy => redb::Durability::None,
        })?;
        change(&transaction)?;
        Ok(transaction.commit()?)
    }

    fn read_one(&self, table: Bytes, key: &PlanKey) -> Result<Option<Vec<u8>>, Failure> {
        let table = self.database.begin_read()?.open_table(table)?;
        Ok(table.get(key.as_bytes())?.map(|value| value.value().to_vec()))
    }

    /// What `pick` takes from at most `limit` entries of a table behind a key.
    fn read_range<T>(
        &self,
        table: Bytes,
        after: Option<&PlanKey>,
        limit: usize,
        pick: impl Fn(PlanKey, &[u8]) -> T,
    ) -> Result<Vec<T>, Failure> {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_bytes()));
        let table = self.database.begin_read()?.open_table(table)?;
        let mut picked = Vec::new();
        for entry in table.range::<&[u8; 32]>((from, Bound::Unbounded))?.take(limit) {
            let (key, value) = entry?;
            picked.push(pick(PlanKey::from_bytes(key.value()), value.value()));
        }
        Ok(picked)
    }
}

impl Store for RedbSpace {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.files.read_one(self.records, key).map_err(self.files.failed("reading a record"))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let written = self.files.write(Durability::Synced, |transaction| {
            transaction.open_table(self.records)?.insert(key.as_bytes(), record)?;
            transaction.open_table(self.summaries)?.insert(key.as_bytes(), summary)?;
            Ok(())
        });
        written.map_err(self.files.failed("writing a record"))
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        let written = self.files.write(Durability::Synced, |transaction| {
            let (mut table, mut summaries) =
                (transaction.open_table(self.records)?, transaction.open_table(self.summaries)?);
            for (key, record) in records {
                table.insert(key.as_bytes(), record.as_slice())?;
                summaries.insert(key.as_bytes(), [].as_slice())?;
            }
            Ok(())
        });
        written.map_err(self.files.failed("writing records"))
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let removed = self.files.write(Durability::Synced, |transaction| {
            let (mut records, mut summaries) =
                (transaction.open_table(self.records)?, transaction.open_table(self.summaries)?);
            for key in keys {
                records.remove(key.as_bytes())?;
                summaries.remove(key.as_bytes())?;
            }
            Ok(())
        });
        removed.map_err(self.files.failed("removing records"))
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let moved = self.files.write(Durability::Synced, |transaction| {
            transaction.open_table(self.summaries)?.remove(key.as_bytes())?;
            if let Some(record) = transaction.open_table(self.records)?.remove(key.as_bytes())? {
                transaction.open_table(self.quarantine)?.insert(key.as_bytes(), record.value())?;
            }
            Ok(())
        });
        moved.map_err(self.files.failed("quarantining a record"))
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.files.read_one(self.summaries, key).map_err(self.files.failed("reading a summary"))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        let written = self.files.write(durability, |transaction| {
            let mut table = transaction.open_table(self.summaries)?;
            for (key, summary) in summaries {
                table.insert(key.as_bytes(), summary.as_slice())?;
            }
            Ok(())
        });
        written.map_err(self.files.failed("writing summaries"))
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let found = self.files.read_range(self.summaries, after, limit, |key, summary| (key, summary.to_vec()));
        found.map_err(self.files.failed("listing its records"))
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.files
            .read_range(self.records, after, limit, |key, _| key)
            .map_err(self.files.failed("listing its records"))
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let read =
            || -> Result<u64, Failure> { Ok(self.files.database.begin_read()?.open_table(self.quarantine)?.len()?) };
        Ok(read().map_err(self.files.failed("counting its quarantine"))?.try_into().unwrap_or(usize::MAX))
    }
}
