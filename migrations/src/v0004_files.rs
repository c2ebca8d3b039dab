//! Version 4: plans and topologies in files of their own.
//!
//! Beside the database stands the folder `records-4`, with a folder for each of `plans` and `topologies`. A record is in
//! the file `<first two digits of its key>/<its key>` there, its digits in hexadecimal:
//!
//! | bytes | meaning |
//! |---|---|
//! | 0–3 | magic `CNPF` |
//! | 4–7 | length of the summary, little-endian |
//! | 8–39 | key |
//! | 40–71 | BLAKE3 of bytes 0–39 and the summary |
//! | 72… | the summary as of the last change that had to survive a crash, then the record to the end of the file |
//!
//! Damaged files are moved to the folder `quarantine` beside those of two digits. The database keeps the current
//! summaries of these spaces, and jobs and requests as before; its trees of plans' and topologies' records are empty.
//! Records are as in version 3 but for the version they state.

use crate::Version;
use crate::record::resealed;

/// Records in files.
pub(crate) const VERSION: Version = Version { number: 4, name: "files", upgrade: Some(|record| resealed(record, 4)) };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpgradeError;
    use crate::record::seal;

    #[test]
    fn a_record_keeps_its_payload_and_states_the_new_version() {
        let upgraded = VERSION.apply(&seal(b"payload", 3)).unwrap();
        assert_eq!(upgraded, seal(b"payload", 4));
    }

    #[test]
    fn whatever_is_not_an_intact_record_of_version_3_is_refused() {
        let record = seal(b"payload", 3);
        for position in 0..record.len() {
            let mut damaged = record.clone();
            damaged[position] ^= 1;
            assert_eq!(VERSION.apply(&damaged), Err(UpgradeError { expected: 3 }), "byte {position}");
        }
        for other in [2, 4] {
            assert!(VERSION.apply(&seal(b"payload", other)).is_err(), "version {other}");
        }
    }
}
