//! The envelope that records of versions 1 to 4 share; see `v0001_first` for its layout.

use crate::UpgradeError;

const MAGIC: [u8; 4] = *b"CNPY";
const CODEC_PLAIN: [u8; 2] = [0, 0];
/// Bytes before the hash.
const FIELDS: usize = 16;
/// Bytes before the payload.
const HEADER: usize = FIELDS + blake3::OUT_LEN;

/// The record of this version with the payload of an intact one of the version before.
pub(crate) fn resealed(record: &[u8], version: u16) -> Result<Vec<u8>, UpgradeError> {
    let before = version - 1;
    // There is one way to write a record, so one that differs from it is damaged.
    let payload = record.get(HEADER..).filter(|payload| seal(payload, before) == record);
    payload.map(|payload| seal(payload, version)).ok_or(UpgradeError { expected: before.into() })
}

/// A record of this version.
pub(crate) fn seal(payload: &[u8], version: u16) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&MAGIC);
    record.extend_from_slice(&version.to_le_bytes());
    record.extend_from_slice(&CODEC_PLAIN);
    record.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let digest = blake3::Hasher::new().update(&record).update(payload).finalize();
    record.extend_from_slice(digest.as_bytes());
    record.extend_from_slice(payload);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as a build of version 1 wrote it.
    const VERSION_1: &str = "434e505901000000070000000000000\
        07a30a64c00dfa689db834e93c7e64a22d8d962f5804ea238ffe5c571d83261987061796c6f6164";

    #[test]
    fn the_layout_stays() {
        let text: String = seal(b"payload", 1).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, VERSION_1);
    }
}
