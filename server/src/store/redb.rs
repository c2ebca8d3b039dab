//! The other engine: redb, one file, every change a transaction.
//!
//! Each page carries a checksum. Slower than sled for small puts, since each really waits for the disk.

use std::error::Error;
use std::fs;
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};

use super::directory::{DirectoryLock, DiskStore, OpenFailure};
use super::{Durability, Store, StoreError};
use crate::key::PlanKey;

/// Whole values: redb gives back the space of large ones.
type Bytes = TableDefinition<'static, [u8; 32], &'static [u8]>;

const RECORDS: Bytes = TableDefinition::new("records");
const SUMMARIES: Bytes = TableDefinition::new("summaries");
const QUARANTINE: Bytes = TableDefinition::new("quarantine");
const META: TableDefinition<'static, &str, u32> = TableDefinition::new("meta");
const SCHEMA_VERSION: &str = "schema_version";
/// Memory for pages; its own default of 1 GiB is out of proportion for a command-line process.
const CACHE_BYTES: usize = 64 << 20;

/// Records in a redb database: the file `db` in a directory of its own.
pub(super) struct RedbStore {
    database: Database,
    path: PathBuf,
    // Dropped last, when the database has let go of its file.
    _lock: Arc<DirectoryLock>,
}

/// What any call of the engine can fail with.
type Failure = Box<dyn Error + Send + Sync>;

impl DiskStore for RedbStore {
    fn open(path: &Path, lock: &Arc<DirectoryLock>) -> Result<Self, OpenFailure> {
        fs::create_dir_all(path).map_err(OpenFailure::of_io)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        // redb may panic on a damaged file instead of returning an error.
        let opened = catch_unwind(AssertUnwindSafe(|| builder.create(path.join("db"))));
        let database = match opened {
            Ok(Ok(database)) => database,
            Ok(Err(redb::DatabaseError::Storage(redb::StorageError::Io(error)))) => {
                return Err(OpenFailure::of_io(error));
            }
            Ok(Err(error)) => return Err(OpenFailure::Damaged(error.to_string())),
            Err(_) => return Err(OpenFailure::Damaged("the engine could not make sense of the file".to_owned())),
        };
        let store = Self { database, path: path.to_owned(), _lock: Arc::clone(lock) };
        let made = store.write(Durability::Synced, |transaction| {
            for table in [RECORDS, SUMMARIES, QUARANTINE] {
                transaction.open_table(table)?;
            }
            transaction.open_table(META)?;
            Ok(())
        });
        made.map_err(|error| OpenFailure::Damaged(error.to_string()))?;
        Ok(store)
    }

    /// There is one file, and it could not be opened.
    fn salvage(_: &Path, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn schema_version(&self) -> Result<Option<u32>, StoreError> {
        let read = || -> Result<_, Failure> {
            let meta = self.database.begin_read()?.open_table(META)?;
            Ok(meta.get(SCHEMA_VERSION)?.map(|version| version.value()))
        };
        read().map_err(self.failed("reading its schema version"))
    }

    fn set_schema_version(&self, version: u32) -> Result<(), StoreError> {
        let written = self.write(Durability::Synced, |transaction| {
            transaction.open_table(META)?.insert(SCHEMA_VERSION, version)?;
            Ok(())
        });
        written.map_err(self.failed("writing its schema version"))
    }

    fn wait_until_closed(_: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl RedbStore {
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

impl Store for RedbStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_one(RECORDS, key).map_err(self.failed("reading a record"))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let written = self.write(Durability::Synced, |transaction| {
            transaction.open_table(RECORDS)?.insert(key.as_bytes(), record)?;
            transaction.open_table(SUMMARIES)?.insert(key.as_bytes(), summary)?;
            Ok(())
        });
        written.map_err(self.failed("writing a record"))
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let removed = self.write(Durability::Synced, |transaction| {
            let (mut records, mut summaries) = (transaction.open_table(RECORDS)?, transaction.open_table(SUMMARIES)?);
            for key in keys {
                records.remove(key.as_bytes())?;
                summaries.remove(key.as_bytes())?;
            }
            Ok(())
        });
        removed.map_err(self.failed("removing records"))
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let moved = self.write(Durability::Synced, |transaction| {
            transaction.open_table(SUMMARIES)?.remove(key.as_bytes())?;
            if let Some(record) = transaction.open_table(RECORDS)?.remove(key.as_bytes())? {
                transaction.open_table(QUARANTINE)?.insert(key.as_bytes(), record.value())?;
            }
            Ok(())
        });
        moved.map_err(self.failed("quarantining a record"))
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_one(SUMMARIES, key).map_err(self.failed("reading a summary"))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        let written = self.write(durability, |transaction| {
            let mut table = transaction.open_table(SUMMARIES)?;
            for (key, summary) in summaries {
                table.insert(key.as_bytes(), summary.as_slice())?;
            }
            Ok(())
        });
        written.map_err(self.failed("writing summaries"))
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let found = self.read_range(SUMMARIES, after, limit, |key, summary| (key, summary.to_vec()));
        found.map_err(self.failed("listing its records"))
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.read_range(RECORDS, after, limit, |key, _| key).map_err(self.failed("listing its records"))
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let read = || -> Result<u64, Failure> { Ok(self.database.begin_read()?.open_table(QUARANTINE)?.len()?) };
        Ok(read().map_err(self.failed("counting its quarantine"))?.try_into().unwrap_or(usize::MAX))
    }
}
