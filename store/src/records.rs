//! Plans in a store: whole, checked records or nothing; what is known of them; and how much room they may take.

mod adopt;
mod codec;
mod pins;
mod put;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use canopy_planner::PlanKey;
use canopy_wire::StoredPlan;
use parking_lot::Mutex;

use super::ledger::Ledger;
use super::pages::PAGE;
use super::recent::Recent;
use super::summary::Uses;
use super::turns::{MayBeOvertaken, deciding};
use super::{Durability, Lookup, MemoryStore, PlanSummary, Store, StoreError};
use crate::clock;

pub use self::adopt::ArchivedRecord;
pub use self::codec::keys_of_id;
pub use self::codec::{decode_plan, request_of};

/// Eviction stops when this share of the limit is free, so that not every put has to look for victims.
const FREED_SHARE: u64 = 16;

/// Reads and writes plans as records. A record that fails its check is quarantined, counted and never served.
///
/// Beside each record stands a [`PlanSummary`]; lists and decisions read these alone. Uses are counted in memory and
/// written down once a minute, when they are many, when room is needed, and when the last clone is dropped: a crash
/// loses some, which makes a plan look a little less wanted. Pins survive a crash once [`Records::pin`] returns.
///
/// Every call may block on the disk.
#[derive(Clone)]
pub struct Records {
    pub(crate) shared: Arc<Shared>,
}

/// What a store of plans may take, and where it has the time from.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// Most bytes of records. Above it those least worth per byte are evicted.
    pub bytes_max: u64,
    /// Most bytes of decoded plans kept in memory; 0 keeps none.
    pub memory_bytes_max: u64,
    /// Milliseconds since 1970 UTC.
    pub now_ms: fn() -> u64,
}

impl RecordOptions {
    /// 4 GiB on the disk, 128 MiB in memory, and the clock of the system.
    pub const STANDARD: Self = Self { bytes_max: 4 << 30, memory_bytes_max: 128 << 20, now_ms: clock::unix_ms };
}

pub(crate) struct Shared {
    store: Arc<dyn Store>,
    /// Where it is kept which plans are pinned, whatever becomes of their summaries.
    pins: Arc<dyn Store>,
    pub(crate) options: RecordOptions,
    pub(crate) recent: Recent,
    corruptions: AtomicU64,
    evictions: AtomicU64,
    /// Read from the summaries when first needed. Held while summaries change; taken before `uses`, never after.
    ledger: Mutex<Option<Ledger>>,
    pub(crate) uses: Mutex<BTreeMap<PlanKey, Uses>>,
    /// When uses were written down last, in milliseconds since 1970 UTC.
    pub(crate) written_ms: AtomicU64,
}

/// What a plan was asked for by; whoever stores the plan says what these bytes mean.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// All of it, for the record; may be empty.
    pub whole: Vec<u8>,
    /// In short, for the summary; may be empty.
    pub asked: Vec<u8>,
}

/// What became of a plan that was to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// It is gone.
    Evicted,
    /// It is pinned and stays.
    Pinned,
    /// It was not there.
    Missing,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Plans.
    pub records: usize,
    /// Bytes of their records. What the engine takes on the disk is more, see the engine.
    pub bytes: u64,
    /// Most bytes of records.
    pub bytes_max: u64,
    /// Pinned plans.
    pub pinned: usize,
    /// Plans that are one tenant's alone.
    pub owned: usize,
    /// Bytes of the records of pinned plans.
    pub pinned_bytes: u64,
    /// Damaged records in quarantine.
    pub quarantined: usize,
}

impl Records {
    /// Wraps a store, with the standard options.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_options(store, RecordOptions::STANDARD)
    }

    /// Wraps a store.
    pub fn with_options(store: Arc<dyn Store>, options: RecordOptions) -> Self {
        Self::with_pins(store, Arc::new(MemoryStore::default()), options)
    }

    /// Wraps a store, and another one that knows which plans are pinned.
    pub fn with_pins(store: Arc<dyn Store>, pins: Arc<dyn Store>, options: RecordOptions) -> Self {
        let (corruptions, evictions) = (AtomicU64::new(0), AtomicU64::new(0));
        let (ledger, uses) = (Mutex::new(None), Mutex::new(BTreeMap::new()));
        let (recent, written_ms) = (Recent::new(options.memory_bytes_max), AtomicU64::new((options.now_ms)()));
        Self {
            shared: Arc::new(Shared { store, pins, options, recent, corruptions, evictions, ledger, uses, written_ms }),
        }
    }

    /// The plan under this key, from memory if it is there; counts as a use.
    ///
    /// # Errors
    /// The engine failed.
    pub fn get(&self, key: &PlanKey) -> Result<Lookup<Arc<StoredPlan>>, StoreError> {
        let lookup = match self.remembered(key) {
            Some(plan) => Lookup::Found(plan),
            None => self.peek(key)?,
        };
        if matches!(lookup, Lookup::Found(_)) {
            self.note_use(key)?;
        }
        Ok(lookup)
    }

    /// The same from the disk, without counting a use, for operators and export.
    ///
    /// # Errors
    /// The engine failed.
    pub fn peek(&self, key: &PlanKey) -> Result<Lookup<Arc<StoredPlan>>, StoreError> {
        let read = self.shared.recent.moment();
        let Some(record) = self.shared.store.get(key)? else {
            return Ok(Lookup::Missing);
        };
        let record_bytes = record.len();
        match decode_plan(key, Bytes::from(record)) {
            Ok(plan) => {
                let plan = Arc::new(plan);
                self.shared.recent.keep(key, &plan, record_bytes, read);
                Ok(Lookup::Found(plan))
            }
            Err(damage) => self.shared.quarantine(key).map(|()| Lookup::Quarantined(damage)),
        }
    }

    /// At most `limit` summaries in the order of their keys, from the first key after `after`; fewer only at the end.
    /// Reads no plan.
    ///
    /// # Errors
    /// The engine failed.
    pub fn list(&self, after: Option<PlanKey>, limit: usize) -> Result<Vec<PlanSummary>, StoreError> {
        // The ledger's making has put every damaged summary right.
        self.shared.decide(|_| Ok(()))?;
        let mut listed = Vec::new();
        let mut after = after;
        while listed.len() < limit {
            let page = self.shared.store.summaries(after.as_ref(), (limit - listed.len()).min(PAGE))?;
            let Some(&(last, _)) = page.last() else { break };
            after = Some(last);
            listed.extend(page.iter().filter_map(|(key, bytes)| self.shared.current_summary(key, bytes)));
        }
        Ok(listed)
    }

    /// What is known of the plan under this key.
    ///
    /// # Errors
    /// The engine failed.
    pub fn summary(&self, key: &PlanKey) -> Result<Option<PlanSummary>, StoreError> {
        let bytes = self.shared.store.summary(key)?;
        Ok(bytes.and_then(|bytes| self.shared.current_summary(key, &bytes)))
    }

    /// The key of the plan with this id (`plans/` and the first 32 digits of its key). Reads no plan.
    ///
    /// # Errors
    /// The engine failed.
    pub fn find(&self, plan_id: &str) -> Result<Option<PlanKey>, StoreError> {
        let Some((first, last)) = keys_of_id("plans/", plan_id).map(RangeInclusive::into_inner) else {
            return Ok(None);
        };
        if let Some(bytes) = self.shared.store.summary(&first)?
            && PlanSummary::decode(&first, &bytes).is_ok_and(|summary| summary.id == plan_id)
        {
            return Ok(Some(first));
        }
        // The digits name the key but for chance; a second key with the same ones would be listed right behind.
        let found = self.shared.store.summaries(Some(&first), 2)?;
        let mut candidates = found.iter().take_while(|(key, _)| *key <= last);
        let named =
            candidates.find(|(key, bytes)| PlanSummary::decode(key, bytes).is_ok_and(|summary| summary.id == plan_id));
        Ok(named.map(|(key, _)| *key))
    }

    /// Removes a plan unless it is pinned.
    ///
    /// # Errors
    /// The engine failed.
    pub fn evict(&self, key: &PlanKey) -> Result<Eviction, StoreError> {
        self.shared.decide(|ledger| match self.shared.stored_summary(key)? {
            None => Ok(Eviction::Missing),
            Some(PlanSummary { pinned: true, .. }) => Ok(Eviction::Pinned),
            Some(_) => self.shared.remove(ledger, &[*key]).map(|()| Eviction::Evicted),
        })
    }

    /// Learns what other servers have changed.
    ///
    /// # Errors
    /// The engine failed.
    pub fn follow(&self) -> Result<(), StoreError> {
        self.shared.decide(|_| Ok(()))
    }

    /// How much is stored.
    ///
    /// # Errors
    /// The engine failed.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let quarantined = self.shared.store.quarantined_count()?;
        self.shared.decide(|ledger| Ok(ledger.usage(self.shared.options.bytes_max, quarantined)))
    }

    /// Writes down the uses counted in memory, without waiting for the disk.
    ///
    /// # Errors
    /// The engine failed; the uses counted so far may be lost.
    pub fn write_back(&self) -> Result<(), StoreError> {
        self.shared.write_back()
    }

    /// Damaged records met since the start.
    pub fn corruption_count(&self) -> u64 {
        self.shared.corruptions.load(Ordering::Relaxed)
    }

    /// Plans evicted since the start, by the limit or by an operator.
    pub fn eviction_count(&self) -> u64 {
        self.shared.evictions.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Does something that is decided by the ledger.
    fn decide<T>(&self, mut decide: impl FnMut(&mut Ledger) -> Result<T, StoreError>) -> Result<T, StoreError> {
        deciding(|| {
            let mut guard = self.ledger.lock();
            if self.catch_up(guard.as_mut()).is_err() {
                // It is read anew: what it has not learned it is not told again.
                *guard = None;
            }
            decide(self.ledger_of(&mut guard)?)
        })
    }

    /// Enters what other servers have changed into the ledger, if it has been read.
    fn catch_up(&self, mut ledger: Option<&mut Ledger>) -> Result<(), StoreError> {
        self.pins.catch_up();
        let changed = self.store.catch_up();
        self.recent.changed(&changed);
        let Some(ledger) = &mut ledger else { return Ok(()) };
        for key in changed {
            ledger.strike(&key);
            self.stored_summary(&key)?.iter().for_each(|summary| ledger.enter(summary));
        }
        Ok(())
    }

    /// The ledger, read from the summaries the first time. A summary that cannot be read is made again from its
    /// record. O(plans) once.
    fn ledger_of<'a>(&self, guard: &'a mut Option<Ledger>) -> Result<&'a mut Ledger, StoreError> {
        if guard.is_none() {
            let mut ledger = Ledger::default();
            let pins_are_apart = self.pins_are_apart()?;
            for entry in self.store.all_summaries() {
                let (key, bytes) = entry?;
                let summary = PlanSummary::decode(&key, &bytes).ok();
                let summary = summary.map_or_else(|| self.rebuild_summary(&key), |summary| Ok(Some(summary)))?;
                let summary = summary.map(|summary| self.agree_on_pin(summary, pins_are_apart)).transpose()?;
                summary.iter().for_each(|summary| ledger.enter(summary));
            }
            if !pins_are_apart {
                self.set_pins_apart()?;
            }
            *guard = Some(ledger);
        }
        Ok(guard.as_mut().expect("it has just been read"))
    }

    /// Makes a summary again from its record; a damaged record is quarantined. None: nothing is left under this key.
    fn rebuild_summary(&self, key: &PlanKey) -> Result<Option<PlanSummary>, StoreError> {
        let Some(record) = self.store.get(key)? else {
            return self.store.remove(&[*key]).map(|()| None);
        };
        let size_bytes = record.len() as u64;
        match decode_plan(key, Bytes::from(record)) {
            Ok(plan) => {
                let mut summary = PlanSummary::of(*key, &plan, size_bytes, (self.options.now_ms)());
                summary.pinned = self.is_pinned(key)?;
                self.store.set_summaries(&[(*key, summary.encode())], Durability::Synced)?;
                Ok(Some(summary))
            }
            Err(_) => {
                self.corruptions.fetch_add(1, Ordering::Relaxed);
                self.store.quarantine(key).map(|()| None)
            }
        }
    }

    /// The summary as it is stored, made again where it cannot be read. Only with the ledger locked.
    fn stored_summary(&self, key: &PlanKey) -> Result<Option<PlanSummary>, StoreError> {
        let bytes = self.store.summary(key)?;
        match bytes.map(|bytes| PlanSummary::decode(key, &bytes)) {
            Some(Ok(summary)) => Ok(Some(summary)),
            Some(Err(_)) | None => self.rebuild_summary(key),
        }
    }

    /// A stored summary with the uses counted since.
    fn current_summary(&self, key: &PlanKey, bytes: &[u8]) -> Option<PlanSummary> {
        let mut summary = PlanSummary::decode(key, bytes).ok()?;
        if let Some(uses) = self.uses.lock().get(key) {
            summary.add_uses(*uses);
        }
        Some(summary)
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let mut guard = self.ledger.lock();
        self.corruptions.fetch_add(1, Ordering::Relaxed);
        let moved = self.store.quarantine(key);
        self.recent.changed(&[*key]);
        // Where another server was first, it has another record or is gone.
        if !moved.as_ref().is_err_and(MayBeOvertaken::is_overtaken) {
            moved?;
        }
        guard.iter_mut().for_each(|ledger| ledger.strike(key));
        Ok(())
    }

    /// Evicts until a record of `needed` bytes fits under `key`, and on the disk.
    fn make_room(&self, ledger: &mut Ledger, key: &PlanKey, needed: u64) -> Result<(), StoreError> {
        let (bytes, pinned) = ledger.with(key, needed);
        let free = self.store.room_bytes();
        let on_disk = free.map_or(u64::MAX, |free| bytes.saturating_sub(needed).saturating_add(free));
        let limit = on_disk.min(self.options.bytes_max);
        if pinned.saturating_add(needed) > limit {
            if let Some(free) = free.filter(|_| limit < self.options.bytes_max) {
                return Err(StoreError::DiskFull { free });
            }
            return Err(StoreError::Full { needed, pinned, limit });
        }
        if bytes <= limit {
            return Ok(());
        }
        self.write_uses(ledger)?;
        let victims = ledger.victims(bytes - (limit - limit / FREED_SHARE), key);
        self.remove(ledger, &victims)
    }

    fn remove(&self, ledger: &mut Ledger, keys: &[PlanKey]) -> Result<(), StoreError> {
        let removed = self.store.remove(keys);
        self.recent.changed(keys);
        removed?;
        let mut uses = self.uses.lock();
        for key in keys {
            ledger.strike(key);
            uses.remove(key);
        }
        self.evictions.fetch_add(keys.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn write_back(&self) -> Result<(), StoreError> {
        if self.uses.lock().is_empty() {
            return Ok(());
        }
        self.decide(|ledger| self.write_uses(ledger))
    }

    fn write_uses(&self, ledger: &mut Ledger) -> Result<(), StoreError> {
        let uses = std::mem::take(&mut *self.uses.lock());
        self.written_ms.store((self.options.now_ms)(), Ordering::Relaxed);
        let mut changed = Vec::with_capacity(uses.len());
        for (key, uses) in &uses {
            if let Some(mut summary) = self.stored_summary(key)? {
                summary.add_uses(*uses);
                ledger.enter(&summary);
                changed.push((*key, summary.encode()));
            }
        }
        let written = self.store.set_summaries(&changed, Durability::Lazy);
        if written.as_ref().is_err_and(MayBeOvertaken::is_overtaken) {
            let mut since = self.uses.lock();
            uses.into_iter().for_each(|(key, uses)| since.entry(key).or_default().add(uses));
        }
        written
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.uses.lock().is_empty() {
            return;
        }
        // Uses are worth a try, not an error: nobody is left to hear of one. On a thread of its own, as the last clone may go where
        // nothing may wait for a database.
        thread::scope(|scope| drop(scope.spawn(|| self.write_back()).join()));
    }
}
