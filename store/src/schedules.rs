//! Schedules in canonical labels: what was found once for a network is used for every other of its shape.
//!
//! A record is the plan file of the normal topology. It is a cache of what can be found again: a record that cannot be
//! read, or is for another network than its key says, costs a synthesis and nothing else. Whoever uses one relabels it
//! and has it checked like any other.

use std::collections::HashMap;
use std::sync::Arc;

use canopy_plan::{PlanFile, read_plan, write_plan};
use canopy_planner::{PlanKey, Recent, ScheduleKey, Schedules, chain};
use canopy_topology::{Topology, TopologyLimits};
use parking_lot::Mutex;

use super::turns::deciding;
use crate::{Store, StoreError, decode_record, encode_record};

/// Eviction stops when this share of the limit is free, so that not every put has to look for victims.
const FREED_SHARE: u64 = 16;
/// How much more a plan takes in memory than in its file; a guess on the safe side.
const DECODED_FACTOR: u64 = 6;

/// How much may be kept.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleOptions {
    /// Most bytes of records on the disk. Above it those not used for longest leave.
    pub bytes_max: u64,
    /// Most bytes in memory, roughly.
    pub memory_bytes_max: u64,
    /// What a plan file may hold.
    pub limits: TopologyLimits,
}

impl ScheduleOptions {
    /// Usual limit of the memory, in bytes, roughly.
    pub const MEMORY_BYTES: u64 = 128 << 20;
    /// Schedules may take this fraction of the limit for plans, in addition to it.
    const SHARE: u64 = 4;

    /// So many bytes on the disk, and the usual limit of the memory.
    pub const fn of(bytes_max: u64, limits: TopologyLimits) -> Self {
        Self { bytes_max, memory_bytes_max: Self::MEMORY_BYTES, limits }
    }

    /// The same beside plans that may take so many bytes.
    pub const fn beside(plans_bytes_max: u64, limits: TopologyLimits) -> Self {
        Self::of(plans_bytes_max / Self::SHARE, limits)
    }
}

/// Schedules in a store, and those used lately in memory.
pub struct StoredSchedules {
    store: Arc<dyn Store>,
    options: ScheduleOptions,
    recent: Mutex<Recent<ScheduleKey, Arc<PlanFile>>>,
    /// Read from the summaries when first needed.
    books: Mutex<Option<Books>>,
}

/// What is stored, and when it was used last.
#[derive(Debug, Default)]
struct Books {
    entries: HashMap<PlanKey, Entry>,
    bytes: u64,
    use_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u64,
    /// 0: not since the store was opened.
    last_use: u64,
}

impl StoredSchedules {
    /// Schedules in a store.
    pub fn new(store: Arc<dyn Store>, options: ScheduleOptions) -> Self {
        let recent = Mutex::new(Recent::new(options.memory_bytes_max));
        Self { store, options, recent, books: Mutex::new(None) }
    }

    /// Drops schedules. One that cannot be removed stays in use, as before.
    pub fn remove(&self, keys: &[ScheduleKey]) {
        let stored: Vec<PlanKey> = keys.iter().map(stored_under).collect();
        let removed = self.with_books(|books| {
            self.store.remove(&stored)?;
            stored.iter().for_each(|key| books.strike(key));
            Ok(())
        });
        match removed {
            Ok(()) => keys.iter().for_each(|key| self.recent.lock().forget(key)),
            Err(error) => tracing::error!(error = chain(&error), "schedules could not be removed"),
        }
    }

    /// Number of schedules, and their bytes on the disk, with those that other servers have stored by now. O(1), but for the
    /// first time.
    pub fn usage(&self) -> Result<(usize, u64), StoreError> {
        self.with_books(|books| Ok((books.entries.len(), books.bytes)))
    }

    fn read(&self, key: &ScheduleKey) -> Result<Option<Arc<PlanFile>>, StoreError> {
        let stored = stored_under(key);
        let Some(record) = self.store.get(&stored)? else { return Ok(None) };
        // It has been checked, whatever limits are set now.
        let limits = TopologyLimits { bytes_max: usize::MAX, ..self.options.limits };
        let plan = match decode_record(&record) {
            Ok(text) => read_plan(text, &limits).map_err(|error| error.to_string()),
            Err(damage) => Err(damage.to_string()),
        };
        match plan {
            Ok(plan) => {
                let plan = Arc::new(plan);
                self.recent.lock().keep(*key, Arc::clone(&plan), weight(record.len()));
                Ok(Some(plan))
            }
            Err(damage) => {
                tracing::error!(schedule = %key, damage, "a stored schedule is damaged and was quarantined");
                self.quarantine(key);
                Ok(None)
            }
        }
    }

    fn write(&self, key: &ScheduleKey, plan: &Arc<PlanFile>) -> Result<(), StoreError> {
        let mut text = Vec::new();
        if let Err(error) = write_plan(plan, &mut text) {
            tracing::error!(schedule = %key, error = chain(&error), "a schedule could not be saved");
            return Ok(());
        }
        let record = encode_record(&text);
        let (bytes, stored) = (record.len() as u64, stored_under(key));
        self.recent.lock().keep(*key, Arc::clone(plan), weight(record.len()));
        self.with_books(|books| {
            let limit = self.options.bytes_max;
            if bytes > limit {
                return Ok(());
            }
            books.strike(&stored);
            if books.bytes + bytes > limit {
                let victims = books.unused_for_longest(books.bytes + bytes - (limit - limit / FREED_SHARE).max(bytes));
                victims.iter().for_each(|victim| books.strike(victim));
                self.store.remove(&victims)?;
            }
            self.store.put(&stored, &record, &encode_record(&bytes.to_le_bytes()))?;
            books.enter(stored, bytes);
            books.note_use(&stored);
            Ok(())
        })
    }

    fn with_books<T>(&self, mut work: impl FnMut(&mut Books) -> Result<T, StoreError>) -> Result<T, StoreError> {
        deciding(|| {
            let mut guard = self.books.lock();
            let changed = self.store.catch_up();
            let books = match guard.as_mut() {
                Some(books) => books,
                None => guard.insert(self.read_books()?),
            };
            for key in changed {
                self.recent.lock().forget(&ScheduleKey::from_bytes(*key.as_bytes()));
                books.strike(&key);
                if let Some(bytes) = self.store.summary(&key)?.and_then(|summary| stated_bytes(&summary)) {
                    books.enter(key, bytes);
                }
            }
            work(books)
        })
    }

    /// O(schedules); those without a summary are read for their sizes.
    fn read_books(&self) -> Result<Books, StoreError> {
        let mut books = Books::default();
        for entry in self.store.all_summaries() {
            let (key, summary) = entry?;
            let stated = stated_bytes(&summary);
            let bytes = match stated {
                Some(bytes) => bytes,
                None => self.store.get(&key)?.map_or(0, |record| record.len() as u64),
            };
            books.enter(key, bytes);
        }
        Ok(books)
    }
}

impl Schedules for StoredSchedules {
    fn has(&self, key: &ScheduleKey) -> bool {
        self.with_books(|books| Ok(books.entries.contains_key(&stored_under(key)))).unwrap_or_else(|error| {
            tracing::error!(error = chain(&error), "the list of schedules could not be read");
            false
        })
    }

    fn get(&self, key: &ScheduleKey, normal: &Topology) -> Option<Arc<PlanFile>> {
        let known = self.recent.lock().get(key);
        let found = match known {
            Some(plan) => Some(plan),
            None => self.read(key).unwrap_or_else(|error| {
                tracing::error!(schedule = %key, error = chain(&error), "a schedule could not be read");
                None
            }),
        };
        let plan = found.filter(|plan| {
            let fits = plan.topology == *normal;
            if !fits {
                tracing::error!(schedule = %key, "a schedule does not match the network of its key; it is not used");
            }
            fits
        })?;
        let noted = self.with_books(|books| {
            books.note_use(&stored_under(key));
            Ok(())
        });
        noted.ok()?;
        Some(plan)
    }

    fn put(&self, key: &ScheduleKey, plan: &Arc<PlanFile>) {
        if let Err(error) = self.write(key, plan) {
            tracing::error!(schedule = %key, error = chain(&error), "a schedule could not be stored");
        }
    }

    fn quarantine(&self, key: &ScheduleKey) {
        self.recent.lock().forget(key);
        let stored = stored_under(key);
        let moved = self.with_books(|books| {
            books.strike(&stored);
            self.store.quarantine(&stored)
        });
        if let Err(error) = moved {
            tracing::error!(schedule = %key, error = chain(&error), "a schedule could not be quarantined");
        }
    }
}

impl Books {
    fn enter(&mut self, key: PlanKey, bytes: u64) {
        self.strike(&key);
        self.bytes += bytes;
        self.entries.insert(key, Entry { bytes, last_use: 0 });
    }

    fn strike(&mut self, key: &PlanKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn note_use(&mut self, key: &PlanKey) {
        self.use_count += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.last_use = self.use_count;
        }
    }

    /// Those that go first until `excess` bytes are free. O(schedules × log schedules).
    fn unused_for_longest(&self, excess: u64) -> Vec<PlanKey> {
        let mut candidates: Vec<(&PlanKey, &Entry)> = self.entries.iter().collect();
        candidates.sort_by_key(|(key, entry)| (entry.last_use, **key));
        let mut freed = 0_u64;
        let wanted = candidates.into_iter().take_while(|(_, entry)| {
            let is_wanted = freed < excess;
            freed = freed.saturating_add(entry.bytes);
            is_wanted
        });
        wanted.map(|(key, _)| *key).collect()
    }
}

impl std::fmt::Debug for StoredSchedules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredSchedules").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The key under which the record of a schedule is stored: stores know keys of one kind.
pub const fn stored_under(key: &ScheduleKey) -> PlanKey {
    PlanKey::from_bytes(*key.as_bytes())
}

/// The bytes of a record, by its summary.
fn stated_bytes(summary: &[u8]) -> Option<u64> {
    decode_record(summary).ok().and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
}

fn weight(record_bytes: usize) -> u64 {
    (record_bytes as u64).saturating_mul(DECODED_FACTOR)
}

#[cfg(test)]
mod tests;
