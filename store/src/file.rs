//! The layout of a file that holds one record. It says all of itself: whose record it is, and its summary.
//!
//! The layout is written down in `canopy-migrations`, with the version of the schema that brought it.

use std::io::{self, Read};
use std::ops::Range;

use canopy_planner::PlanKey;

const MAGIC: [u8; 4] = *b"CNPF";
/// Bytes before the hash.
const HASHED: usize = 40;
/// Bytes before the summary.
const HEADER: usize = HASHED + blake3::OUT_LEN;
/// Summaries are some hundred bytes; a length beyond this is damage, and not worth the memory.
const SUMMARY_BYTES_MAX: usize = 1 << 20;

/// What stands before the record; `None` for a summary that is too long.
pub(super) fn head(key: &PlanKey, summary: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(summary.len()).ok().filter(|_| summary.len() <= SUMMARY_BYTES_MAX)?;
    let mut bytes = Vec::with_capacity(HEADER + summary.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(key.as_bytes());
    let digest = checksum(&bytes, summary);
    bytes.extend_from_slice(digest.as_bytes());
    bytes.extend_from_slice(summary);
    Some(bytes)
}

/// Where the record stands in a file of this key; `None` if its head is damaged or of another key. O(summary).
pub(super) fn record_range(file: &[u8], key: &PlanKey) -> Option<Range<usize>> {
    let header = file.first_chunk::<HEADER>()?;
    let length = summary_length(header, key)?;
    let summary = file.get(HEADER..HEADER + length)?;
    (checksum(&header[..HASHED], summary).as_bytes() == &header[HASHED..]).then_some(HEADER + length..file.len())
}

/// The summary in a file of this key, read without its record; `None` if its head is damaged or of another key.
pub(super) fn read_summary(mut file: impl Read, key: &PlanKey) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; HEADER];
    if !fill(&mut file, &mut header)? {
        return Ok(None);
    }
    let Some(length) = summary_length(&header, key) else { return Ok(None) };
    let mut summary = vec![0; length];
    let whole = fill(&mut file, &mut summary)?;
    Ok((whole && checksum(&header[..HASHED], &summary).as_bytes() == &header[HASHED..]).then_some(summary))
}

/// The length that a header states, if the header is one of this key.
fn summary_length(header: &[u8; HEADER], key: &PlanKey) -> Option<usize> {
    let (magic, rest) = header.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let stated = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    (*magic == MAGIC && rest.starts_with(key.as_bytes()) && stated <= SUMMARY_BYTES_MAX).then_some(stated)
}

/// Whether there were enough bytes to fill the buffer.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn checksum(fields: &[u8], summary: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(fields).update(summary).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PlanKey {
        PlanKey::from_bytes([byte; 32])
    }

    fn file(summary: &[u8], record: &[u8]) -> Vec<u8> {
        [head(&key(7), summary).unwrap().as_slice(), record].concat()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (summary, record) in
            [(&b""[..], &b""[..]), (b"summary", b""), (b"", b"record"), (b"summary", &[9; 100_000])]
        {
            let file = file(summary, record);
            assert_eq!(&file[record_range(&file, &key(7)).unwrap()], record);
            assert_eq!(read_summary(file.as_slice(), &key(7)).unwrap().unwrap(), summary);
        }
    }

    #[test]
    fn a_changed_byte_before_the_record_a_cut_and_another_key_are_noticed() {
        let intact = file(b"summary", b"record");
        let record = record_range(&intact, &key(7)).unwrap();
        for position in 0..record.start {
            let mut damaged = intact.clone();
            damaged[position] ^= 0x10;
            assert_eq!(record_range(&damaged, &key(7)), None, "byte {position}");
            assert_eq!(read_summary(damaged.as_slice(), &key(7)).unwrap(), None, "byte {position}");
            assert_eq!(record_range(&intact[..position], &key(7)), None, "{position} bytes");
            assert_eq!(read_summary(&intact[..position], &key(7)).unwrap(), None, "{position} bytes");
        }
        assert_eq!(record_range(&intact, &key(8)), None);
        assert_eq!(read_summary(intact.as_slice(), &key(8)).unwrap(), None);
    }

    #[test]
    fn the_layout_of_version_4_stays() {
        let text: String = file(b"summary", b"record").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            text,
            "434e504607000000\
             0707070707070707070707070707070707070707070707070707070707070707\
             0a8edae1b5af058fe641b0651dabd69a998b4527ed589418eb72befa43d8e61a\
             73756d6d6172797265636f7264"
        );
    }

    #[test]
    fn a_summary_beyond_all_measure_is_not_written() {
        assert_eq!(head(&key(7), &vec![0; SUMMARY_BYTES_MAX + 1]), None);
    }
}
