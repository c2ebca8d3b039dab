//! Topologies that are kept, so that requests can name them.
//!
//! A topology is kept by what it says: its key is the hash of everything that a plan's files can show, so that equal
//! ones are stored once and none ever changes. None goes by itself: over the limits, new ones are refused.

mod shelved;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use canopy_topology::{Topology, identity_hash, to_json};

pub(crate) use self::shelved::{Shelved, judge as judge_topology};
use crate::clock;
use crate::key::PlanKey;
use crate::store::{DamagedRecord, Store, StoreError};

/// What every id begins with.
const FOLDER: &str = "topologies/";
/// Digits of the key in an id.
const ID_DIGITS: usize = 32;
/// Summaries read at a time.
const PAGE: usize = 1024;

/// Keeps topologies in a space of the store. Clones share it. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct Shelf {
    shared: Arc<Shared>,
}

/// How much may be kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShelfOptions {
    /// Most topologies.
    pub(crate) count_max: usize,
    /// Most bytes of their records.
    pub(crate) bytes_max: u64,
    /// Milliseconds since 1970 UTC.
    pub(crate) now_ms: fn() -> u64,
}

impl ShelfOptions {
    /// 10,000 topologies, 1 GiB, and the clock of the system.
    pub(crate) const STANDARD: Self = Self { count_max: 10_000, bytes_max: 1 << 30, now_ms: clock::unix_ms };
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

struct Shared {
    store: Arc<dyn Store>,
    options: ShelfOptions,
    /// Bytes of every record, read when first needed. Held while anything changes.
    sizes: Mutex<Option<BTreeMap<PlanKey, u64>>>,
}

/// Why a topology was not kept or not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShelfError {
    #[error("the server keeps {count} topologies, as many as it may; delete some")]
    TooMany { count: usize },
    #[error(
        "{held} bytes of topologies are kept, and this one of {found} would exceed the limit of {limit}; delete some"
    )]
    TooLarge { held: u64, found: u64, limit: u64 },
    #[error("the stored topology {id} was damaged and is in quarantine: {damage}; put it again")]
    Damaged { id: String, damage: DamagedRecord },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A topology with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// What is known of it.
    pub(crate) shelved: Shelved,
    /// Its text as canopy's JSON.
    pub(crate) document: Bytes,
}

impl Shelf {
    pub(crate) fn new(store: Arc<dyn Store>, options: ShelfOptions) -> Self {
        Self { shared: Arc::new(Shared { store, options, sizes: Mutex::new(None) }) }
    }

    /// Keeps a topology; returns once that survives a crash. True: it was not there before.
    pub(crate) fn put(&self, topology: &Topology) -> Result<(Shelved, bool), ShelfError> {
        let key = PlanKey::from_bytes(*identity_hash(topology).as_bytes());
        let mut guard = self.shared.lock();
        let sizes = self.shared.sizes(&mut guard)?;
        if sizes.contains_key(&key)
            && let Some(kept) = self.shared.read(&key)?
        {
            return Ok((kept.shelved, false));
        }
        let document = to_json(topology).into_bytes();
        let shelved = Shelved::of(key, topology, (self.shared.options.now_ms)());
        let (record, shelved) = shelved.encode_with(document);
        self.shared.keep(sizes, &key, &record, &shelved)?;
        Ok((shelved, true))
    }

    /// Keeps what another store kept, as it is. True: it was not there before. The caller has verified it.
    pub(crate) fn take_in(&self, key: &PlanKey, record: &[u8]) -> Result<bool, ShelfError> {
        let shelved = match shelved::decode(key, Bytes::copy_from_slice(record)) {
            Ok(kept) => kept.shelved,
            Err(damage) => return Err(ShelfError::Damaged { id: id_of(key), damage }),
        };
        let mut guard = self.shared.lock();
        let sizes = self.shared.sizes(&mut guard)?;
        let is_new = !sizes.contains_key(key);
        self.shared.keep(sizes, key, record, &shelved)?;
        Ok(is_new)
    }

    /// Whether all of these can be kept: keys and bytes of records. What is there already is replaced.
    pub(crate) fn admit(&self, wanted: &[(PlanKey, u64)]) -> Result<(), ShelfError> {
        let mut guard = self.shared.lock();
        let mut sizes = self.shared.sizes(&mut guard)?.clone();
        drop(guard);
        let held = sizes.values().sum();
        sizes.extend(wanted.iter().copied());
        let ShelfOptions { count_max, bytes_max: limit, .. } = self.shared.options;
        if sizes.len() > count_max {
            return Err(ShelfError::TooMany { count: count_max });
        }
        let found = sizes.values().sum::<u64>().saturating_sub(held);
        if held.saturating_add(found) > limit { Err(ShelfError::TooLarge { held, found, limit }) } else { Ok(()) }
    }

    /// The topology of this id, if it is kept.
    pub(crate) fn get(&self, id: &str) -> Result<Option<Kept>, ShelfError> {
        let mut guard = self.shared.lock();
        match find(self.shared.sizes(&mut guard)?, id) {
            Some(key) => {
                drop(guard);
                self.shared.read(&key)
            }
            None => Ok(None),
        }
    }

    /// Removes the topology of this id; returns what it was.
    pub(crate) fn remove(&self, id: &str) -> Result<Option<u64>, ShelfError> {
        let mut guard = self.shared.lock();
        let sizes = self.shared.sizes(&mut guard)?;
        let Some(key) = find(sizes, id) else { return Ok(None) };
        self.shared.store.remove(&[key])?;
        Ok(sizes.remove(&key))
    }

    /// Shows all topologies to `take` in the order of their keys. What comes or goes meanwhile may or may not be shown.
    pub(crate) fn for_each(&self, mut take: impl FnMut(Shelved)) -> Result<(), ShelfError> {
        self.shared.sizes(&mut self.shared.lock())?;
        let mut after = None;
        loop {
            let page = self.shared.store.summaries(after.as_ref(), PAGE)?;
            let Some(&(last, _)) = page.last() else { return Ok(()) };
            after = Some(last);
            page.iter().filter_map(|(key, bytes)| Shelved::decode(key, bytes).ok()).for_each(&mut take);
        }
    }

    /// Number of topologies, and the bytes of their records.
    pub(crate) fn usage(&self) -> Result<(usize, u64), ShelfError> {
        let mut guard = self.shared.lock();
        let sizes = self.shared.sizes(&mut guard)?;
        Ok((sizes.len(), sizes.values().sum()))
    }

    /// The space, for export.
    pub(crate) fn store(&self) -> &dyn Store {
        self.shared.store.as_ref()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<PlanKey, u64>>> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of every record, read from the summaries the first time. One that cannot be read is made again from
    /// its record; a record that cannot be read either is put into quarantine. O(topologies) once.
    fn sizes<'a>(
        &self,
        guard: &'a mut Option<BTreeMap<PlanKey, u64>>,
    ) -> Result<&'a mut BTreeMap<PlanKey, u64>, StoreError> {
        if guard.is_none() {
            let (mut sizes, mut after) = (BTreeMap::new(), None);
            loop {
                let page = self.store.summaries(after.as_ref(), PAGE)?;
                let Some(&(last, _)) = page.last() else { break };
                after = Some(last);
                for (key, bytes) in &page {
                    let size_bytes = match Shelved::decode(key, bytes) {
                        Ok(shelved) => Some(shelved.size_bytes),
                        Err(_) => self.mend(key)?,
                    };
                    sizes.extend(size_bytes.map(|size_bytes| (*key, size_bytes)));
                }
            }
            *guard = Some(sizes);
        }
        Ok(guard.as_mut().expect("it has just been read"))
    }

    /// Makes a summary again. None: nothing is left under this key.
    fn mend(&self, key: &PlanKey) -> Result<Option<u64>, StoreError> {
        let Some(record) = self.store.get(key)? else {
            return self.store.remove(&[*key]).map(|()| None);
        };
        match shelved::decode(key, Bytes::from(record)) {
            Ok(Kept { shelved, .. }) => {
                let summaries = [(*key, shelved.encode())];
                self.store.set_summaries(&summaries, crate::store::Durability::Synced)?;
                Ok(Some(shelved.size_bytes))
            }
            Err(_) => self.store.quarantine(key).map(|()| None),
        }
    }

    fn read(&self, key: &PlanKey) -> Result<Option<Kept>, ShelfError> {
        let Some(record) = self.store.get(key)? else { return Ok(None) };
        shelved::decode(key, Bytes::from(record)).map(Some).map_err(|damage| {
            // It is there for a person to look at; if even that fails, the next one who asks gets here again.
            let _moved = self.store.quarantine(key);
            tracing::error!(topology = %key, %damage, "a stored topology was damaged and is in quarantine");
            ShelfError::Damaged { id: id_of(key), damage }
        })
    }

    fn keep(
        &self,
        sizes: &mut BTreeMap<PlanKey, u64>,
        key: &PlanKey,
        record: &[u8],
        shelved: &Shelved,
    ) -> Result<(), ShelfError> {
        let ShelfOptions { count_max, bytes_max, .. } = self.options;
        let old = sizes.get(key).copied();
        if old.is_none() && sizes.len() >= count_max {
            return Err(ShelfError::TooMany { count: sizes.len() });
        }
        let held = sizes.values().sum::<u64>() - old.unwrap_or(0);
        let found = record.len() as u64;
        if held.saturating_add(found) > bytes_max {
            return Err(ShelfError::TooLarge { held, found, limit: bytes_max });
        }
        self.store.put(key, record, &shelved.encode())?;
        sizes.insert(*key, found);
        Ok(())
    }
}

/// The id of the topology under this key.
pub(crate) fn id_of(key: &PlanKey) -> String {
    format!("{FOLDER}{:.ID_DIGITS$}", key.to_string())
}

/// The key of this id among those that are there.
fn find(sizes: &BTreeMap<PlanKey, u64>, id: &str) -> Option<PlanKey> {
    let digits = id.strip_prefix(FOLDER)?;
    let canonical = digits.len() == ID_DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let prefix = u128::from_str_radix(digits, 16).ok().filter(|_| canonical)?.to_be_bytes();
    let filled = |filler| {
        let mut key = [filler; 32];
        key[..16].copy_from_slice(&prefix);
        PlanKey::from_bytes(key)
    };
    sizes.range(filled(0)..=filled(0xff)).next().map(|(key, _)| *key)
}

#[cfg(test)]
mod tests;
