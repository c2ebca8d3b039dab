//! Jobs of all servers: each is made by one of them, by a right that is worth nothing once it was given to another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::Key;
use crate::change::{Attempt, Change, Columns, make_by, new_attempt};
use crate::database::Database;
use crate::error::DatabaseError;
use crate::space::SharedSpace;

/// How long a server that is silent is taken to be there.
pub const SILENCE: Duration = Duration::from_secs(15);
/// How long callers of a server that went silent have to come back elsewhere.
const RETURN: Duration = Duration::from_secs(30);
/// How long jobs that have ended are remembered, and how many at most.
const REMEMBERED: (Duration, i64) = (Duration::from_secs(24 * 3600), 10_000);
/// The jobs as one of the servers sees them. Clones share it.
#[derive(Clone, Debug)]
pub struct Jobs {
    database: Database,
    server: i64,
    class: String,
    /// What this server makes. Held while it takes more, so that it never says that it does not make what it has just taken.
    makes: Arc<Mutex<BTreeMap<i64, Right>>>,
}

/// A job that is to be done; by default it takes no memory, and is everybody's.
#[derive(Clone, Debug, Default)]
pub struct NewJob {
    /// Its number, of [`Jobs::number`].
    pub number: i64,
    /// The key of the plan.
    pub key: Key,
    /// The schedule that is searched for.
    pub search: Option<Key>,
    /// Larger comes first.
    pub priority: i16,
    /// Bytes of memory that it takes, roughly.
    pub memory: u64,
    /// Whose turn it takes, and its share.
    pub tenant: String,
    /// See there.
    pub weight: u64,
    /// Whether it continues without waiters.
    pub is_detached: bool,
    /// The request.
    pub entry: Vec<u8>,
}

/// The right to make a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// The number of the job.
    pub job: i64,
    /// Tells this right from others.
    pub fence: i64,
}

/// A job that a server has to do.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// By which right.
    pub right: Right,
    /// The key of the plan.
    pub key: Key,
    /// The request.
    pub entry: Vec<u8>,
    /// How often it was begun, this time included.
    pub starts: u32,
    /// Its priority by now.
    pub priority: i16,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits for a server.
    Queued,
    /// A server makes its plan.
    Running,
    /// Its plan is stored.
    Succeeded,
    /// It has none.
    Failed,
    /// It is not wanted any more.
    Cancelled,
}

impl JobState {
    const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Whether it has ended.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    const fn number(self) -> i16 {
        self as i16
    }
}

/// What is known of a job.
#[derive(Clone, Debug)]
pub struct JobNow {
    /// Its number.
    pub job: i64,
    /// The key of its plan.
    pub key: Key,
    /// How far it is.
    pub state: JobState,
    /// How it ended, as its maker says.
    pub outcome: Option<Vec<u8>>,
    /// How far it is in detail, as its maker says.
    pub report: Option<Vec<u8>>,
}

/// What a server hears when it says that it is there.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Whether it was taken for gone meanwhile: what it makes is made by others.
    pub was_given_up: bool,
    /// Jobs that it makes and that are not wanted any more, or not by it.
    pub unwanted: Vec<i64>,
}

impl Jobs {
    /// Begins to take part, under a name for people; jobs are shared by servers of one class.
    ///
    /// # Errors
    /// The database failed.
    pub fn join(database: &Database, name: &str, class: &str) -> Result<Self, DatabaseError> {
        let statement = format!(
            "insert into servers (name, class, until) values ($1, $2, now() + interval '{} s') returning server",
            SILENCE.as_secs()
        );
        let server = database.call_once(async |client| {
            let row = client.query_one(&statement, &[&name, &class]).await?;
            Ok(row.try_get(0)?)
        })?;
        Ok(Self { database: database.clone(), server, class: class.to_owned(), makes: Arc::default() })
    }

    /// The number of the next job of this server.
    ///
    /// # Errors
    /// The database failed.
    pub fn number(&self) -> Result<i64, DatabaseError> {
        self.database.call(async |client| {
            let statement = client.prepare_cached("select nextval('job_numbers')").await?;
            Ok(client.query_one(&statement, &[]).await?.try_get(0)?)
        })
    }

    /// Says that this server is there, and what it makes; learns what it need not make. What it has taken without hearing of
    /// it is given to others.
    ///
    /// # Errors
    /// The database failed.
    pub fn say_there(&self) -> Result<Heard, DatabaseError> {
        let makes = self.makes.lock();
        let (jobs, fences): (Vec<i64>, Vec<i64>) = makes.values().map(|right| (right.job, right.fence)).unzip();
        let statement = format!(
            "with alive as (
                 update servers set until = now() + interval '{} s' where server = $1 and until > now() returning server
             ), back as (
                 update jobs set state = 0, owner = null, fence = null
                     where owner = $1 and state = 1 and not job = any($2) returning job
             )
             select (select count(*) from alive),
                 (select array_agg(m.job) from unnest($2, $3::bigint[]) m(job, fence)
                      left join jobs j on j.job = m.job and j.fence = m.fence and j.state = 1
                      where j.job is null or j.is_unwanted)",
            SILENCE.as_secs()
        );
        self.database.call(async |client| {
            let statement = client.prepare_typed_cached(&statement, &[Type::INT8, Type::INT8_ARRAY]).await?;
            let row = client.query_one(&statement, &[&self.server, &jobs, &fences]).await?;
            let unwanted = row.try_get::<_, Option<Vec<i64>>>(1)?.unwrap_or_default();
            Ok(Heard { was_given_up: row.try_get::<_, i64>(0)? == 0, unwanted })
        })
    }

    /// Has others do what silent servers were doing; jobs that were begun so often fail with this outcome. Cancels those whose
    /// callers do not come back, and forgets old ones. Any server may do this at any time. Returns how many are done again.
    ///
    /// # Errors
    /// The database failed.
    pub fn bury(&self, starts_max: u32, outcome: &[u8]) -> Result<u64, DatabaseError> {
        let starts_max = i32::try_from(starts_max).unwrap_or(i32::MAX);
        let tidy = format!(
            "select tidy_jobs(interval '{} s', interval '{} s', {})",
            RETURN.as_secs(),
            REMEMBERED.0.as_secs(),
            REMEMBERED.1
        );
        self.database.call(async |client| {
            let again = client.query_one("select bury_servers($1, $2)", &[&starts_max, &outcome]).await?;
            client.execute(&tidy, &[]).await?;
            Ok(again.try_get::<_, i64>(0)?.unsigned_abs())
        })
    }

    /// Has this server wait for a plan: for the job that makes it already, or a new one. Returns its number, and whether it is
    /// new.
    ///
    /// # Errors
    /// The database failed.
    pub fn submit(&self, job: &NewJob) -> Result<(i64, bool), DatabaseError> {
        let memory = i64::try_from(job.memory).unwrap_or(i64::MAX);
        let weight = i64::try_from(job.weight).unwrap_or(i64::MAX).max(1);
        let (key, search) = (job.key.as_slice(), job.search.as_ref().map(<[u8; 32]>::as_slice));
        // Asking twice has the same end: the second finds the job of the first.
        self.database.call(async |client| {
            let statement = "select o_job, o_is_new from submit_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
            let statement = client.prepare_cached(statement).await?;
            let row = client
                .query_one(
                    &statement,
                    &[
                        &self.server,
                        &job.number,
                        &key,
                        &search,
                        &self.class,
                        &job.priority,
                        &memory,
                        &job.tenant,
                        &weight,
                        &job.is_detached,
                        &job.entry,
                    ],
                )
                .await?;
            let (number, is_new): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
            Ok((number, is_new || number == job.number))
        })
    }

    /// Takes the job whose turn it is, of at least this priority, that takes no more memory than this; none: there is none.
    ///
    /// # Errors
    /// The database failed. A job that was taken all the same is given to others with [`Jobs::say_there`].
    pub fn claim(&self, memory: u64, least_priority: i16) -> Result<Option<Claimed>, DatabaseError> {
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        let mut makes = self.makes.lock();
        let claimed = self.database.call_once(async |client| {
            let statement = "select job, fence, key, entry, starts, priority from claim_job($1, $2, $3, $4)";
            let statement = client.prepare_cached(statement).await?;
            let row = client.query_opt(&statement, &[&self.server, &self.class, &memory, &least_priority]).await?;
            row.map(|row| claimed(&row)).transpose()
        })?;
        makes.extend(claimed.iter().map(|claimed| (claimed.right.job, claimed.right)));
        Ok(claimed)
    }

    /// Says how far a job is, in words of its maker.
    ///
    /// # Errors
    /// The database failed; nothing depends on it.
    pub fn report(&self, job: i64, report: &[u8]) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            let statement = "insert into progress (job, report) values ($1, $2)
                             on conflict (job) do update set report = excluded.report";
            let statement = client.prepare_cached(statement).await?;
            client.execute(&statement, &[&job, &report]).await?;
            Ok(())
        })
    }

    /// Ends a job with what it makes of the records of a space, all or none.
    ///
    /// # Errors
    /// [`DatabaseError::Overtaken`], as for [`SharedSpace::change`]: it is to be ended again. With all other errors this server
    /// does not make it any more: [`DatabaseError::Fenced`], the right is worth nothing; or the database failed, and others
    /// make it again if it has not ended.
    pub fn end(
        &self,
        right: Right,
        (state, outcome): (JobState, &[u8]),
        records: Option<(&SharedSpace, Vec<Change>)>,
    ) -> Result<(), DatabaseError> {
        let (space, changes) = records.unzip();
        let expecting = space.map_or_else(Vec::new, |space| space.expecting(changes.unwrap_or_default()));
        let number = space.map_or(0, SharedSpace::number);
        let attempt = new_attempt()?;
        let end =
            async |client: &Object, columns: &Columns| end(client, right, (state, outcome), &attempt, columns).await;
        let ended = async |client: &Object| {
            let statement = "select (select version from changes where attempt = $3 limit 1) from jobs
                             where job = $1 and fence = $2 and state >= 2";
            let row = client.query_opt(statement, &[&right.job, &right.fence, &attempt.as_slice()]).await?;
            row.map(|row| Ok(row.try_get::<_, Option<i64>>(0)?.unwrap_or_default())).transpose()
        };
        let version = make_by(&self.database, number, &expecting, end, ended);
        if !matches!(version, Err(DatabaseError::Overtaken)) {
            self.makes.lock().remove(&right.job);
        }
        if let Some(space) = space {
            space.settle(&version, expecting)?;
        }
        version.map(drop)
    }

    /// Gives a job back that was not begun in earnest, as if it had not been taken: another server takes it.
    ///
    /// # Errors
    /// The database failed; it is taken by another one when this server has been silent for long.
    pub fn give_back(&self, Right { job, fence }: Right) -> Result<(), DatabaseError> {
        self.makes.lock().remove(&job);
        self.database.call(async |client| {
            let statement = "with back as (
                    update jobs set state = 0, owner = null, fence = null, starts = starts - 1
                        where job = $1 and fence = $2 and state = 1 returning job
                ) select pg_notify('canopy_jobs', job::text) from back";
            client.query(statement, &[&job, &fence]).await?;
            Ok(())
        })
    }

    /// This server's callers wait for a job no more.
    ///
    /// # Errors
    /// The database failed; the job goes on until this server has been silent for long.
    pub fn leave(&self, job: i64) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            client.query("select leave_job($1, $2)", &[&self.server, &job]).await?;
            Ok(())
        })
    }

    /// Cancels a job for all who wait for it; false: it has ended, or there is none.
    ///
    /// # Errors
    /// The database failed.
    pub fn cancel(&self, job: i64, outcome: &[u8]) -> Result<bool, DatabaseError> {
        self.database.call(async |client| {
            Ok(client.query_one("select cancel_job($1, $2)", &[&job, &outcome]).await?.try_get(0)?)
        })
    }

    /// What is known of jobs. Those that are remembered no more are left out.
    ///
    /// # Errors
    /// The database failed.
    pub fn look(&self, jobs: &[i64]) -> Result<Vec<JobNow>, DatabaseError> {
        let statement = "select j.job, j.key, j.state, j.outcome, p.report
                         from jobs j left join progress p on p.job = j.job where j.job = any($1)";
        self.database.call(async |client| {
            let statement = client.prepare_cached(statement).await?;
            client.query(&statement, &[&jobs]).await?.iter().map(job_now).collect()
        })
    }

    /// Leaves: what this server makes is made by others at once.
    ///
    /// # Errors
    /// The database failed; it is made by others when this server has been silent for long.
    pub fn part(&self) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            client.execute("update servers set until = '-infinity' where server = $1", &[&self.server]).await?;
            Ok(())
        })
    }
}

async fn end(
    client: &Object,
    Right { job, fence }: Right,
    (state, outcome): (JobState, &[u8]),
    attempt: &Attempt,
    columns: &Columns,
) -> Result<i64, DatabaseError> {
    let statement = "select end_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    let statement = client.prepare_cached(statement).await?;
    let Columns { kind, space, key, expected, size, digest, small, body, summary } = columns;
    let (number, attempt) = (state.number(), attempt.as_slice());
    let of_job: [&(dyn ToSql + Sync); 5] = [&job, &fence, &number, &outcome, &attempt];
    let of_records: [&(dyn ToSql + Sync); 9] = [kind, space, key, expected, size, digest, small, body, summary];
    let parameters: Vec<_> = of_job.into_iter().chain(of_records).collect();
    Ok(client.query_one(&statement, &parameters).await?.try_get(0)?)
}

fn claimed(row: &Row) -> Result<Claimed, DatabaseError> {
    let starts: i32 = row.try_get(4)?;
    Ok(Claimed {
        right: Right { job: row.try_get(0)?, fence: row.try_get(1)? },
        key: key_of(row, 2)?,
        entry: row.try_get(3)?,
        starts: starts.unsigned_abs(),
        priority: row.try_get(5)?,
    })
}

fn job_now(row: &Row) -> Result<JobNow, DatabaseError> {
    let number: i16 = row.try_get(2)?;
    let state = usize::try_from(number).ok().and_then(|number| JobState::ALL.get(number)).copied();
    let state = state.ok_or_else(|| DatabaseError::Damaged { reason: format!("a job in state {number}") })?;
    Ok(JobNow { job: row.try_get(0)?, key: key_of(row, 1)?, state, outcome: row.try_get(3)?, report: row.try_get(4)? })
}

fn key_of(row: &Row, column: usize) -> Result<Key, DatabaseError> {
    let key: &[u8] = row.try_get(column)?;
    key.try_into().map_err(|_| DatabaseError::Damaged { reason: format!("a key of {} bytes", key.len()) })
}
