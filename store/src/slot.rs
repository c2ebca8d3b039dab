//! An engine in its place: closed and opened again there when it has failed, without anybody else having to know.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use canopy_planner::PlanKey;
use parking_lot::{Mutex, RwLock};

use super::engine::{DirectoryLock, Engine, io_error, open_or_start_anew};
use super::upkeep::{Health, Reopen};
use super::{Durability, Space, Store, StoreError};

/// The place of an engine.
pub(super) struct Slot<E> {
    directory: PathBuf,
    path: PathBuf,
    lock: Arc<DirectoryLock>,
    /// None: it could not be opened again yet.
    engine: RwLock<Option<E>>,
    health: Health,
    companions: Mutex<Vec<Weak<dyn Companion>>>,
}

/// Something beside an engine that must agree with it.
pub(super) trait Companion: Send + Sync {
    /// Makes both agree after the disk has refused something: with an engine that was opened again, or with itself.
    fn agree(&self, was_reopened: bool) -> Result<(), StoreError>;
}

impl<E: Engine + Send + Sync + 'static> Slot<E> {
    pub(super) fn new(engine: E, directory: &Path, path: &Path, lock: &Arc<DirectoryLock>, health: Health) -> Self {
        let (directory, path, lock) = (directory.to_owned(), path.to_owned(), Arc::clone(lock));
        Self { directory, path, lock, engine: RwLock::new(Some(engine)), health, companions: Mutex::default() }
    }

    /// Has something brought in line whenever the engine was opened again.
    pub(super) fn accompany(&self, companion: Weak<dyn Companion>) {
        self.companions.lock().push(companion);
    }
}

impl<E: Engine + Send + Sync + 'static> Reopen for Slot<E> {
    fn reopen(&self) -> Result<(), StoreError> {
        let mut engine = self.engine.write();
        drop(engine.take());
        E::wait_until_closed(&self.path).map_err(io_error(&self.directory, "closing it"))?;
        let (opened, moved_aside) = open_or_start_anew::<E>(&self.directory, &self.path, &self.lock)?;
        if let Some((path, reason)) = moved_aside {
            tracing::error!(path = %path.display(), reason, "the store was damaged and was moved aside");
        }
        // Not before it has been shown to take what is written.
        opened.set_schema_version(canopy_migrations::current_version())?;
        *engine = Some(opened);
        Ok(())
    }

    fn settle(&self, was_reopened: bool) -> Result<(), StoreError> {
        let companions = self.companions.lock().clone();
        companions.iter().filter_map(Weak::upgrade).try_for_each(|companion| companion.agree(was_reopened))
    }
}

/// One space of the engine that is in its place at the time.
pub(super) struct SlotSpace<E> {
    slot: Arc<Slot<E>>,
    space: Space,
}

impl<E: Engine + Send + Sync + 'static> SlotSpace<E> {
    pub(super) fn new(slot: &Arc<Slot<E>>, space: Space) -> Self {
        Self { slot: Arc::clone(slot), space }
    }

    fn read<T>(&self, read: impl FnOnce(&E::Space) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let engine = self.slot.engine.read();
        match &*engine {
            Some(engine) => read(&engine.space(self.space)),
            None => Err(self.slot.health.refusal().unwrap_or_else(|| {
                io_error(&self.slot.directory, "opening it again")(std::io::Error::other("it is closed"))
            })),
        }
    }

    /// Nothing is changed in an engine that has failed: whether that would ever be on the disk, nobody could tell.
    fn write(&self, write: impl FnOnce(&E::Space) -> Result<(), StoreError>) -> Result<(), StoreError> {
        match self.slot.health.refusal() {
            Some(refusal) => Err(refusal),
            None => self.read(write).inspect_err(|error| self.slot.health.engine_failed(error)),
        }
    }
}

impl<E: Engine + Send + Sync + 'static> Store for SlotSpace<E> {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|space| space.get(key))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.write(|space| space.put(key, record, summary))
    }

    fn put_lazily(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.write(|space| space.put_lazily(key, record, summary))
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        self.write(|space| space.put_all(records))
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.write(|space| space.remove(keys))
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        self.slot.health.damaged(self.space.name(), 1);
        self.write(|space| space.quarantine(key))
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|space| space.summary(key))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        self.write(|space| space.set_summaries(summaries, durability))
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        self.read(|space| space.summaries(after, limit))
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.read(|space| space.keys(after, limit))
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        self.read(|space| space.quarantined_count())
    }
}
