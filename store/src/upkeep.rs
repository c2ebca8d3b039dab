//! Whether a store can be written, and what is done until it can.
//!
//! A disk that is full, or refuses for another reason, is asked again every second. An engine that has failed takes nothing more: it is
//! closed and opened again once the disk takes what is written, since engines remember that they failed until then.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use canopy_planner::chain;
use parking_lot::Mutex;

use super::engine::io_error;
use super::{DiskRoom, StoreError};

/// What a disk must take before an engine is opened again: more than what it writes to be opened.
const PROBE_BYTES: usize = 4 << 20;

/// With less than this, a disk is full before anybody has written to it in vain.
const FREE_BYTES_MIN: u64 = 64 << 10;

/// What is known of the health of a store. Clones share it.
#[derive(Clone)]
pub(super) struct Health {
    shared: Arc<Shared>,
}

struct Shared {
    directory: PathBuf,
    trouble: Mutex<Option<Trouble>>,
    failures: AtomicU64,
    /// Damaged records and entries that were met, by space.
    damages: Mutex<BTreeMap<String, u64>>,
}

/// Why nothing can be written.
#[derive(Clone, Debug)]
struct Trouble {
    reason: String,
    /// Whether the engine has to be opened again.
    needs_reopening: bool,
}

impl Health {
    pub(super) fn of(directory: &Path) -> Self {
        let (directory, trouble, failures) = (directory.to_owned(), Mutex::default(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { directory, trouble, failures, damages: Mutex::default() }) }
    }

    /// Something in a space was damaged.
    pub(super) fn damaged(&self, space: &str, count: u64) {
        let mut damages = self.shared.damages.lock();
        *damages.entry(space.to_owned()).or_default() += count;
    }

    /// Damaged records and entries that were met, by space.
    pub(super) fn damages(&self) -> Vec<(String, u64)> {
        let damages = self.shared.damages.lock();
        damages.iter().map(|(space, count)| (space.clone(), *count)).collect()
    }

    /// An engine has failed.
    pub(super) fn engine_failed(&self, error: &StoreError) {
        self.failed(error, true);
    }

    /// The error of a file in this folder that could not be written, of which the store is told.
    pub(super) fn file_failed(&self, folder: &Path, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
        let failed = io_error(folder, doing);
        move |error| {
            let error = failed(error);
            self.failed(&error, false);
            error
        }
    }

    fn failed(&self, error: &StoreError, needs_reopening: bool) {
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
        let mut trouble = self.shared.trouble.lock();
        if trouble.is_none() {
            let reason = chain(error);
            tracing::error!(reason, "the store cannot be written; the server retries every second");
            *trouble = Some(Trouble { reason, needs_reopening });
        } else if let Some(trouble) = &mut *trouble {
            trouble.needs_reopening |= needs_reopening;
        }
    }

    /// The refusal of whatever would change an engine that has failed; none: it has not.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        let trouble = self.shared.trouble.lock().clone().filter(|trouble| trouble.needs_reopening)?;
        Some(StoreError::Failing { directory: self.directory(), reason: trouble.reason })
    }

    fn directory(&self) -> String {
        self.shared.directory.display().to_string()
    }

    /// Whether the disk takes a few megabytes, written and synced.
    fn probe(&self) -> io::Result<()> {
        let mut file = tempfile::tempfile_in(&self.shared.directory)?;
        let block = [0x5a; 64 << 10];
        for _ in 0..PROBE_BYTES / block.len() {
            file.write_all(&block)?;
        }
        file.sync_all()
    }
}

/// An engine that can be opened again.
pub(super) trait Reopen: Send + Sync {
    /// Closes the engine and opens it again. Blocks, and whoever uses the engine waits.
    ///
    /// # Errors
    /// It cannot be opened now; it stays closed, and is to be tried again.
    fn reopen(&self) -> Result<(), StoreError>;

    /// Brings what goes with the engine in line, after the disk has room again and the engine takes changes, whether it
    /// was opened again or had not failed.
    ///
    /// # Errors
    /// Something has failed again.
    fn settle(&self, was_reopened: bool) -> Result<(), StoreError>;
}

/// Whoever keeps a store going: says whether it can be written, and mends it. Keeps nothing open. Clones share it.
#[derive(Clone)]
pub struct Upkeep {
    health: Health,
    engine: Option<Weak<dyn Reopen>>,
}

impl Upkeep {
    /// Of a store that cannot fail.
    pub fn none() -> Self {
        Self { health: Health::of(Path::new("")), engine: None }
    }

    pub(super) fn new(health: Health, engine: Weak<dyn Reopen>) -> Self {
        Self { health, engine: Some(engine) }
    }

    /// Why nothing can be written; none: as far as is known, all can.
    pub fn trouble(&self) -> Option<String> {
        self.health.shared.trouble.lock().as_ref().map(|trouble| trouble.reason.clone())
    }

    /// How often something could not be written.
    pub fn failures(&self) -> u64 {
        self.health.shared.failures.load(Ordering::Relaxed)
    }

    /// Damaged records and entries that were met since the start, by space.
    pub fn damages(&self) -> Vec<(String, u64)> {
        self.health.damages()
    }

    /// The room of the disk; none where the system does not say.
    pub fn room(&self) -> Option<DiskRoom> {
        DiskRoom::of(&self.health.shared.directory)
    }

    /// Tries to mend a store that could not be written, or will not be since its disk is full; true: it can be, again or
    /// still. Blocks on the disk.
    pub fn mend(&self) -> bool {
        if let Some(DiskRoom { free, .. }) = self.room().filter(|room| room.free < FREE_BYTES_MIN) {
            self.health.failed(&StoreError::DiskFull { free }, false);
        }
        let Some(trouble) = self.health.shared.trouble.lock().clone() else { return true };
        if self.health.probe().is_err() {
            // Said already.
            return false;
        }
        let engine = self.engine.as_ref().and_then(Weak::upgrade);
        let reopened = trouble.needs_reopening && engine.is_some();
        if reopened && let Some(Err(error)) = engine.as_ref().map(|engine| engine.reopen()) {
            tracing::error!(error = chain(&error), "the store could not be reopened; the server retries every second");
            return false;
        }
        *self.health.shared.trouble.lock() = None;
        if let Some(engine) = &engine
            && let Err(error) = engine.settle(reopened)
        {
            self.health.failed(&error, reopened);
            return false;
        }
        tracing::warn!(reason = trouble.reason, reopened, "the store can be written again");
        true
    }
}
