//! Engines that fail, and are opened again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Weak};

use super::super::engine::{DirectoryLock, Engine, OpenFailure, lock_directory};
use super::super::filed::FiledSpace;
use super::super::slot::{Slot, SlotSpace};
use super::super::upkeep::{Health, Reopen};
use super::*;

/// Whether there is room, and what is on the disk.
#[derive(Default)]
struct Disk {
    is_full: AtomicBool,
    spaces: Mutex<BTreeMap<Space, Arc<MemoryStore>>>,
}

thread_local! {
    /// That of the engine that is opened next on this thread.
    static DISK: RefCell<Arc<Disk>> = RefCell::default();
}

/// An engine that fails for good as soon as the disk is full once, until it is opened again.
struct Flaky {
    disk: Arc<Disk>,
    has_failed: Arc<AtomicBool>,
}

struct FlakySpace {
    disk: Arc<Disk>,
    has_failed: Arc<AtomicBool>,
    held: Arc<MemoryStore>,
}

fn full() -> StoreError {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    StoreError::Io { directory: "flaky".to_owned(), doing: "writing", source }
}

impl FlakySpace {
    fn write(&self, write: impl FnOnce(&MemoryStore) -> Result<(), StoreError>) -> Result<(), StoreError> {
        if self.disk.is_full.load(Ordering::Relaxed) {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        if self.has_failed.load(Ordering::Relaxed) { Err(full()) } else { write(&self.held) }
    }
}

impl Store for FlakySpace {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.held.get(key)
    }
    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.write(|held| held.put(key, record, summary))
    }
    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.write(|held| held.remove(keys))
    }
    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        self.write(|held| held.quarantine(key))
    }
    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.held.summary(key)
    }
    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        self.write(|held| held.set_summaries(summaries, durability))
    }
    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        self.held.summaries(after, limit)
    }
    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        self.held.keys(after, limit)
    }
    fn quarantined_count(&self) -> Result<usize, StoreError> {
        self.held.quarantined_count()
    }
}

impl Engine for Flaky {
    type Space = FlakySpace;

    fn open(_: &Path, _: &Arc<DirectoryLock>) -> Result<Self, OpenFailure> {
        Ok(Self { disk: DISK.with_borrow(Arc::clone), has_failed: Arc::default() })
    }

    fn space(&self, space: Space) -> FlakySpace {
        let held = Arc::clone(self.disk.spaces.lock().unwrap().entry(space).or_default());
        FlakySpace { disk: Arc::clone(&self.disk), has_failed: Arc::clone(&self.has_failed), held }
    }

    fn salvage(_: &Path, _: &Path) -> std::io::Result<()> {
        Ok(())
    }

    fn schema_version(&self) -> Result<Option<u32>, StoreError> {
        Ok(None)
    }

    fn set_schema_version(&self, _: u32) -> Result<(), StoreError> {
        self.space(Space::Finds).write(|_| Ok(()))
    }

    fn wait_until_closed(_: &Path) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_engine_that_ran_out_of_space_takes_nothing_until_it_is_opened_again_and_then_everything() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::default());
    DISK.set(Arc::clone(&disk));
    let lock = Arc::new(lock_directory(directory.path()).unwrap());
    let path = directory.path().join("engine");
    let Ok(engine) = Flaky::open(&path, &lock) else { panic!("it opens") };
    let health = Health::of(directory.path());
    let slot = Arc::new(Slot::new(engine, directory.path(), &path, &lock, health.clone()));
    let reopen: Weak<dyn Reopen> = Arc::downgrade(&(Arc::clone(&slot) as Arc<dyn Reopen>));
    let upkeep = Upkeep::new(health, reopen);
    let space = SlotSpace::new(&slot, Space::Jobs);
    space.put(&key(1), b"one", b"").unwrap();
    assert_eq!((upkeep.trouble(), upkeep.mend()), (None, true));

    disk.is_full.store(true, Ordering::Relaxed);
    assert!(matches!(space.put(&key(2), b"two", b""), Err(StoreError::Io { .. })));
    assert!(upkeep.trouble().unwrap().contains("writing"), "{:?}", upkeep.trouble());
    disk.is_full.store(false, Ordering::Relaxed);
    // Neither would be there after a crash, whatever the engine said.
    assert!(matches!(space.put(&key(3), b"three", b""), Err(StoreError::Failing { .. })));
    disk.is_full.store(true, Ordering::Relaxed);
    assert!(!upkeep.mend() && upkeep.trouble().is_some(), "the disk is still full");
    assert!(space.put(&key(4), b"four", b"").is_err());
    disk.is_full.store(false, Ordering::Relaxed);
    assert!(upkeep.mend());
    assert_eq!((upkeep.trouble(), upkeep.failures() > 0), (None, true));
    space.put(&key(5), b"five", b"").unwrap();
    assert_eq!(space.keys(None, 9).unwrap(), [key(1), key(5)], "nothing that was refused is there");
}

#[test]
fn a_record_whose_summary_is_refused_is_not_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let disk: Arc<Disk> = Arc::default();
    DISK.set(Arc::clone(&disk));
    let lock = Arc::new(lock_directory(directory.path()).unwrap());
    let Ok(engine) = Flaky::open(directory.path(), &lock) else { panic!("it opens") };
    let open = || {
        FiledSpace::open(
            &disk::Disk::default(),
            engine.space(Space::Plans),
            directory.path().join("plans"),
            Health::of(directory.path()),
        )
    };
    let (space, _) = open().unwrap();
    space.put(&key(1), b"one", b"1").unwrap();
    disk.is_full.store(true, Ordering::Relaxed);
    assert!(space.put(&key(2), b"two", b"2").is_err());
    assert_eq!((space.get(&key(2)).unwrap(), space.keys(None, 9).unwrap()), (None, vec![key(1)]));
    let Ok(engine) = Flaky::open(directory.path(), &lock) else { panic!("it opens") };
    disk.is_full.store(false, Ordering::Relaxed);
    let folder = directory.path().join("plans");
    let (space, recovery) =
        FiledSpace::open(&disk::Disk::default(), engine.space(Space::Plans), folder, Health::of(directory.path()))
            .unwrap();
    assert!(recovery.is_empty(), "{recovery:?}");
    assert_eq!(space.keys(None, 9).unwrap(), [key(1)]);
}
