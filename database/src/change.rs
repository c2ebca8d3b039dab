//! Changes to records. A call makes all of its changes or none, and none if another server was first.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::{Instant, sleep};

use crate::Key;
use crate::body::{self, SMALL_BYTES};
use crate::copies::SpaceNumber;
use crate::database::Database;
use crate::error::DatabaseError;
use crate::mirror::{Entry, RecordFacts};

/// How long it is tried to find out whether a change was made when its connection broke.
const CERTAINTY_LIMIT: Duration = Duration::from_secs(10);
/// Time between two attempts at that.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A change of one record.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its key.
    pub key: Key,
    /// What is done.
    pub write: Write,
}

/// What is done to a record.
#[derive(Clone, Debug)]
pub enum Write {
    /// It is put there with its summary.
    Put {
        /// The record.
        record: Vec<u8>,
        /// Its summary.
        summary: Vec<u8>,
    },
    /// Its summary is replaced.
    Summary(Vec<u8>),
    /// It is removed with its summary.
    Remove,
    /// It is moved out of the way, and its summary removed.
    Quarantine,
}

/// A change of a record that is at this version as far as its server knows.
pub(crate) struct Expecting {
    pub(crate) space: SpaceNumber,
    pub(crate) change: Change,
    pub(crate) version: i64,
    /// Of the record that is put.
    facts: Option<RecordFacts>,
}

/// The arguments of `change_records`, one element for each record.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) kind: Vec<i16>,
    pub(crate) space: Vec<i16>,
    pub(crate) key: Vec<Vec<u8>>,
    pub(crate) expected: Vec<i64>,
    pub(crate) size: Vec<Option<i64>>,
    pub(crate) digest: Vec<Option<Vec<u8>>>,
    pub(crate) small: Vec<Option<Vec<u8>>>,
    pub(crate) body: Vec<Option<i64>>,
    pub(crate) summary: Vec<Option<Vec<u8>>>,
}

/// Tells an attempt at a change from all others.
pub(crate) type Attempt = [u8; 16];

/// A new attempt.
pub(crate) fn new_attempt() -> Result<Attempt, DatabaseError> {
    let mut attempt = [0; 16];
    getrandom::fill(&mut attempt).map_err(|error| DatabaseError::Refused { reason: error.to_string() })?;
    Ok(attempt)
}

/// Makes changes of records that are at the versions stated; returns the number of the change.
pub(crate) fn make(database: &Database, changes: &[Expecting]) -> Result<i64, DatabaseError> {
    let attempt = new_attempt()?;
    let change = async |client: &Object, columns: &Columns| change(client, &attempt, columns).await;
    let made = async |client: &Object| made(client, &attempt).await;
    make_by(database, changes, change, made)
}

/// Makes changes by a call that makes all or none of them, once: `made` says of it whether it did.
pub(crate) fn make_by(
    database: &Database,
    changes: &[Expecting],
    change: impl AsyncFn(&Object, &Columns) -> Result<i64, DatabaseError>,
    made: impl AsyncFn(&Object) -> Result<Option<i64>, DatabaseError>,
) -> Result<i64, DatabaseError> {
    let columns = database.call(async |client| {
        let mut columns = Columns::default();
        for change in changes {
            columns.push(client, change).await?;
        }
        Ok(columns)
    })?;
    let first = database.call_once(async |client| change(client, &columns).await);
    if !first.as_ref().is_err_and(DatabaseError::is_of_connection) {
        return first;
    }
    // It may have been made, or be made yet. Asking for the same again settles it: only one of both can be the first.
    let settle = async |client: &Object| {
        if let Some(version) = made(client).await? {
            return Ok(version);
        }
        match change(client, &columns).await {
            // By itself, perhaps.
            Err(error @ (DatabaseError::Overtaken | DatabaseError::Fenced)) => made(client).await?.ok_or(error),
            done => done,
        }
    };
    database.wait(async {
        let until = Instant::now() + CERTAINTY_LIMIT;
        let mut last = first;
        while Instant::now() < until {
            sleep(RETRY_INTERVAL).await;
            last = database.attempt(&settle).await;
            if !last.as_ref().is_err_and(DatabaseError::is_of_connection) {
                break;
            }
        }
        last
    })
}

/// The number of the change that an attempt has made.
async fn made(client: &Object, attempt: &[u8]) -> Result<Option<i64>, DatabaseError> {
    let row = client.query_opt("select version from changes where attempt = $1 limit 1", &[&attempt]).await?;
    Ok(row.map(|row| row.get(0)))
}

async fn change(client: &Object, attempt: &[u8], columns: &Columns) -> Result<i64, DatabaseError> {
    let statement = client.prepare_cached("select change_records($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)").await?;
    let Columns { kind, space, key, expected, size, digest, small, body, summary } = columns;
    let row = client
        .query_one(&statement, &[&attempt, kind, space, key, expected, size, digest, small, body, summary])
        .await?;
    Ok(row.try_get(0)?)
}

impl Columns {
    /// Adds a change; a large record is written first.
    async fn push(
        &mut self,
        client: &Object,
        Expecting { space, change, version, facts }: &Expecting,
    ) -> Result<(), DatabaseError> {
        let kind = match &change.write {
            Write::Put { .. } => 1,
            Write::Summary(_) => 2,
            Write::Remove => 3,
            Write::Quarantine => 4,
        };
        let (mut small, mut body) = (None, None);
        if let Write::Put { record, .. } = &change.write {
            if record.len() <= SMALL_BYTES {
                small = Some(record.clone());
            } else {
                body = Some(body::write(client, record).await?);
            }
        }
        let summary = match &change.write {
            Write::Put { summary, .. } | Write::Summary(summary) => Some(summary.clone()),
            Write::Remove | Write::Quarantine => None,
        };
        self.kind.push(kind);
        self.space.push(*space);
        self.key.push(change.key.to_vec());
        self.expected.push(*version);
        self.size.push(facts.map(|facts| i64::try_from(facts.size).unwrap_or(i64::MAX)));
        self.digest.push(facts.map(|facts| facts.digest.to_vec()));
        self.small.push(small);
        self.body.push(body);
        self.summary.push(summary);
        Ok(())
    }
}

impl Expecting {
    /// A change whose record is at no version yet.
    pub(crate) fn of(space: SpaceNumber, change: Change) -> Self {
        let facts = match &change.write {
            Write::Put { record, .. } => Some(RecordFacts::of(record)),
            Write::Summary(_) | Write::Remove | Write::Quarantine => None,
        };
        Self { space, change, version: 0, facts }
    }

    /// What is there after the change of this number, where `before` was.
    pub(crate) fn after(self, version: i64, before: Option<&Entry>, keeps_small: bool) -> Option<Entry> {
        match self.change.write {
            Write::Put { record, summary } => {
                let small = (keeps_small && record.len() <= SMALL_BYTES).then(|| Arc::from(record));
                Some(Entry { version, record: self.facts, summary: Some(Arc::from(summary)), small })
            }
            Write::Summary(summary) => {
                let before = before.cloned();
                let record = before.as_ref().and_then(|before| before.record);
                let small = before.and_then(|before| before.small);
                Some(Entry { version, record, summary: Some(Arc::from(summary)), small })
            }
            Write::Remove | Write::Quarantine => None,
        }
    }
}
