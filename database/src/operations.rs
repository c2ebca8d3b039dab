//! What callers wait for by name, at whichever server they ask.

use std::time::SystemTime;

use tokio_postgres::Row;

use crate::Key;
use crate::error::DatabaseError;
use crate::jobs::{JobState, Jobs, key_of};

/// An operation of some server, and what has become of its job.
#[derive(Clone, Debug)]
pub struct OperationNow {
    /// Its number.
    pub operation: i64,
    /// What its server wrote down of it.
    pub facts: Vec<u8>,
    /// The key of its plan.
    pub key: Key,
    /// How far its job is.
    pub state: JobState,
    /// How that ended, as its maker says.
    pub outcome: Option<Vec<u8>>,
    /// How far that is in detail, as its maker says.
    pub report: Option<Vec<u8>>,
    /// Its priority by now.
    pub priority: i16,
    /// Whether it continues without waiters.
    pub is_detached: bool,
    /// Servers where somebody waits for it.
    pub waiters: u64,
    /// Whether the job is for this operation first.
    pub is_first: bool,
    /// Whether it ends alone.
    pub is_cancelled: bool,
    /// When the job ended, in milliseconds since 1970 UTC.
    pub ended_ms: Option<u64>,
}

/// The columns of an operation.
const COLUMNS: &str = "o.operation, o.facts, j.key, j.state, j.outcome, p.report, j.priority, j.is_detached,
    (select count(*) from waiters w where w.job = j.job), j.operation = o.operation, o.is_cancelled, j.ended
    from operations o join jobs j on j.job = o.job left join progress p on p.job = j.job";

impl Jobs {
    /// The operation of this number.
    ///
    /// # Errors
    /// The database failed.
    pub fn operation(&self, operation: i64) -> Result<Option<OperationNow>, DatabaseError> {
        let statement = format!("select {COLUMNS} where o.operation = $1");
        self.database.call(async |client| {
            let statement = client.prepare_cached(&statement).await?;
            client.query_opt(&statement, &[&operation]).await?.map(|row| operation_now(&row)).transpose()
        })
    }

    /// The latest operations, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    pub fn operations(&self, limit: u32) -> Result<Vec<OperationNow>, DatabaseError> {
        let statement = format!("select {COLUMNS} order by o.operation desc limit $1");
        self.database.call(async |client| {
            let statement = client.prepare_cached(&statement).await?;
            client.query(&statement, &[&i64::from(limit)]).await?.iter().map(operation_now).collect()
        })
    }
}

fn operation_now(row: &Row) -> Result<OperationNow, DatabaseError> {
    let ended: Option<SystemTime> = row.try_get(11)?;
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    Ok(OperationNow {
        operation: row.try_get(0)?,
        facts: row.try_get(1)?,
        key: key_of(row, 2)?,
        state: JobState::of_number(row.try_get(3)?)?,
        outcome: row.try_get(4)?,
        report: row.try_get(5)?,
        priority: row.try_get(6)?,
        is_detached: row.try_get(7)?,
        waiters: row.try_get::<_, i64>(8)?.unsigned_abs(),
        is_first: row.try_get(9)?,
        is_cancelled: row.try_get(10)?,
        ended_ms: ended.map(|ended| u64::try_from(since(ended)).unwrap_or(u64::MAX)),
    })
}
