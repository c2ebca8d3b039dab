//! Data on disk: records and their summaries under 32-byte keys, in a data directory of one process.
//!
//! [`Store`] knows bytes only: it keeps a record and a small summary beside it. A data directory has several of them,
//! one per [`Space`]: records are files, and sled keeps their summaries, which can be made again from the files. The
//! owner of a space knows the meaning of its bytes: for plans [`Records`], which never serves a damaged record, limits
//! the bytes that are kept, and decides which plans are evicted first.
//!
//! The crate does not know queues, calls or other servers.

mod check;
pub mod clock;
#[cfg(any(test, feature = "simulation"))]
pub mod contract;
mod directory;
pub mod disk;
mod doubled;
mod ending;
mod engine;
mod file;
mod filed;
#[cfg(any(test, feature = "simulation"))]
mod gated;
mod ledger;
mod memory;
mod migrate;
mod pages;
#[cfg(any(test, feature = "simulation"))]
pub mod power;
#[cfg(any(test, feature = "simulation"))]
pub mod random;
mod recent;
mod record;
mod records;
mod room;
pub mod schedules;
mod sled;
mod slot;
mod space;
mod spaces;
mod summary;
mod turns;
mod typed;
mod upgrade;
mod upkeep;
mod uses;

use canopy_planner::PlanKey;

pub use check::{CheckReport, Repair, check_store, check_store_in_use};
pub use directory::{Opened, Pending, convert_from_redb, is_of_redb, open_store, pending_migration};
pub use ending::JobEnd;
pub use engine::{DirectoryLock, lock_directory};
#[cfg(any(test, feature = "simulation"))]
pub use gated::Gated;
pub use memory::MemoryStore;
pub use migrate::Migration;
pub use record::{DamagedRecord, decode_record, encode_record};
pub use records::{
    ArchivedRecord, Eviction, RecordOptions, Records, Request, Usage, decode_plan, keys_of_id, request_of,
};
pub use room::DiskRoom;
pub use space::Space;
pub use spaces::Recovery;
pub use summary::{PlanSummary, StatedCollective};
pub use turns::{MayBeOvertaken, deciding};
pub use typed::{Lookup, SpaceOf, Stored, Summarised, decode_message, encode_message};
pub use upgrade::{Upgraded, upgrade};
pub use upkeep::Upkeep;

/// Keeps records and their summaries. Every call may block; none is made from the async runtime.
pub trait Store: Send + Sync + 'static {
    /// The record under this key, if there is one.
    ///
    /// # Errors
    /// The engine failed; whether there is a record is unknown.
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores a record and its summary in place of earlier ones, both or neither, and returns once they survive a
    /// crash.
    ///
    /// # Errors
    /// The engine failed; the record may or may not be there.
    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError>;

    /// The same without waiting for the disk: a crash of the machine may lose the record, or leave a damaged one. For
    /// what can be made again at once.
    ///
    /// # Errors
    /// As [`Store::put`].
    fn put_lazily(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.put(key, record, summary)
    }

    /// The same with the end of the job that made it, which all servers share: both or neither.
    ///
    /// # Errors
    /// As [`Store::put`]; [`StoreError::Fenced`] when another server makes it by now. Only what servers share can do this.
    fn put_ending(&self, key: &PlanKey, record: &[u8], summary: &[u8], end: &dyn JobEnd) -> Result<(), StoreError> {
        let _jobs_are_not_shared = (key, record, summary, end);
        Err(StoreError::Unkept)
    }

    /// Stores a record under the next number, and notes that number for good: none of the space gets it again, even when
    /// this one is gone. Of servers that share the space, one at a time does this.
    ///
    /// # Errors
    /// As [`Store::put`]; [`StoreError::Overtaken`] when another server has done so since this one last caught up.
    fn put_next(&self, number: u64, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.put(&PlanKey::numbered(number), record, summary)
    }

    /// The last number that was given by [`Store::put_next`], as far as servers share the space; else 0.
    ///
    /// # Errors
    /// The engine failed.
    fn last_number(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Removes records as [`Store::remove`] does, if no server has put another one by [`Store::put_next`] since this one
    /// last caught up.
    ///
    /// # Errors
    /// As [`Store::remove`]; [`StoreError::Overtaken`] when another server has.
    fn remove_of_all(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        self.remove(keys)
    }

    /// Stores records without summaries in place of earlier ones, all or none where they are small, and returns once they survive a
    /// crash: one wait for the disk for many.
    ///
    /// # Errors
    /// As [`Store::put`], of any of them.
    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        records.iter().try_for_each(|(key, record)| self.put(key, record, &[]))
    }

    /// Removes records and their summaries; those that are not there are passed over.
    ///
    /// # Errors
    /// The engine failed; any of them may still be there.
    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError>;

    /// Moves the record under this key aside, where only a person looks, and drops its summary.
    ///
    /// # Errors
    /// The engine failed; the record may still be there.
    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError>;

    /// The summary under this key, if there is one.
    ///
    /// # Errors
    /// The engine failed.
    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces summaries, all or none.
    ///
    /// # Errors
    /// The engine failed; the earlier ones may still be there.
    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError>;

    /// At most `limit` summaries in the order of their keys, from the first key after `after`. Reads no record.
    ///
    /// # Errors
    /// The engine failed.
    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError>;

    /// At most `limit` keys of records in rising order, from the first after `after`.
    ///
    /// # Errors
    /// The engine failed.
    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError>;

    /// Number of records in quarantine. O(their number).
    ///
    /// # Errors
    /// The engine failed.
    fn quarantined_count(&self) -> Result<usize, StoreError>;

    /// Learns what other servers have changed since this was asked last; returns the keys of which other things hold now. None
    /// where only one server uses the store. Whoever decides by a space asks first, and keeps the rest of this process from
    /// deciding until it is done: what other servers change meanwhile makes its change fail as [`StoreError::Overtaken`].
    fn catch_up(&self) -> Vec<PlanKey> {
        Vec::new()
    }

    /// Bytes that records may still take of the disk; what is beside them is kept free for what must be written. None:
    /// unknown, or there is no disk.
    fn room_bytes(&self) -> Option<u64> {
        None
    }
}

/// When a change survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Synced,
    /// With the next synced change, or some time later.
    Lazy,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StoreError {
    #[error("the store in {directory} failed while {doing}")]
    Engine {
        directory: String,
        doing: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the store in {directory} failed while {doing}")]
    Io {
        directory: String,
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("the data directory {directory} is in use by another process; join it through its socket, or use another")]
    InUse { directory: String },
    #[error(
        "every user of this machine may change what is in the data directory {directory} (mode {mode:o}); set \
         `chmod 700`, or use a directory inside it"
    )]
    OpenToAll { directory: String, mode: u32 },
    #[error("the store in {directory} cannot be used")]
    Version {
        directory: String,
        #[source]
        source: canopy_migrations::VersionError,
    },
    #[error(
        "the data directory {directory} was written with the store engine redb, which is no longer read; run \
         `canopyd migrate --data-dir {directory}` once, which keeps its plans, topologies, leases and faults"
    )]
    OfRedb { directory: String },
    #[error(
        "the plans of {directory} are inside a redb database, which is no longer read; start the release before this one \
         on it once, then run `canopyd migrate`"
    )]
    OldRedb { directory: String },
    #[error("the plan was made, but could not be stored; ask again, and it is made anew")]
    Unkept,
    #[error("the store in {directory} takes nothing until its disk does; it is opened again by itself: {reason}")]
    Failing { directory: String, reason: String },
    #[error(
        "a plan of {needed} bytes does not fit into the store: {pinned} of its {limit} bytes are pinned; unpin plans or raise the limit"
    )]
    Full { needed: u64, pinned: u64, limit: u64 },
    #[error("the database of the servers cannot be reached: {reason}")]
    Away { reason: String },
    #[error("the database of the servers failed: {reason}")]
    Database { reason: String },
    #[error("another server has changed the same meanwhile; try again")]
    Overtaken,
    #[error("another server does this by now")]
    Fenced,
    #[error("the disk of the data directory has {free} bytes left to plans; free some, or move the directory")]
    DiskFull { free: u64 },
}

#[cfg(test)]
mod tests;
