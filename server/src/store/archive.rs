//! All plans and topologies of a store in one file that knows no engine: for backup, for moving between engines and
//! servers.
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | magic `CNPYARC2` |
//! | 4 | schema version of the records, little-endian |
//! | per record | 1 for a plan or 2 for a topology, key (32), length of the record (8, little-endian), record, length of the summary (8), summary |
//! | 9 | 0, number of records (8, little-endian) |
//! | 32 | BLAKE3 of all that precedes |
//!
//! Archives `CNPYARC1` are the same with plans only, and are read, too. Pins and uses are in the summaries of plans.
//! There are no file names in it, so none can lead out of a folder, and nothing is compressed, so nothing expands.
//! A reader takes all of it or nothing.

mod read;

use std::io::{self, Write};

use canopy_migrations::{VersionError, current_version};

pub use self::read::{ArchivedRecord, Staging, read_archive, receive_archive};
use super::upgrade::upgrade;
use super::{Opened, Space, Store, StoreError};
use crate::key::PlanKey;

const MAGIC_1: [u8; 8] = *b"CNPYARC1";
const MAGIC_2: [u8; 8] = *b"CNPYARC2";
const PLAN: u8 = 1;
const TOPOLOGY: u8 = 2;
const END: u8 = 0;
/// Keys read at a time.
const PAGE: usize = 256;

/// Why an archive was not written or not read.
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
    #[error("the archive is damaged at byte {offset}: {what}; nothing was taken from it")]
    Damaged { offset: u64, what: &'static str },
    #[error("the archive is longer than {limit} bytes; nothing was taken from it; send it in parts or raise the limit")]
    TooLarge { limit: u64 },
}

/// How many records an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Plans.
    pub plans: u64,
    /// Topologies.
    pub topologies: u64,
}

impl ArchiveCounts {
    fn total(self) -> u64 {
        self.plans + self.topologies
    }

    fn count(&mut self, space: Space) {
        match space {
            Space::Topologies => self.topologies += 1,
            _ => self.plans += 1,
        }
    }
}

/// Writes every intact plan and topology of a data directory; damaged ones are left out. Memory for one record at a
/// time.
///
/// # Errors
/// The engine or the writer failed.
pub fn write_archive(opened: &Opened, writer: &mut impl Write) -> Result<ArchiveCounts, ArchiveError> {
    let mut archive = ArchiveWriter::begin(writer)?;
    for space in [Space::Plans, Space::Topologies] {
        let store = opened.space(space).as_ref();
        let mut after = None;
        loop {
            let keys = store.keys(after.as_ref(), PAGE)?;
            let Some(&last) = keys.last() else { break };
            after = Some(last);
            for key in keys {
                archive.add(space, store, &key)?;
            }
        }
    }
    archive.finish()
}

/// Writes an archive, record by record. One that is not finished is none: a reader refuses it.
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    inner: W,
    hasher: blake3::Hasher,
    counts: ArchiveCounts,
}

impl<W: Write> ArchiveWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// The writer failed.
    pub fn begin(writer: W) -> Result<Self, ArchiveError> {
        let mut archive = Self { inner: writer, hasher: blake3::Hasher::new(), counts: ArchiveCounts::default() };
        archive.write(&MAGIC_2)?;
        archive.write(&current_version().to_le_bytes())?;
        Ok(archive)
    }

    /// Writes the plan under this key. False: there is none, or it is damaged.
    ///
    /// # Errors
    /// The engine or the writer failed.
    pub fn plan(&mut self, plans: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        self.add(Space::Plans, plans, key)
    }

    /// Writes the topology under this key. False: there is none, or it is damaged.
    ///
    /// # Errors
    /// The engine or the writer failed.
    pub fn topology(&mut self, topologies: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        self.add(Space::Topologies, topologies, key)
    }

    fn add(&mut self, space: Space, store: &dyn Store, key: &PlanKey) -> Result<bool, ArchiveError> {
        let Some(record) = store.get(key)? else { return Ok(false) };
        // What is written must be what a reader accepts.
        let Some(entry) = upgrade(&[], space, key, record, store.summary(key)?, 0) else { return Ok(false) };
        self.write(&[if space == Space::Topologies { TOPOLOGY } else { PLAN }])?;
        self.write(key.as_bytes())?;
        for part in [entry.record, entry.summary] {
            self.write(&(part.len() as u64).to_le_bytes())?;
            self.write(&part)?;
        }
        self.counts.count(space);
        Ok(true)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// The writer failed.
    pub fn finish(mut self) -> Result<ArchiveCounts, ArchiveError> {
        self.write(&[END])?;
        self.write(&self.counts.total().to_le_bytes())?;
        let digest = self.hasher.finalize();
        self.inner.write_all(digest.as_bytes())?;
        self.inner.flush()?;
        Ok(self.counts)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }
}
