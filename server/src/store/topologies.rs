//! Stored topologies, which requests can name.
//!
//! A topology is kept by what it says: its key is the hash of everything that a plan's files can show, so that equal
//! ones are stored once and none ever changes. None goes by itself before there is no room for another one; then those go that nothing
//! uses. A part of the room is for leases and faults alone, so that they always find some.

mod entry;
mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use canopy_access::Quota;
use canopy_planner::PlanKey;
use canopy_topology::{Topology, identity_hash, to_json};
use parking_lot::Mutex;

use self::room::{Limits, Room};
use crate::call;
use crate::clock;
use crate::quota::OverQuota;
use crate::store::{DamagedRecord, Durability, Lookup, SpaceOf, Store, StoreError, Stored as _, keys_of_id};
use crate::store::{MayBeOvertaken, deciding};

pub(crate) use self::entry::{TopologyEntry, TopologyFacts, judge as judge_topology};
pub(crate) use self::room::Purpose;

/// What every id begins with.
const FOLDER: &str = "topologies/";
/// Digits of the key in an id.
const ID_DIGITS: usize = 32;

/// Keeps topologies in a space of the store. Clones share it. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct TopologyStore {
    shared: Arc<Shared>,
}

/// How much may be kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopologyStoreOptions {
    /// Most topologies.
    pub(crate) count_max: usize,
    /// Most bytes of their records.
    pub(crate) bytes_max: u64,
    /// Milliseconds since 1970 UTC.
    pub(crate) now_ms: fn() -> u64,
}

impl TopologyStoreOptions {
    /// 10,000 topologies, 1 GiB, and the clock of the system.
    pub(crate) const STANDARD: Self = Self { count_max: 10_000, bytes_max: 1 << 30, now_ms: clock::unix_ms };
}

struct Shared {
    space: SpaceOf<Kept>,
    options: TopologyStoreOptions,
    /// What is there, read when first needed. Held while anything changes.
    room: Mutex<Option<Room>>,
    in_use: OnceLock<InUse>,
    /// How many went because others needed the room.
    removed: AtomicU64,
}

/// Says which topologies something is on.
type InUse = Box<dyn Fn() -> BTreeSet<PlanKey> + Send + Sync>;

/// How much is kept, and how much may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopologyUsage {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
    pub(crate) count_max: usize,
    pub(crate) bytes_max: u64,
    /// How many went since the start because others needed the room.
    pub(crate) removed: u64,
}

/// Why a topology was not kept or not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopologyStoreError {
    #[error("the limit of {count} topologies is reached, and all are in use; delete some")]
    TooMany { count: usize },
    #[error(
        "stored topologies hold {held} bytes, and this one of {found} bytes would exceed the limit of {limit}; delete some"
    )]
    TooLarge { held: u64, found: u64, limit: u64 },
    #[error("the stored topology {id} is damaged and was quarantined: {damage}; store it again")]
    Damaged { id: String, damage: DamagedRecord },
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MayBeOvertaken for TopologyStoreError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_overtaken())
    }
}

/// A topology with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// What is known of it.
    pub(crate) entry: TopologyEntry,
    /// Its text as canopy's JSON.
    pub(crate) document: Bytes,
}

impl TopologyStore {
    pub(crate) fn new(store: Arc<dyn Store>, options: TopologyStoreOptions) -> Self {
        let (room, in_use, removed) = (Mutex::new(None), OnceLock::new(), AtomicU64::new(0));
        let space = SpaceOf::new(store);
        Self { shared: Arc::new(Shared { space, options, room, in_use, removed }) }
    }

    /// Learns whom to ask which topologies something is on; once.
    pub(crate) fn ask_what_is_in_use(&self, in_use: impl Fn() -> BTreeSet<PlanKey> + Send + Sync + 'static) {
        let _known_already = self.shared.in_use.set(Box::new(in_use));
    }

    /// Notes a use of a topology; false: it is not there.
    pub(crate) fn touch(&self, key: &PlanKey) -> Result<bool, TopologyStoreError> {
        let mut guard = self.shared.room.lock();
        Ok(self.shared.room(&mut guard)?.touch(key))
    }

    /// Keeps a topology that somebody wants to name; returns once that survives a crash. True: it was not there before.
    pub(crate) fn put(&self, topology: &Topology) -> Result<(TopologyEntry, bool), TopologyStoreError> {
        self.put_for(topology, Purpose::Named)
    }

    /// Keeps a topology for a purpose, as [`TopologyStore::put`].
    pub(crate) fn put_for(
        &self,
        topology: &Topology,
        purpose: Purpose,
    ) -> Result<(TopologyEntry, bool), TopologyStoreError> {
        let key = PlanKey::from_bytes(*identity_hash(topology).as_bytes());
        let mut is_billed = false;
        deciding(|| self.try_to_put(key, topology, purpose, &mut is_billed))
    }

    fn try_to_put(
        &self,
        key: PlanKey,
        topology: &Topology,
        purpose: Purpose,
        is_billed: &mut bool,
    ) -> Result<(TopologyEntry, bool), TopologyStoreError> {
        let mut guard = self.shared.room.lock();
        let room = self.shared.room(&mut guard)?;
        if room.touch(&key)
            && let Some(kept) = self.shared.read(&key)?
        {
            let mut entry = kept.entry;
            if purpose == Purpose::Named && room.purpose_of(&key) == Some(Purpose::Held) {
                entry.is_left_by_use = false;
                let summaries = [(key, entry.encode())];
                self.shared.space.set_summaries(&summaries, Durability::Synced)?;
                room.enter(key, entry.size_bytes, purpose);
            }
            return Ok((entry, false));
        }
        let bill = call::bill();
        if let Some(bill) = bill.as_ref().filter(|_| !*is_billed) {
            *is_billed = true;
            bill.require(Quota::StoredBytesPerHour)?;
            bill.spend(Quota::TopologiesPerHour)?;
        }
        let document = to_json(topology).into_bytes();
        let mut entry = TopologyEntry::of(key, topology, (self.shared.options.now_ms)());
        entry.is_left_by_use = purpose == Purpose::Held;
        let (record, entry) = entry.encode_with(document);
        self.shared.keep(room, &key, &record, &entry)?;
        bill.iter().for_each(|bill| bill.charge_stored(record.len() as u64));
        Ok((entry, true))
    }

    /// Keeps what another store kept, as it is. True: it was not there before. The caller has verified it.
    pub(crate) fn take_in(&self, key: &PlanKey, record: &[u8]) -> Result<bool, TopologyStoreError> {
        let entry = match Kept::decode(key, Bytes::copy_from_slice(record)) {
            Ok(kept) => kept.entry,
            Err(damage) => return Err(TopologyStoreError::Damaged { id: id_of(key), damage }),
        };
        deciding(|| {
            let mut guard = self.shared.room.lock();
            let room = self.shared.room(&mut guard)?;
            let is_new = room.size_of(key).is_none();
            self.shared.keep(room, key, record, &entry)?;
            Ok(is_new)
        })
    }

    /// Whether all of these can be kept: keys and bytes of records. What is there already is replaced.
    pub(crate) fn admit(&self, wanted: &[(PlanKey, u64)]) -> Result<(), TopologyStoreError> {
        let mut guard = self.shared.room.lock();
        let room = self.shared.room(&mut guard)?;
        let Limits { count: count_max, bytes: limit } = self.shared.limits().of(Purpose::Named);
        let new: BTreeMap<PlanKey, u64> = wanted.iter().copied().collect();
        let (mut count, mut found) = (room.count(), 0_u64);
        for (key, size_bytes) in &new {
            let old = room.size_of(key);
            count += usize::from(old.is_none());
            found = found.saturating_add(size_bytes.saturating_sub(old.unwrap_or(0)));
        }
        let held = room.bytes();
        if count > count_max {
            return Err(TopologyStoreError::TooMany { count: count_max });
        }
        if held.saturating_add(found) > limit {
            Err(TopologyStoreError::TooLarge { held, found, limit })
        } else {
            Ok(())
        }
    }

    /// The topology of this id, if it is kept.
    pub(crate) fn get(&self, id: &str) -> Result<Option<Kept>, TopologyStoreError> {
        let mut guard = self.shared.room.lock();
        let room = self.shared.room(&mut guard)?;
        let Some(key) = find(room, id) else { return Ok(None) };
        room.touch(&key);
        drop(guard);
        self.shared.read(&key)
    }

    /// Removes the topology of this id; returns what it was.
    pub(crate) fn remove(&self, id: &str) -> Result<Option<u64>, TopologyStoreError> {
        deciding(|| {
            let mut guard = self.shared.room.lock();
            let room = self.shared.room(&mut guard)?;
            let Some(key) = find(room, id) else { return Ok(None) };
            self.shared.space.remove(&[key])?;
            Ok(room.strike(&key))
        })
    }

    /// Learns what other servers have changed.
    pub(crate) fn follow(&self) -> Result<(), TopologyStoreError> {
        self.shared.room(&mut self.shared.room.lock())?;
        Ok(())
    }

    /// Shows all topologies to `take` in the order of their keys. What comes or goes meanwhile may or may not be shown.
    pub(crate) fn for_each(&self, mut take: impl FnMut(TopologyEntry)) -> Result<(), TopologyStoreError> {
        self.shared.room(&mut self.shared.room.lock())?;
        for entry in self.shared.space.summaries() {
            entry?.1.into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// How much is kept, and how much may be.
    pub(crate) fn usage(&self) -> Result<TopologyUsage, TopologyStoreError> {
        let mut guard = self.shared.room.lock();
        let room = self.shared.room(&mut guard)?;
        let TopologyStoreOptions { count_max, bytes_max, .. } = self.shared.options;
        let removed = self.shared.removed.load(Ordering::Relaxed);
        Ok(TopologyUsage { count: room.count(), bytes: room.bytes(), count_max, bytes_max, removed })
    }

    /// The space, for export.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.space
    }
}

impl Shared {
    fn limits(&self) -> Limits {
        Limits { count: self.options.count_max, bytes: self.options.bytes_max }
    }

    /// What is there, read from the summaries the first time, the oldest as if it had been used first. A summary that cannot be read is
    /// made again from its record; a record that cannot be read either is put into quarantine. O(topologies) once.
    fn room<'a>(&self, guard: &'a mut Option<Room>) -> Result<&'a mut Room, StoreError> {
        let changed = self.space.changed_summaries();
        if let Some(room) = guard.as_mut() {
            for change in changed {
                let (key, entry) = change?;
                room.strike(&key);
                entry.iter().for_each(|entry| room.enter(key, entry.size_bytes, entry.purpose()));
            }
        } else {
            let mut found = BTreeSet::new();
            for entry in self.space.summaries() {
                let (key, entry) = entry?;
                let entry = entry.map_or_else(|| self.mend(&key), |entry| Ok(Some(entry)))?;
                let known = |entry: TopologyEntry| (entry.created_ms, key, entry.size_bytes, entry.purpose());
                found.extend(entry.map(known));
            }
            let mut room = Room::default();
            for (_, key, size_bytes, purpose) in found {
                room.enter(key, size_bytes, purpose);
            }
            *guard = Some(room);
        }
        Ok(guard.as_mut().expect("it has just been read"))
    }

    /// Makes a summary again. None: nothing is left under this key.
    fn mend(&self, key: &PlanKey) -> Result<Option<TopologyEntry>, StoreError> {
        match self.space.get(key)? {
            Lookup::Found(Kept { entry, .. }) => {
                self.space.set_summaries(&[(*key, entry.encode())], Durability::Synced)?;
                Ok(Some(entry))
            }
            Lookup::Missing => self.space.remove(&[*key]).map(|()| None),
            Lookup::Quarantined(_) => Ok(None),
        }
    }

    fn read(&self, key: &PlanKey) -> Result<Option<Kept>, TopologyStoreError> {
        match self.space.get(key)? {
            Lookup::Found(kept) => Ok(Some(kept)),
            Lookup::Missing => Ok(None),
            Lookup::Quarantined(damage) => Err(TopologyStoreError::Damaged { id: id_of(key), damage }),
        }
    }

    /// Keeps a record, in place of what nothing uses where there is no room beside that.
    fn keep(
        &self,
        room: &mut Room,
        key: &PlanKey,
        record: &[u8],
        entry: &TopologyEntry,
    ) -> Result<(), TopologyStoreError> {
        let purpose = entry.purpose();
        let (limits, found) = (self.limits().of(purpose), record.len() as u64);
        if room.size_of(key).is_none() {
            let in_use = || self.in_use.get().map(|in_use| in_use()).unwrap_or_default();
            let victims = room.victims(found, limits, in_use);
            if !victims.is_empty() {
                self.space.remove(&victims)?;
                for victim in &victims {
                    room.strike(victim);
                }
                self.removed.fetch_add(victims.len() as u64, Ordering::Relaxed);
                tracing::info!(count = victims.len(), "unused topologies were removed to make room for another one");
            }
            if room.count() >= limits.count {
                return Err(TopologyStoreError::TooMany { count: room.count() });
            }
        }
        let held = room.bytes() - room.size_of(key).unwrap_or(0);
        if held.saturating_add(found) > limits.bytes {
            return Err(TopologyStoreError::TooLarge { held, found, limit: limits.bytes });
        }
        self.space.put(key, record, &entry.encode())?;
        room.enter(*key, found, purpose);
        Ok(())
    }
}

/// The id of the topology under this key.
pub(crate) fn id_of(key: &PlanKey) -> String {
    format!("{FOLDER}{:.ID_DIGITS$}", key.to_string())
}

/// The key of this id among those that are there.
fn find(room: &Room, id: &str) -> Option<PlanKey> {
    room.first_in(keys_of_id(FOLDER, id)?)
}

#[cfg(test)]
mod tests;
