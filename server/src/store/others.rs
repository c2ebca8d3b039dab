//! The other servers that use the same store.

use canopy_database::{DatabaseError, Jobs, Role, SharedRecords, State, Who};
use tokio::sync::watch;

use super::{StoreError, of_database};

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
    pub(crate) fn hear_of_all(&self) -> Result<(), StoreError> {
        self.records.hear_of_all().map_err(of_database)
    }

    /// The same on the async runtime.
    pub(crate) async fn heard_of_all(&self) -> Result<(), StoreError> {
        self.records.heard_of_all().await.map_err(of_database)
    }

    /// Takes part in the jobs that servers of one class share.
    pub(crate) fn join(&self, who: Who) -> Result<Jobs, StoreError> {
        Jobs::join(self.records.database(), who).map_err(of_database)
    }

    /// Why the database cannot be reached, if it cannot, as far as is known.
    pub(crate) fn trouble(&self) -> Option<String> {
        match self.records.database().state() {
            State::There => None,
            State::Away(reason) => Some(reason),
        }
    }
}
