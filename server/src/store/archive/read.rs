//! Reads archives: verified to their last byte before anything is taken from them.

use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use canopy_migrations::{Version, steps_from};
use canopy_planner::PlanKey;

use super::signature::{PublicKey, TRAILER_BYTES, signer};
use super::{ArchiveCounts, ArchiveError, END, KINDS, MAGIC_1, MAGIC_2, MAGIC_3};
use crate::store::{ArchivedRecord, StoreError, upgrade};

/// Greatest record or summary, in bytes; a length beyond it is a damaged one.
const PART_BYTES_MAX: u64 = 1 << 30;
/// Bytes of an archive that is received that are kept in memory; more go into a file.
const IN_MEMORY: usize = 4 << 20;

/// Where an archive is kept while it is received.
#[derive(Clone, Copy, Debug)]
pub struct Staging<'a> {
    /// Directory of the file that takes what is too much for memory. The file has no name and goes with the process.
    pub directory: &'a Path,
    /// Most bytes of an archive.
    pub bytes_max: u64,
}

/// Hands out every record of an archive, after having verified all of it: two passes over `reader`, memory for one
/// record at a time.
///
/// # Errors
/// The archive is damaged or of a newer version, and `take` was not called; or `take` failed half-way, and doing it
/// all again does no harm.
pub fn read_archive(
    reader: &mut (impl Read + Seek),
    now_ms: u64,
    take: impl FnMut(ArchivedRecord<'_>) -> Result<(), StoreError>,
) -> Result<ArchiveCounts, ArchiveError> {
    read_signed_archive(reader, now_ms, take).map(|(counts, _)| counts)
}

/// The same, with the key whose signature was verified, if there is one.
///
/// # Errors
/// As [`read_archive`].
pub(crate) fn read_signed_archive(
    reader: &mut (impl Read + Seek),
    now_ms: u64,
    mut take: impl FnMut(ArchivedRecord<'_>) -> Result<(), StoreError>,
) -> Result<(ArchiveCounts, Option<PublicKey>), ArchiveError> {
    let start = reader.stream_position()?;
    for_each_record(reader, now_ms, |_| Ok(()))?;
    reader.seek(SeekFrom::Start(start))?;
    for_each_record(reader, now_ms, |record| Ok(take(record)?))
}

/// The same for an archive that comes as a stream: it is verified while it is put by, and read again from there.
///
/// # Errors
/// As [`read_archive`]; [`ArchiveError::TooLarge`] as soon as the stream exceeds the limit.
pub fn receive_archive(
    reader: &mut impl Read,
    staging: Staging<'_>,
    now_ms: u64,
    mut take: impl FnMut(ArchivedRecord<'_>) -> Result<(), StoreError>,
) -> Result<ArchiveCounts, ArchiveError> {
    let limit = staging.bytes_max;
    let copy = BufWriter::new(tempfile::spooled_tempfile_in(IN_MEMORY, staging.directory));
    let mut tee = Tee { source: reader.take(limit.saturating_add(1)), copy, copied: 0 };
    let verified = for_each_record(&mut tee, now_ms, |_| Ok(()));
    if tee.copied > limit {
        return Err(ArchiveError::TooLarge { limit });
    }
    verified?;
    let mut copy = tee.copy.into_inner().map_err(io::IntoInnerError::into_error)?;
    copy.rewind()?;
    for_each_record(&mut BufReader::new(copy), now_ms, |record| Ok(take(record)?)).map(|(counts, _)| counts)
}

/// Writes down what is read through it.
struct Tee<R, W> {
    source: R,
    copy: W,
    copied: u64,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        let read = buffer.get(..length).unwrap_or_default();
        self.copy.write_all(read)?;
        self.copied += read.len() as u64;
        Ok(length)
    }
}

/// Reads an archive to its end, handing out each record as the current version has it.
fn for_each_record(
    reader: &mut impl Read,
    now_ms: u64,
    mut each: impl FnMut(ArchivedRecord<'_>) -> Result<(), ArchiveError>,
) -> Result<(ArchiveCounts, Option<PublicKey>), ArchiveError> {
    let mut input = Hashed { inner: reader, hasher: blake3::Hasher::new(), offset: 0 };
    let magic = input.array::<8>().map_err(not_an_archive)?;
    let kinds = match magic {
        MAGIC_1 => &KINDS[..1],
        MAGIC_2 => &KINDS[..2],
        MAGIC_3 => &KINDS[..],
        _ => return Err(ArchiveError::Magic),
    };
    let steps: &[Version] = steps_from(u32::from_le_bytes(input.array()?))?;
    let mut counts = ArchiveCounts::default();
    loop {
        let offset = input.offset;
        let [found] = input.array::<1>()?;
        if found == END {
            break;
        }
        let space = kinds.iter().find(|(kind, _)| *kind == found).map(|(_, space)| *space);
        let space = space.ok_or(ArchiveError::Damaged { offset, what: "expected a record or the end" })?;
        let key = PlanKey::from_bytes(input.array()?);
        let (record, summary) = (input.part()?, input.part()?);
        let damaged = ArchiveError::Damaged { offset, what: "this record is damaged" };
        let entry = upgrade(steps, space, &key, record, Some(summary), now_ms).ok_or(damaged)?;
        each(ArchivedRecord { space, key: &key, record: &entry.record, summary: &entry.summary })?;
        counts.count(space);
    }
    let offset = input.offset;
    if u64::from_le_bytes(input.array()?) != counts.total() {
        return Err(ArchiveError::Damaged { offset, what: "the stated number of records differs" });
    }
    let (digest, offset) = (input.hasher.finalize(), input.offset);
    if input.array::<32>()? != *digest.as_bytes() {
        return Err(ArchiveError::Damaged { offset, what: "the checksum does not match" });
    }
    let offset = input.offset;
    let mut behind = Vec::new();
    input.inner.take(TRAILER_BYTES as u64 + 1).read_to_end(&mut behind)?;
    match behind.len() {
        0 => Ok((counts, None)),
        TRAILER_BYTES => match signer(&behind, &digest) {
            Some(signer) => Ok((counts, Some(signer))),
            None => Err(ArchiveError::Damaged { offset, what: "the signature does not match" }),
        },
        _ => Err(ArchiveError::Damaged { offset, what: "unexpected data after the end" }),
    }
}

/// What is too short for a magic is no archive, not a damaged one.
fn not_an_archive(error: ArchiveError) -> ArchiveError {
    match error {
        ArchiveError::Damaged { .. } => ArchiveError::Magic,
        error => error,
    }
}

/// Hashes what is read through it.
struct Hashed<'a, R> {
    inner: &'a mut R,
    hasher: blake3::Hasher,
    offset: u64,
}

impl<R: Read> Hashed<'_, R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ArchiveError> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(|error| self.short(error))?;
        self.hasher.update(&bytes);
        self.offset += N as u64;
        Ok(bytes)
    }

    /// A length and so many bytes. Memory grows with what is there, not with what is stated.
    fn part(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let offset = self.offset;
        let length = u64::from_le_bytes(self.array()?);
        if length > PART_BYTES_MAX {
            return Err(ArchiveError::Damaged { offset, what: "the stated length exceeds that of any record" });
        }
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
