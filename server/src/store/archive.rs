//! All plans of a store in one file that knows no engine: for backup, for moving between engines and servers.
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | magic `CNPYARC1` |
//! | 4 | schema version of the records, little-endian |
//! | per plan | 1, key (32), length of the record (8, little-endian), record, length of the summary (8), summary |
//! | 9 | 0, number of plans (8, little-endian) |
//! | 32 | BLAKE3 of all that precedes |
//!
//! A reader takes all of it or nothing.

use std::io::{self, Read, Seek, SeekFrom, Write};

use canopy_migrations::{Version, VersionError, current_version, steps_from};

use super::upgrade::upgrade;
use super::{Store, StoreError};
use crate::key::PlanKey;

const MAGIC: [u8; 8] = *b"CNPYARC1";
const PLAN: u8 = 1;
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
}

/// Writes every intact record of a store. Returns their number; damaged ones are left out.
///
/// # Errors
/// The engine or the writer failed.
pub fn write_archive(store: &dyn Store, writer: &mut dyn Write) -> Result<u64, ArchiveError> {
    let mut output = Hashed { inner: writer, hasher: blake3::Hasher::new(), offset: 0 };
    output.write(&MAGIC)?;
    output.write(&current_version().to_le_bytes())?;
    let (mut count, mut after) = (0_u64, None);
    loop {
        let keys = store.keys(after.as_ref(), PAGE)?;
        let Some(&last) = keys.last() else { break };
        after = Some(last);
        for key in keys {
            let Some(record) = store.get(&key)? else { continue };
            let Some(entry) = upgrade(&[], &key, record, store.summary(&key)?, 0) else { continue };
            output.write(&[PLAN])?;
            output.write(key.as_bytes())?;
            for part in [entry.record, entry.summary.encode()] {
                output.write(&(part.len() as u64).to_le_bytes())?;
                output.write(&part)?;
            }
            count += 1;
        }
    }
    output.write(&[END])?;
    output.write(&count.to_le_bytes())?;
    let digest = output.hasher.finalize();
    output.inner.write_all(digest.as_bytes())?;
    output.inner.flush()?;
    Ok(count)
}

/// Puts every plan of an archive into a store, pins and uses with it; what is there under the same keys is replaced.
/// The archive is read to its end and verified before anything is stored. Returns the number of plans.
///
/// # Errors
/// The archive is damaged or of a newer version, and nothing was stored; or the engine failed half-way, and doing it
/// again does no harm.
pub fn read_archive(store: &dyn Store, reader: &mut (impl Read + Seek), now_ms: u64) -> Result<u64, ArchiveError> {
    let start = reader.stream_position()?;
    for_each_plan(reader, now_ms, |_, _, _| Ok(()))?;
    reader.seek(SeekFrom::Start(start))?;
    for_each_plan(reader, now_ms, |key, record, summary| Ok(store.put(key, record, summary)?))
}

/// Reads an archive, handing out each plan as the current version has it.
fn for_each_plan(
    reader: &mut impl Read,
    now_ms: u64,
    mut each: impl FnMut(&PlanKey, &[u8], &[u8]) -> Result<(), ArchiveError>,
) -> Result<u64, ArchiveError> {
    let mut input = Hashed { inner: reader, hasher: blake3::Hasher::new(), offset: 0 };
    if input.array::<8>().map_err(not_an_archive)? != MAGIC {
        return Err(ArchiveError::Magic);
    }
    let steps: &[Version] = steps_from(u32::from_le_bytes(input.array()?))?;
    let mut count = 0;
    loop {
        let offset = input.offset;
        match input.array::<1>()? {
            [PLAN] => {
                let key = PlanKey::from_bytes(input.array()?);
                let (record, summary) = (input.part()?, input.part()?);
                let damaged = ArchiveError::Damaged { offset, what: "this plan is not intact" };
                let entry = upgrade(steps, &key, record, Some(summary), now_ms).ok_or(damaged)?;
                each(&key, &entry.record, &entry.summary.encode())?;
                count += 1;
            }
            [END] => break,
            _ => return Err(ArchiveError::Damaged { offset, what: "neither a plan nor the end" }),
        }
    }
    let offset = input.offset;
    if u64::from_le_bytes(input.array()?) != count {
        return Err(ArchiveError::Damaged { offset, what: "it states another number of plans" });
    }
    let (digest, offset) = (input.hasher.finalize(), input.offset);
    if input.array::<32>()? != *digest.as_bytes() {
        return Err(ArchiveError::Damaged { offset, what: "the checksum does not match" });
    }
    let offset = input.offset;
    if input.inner.read(&mut [0])? != 0 {
        return Err(ArchiveError::Damaged { offset, what: "something follows the end" });
    }
    Ok(count)
}

/// What is too short for a magic is no archive, not a damaged one.
fn not_an_archive(error: ArchiveError) -> ArchiveError {
    match error {
        ArchiveError::Damaged { .. } => ArchiveError::Magic,
        error => error,
    }
}

/// Hashes what goes through.
struct Hashed<T> {
    inner: T,
    hasher: blake3::Hasher,
    offset: u64,
}

impl Hashed<&mut dyn Write> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<R: Read> Hashed<&mut R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ArchiveError> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(|error| self.short(error))?;
        self.hasher.update(&bytes);
        self.offset += N as u64;
        Ok(bytes)
    }

    /// A length and so many bytes. Memory grows with what is there, not with what is stated.
    fn part(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let length = u64::from_le_bytes(self.array()?);
        let mut bytes = Vec::new();
        let read = (&mut *self.inner).take(length).read_to_end(&mut bytes)? as u64;
        if read < length {
            return Err(self.short(io::ErrorKind::UnexpectedEof.into()));
        }
        self.hasher.update(&bytes);
        self.offset += read;
        Ok(bytes)
    }

    fn short(&self, error: io::Error) -> ArchiveError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveError::Damaged { offset: self.offset, what: "it ends too soon" },
            _ => ArchiveError::Io(error),
        }
    }
}
