//! A space of the store that holds records of one type: how they are read is said by the type, and where damaged ones go
//! is said here.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use canopy_planner::PlanKey;
use prost::Message;

use super::{DamagedRecord, Store, StoreError, decode_record, encode_record};

/// A record, and how it is read.
pub trait Stored: Sized {
    /// Reads a record that must be the one of this key.
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord>;

    /// Says in the log that the record of this key was damaged and goes into quarantine; nothing, where nobody misses it.
    fn log_damage(_: &PlanKey, _: &DamagedRecord) {}
}

/// A record with a summary beside it.
pub trait Summarised: Stored {
    /// What stands in the summary.
    type Summary;

    /// Reads the summary of the record of this key.
    fn decode_summary(key: &PlanKey, summary: &[u8]) -> Result<Self::Summary, DamagedRecord>;
}

/// What a look into a space found.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// A record.
    Found(T),
    /// Nothing.
    Missing,
    /// A damaged record, which is in quarantine now.
    Quarantined(DamagedRecord),
}

impl<T> Lookup<T> {
    /// The record, if it was there and intact.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(record) => Some(record),
            Self::Missing | Self::Quarantined(_) => None,
        }
    }
}

/// A space whose records are all of one type. Everything else about it is its [`Store`]'s.
#[derive(Clone)]
pub struct SpaceOf<T> {
    store: Arc<dyn Store>,
    of: PhantomData<fn() -> T>,
}

impl<T> Deref for SpaceOf<T> {
    type Target = dyn Store;

    fn deref(&self) -> &dyn Store {
        self.store.as_ref()
    }
}

impl<T: Stored> SpaceOf<T> {
    /// A typed view of a space.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, of: PhantomData }
    }

    /// The record under this key; a damaged one goes into quarantine.
    pub fn get(&self, key: &PlanKey) -> Result<Lookup<T>, StoreError> {
        let Some(record) = self.store.get(key)? else { return Ok(Lookup::Missing) };
        match T::decode(key, record.into()) {
            Ok(record) => Ok(Lookup::Found(record)),
            Err(damage) => {
                T::log_damage(key, &damage);
                self.store.quarantine(key).map(|()| Lookup::Quarantined(damage))
            }
        }
    }

    /// All records in the order of their keys; `None` for a damaged one, which stays where it is.
    pub fn all(&self) -> impl Iterator<Item = Result<(PlanKey, Option<T>), StoreError>> + '_ {
        self.all_keys().map(|key| {
            let key = key?;
            let record = self.store.get(&key)?.unwrap_or_default();
            Ok((key, T::decode(&key, record.into()).ok()))
        })
    }
}

impl<T: Summarised> SpaceOf<T> {
    /// What other servers have changed, see [`Store::catch_up`]: keys, and the summaries that are there now; `None` for one
    /// that is gone or cannot be read.
    pub fn changed_summaries(&self) -> impl Iterator<Item = Result<(PlanKey, Option<T::Summary>), StoreError>> + '_ {
        self.store.catch_up().into_iter().map(|key| {
            let summary = self.store.summary(&key)?;
            Ok((key, summary.and_then(|summary| T::decode_summary(&key, &summary).ok())))
        })
    }

    /// All summaries in the order of their keys; `None` for one that cannot be read. Reads no record.
    pub fn summaries(&self) -> impl Iterator<Item = Result<(PlanKey, Option<T::Summary>), StoreError>> + '_ {
        let read = |(key, bytes): (PlanKey, Vec<u8>)| (key, T::decode_summary(&key, &bytes).ok());
        self.all_summaries().map(move |entry| entry.map(read))
    }
}

/// The record, or summary, of a message.
pub fn encode_message(message: &impl Message) -> Vec<u8> {
    encode_record(&message.encode_to_vec())
}

/// Reads what [`encode_message`] wrote.
pub fn decode_message<M: Message + Default>(record: &[u8]) -> Result<M, DamagedRecord> {
    M::decode(decode_record(record)?).map_err(|_| DamagedRecord::Payload)
}
