//! Version 2: a summary beside each record.
//!
//! The database has one more tree, `summaries`: under the 32-byte key of each record, the same envelope around a small
//! message with what lists and eviction need. Records are as in version 1 but for the version they state. The store
//! makes the summaries from the records when it copies them.

use crate::Version;
use crate::record::resealed;

/// Summaries beside records.
pub(crate) const VERSION: Version =
    Version { number: 2, name: "summaries", upgrade: Some(|record| resealed(record, 2)) };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpgradeError;
    use crate::record::seal;

    #[test]
    fn a_record_keeps_its_payload_and_states_the_new_version() {
        let upgraded = VERSION.apply(&seal(b"payload", 1)).unwrap();
        assert_eq!(upgraded, seal(b"payload", 2));
    }

    #[test]
    fn whatever_is_not_an_intact_record_of_version_1_is_refused() {
        let record = seal(b"payload", 1);
        for position in 0..record.len() {
            let mut damaged = record.clone();
            damaged[position] ^= 1;
            assert_eq!(VERSION.apply(&damaged), Err(UpgradeError { expected: 1 }), "byte {position}");
            assert!(VERSION.apply(&record[..position]).is_err(), "{position} bytes");
        }
        assert!(VERSION.apply(&seal(b"payload", 2)).is_err());
    }
}
