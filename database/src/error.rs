//! Why something could not be done with a database.

use tokio_postgres::error::SqlState;

use crate::address::reason_of;

/// Why something could not be done with a database.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DatabaseError {
    /// It is not known whether a change was made, if one was asked for.
    #[error("the database cannot be reached: {reason}")]
    Away { reason: String },
    /// Nothing was changed.
    #[error("another server has changed this meanwhile")]
    Overtaken,
    /// Nothing was changed.
    #[error("another server does this by now")]
    Fenced,
    /// Nothing was changed.
    #[error("the database refused: {reason}")]
    Refused { reason: String },
    #[error("a record in the database is damaged: {reason}")]
    Damaged { reason: String },
}

/// Raised by the functions of the schema: a record is not as was stated.
const OVERTAKEN: &str = "CN001";
/// The same: the right by which a server does a job was given to another.
const FENCED: &str = "CN003";

/// What poolers say of the settings that connections begin with.
const NOT_PASSED_ON: &str = "unsupported startup parameter";
/// Through a pooler that gives every transaction another connection, no server hears of another.
pub(crate) const POOLED: &str =
    "this is a pooler such as PgBouncer in transaction mode; state the address of PostgreSQL itself";

impl DatabaseError {
    /// Whether the same may succeed with another connection.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Away { .. })
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        let reason = reason_of(&error);
        if reason.contains(NOT_PASSED_ON) {
            return Self::Refused { reason: format!("{reason}; {POOLED}") };
        }
        let Some(code) = error.code() else { return Self::Away { reason } };
        // Classes 08, 53 and 57: connections, resources and operators. Read only: a primary has become a standby.
        let class = code.code().get(..2).unwrap_or_default();
        let may_pass =
            [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        match code.code() {
            OVERTAKEN => Self::Overtaken,
            FENCED => Self::Fenced,
            _ if matches!(class, "08" | "53" | "57") || may_pass.contains(code) => Self::Away { reason },
            _ => Self::Refused { reason },
        }
    }
}
