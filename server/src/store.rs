//! Stored data as a server uses it: the spaces of a data directory (`canopy_store`), the same in a database that several
//! servers share, and what topologies, clusters, receipts and archives mean.

mod archive;
pub(crate) mod clusters;
mod ending;
mod others;
pub(crate) mod receipts;
pub(crate) mod reproducers;
pub(crate) mod shared;
pub(crate) mod topologies;

pub(crate) use canopy_store::{
    ArchivedRecord, CheckReport, DamagedRecord, Durability, Eviction, Lookup, MayBeOvertaken, MemoryStore, Opened,
    PlanSummary, RecordOptions, Records, Recovery, Repair, Request, Space, SpaceOf, Store, StoreError, Stored,
    Summarised, Upkeep, check_store, check_store_in_use, convert_from_redb, deciding, decode_message, decode_record,
    disk, encode_message, encode_record, is_of_redb, keys_of_id, open_store, pending_migration, schedules, upgrade,
};
#[cfg(test)]
pub(crate) use canopy_store::{Gated, power};

pub(crate) use self::archive::read_signed_archive;
pub use archive::{
    ArchiveCounts, ArchiveError, ArchiveKey, ArchiveTrust, ArchiveWriter, Staging, read_archive, receive_archive,
    write_archive,
};
pub use ending::JobEnd;
pub use others::Others;
pub use shared::open_shared_store;
pub(crate) use shared::{SharedSpaces, of_database};

#[cfg(test)]
mod tests;
