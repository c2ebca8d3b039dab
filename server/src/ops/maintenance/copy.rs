//! Records on their way from one store into another, many at a time.

use std::fmt;
use std::sync::Arc;

use canopy_database::{Change, SharedSpace, Write};
use canopy_planner::PlanKey;

use crate::store::{Durability, Space, Store, StoreError, deciding, decode_record, of_database};

/// Most records that are written together.
const RECORDS_AT_ONCE: usize = 256;
/// Bytes of records from which on they are written, and no more are collected.
const BYTES_AT_ONCE: usize = 8 << 20;

/// A record with its summary.
pub(super) struct Moved {
    key: PlanKey,
    record: Vec<u8>,
    summary: Vec<u8>,
}

/// Where records go.
pub(super) trait Target {
    /// Whether there is a record under this key, which stays as it is.
    fn has(&self, key: &PlanKey) -> bool;

    /// Writes records, and returns once they survive a crash.
    fn put(&self, records: Vec<Moved>) -> Result<(), StoreError>;
}

/// What became of the records of a space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Those that were written.
    written: usize,
    /// Those under whose keys there was a record.
    kept: usize,
    /// Those that are damaged and were left out.
    damaged: usize,
}

/// For people.
impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { written, kept, damaged } = self;
        write!(f, "{written} imported, {kept} already there")?;
        if *damaged > 0 { write!(f, ", {damaged} damaged and left out") } else { Ok(()) }
    }
}

/// Copies all intact records but that under the key `except`. Memory for the records that are written together.
///
/// # Errors
/// Either store failed. What was written stays, and is passed over the next time.
pub(super) fn copy_records(from: &dyn Store, to: &impl Target, except: Option<&PlanKey>) -> Result<Copied, StoreError> {
    let (mut copied, mut batch, mut bytes) = (Copied::default(), Vec::new(), 0);
    for key in from.all_keys() {
        let key = key?;
        if except == Some(&key) {
            continue;
        }
        if to.has(&key) {
            copied.kept += 1;
            continue;
        }
        let Some(record) = from.get(&key)? else { continue };
        if decode_record(&record).is_err() {
            copied.damaged += 1;
            continue;
        }
        let summary = from.summary(&key)?.unwrap_or_default();
        bytes += record.len() + summary.len();
        batch.push(Moved { key, record, summary });
        copied.written += 1;
        if batch.len() >= RECORDS_AT_ONCE || bytes >= BYTES_AT_ONCE {
            to.put(std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    to.put(batch)?;
    Ok(copied)
}

/// Writes pins, which are keys alone.
///
/// # Errors
/// The store failed.
pub(super) fn copy_pins(pins: impl IntoIterator<Item = PlanKey>, to: &impl Target) -> Result<(), StoreError> {
    let missing: Vec<PlanKey> = pins.into_iter().filter(|key| !to.has(key)).collect();
    let pin = |key: &PlanKey| Moved { key: *key, record: Vec::new(), summary: Vec::new() };
    missing.chunks(RECORDS_AT_ONCE).try_for_each(|keys| to.put(keys.iter().map(pin).collect()))
}

/// A space of a database that servers share: what others put there first stays.
impl Target for SharedSpace {
    fn has(&self, key: &PlanKey) -> bool {
        self.entry(key.as_bytes()).is_some_and(|entry| entry.record.is_some())
    }

    /// All in one change; large records are written in pieces before it.
    fn put(&self, records: Vec<Moved>) -> Result<(), StoreError> {
        let change = |Moved { key, record, summary }: Moved| Change {
            key: *key.as_bytes(),
            write: Write::Put { record, summary },
        };
        let changes: Vec<Change> = records.into_iter().map(change).collect();
        deciding(|| {
            self.catch_up();
            let missing = changes.iter().filter(|change| !self.has(&PlanKey::from_bytes(change.key)));
            self.change(missing.cloned().collect()).map_err(of_database)
        })
    }
}

/// A space of a new store in a directory.
pub(super) struct NewSpace {
    /// The space.
    store: Arc<dyn Store>,
    /// Whether each of its records is a file.
    is_filed: bool,
}

impl NewSpace {
    /// One of the spaces.
    pub(super) fn new(store: &Arc<dyn Store>, space: Space) -> Self {
        Self { store: Arc::clone(store), is_filed: space.is_filed() }
    }

    /// Where a store keeps which plans are pinned.
    pub(super) fn of_pins(store: &Arc<dyn Store>) -> Self {
        Self { store: Arc::clone(store), is_filed: false }
    }
}

impl Target for NewSpace {
    fn has(&self, _: &PlanKey) -> bool {
        false
    }

    fn put(&self, records: Vec<Moved>) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        if self.is_filed {
            return records.iter().try_for_each(|one| self.store.put(&one.key, &one.record, &one.summary));
        }
        // Two waits for the disk, however many there are.
        let has_summary = |one: &&Moved| !one.summary.is_empty();
        let summaries: Vec<_> = records.iter().filter(has_summary).map(|one| (one.key, one.summary.clone())).collect();
        let records: Vec<_> = records.into_iter().map(|one| (one.key, one.record)).collect();
        self.store.put_all(&records)?;
        if summaries.is_empty() { Ok(()) } else { self.store.set_summaries(&summaries, Durability::Synced) }
    }
}
