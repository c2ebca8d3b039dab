//! The contents of a store in one file that does not depend on the engine: for backups, and for moving between engines
//! and servers.
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | magic `CNPYARC2`, or `CNPYARC3` where it holds more than plans and topologies |
//! | 4 | schema version of the records, little-endian |
//! | per record | 1 for a plan, 2 for a topology, 3 for what became of leases, 4 for a fault, 5 for a lease or 6 for a cluster, key (32), length of the record (8, little-endian), record, length of the summary (8), summary |
//! | 9 | 0, number of records (8, little-endian) |
//! | 32 | BLAKE3 of all that precedes |
//! | 104 | where it is signed: `CNPYSIG1`, the public key (Ed25519) and the signature of the digest |
//!
//! Archives `CNPYARC1` hold plans only and are still read. Pins and uses are in the summaries of plans. An archive
//! holds no file names, so none can lead out of a folder, and no compressed data, so nothing expands. A reader takes
//! all of it or nothing.

mod read;
mod signature;

use std::io::{self, Write};

use canopy_migrations::{VersionError, current_version};
use canopy_planner::PlanKey;

use super::{Opened, Space, Store, StoreError, upgrade};

pub(crate) use self::read::read_signed_archive;
pub use self::read::{Staging, read_archive, receive_archive};
pub use self::signature::{ArchiveKey, ArchiveTrust};

const MAGIC_1: [u8; 8] = *b"CNPYARC1";
const MAGIC_2: [u8; 8] = *b"CNPYARC2";
const MAGIC_3: [u8; 8] = *b"CNPYARC3";
const END: u8 = 0;
/// What each kind of record is, in the order in which they are written.
const KINDS: [(u8, Space); 6] = [
    (1, Space::Plans),
    (2, Space::Topologies),
    (3, Space::Replans),
    (4, Space::Faults),
    (5, Space::Leases),
    (6, Space::Clusters),
];

/// The kind of a space's records; `None` if archives do not hold them.
fn kind_of(space: Space) -> Option<(u8, Space)> {
    KINDS.into_iter().find(|kind| kind.1 == space)
}

/// Why an archive could not be written or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ArchiveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the archive cannot be read or written")]
    Io(#[from] io::Error),
    #[error("this is not an archive of canopy plans")]
    Magic,
    #[error("the archive cannot be used")]
    Version(#[from] VersionError),
    #[error("the archive is damaged at byte {offset}: {what} (nothing was imported)")]
    Damaged { offset: u64, what: &'static str },
    #[error(
        "the archive is not signed, and this server takes only signed ones; export it from a server that signs, or add a line `unsigned` to the file of `archive_signers`"
    )]
    Unsigned,
    #[error(
        "the archive is signed with {name}, which this server does not trust; add the key to the file of `archive_signers`"
    )]
    Signer { name: String },
    #[error("the archive is longer than {limit} bytes (nothing was imported); export it in parts, or raise the limit")]
    TooLarge { limit: u64 },
}

/// The numbers of records in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Plans.
    pub plans: u64,
    /// Topologies.
    pub topologies: u64,
    /// Records of what became of leases.
    pub replans: u64,
    /// Faults.
    pub faults: u64,
    /// Leases.
    pub leases: u64,
    /// Clusters.
    pub clusters: u64,
}

impl ArchiveCounts {
    fn total(self) -> u64 {
        self.plans + self.topologies + self.replans + self.faults + self.leases + self.clusters
    }

    fn count(&mut self, space: Space) {
        match space {
            Space::Plans => self.plans += 1,
            Space::Topologies => self.topologies += 1,
            Space::Replans => self.replans += 1,
            Space::Faults => self.faults += 1,
            Space::Leases => self.leases += 1,
            Space::Clusters => self.clusters += 1,
            Space::Jobs | Space::Requests | Space::Schedules | Space::Finds => {}
        }
    }
}

/// Writes every intact plan, topology, cluster, fault and lease of a data directory, and what became of leases; damaged ones are left out. Memory
/// for one record at a time.
///
/// # Errors
/// The engine or the writer failed.
pub fn write_archive(
    opened: &Opened,
    writer: &mut impl Write,
    key: Option<&ArchiveKey>,
) -> Result<ArchiveCounts, ArchiveError> {
    let mut archive = ArchiveWriter::begin_as(MAGIC_3, writer)?;
    for (_, space) in KINDS {
        archive.all_of(space, opened.space(space).as_ref())?;
    }
    archive.finish(key)
}

/// Writes an archive, record by record. One that is not finished is none: a reader refuses it.
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    inner: W,
    hasher: blake3::Hasher,
    counts: ArchiveCounts,
}

impl<W: Write> ArchiveWriter<W> {
    /// Writes the head of one that holds plans and topologies, as older versions read it as well.
    ///
    /// # Errors
    /// The writer failed.
    pub fn begin(writer: W) -> Result<Self, ArchiveError> {
        Self::begin_as(MAGIC_2, writer)
    }

    /// Writes the head of one that holds leases, faults and clusters as well.
    ///
    /// # Errors
    /// The writer failed.
    pub fn begin_backup(writer: W) -> Result<Self, ArchiveError> {
        Self::begin_as(MAGIC_3, writer)
    }

    fn begin_as(magic: [u8; 8], writer: W) -> Result<Self, ArchiveError> {
        let mut archive = Self { inner: writer, hasher: blake3::Hasher::new(), counts: ArchiveCounts::default() };
        archive.write(&magic)?;
        archive.write(&current_version().to_le_bytes())?;
        Ok(archive)
    }

    /// Writes the plan under this key. Returns false if it is missing or damaged.
    ///
    /// # Errors
    /// The engine or the writer failed.
    pub fn plan(&mut self, plans: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        self.add(KINDS[0], plans, key)
    }

    /// Writes the topology under this key. Returns false if it is missing or damaged.
    ///
    /// # Errors
    /// The engine or the writer failed.
    pub fn topology(&mut self, topologies: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        self.add(KINDS[1], topologies, key)
    }

    fn add(&mut self, (kind, space): (u8, Space), store: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        let Some(record) = store.get(key)? else { return Ok(false) };
        // What is written must be what a reader accepts.
        let Some(entry) = upgrade(&[], space, key, record, store.summary(key)?, 0) else { return Ok(false) };
        self.entry((kind, space), key, [&entry.record, &entry.summary])?;
        Ok(true)
    }

    /// Writes everything intact of a space.
    ///
    /// # Errors
    /// The engine or the writer failed.
    pub(crate) fn all_of(&mut self, space: Space, store: &dyn Store) -> Result<(), ArchiveError> {
        let Some(kind) = kind_of(space) else { return Ok(()) };
        store.all_keys().try_for_each(|key| self.add(kind, store, &key?).map(drop))
    }

    /// Writes a record with its summary, in the form in which a store of this version has them.
    ///
    /// # Errors
    /// The writer failed.
    pub(crate) fn record(
        &mut self,
        space: Space,
        key: &PlanKey,
        (record, summary): (&[u8], &[u8]),
    ) -> Result<(), ArchiveError> {
        let Some(kind) = kind_of(space) else { return Ok(()) };
        self.entry(kind, key, [record, summary])
    }

    fn entry(&mut self, (kind, space): (u8, Space), key: &PlanKey, parts: [&[u8]; 2]) -> Result<(), ArchiveError> {
        self.write(&[kind])?;
        self.write(key.as_bytes())?;
        for part in parts {
            self.write(&(part.len() as u64).to_le_bytes())?;
            self.write(part)?;
        }
        self.counts.count(space);
        Ok(())
    }

    /// Writes the end, signed with a key if there is one.
    ///
    /// # Errors
    /// The writer failed.
    pub fn finish(mut self, key: Option<&ArchiveKey>) -> Result<ArchiveCounts, ArchiveError> {
        self.write(&[END])?;
        self.write(&self.counts.total().to_le_bytes())?;
        let digest = self.hasher.finalize();
        self.inner.write_all(digest.as_bytes())?;
        if let Some(key) = key {
            self.inner.write_all(&key.sign(&digest))?;
        }
        self.inner.flush()?;
        Ok(self.counts)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }
}
