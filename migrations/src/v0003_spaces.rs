//! Version 3: more than one keyed space.
//!
//! Beside the trees of plans stand three for each of `topologies`, `jobs` and `requests`: `….records`, `….summaries`
//! and `….quarantine`, laid out as those of plans are. There a summary may be empty, which says that there is none.
//! Records are as in version 2 but for the version they state. A build of version 2 would pass over what it does not
//! know, which is why this is a version of its own.

use crate::Version;
use crate::record::resealed;

/// Several spaces in one database.
pub(crate) const VERSION: Version = Version { number: 3, name: "spaces", upgrade: Some(|record| resealed(record, 3)) };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpgradeError;
    use crate::record::seal;

    #[test]
    fn a_record_keeps_its_payload_and_states_the_new_version() {
        let upgraded = VERSION.apply(&seal(b"payload", 2)).unwrap();
        assert_eq!(upgraded, seal(b"payload", 3));
    }

    #[test]
    fn whatever_is_not_an_intact_record_of_version_2_is_refused() {
        let record = seal(b"payload", 2);
        for position in 0..record.len() {
            let mut damaged = record.clone();
            damaged[position] ^= 1;
            assert_eq!(VERSION.apply(&damaged), Err(UpgradeError { expected: 2 }), "byte {position}");
        }
        for other in [1, 3] {
            assert!(VERSION.apply(&seal(b"payload", other)).is_err(), "version {other}");
        }
    }
}
