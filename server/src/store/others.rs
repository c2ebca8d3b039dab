//! The other servers that use the same store.

use canopy_database::{DatabaseError, Role, SharedRecords};
use tokio::sync::watch;

/// Where it is in the database what one server does for all.
pub(super) const ROLES: i16 = 101;

/// The other servers that use the same store, as one of them knows them. Clones share it.
#[derive(Clone)]
pub struct Others {
    records: SharedRecords,
    /// Who makes plans anew.
    pub(crate) replanner: Role,
}

impl Others {
    pub(super) fn of(records: &SharedRecords) -> Result<Self, DatabaseError> {
        Ok(Self { records: records.clone(), replanner: Role::new(records, ROLES, "replanner")? })
    }

    /// Is told whenever others have changed something.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.records.news()
    }

    /// The time that all go by, in milliseconds since about 1970 UTC.
    pub(crate) fn now_ms(&self) -> u64 {
        self.records.now_ms()
    }

    /// Waits until all that has changed up to now is heard of.
    #[cfg(test)]
    pub(crate) fn hear_of_all(&self) {
        self.records.hear_of_all().unwrap();
    }
}
