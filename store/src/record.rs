//! The layout of a record: magic, schema version, codec, length, BLAKE3, payload.
//!
//! The layout of each version is written down in `canopy-migrations`; this is the current one.

use canopy_migrations::current_version;

const MAGIC: [u8; 4] = *b"CNPY";
/// The payload as it is.
const CODEC_PLAIN: u8 = 0;
/// Bytes before the hash.
const HASHED_HEADER: usize = 16;
/// Bytes before the payload.
const HEADER: usize = HASHED_HEADER + blake3::OUT_LEN;

/// Why bytes are not a record. Such bytes are quarantined, never served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DamagedRecord {
    #[error("a record of {found} bytes is shorter than its header of {HEADER}")]
    Short { found: usize },
    #[error("the record does not start with the magic of canopy")]
    Magic,
    #[error("the record has schema version {found}, the store {expected}")]
    Version { found: u16, expected: u32 },
    #[error("the record has the unknown codec {found}")]
    Codec { found: u8 },
    #[error("the record has {found} bytes of payload but states {stated}")]
    Length { found: u64, stated: u64 },
    #[error("the checksum of the record does not match its content")]
    Checksum,
    #[error("the payload of the record is not of the expected kind")]
    Payload,
}

/// Wraps a payload.
pub fn encode_record(payload: &[u8]) -> Vec<u8> {
    let version = u16::try_from(current_version()).expect("versions are counted one by one and stay small");
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&MAGIC);
    record.extend_from_slice(&version.to_le_bytes());
    record.extend_from_slice(&[CODEC_PLAIN, 0]);
    record.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let digest = checksum(&record, payload);
    record.extend_from_slice(digest.as_bytes());
    record.extend_from_slice(payload);
    record
}

/// The payload of a record.
///
/// # Errors
/// Anything that is not exactly what [`encode_record`] writes: the hash covers header and payload.
pub fn decode_record(record: &[u8]) -> Result<&[u8], DamagedRecord> {
    let short = DamagedRecord::Short { found: record.len() };
    let (header, payload) = record.split_at_checked(HEADER).ok_or(short)?;
    let (fields, stored_digest) = header.split_at_checked(HASHED_HEADER).ok_or(short)?;
    let (magic, rest) = fields.split_first_chunk::<4>().ok_or(short)?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or(short)?;
    let (codec, length) = rest.split_first_chunk::<2>().ok_or(short)?;
    if *magic != MAGIC {
        return Err(DamagedRecord::Magic);
    }
    let found = u16::from_le_bytes(*version);
    if u32::from(found) != current_version() {
        return Err(DamagedRecord::Version { found, expected: current_version() });
    }
    if *codec != [CODEC_PLAIN, 0] {
        return Err(DamagedRecord::Codec { found: codec[0] });
    }
    let stated = length.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if stated != payload.len() as u64 {
        return Err(DamagedRecord::Length { found: payload.len() as u64, stated });
    }
    if checksum(fields, payload).as_bytes() != stored_digest {
        return Err(DamagedRecord::Checksum);
    }
    Ok(payload)
}

fn checksum(fields: &[u8], payload: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(fields).update(payload).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of schema version 4, byte for byte. A change of the layout needs a new version and a migration.
    const VERSION_4: &str = "434e505904000000070000000000000\
        0f48122c4ea83596975e04bca5fce2d84080239ba4cb309c07c1fcd9d936112727061796c6f6164";

    #[test]
    fn a_record_is_read_back() {
        for payload in [&b""[..], b"plan one", &[7; 100_000]] {
            assert_eq!(decode_record(&encode_record(payload)), Ok(payload));
        }
    }

    #[test]
    fn every_single_changed_byte_is_noticed() {
        let record = encode_record(b"payload");
        for position in 0..record.len() {
            let mut damaged = record.clone();
            damaged[position] ^= 1;
            assert!(decode_record(&damaged).is_err(), "byte {position}");
        }
    }

    #[test]
    fn every_truncation_and_every_tail_is_noticed() {
        let record = encode_record(b"payload");
        for length in 0..record.len() {
            assert!(decode_record(&record[..length]).is_err(), "{length} bytes");
        }
        let mut longer = record;
        longer.push(0);
        assert_eq!(decode_record(&longer), Err(DamagedRecord::Length { found: 8, stated: 7 }));
    }

    #[test]
    fn the_layout_of_version_4_stays() {
        let text: String = encode_record(b"payload").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, VERSION_4);
    }
}
