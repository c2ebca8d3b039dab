//! What one of the servers does for all.

use crate::Key;
use crate::change::{Change, Write};
use crate::copies::SpaceNumber;
use crate::error::DatabaseError;
use crate::space::{SharedRecords, SharedSpace};

/// A role that one server has at a time. A server that does not say again that it has the role loses it, and may not know that
/// for a moment: what is done in the role must do no harm if two servers do it.
#[derive(Clone)]
pub struct Role {
    records: SharedRecords,
    space: SharedSpace,
    key: Key,
    /// Tells this server from others.
    server: [u8; 8],
}

impl Role {
    /// The role of this name, kept in this space.
    ///
    /// # Errors
    /// The system gives no chance.
    pub fn new(records: &SharedRecords, space: SpaceNumber, name: &str) -> Result<Self, DatabaseError> {
        let mut server = [0; 8];
        getrandom::fill(&mut server).map_err(|error| DatabaseError::Refused { reason: error.to_string() })?;
        let key = *blake3::hash(name.as_bytes()).as_bytes();
        Ok(Self { records: records.clone(), space: records.space(space), key, server })
    }

    /// Takes the role if nobody has it, or keeps it, for so many milliseconds from now on; returns whether this server has it.
    ///
    /// # Errors
    /// The database failed; who has the role is unknown.
    pub fn hold(&self, for_ms: u64) -> Result<bool, DatabaseError> {
        self.space.catch_up();
        let now = self.records.now_ms();
        if self.holder()?.is_some_and(|(server, until_ms)| server != self.server && until_ms > now) {
            return Ok(false);
        }
        let until_ms = now.saturating_add(for_ms);
        let record = [self.server, until_ms.to_le_bytes()].concat();
        let write = Write::Put { record, summary: Vec::new() };
        match self.space.change(vec![Change { key: self.key, write }]) {
            Ok(()) => Ok(true),
            Err(DatabaseError::Overtaken) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets another server have it at once, if this one has it.
    ///
    /// # Errors
    /// The database failed; the role ends by itself.
    pub fn leave(&self) -> Result<(), DatabaseError> {
        self.space.catch_up();
        if self.holder()?.is_none_or(|(server, _)| server != self.server) {
            return Ok(());
        }
        match self.space.change(vec![Change { key: self.key, write: Write::Remove }]) {
            Err(DatabaseError::Overtaken) => Ok(()),
            left => left,
        }
    }

    /// Who had it last, and until when.
    fn holder(&self) -> Result<Option<([u8; 8], u64)>, DatabaseError> {
        let record = self.space.record(&self.key)?;
        Ok(record.and_then(|record| {
            let (server, until_ms) = record.split_first_chunk::<8>()?;
            Some((*server, u64::from_le_bytes(until_ms.try_into().ok()?)))
        }))
    }
}
