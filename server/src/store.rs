//! Where finished plans are kept: records under 32-byte keys.
//!
//! [`Store`] knows bytes only. What the bytes mean, and that a damaged record is never served, is the business of
//! [`Records`], which wraps any store.

mod memory;
mod record;
mod records;
mod sled;

pub use memory::MemoryStore;
pub use record::{DamagedRecord, decode_record, encode_record};
pub use records::{Lookup, Records, StoredPlan};
pub use sled::{Opened, SledStore};

use crate::key::PlanKey;

/// Keeps records. Every call may block; none is made from the async runtime.
pub trait Store: Send + Sync + 'static {
    /// The record under this key, if there is one.
    ///
    /// # Errors
    /// The engine failed; whether there is a record is unknown.
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores a record in place of any earlier one, all or nothing, and returns once it survives a crash.
    ///
    /// # Errors
    /// The engine failed; the record may or may not be there.
    fn put(&self, key: &PlanKey, record: &[u8]) -> Result<(), StoreError>;

    /// Moves the record under this key aside, where only a person looks.
    ///
    /// # Errors
    /// The engine failed; the record may still be there.
    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError>;

    /// Number of records, quarantined ones not counted. O(records).
    ///
    /// # Errors
    /// The engine failed.
    fn count(&self) -> Result<usize, StoreError>;
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
        source: ::sled::Error,
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
    #[error("the store in {directory} cannot be used")]
    Version {
        directory: String,
        #[source]
        source: canopy_migrations::VersionError,
    },
}

#[cfg(test)]
mod tests;
