//! Spaces that several servers share: in a database, and what was read of it on the disk of each.

#[cfg(test)]
pub(crate) mod tests;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use canopy_database::{Change, Database, DatabaseError, Entry, Key, RecordFacts, SharedRecords, SharedSpace, Write};
use canopy_planner::{PlanKey, chain};

use super::others::{Others, ROLES};
use super::{Durability, Opened, Recovery, Space, Store, StoreError, Upkeep, ending, open_store};
use canopy_store::{DirectoryLock, JobEnd, lock_directory};

/// Where what was read of the database is kept: apart from the store of a server without one.
const CACHE: &str = "cache";

/// Where it is in the database which plans are pinned.
const PINS: i16 = 100;
/// Where it is in the database which numbers were given last: in the summary under the number of each space. Whoever
/// gives one, or removes records as of one moment, changes it.
const NUMBERS: i16 = 102;

/// The number of a space in a database that servers share. It stays the same for ever.
const fn number_of(space: Space) -> i16 {
    match space {
        Space::Plans => 1,
        Space::Topologies => 2,
        Space::Jobs => 3,
        Space::Requests => 4,
        Space::Schedules => 5,
        Space::Finds => 6,
        Space::Faults => 7,
        Space::Leases => 8,
        Space::Replans => 9,
        Space::Clusters => 10,
    }
}

/// Whether the records of a space are large, and kept on the disk once they were read. All others are in memory.
const fn is_cached(space: Space) -> bool {
    matches!(space, Space::Plans | Space::Topologies | Space::Schedules | Space::Clusters)
}

/// An error of the database as one of the store in it.
pub(crate) fn of_database(error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::Away { reason } => StoreError::Away { reason },
        DatabaseError::Overtaken => StoreError::Overtaken,
        DatabaseError::Fenced => StoreError::Fenced,
        DatabaseError::Refused { reason } | DatabaseError::Damaged { reason } => StoreError::Database { reason },
    }
}

/// Opens the spaces in a database, whose schema is made or brought up to date first, with a cache in the data directory.
///
/// # Errors
/// [`StoreError::InUse`] when another process holds the directory; otherwise the database, or the file system, failed.
pub fn open_shared_store(directory: &Path, database: &Database) -> Result<(Opened, Others), StoreError> {
    let lock = Arc::new(lock_directory(directory)?);
    let migrated = database.migrate().map_err(|error| StoreError::Database { reason: error.to_string() })?;
    if migrated.from != migrated.to {
        let (from, to) = (migrated.from, migrated.to);
        tracing::info!(from, to, "the schema of the database was migrated");
    }
    let cache = open_store(&directory.join(CACHE))?;
    let shared = SharedSpaces::open(database)?;
    let store = |space: SharedSpace, numbers: Option<Numbers>, cache: Option<Arc<dyn Store>>| -> Arc<dyn Store> {
        Arc::new(SharedStore { space, numbers, cache, _lock: Some(Arc::clone(&lock)) })
    };
    let mut spaces = Vec::new();
    for space in Space::ALL {
        let of_space = is_cached(space).then(|| Arc::clone(cache.space(space)));
        if let Some(cache) = &of_space {
            forget_removed(cache.as_ref(), &shared.space(space))?;
        }
        let numbers = (space == Space::Leases).then(|| shared.numbers(space));
        spaces.push(store(shared.space(space), numbers, of_space));
    }
    let Opened { moved_aside, migration, upkeep, .. } = cache;
    let pins = store(shared.pins(), None, None);
    let others = Others::of(&shared.records).map_err(of_database)?;
    Ok((Opened { spaces, pins, moved_aside, migration, recovery: Recovery::default(), upkeep }, others))
}

/// The spaces in a database, each by its name.
pub(crate) struct SharedSpaces {
    records: SharedRecords,
}

impl SharedSpaces {
    /// Opens those of a database whose schema is up to date. O(records).
    pub(crate) fn open(database: &Database) -> Result<Self, StoreError> {
        let numbers = Space::ALL.map(|space| (number_of(space), !is_cached(space)));
        let numbers: Vec<_> = numbers.into_iter().chain([(PINS, true), (ROLES, true), (NUMBERS, true)]).collect();
        Ok(Self { records: SharedRecords::open(database, &numbers).map_err(of_database)? })
    }

    /// One of them.
    pub(crate) fn space(&self, space: Space) -> SharedSpace {
        self.records.space(number_of(space))
    }

    /// That of the pins.
    pub(crate) fn pins(&self) -> SharedSpace {
        self.records.space(PINS)
    }

    /// The numbers that were given last in a space.
    fn numbers(&self, of: Space) -> Numbers {
        let key = PlanKey::numbered(number_of(of).unsigned_abs().into());
        Numbers { space: self.records.space(NUMBERS), key: *key.as_bytes() }
    }

    /// All of them as a store that keeps nothing on this machine: for maintenance, not for a server.
    pub(crate) fn uncached(&self) -> Opened {
        let store =
            |space| -> Arc<dyn Store> { Arc::new(SharedStore { space, numbers: None, cache: None, _lock: None }) };
        Opened {
            spaces: Space::ALL.map(|space| store(self.space(space))).into(),
            pins: store(self.pins()),
            moved_aside: None,
            migration: None,
            recovery: Recovery::default(),
            upkeep: Upkeep::none(),
        }
    }
}

/// Removes what is in the database no more.
fn forget_removed(cache: &dyn Store, space: &SharedSpace) -> Result<(), StoreError> {
    let keys: Vec<PlanKey> = cache.all_keys().collect::<Result<_, _>>()?;
    let gone: Vec<PlanKey> = keys.into_iter().filter(|key| space.entry(key.as_bytes()).is_none()).collect();
    cache.remove(&gone)
}

/// The last number that was given in a space.
struct Numbers {
    space: SharedSpace,
    key: Key,
}

impl Numbers {
    fn last(&self) -> u64 {
        let summary = self.space.entry(&self.key).and_then(|entry| entry.summary);
        summary.and_then(|summary| summary.first_chunk().copied()).map_or(0, u64::from_be_bytes)
    }

    /// Notes the number, if none was noted since this server last caught up.
    fn noting(&self, number: u64) -> (&SharedSpace, Change) {
        (&self.space, Change { key: self.key, write: Write::Summary(number.to_be_bytes().to_vec()) })
    }
}

/// A space of the database.
struct SharedStore {
    space: SharedSpace,
    /// Of a space whose records are numbered.
    numbers: Option<Numbers>,
    /// Records that were read or written here; what is not as the database says is not used.
    cache: Option<Arc<dyn Store>>,
    /// Of the directory of the cache.
    _lock: Option<Arc<DirectoryLock>>,
}

impl SharedStore {
    fn change(&self, keys: impl IntoIterator<Item = PlanKey>, write: &Write) -> Result<(), StoreError> {
        let changes = keys.into_iter().map(|key| Change { key: *key.as_bytes(), write: write.clone() });
        self.space.change(changes.collect()).map_err(of_database)
    }

    /// Keeps a record on the disk. Without it, it is read from the database again.
    fn cache(&self, key: &PlanKey, record: &[u8]) {
        if let Some(cache) = &self.cache
            && let Err(error) = cache.put_lazily(key, record, &[])
        {
            tracing::debug!(error = chain(&error), "a record of the database could not be cached");
        }
    }

    fn cached(&self, key: &PlanKey, facts: RecordFacts) -> Option<Vec<u8>> {
        let record = self.cache.as_ref()?.get(key).ok().flatten()?;
        (RecordFacts::of(&record) == facts).then_some(record)
    }

    fn forget(&self, keys: &[PlanKey]) {
        if let Some(cache) = &self.cache
            && let Err(error) = cache.remove(keys)
        {
            tracing::debug!(error = chain(&error), "records could not be removed from the cache");
        }
    }

    /// Those of the keys under which anything is.
    fn present(&self, keys: &[PlanKey]) -> Vec<PlanKey> {
        let mut present: Vec<PlanKey> = keys.to_vec();
        present.sort_unstable();
        present.dedup();
        present.retain(|key| self.space.entry(key.as_bytes()).is_some());
        present
    }
}

impl Store for SharedStore {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(Entry { record: Some(facts), .. }) = self.space.entry(key.as_bytes()) else { return Ok(None) };
        if let Some(record) = self.cached(key, facts) {
            return Ok(Some(record));
        }
        match self.space.record(key.as_bytes()) {
            Ok(Some(record)) => {
                self.cache(key, &record);
                Ok(Some(record))
            }
            // Whoever asked finds that it is damaged, and has it moved out of the way.
            Err(DatabaseError::Damaged { .. }) => Ok(Some(Vec::new())),
            other => other.map_err(of_database),
        }
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.change([*key], &Write::Put { record: record.to_vec(), summary: summary.to_vec() })?;
        self.cache(key, record);
        Ok(())
    }

    fn put_ending(&self, key: &PlanKey, record: &[u8], summary: &[u8], end: &dyn JobEnd) -> Result<(), StoreError> {
        let write = Write::Put { record: record.to_vec(), summary: summary.to_vec() };
        let end = (end as &dyn Any).downcast_ref::<ending::JobEnd>().ok_or(StoreError::Unkept)?;
        end.make(Some((&self.space, Change { key: *key.as_bytes(), write })))?;
        self.cache(key, record);
        Ok(())
    }

    fn put_next(&self, number: u64, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let write = Write::Put { record: record.to_vec(), summary: summary.to_vec() };
        let change = Change { key: *PlanKey::numbered(number).as_bytes(), write };
        let noted = self.numbers.as_ref().map(|numbers| numbers.noting(number));
        self.space.change_with(vec![change], noted).map_err(of_database)
    }

    fn last_number(&self) -> Result<u64, StoreError> {
        Ok(self.numbers.as_ref().map_or(0, Numbers::last))
    }

    fn remove_of_all(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let removed = |key: PlanKey| Change { key: *key.as_bytes(), write: Write::Remove };
        let changes = self.present(keys).into_iter().map(removed).collect();
        let noted = self.numbers.as_ref().map(|numbers| numbers.noting(numbers.last()));
        self.space.change_with(changes, noted).map_err(of_database)
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        let put = |(key, record): &(PlanKey, Vec<u8>)| Change {
            key: *key.as_bytes(),
            write: Write::Put { record: record.clone(), summary: Vec::new() },
        };
        self.space.change(records.iter().map(put).collect()).map_err(of_database)
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let present = self.present(keys);
        self.change(present.iter().copied(), &Write::Remove)?;
        self.forget(&present);
        Ok(())
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let present = self.present(&[*key]);
        self.change(present.iter().copied(), &Write::Quarantine)?;
        self.forget(&present);
        Ok(())
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let entry = self.space.entry(key.as_bytes());
        Ok(entry.and_then(|entry| entry.summary).map(|summary| summary.to_vec()))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], _: Durability) -> Result<(), StoreError> {
        let change = |(key, summary): &(PlanKey, Vec<u8>)| Change {
            key: *key.as_bytes(),
            write: Write::Summary(summary.clone()),
        };
        self.space.change(summaries.iter().map(change).collect()).map_err(of_database)
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let found = self.space.entries(after.map(PlanKey::as_bytes), limit, |entry| entry.summary.is_some());
        let summary = |(key, entry): ([u8; 32], Entry)| Some((PlanKey::from_bytes(key), entry.summary?.to_vec()));
        Ok(found.into_iter().filter_map(summary).collect())
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let found = self.space.entries(after.map(PlanKey::as_bytes), limit, |entry| entry.record.is_some());
        Ok(found.into_iter().map(|(key, _)| PlanKey::from_bytes(key)).collect())
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let count = self.space.quarantined_count().map_err(of_database)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn catch_up(&self) -> Vec<PlanKey> {
        if let Some(numbers) = &self.numbers {
            // First: whatever number is known then, so is what it was given to.
            numbers.space.catch_up();
        }
        let changed: Vec<PlanKey> = self.space.catch_up().into_iter().map(PlanKey::from_bytes).collect();
        let is_gone = |key: &&PlanKey| self.space.entry(key.as_bytes()).is_none();
        let gone: Vec<PlanKey> = changed.iter().filter(is_gone).copied().collect();
        if !gone.is_empty() {
            self.forget(&gone);
        }
        changed
    }
}
