//! Versions of the store's records and of a shared database, and how to migrate old ones.
//!
//! One module per version of the schema, each with a pure function from the record bytes of the previous version to its
//! own. The store decides which files hold records and when they are rewritten.
//!
//! The rule for operators: data of any listed version opens; data of a newer version is refused.

mod database;
mod record;
mod v0001_first;
mod v0002_summaries;
mod v0003_spaces;
mod v0004_files;

pub use database::{DATABASE_VERSIONS, DatabaseVersion, current_database_version};

/// One version of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Its number: 1, 2, 3 … without gaps.
    pub number: u32,
    /// What it introduced.
    pub name: &'static str,
    /// Converts a whole record of the previous version into one of this version; `None` for the first.
    pub upgrade: Option<Upgrade>,
}

impl Version {
    /// Converts a whole record of the previous version into one of this version.
    ///
    /// # Errors
    /// The record is not an intact record of the previous version; for the first version, always.
    pub fn apply(&self, record: &[u8]) -> Result<Vec<u8>, UpgradeError> {
        let upgrade = self.upgrade.ok_or(UpgradeError { expected: 0 })?;
        upgrade(record)
    }
}

/// Converts the bytes of a whole record of one version into those of the next.
pub type Upgrade = fn(&[u8]) -> Result<Vec<u8>, UpgradeError>;

/// All versions, oldest first.
pub const VERSIONS: &[Version] =
    &[v0001_first::VERSION, v0002_summaries::VERSION, v0003_spaces::VERSION, v0004_files::VERSION];

/// The version that this build reads and writes.
pub const fn current_version() -> u32 {
    VERSIONS[VERSIONS.len() - 1].number
}

/// The steps from `found` to the current version, in order; empty if there is nothing to do.
///
/// # Errors
/// The version is newer than this build, or does not exist.
pub fn steps_from(found: u32) -> Result<&'static [Version], VersionError> {
    steps_within(VERSIONS, found)
}

fn steps_within(versions: &'static [Version], found: u32) -> Result<&'static [Version], VersionError> {
    let known = versions.last().map_or(0, |version| version.number);
    if found > known {
        return Err(VersionError::Newer { found, known });
    }
    let position = versions.iter().position(|version| version.number == found);
    let position = position.ok_or(VersionError::Unknown { found, known })?;
    Ok(&versions[position + 1..])
}

/// Why data of a version cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum VersionError {
    #[error(
        "the store has schema version {found}, but this build knows versions up to {known}; use a newer canopyd or another data directory"
    )]
    Newer { found: u32, known: u32 },
    #[error("the store has schema version {found}, which does not exist (this build knows 1 to {known})")]
    Unknown { found: u32, known: u32 },
}

/// A record that a migration cannot read; it is quarantined and computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record is not one of schema version {expected}")]
pub struct UpgradeError {
    /// Version the record was expected to have.
    pub expected: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_from_one_without_gaps_and_only_the_first_has_no_upgrade() {
        for (number, version) in (1_u32..).zip(VERSIONS) {
            assert_eq!(version.number, number);
            assert_eq!(version.upgrade.is_none(), number == 1);
        }
    }

    #[test]
    fn the_current_version_needs_no_step() {
        assert!(steps_from(current_version()).unwrap().is_empty());
    }

    #[test]
    fn a_newer_version_is_refused_and_both_numbers_are_named() {
        let newer = current_version() + 1;
        let error = steps_from(newer).unwrap_err();
        assert_eq!(error, VersionError::Newer { found: newer, known: current_version() });
        assert!(error.to_string().contains(&newer.to_string()));
    }

    #[test]
    fn version_zero_never_existed() {
        assert_eq!(steps_from(0).unwrap_err(), VersionError::Unknown { found: 0, known: current_version() });
    }

    #[test]
    fn an_old_version_is_led_through_every_later_one_in_order() {
        const fn version(number: u32) -> Version {
            Version { number, name: "test", upgrade: None }
        }
        static THREE: [Version; 3] = [version(1), version(2), version(3)];
        let steps: Vec<u32> = steps_within(&THREE, 1).unwrap().iter().map(|step| step.number).collect();
        assert_eq!(steps, [2, 3]);
    }
}
