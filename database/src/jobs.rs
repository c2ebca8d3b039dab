//! Jobs of all servers: each is made by one of them, by a right that is worth nothing once it was given to another.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deadpool_postgres::Object;
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::Key;
use crate::change::{Attempt, Change, Columns, make_by, new_attempt};
use crate::database::Database;
use crate::error::DatabaseError;
use crate::space::SharedSpace;
use crate::who::Who;

/// How long a server that is silent is taken to be there.
pub const SILENCE: Duration = Duration::from_secs(15);
/// Assumed time of a job that has not ended, so that one tenant does not get all workers at once.
const EXPECTED: Duration = Duration::from_secs(1);
/// How many operations a server numbers before it asks for more numbers.
const NUMBERS: u64 = 1 << 20;

/// The jobs as one of the servers sees them. Clones share it.
#[derive(Clone, Debug)]
pub struct Jobs {
    pub(crate) database: Database,
    /// Its number among the servers; another one after it was taken for gone.
    server: Arc<AtomicI64>,
    pub(crate) who: Who,
    /// What this server makes. Held while it takes more, so that it never says that it does not make what it has just taken.
    pub(crate) makes: Arc<Mutex<BTreeMap<i64, Right>>>,
}

/// A job that is to be done; by default it takes no memory, and is everybody's.
#[derive(Clone, Debug, Default)]
pub struct NewJob {
    /// The operation that waits for it, by a number of [`Jobs::numbers`].
    pub operation: i64,
    /// What is to be known of the operation beside its job.
    pub facts: Vec<u8>,
    /// The key of the plan.
    pub key: Key,
    /// The schedule that is searched for.
    pub search: Option<Key>,
    /// Larger comes first; from 3 on it is a repair.
    pub priority: i16,
    /// Bytes of memory that it takes, roughly.
    pub memory: u64,
    /// Whose turn it takes, and its share.
    pub tenant: String,
    /// See there.
    pub weight: u64,
    /// Whether it continues without waiters.
    pub is_detached: bool,
    /// Whether it is made beside the searches of others.
    pub is_beside: bool,
    /// The request.
    pub entry: Vec<u8>,
    /// The part of a question about the request that is to be answered; `None`: its plan is to be made. Such a job has no
    /// operation that could be asked for by name.
    pub slice: Option<Vec<u8>>,
}

/// What an operation waits for.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// The number of the job.
    pub job: i64,
    /// Whether it is for this operation first.
    pub is_first: bool,
    /// The outcome, if it has failed and would fail again.
    pub refusal: Option<Vec<u8>>,
}

/// What a server may take.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Bytes of memory that it has left.
    pub memory: u64,
    /// Bytes of memory that it has for all jobs.
    pub memory_max: u64,
    /// Jobs made beside searches, and repairs; all others if not.
    pub is_beside: bool,
    /// Only jobs that its own callers wait for.
    pub own_only: bool,
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
    /// See [`NewJob::slice`].
    pub slice: Option<Vec<u8>>,
    /// How often it was begun, this time included.
    pub starts: u32,
    /// Its priority by now.
    pub priority: i16,
    /// Bytes of memory that it takes, roughly.
    pub memory: u64,
    /// The schedule that is searched for.
    pub search: Option<Key>,
}

/// How a job ends.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// How far it is by then.
    pub state: JobState,
    /// What came of it, in words of its maker.
    pub outcome: &'a [u8],
    /// Whether it has failed, and would fail again.
    pub is_lasting: bool,
    /// How long it took.
    pub took: Duration,
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

    pub(crate) fn of_number(number: i16) -> Result<Self, DatabaseError> {
        let state = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).copied();
        state.ok_or_else(|| DatabaseError::Damaged { reason: format!("a job in state {number}") })
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
    /// Operations that wait for it and are to end alone.
    pub cancelled: Vec<i64>,
}

impl Jobs {
    /// Begins to take part; jobs are shared by servers of one class.
    ///
    /// # Errors
    /// The database failed.
    pub fn join(database: &Database, who: Who) -> Result<Self, DatabaseError> {
        let server = Arc::new(AtomicI64::new(join(database, &who)?));
        Ok(Self { database: database.clone(), server, who, makes: Arc::default() })
    }

    /// Takes part again after this server was taken for gone. All that it makes is made by others; those who wait here are to be
    /// entered again.
    ///
    /// # Errors
    /// The database failed.
    pub fn join_again(&self) -> Result<(), DatabaseError> {
        let server = join(&self.database, &self.who)?;
        self.server.store(server, Ordering::Relaxed);
        self.makes.lock().clear();
        Ok(())
    }

    pub(crate) fn server(&self) -> i64 {
        self.server.load(Ordering::Relaxed)
    }

    /// Numbers for operations of this server, which no other one gets.
    ///
    /// # Errors
    /// The database failed.
    pub fn numbers(&self) -> Result<Range<u64>, DatabaseError> {
        let block: i64 = self.database.call(async |client| {
            let statement = client.prepare_cached("select nextval('operation_blocks')").await?;
            Ok(client.query_one(&statement, &[]).await?.try_get(0)?)
        })?;
        let first = block.unsigned_abs().saturating_mul(NUMBERS) + 1;
        Ok(first..first.saturating_add(NUMBERS))
    }

    /// Has an operation wait for a plan: for the job that makes it already, or a new one.
    ///
    /// # Errors
    /// The database failed.
    pub fn submit(&self, job: &NewJob, refused_since: Duration) -> Result<Submitted, DatabaseError> {
        let memory = i64::try_from(job.memory).unwrap_or(i64::MAX);
        let weight = i64::try_from(job.weight).unwrap_or(i64::MAX).max(1);
        let (key, search) = (job.key.as_slice(), job.search.as_ref().map(<[u8; 32]>::as_slice));
        let statement =
            "select o_job, o_is_first, o_refusal from submit_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
            $12, $13, $14, make_interval(secs => $15))";
        let server = self.server();
        let parameters: [&(dyn ToSql + Sync); 15] = [
            &server,
            &job.operation,
            &job.facts,
            &key,
            &search,
            &self.who.class,
            &job.priority,
            &memory,
            &job.tenant,
            &weight,
            &job.is_detached,
            &job.is_beside,
            &job.entry,
            &job.slice,
            &refused_since.as_secs_f64(),
        ];
        // Asking twice has the same end: the second finds the job of the first.
        self.database.call(async |client| {
            let statement = client.prepare_cached(statement).await?;
            let row = client.query_one(&statement, &parameters).await?;
            Ok(Submitted { job: row.try_get(0)?, is_first: row.try_get(1)?, refusal: row.try_get(2)? })
        })
    }

    /// Writes an operation down that has ended before it had a job.
    ///
    /// # Errors
    /// The database failed.
    pub fn end_operation(&self, job: &NewJob, (state, outcome): (JobState, &[u8])) -> Result<(), DatabaseError> {
        let (key, state) = (job.key.as_slice(), state.number());
        self.database.call(async |client| {
            let parameters: [&(dyn ToSql + Sync); 6] =
                [&job.operation, &job.facts, &key, &self.who.class, &state, &outcome];
            client.query("select end_operation($1, $2, $3, $4, $5, $6)", &parameters).await?;
            Ok(())
        })
    }

    /// Takes the job whose turn it is. Returns `None` if no job waits, or if the first one needs more memory than is free.
    ///
    /// # Errors
    /// The database failed. A job that was taken all the same is given to others with [`Jobs::say_there`].
    pub fn claim(&self, wanted: Wanted) -> Result<Option<Claimed>, DatabaseError> {
        let [memory, memory_max] =
            [wanted.memory, wanted.memory_max].map(|memory| i64::try_from(memory).unwrap_or(i64::MAX));
        let (server, expected) = (self.server(), micros(EXPECTED));
        let mut makes = self.makes.lock();
        let claimed = self.database.call_once(async |client| {
            let statement = "select job, fence, key, entry, starts, priority, memory, search, slice
                from claim_job($1, $2, $3, $4, $5, $6, $7)";
            let statement = client.prepare_cached(statement).await?;
            let parameters: [&(dyn ToSql + Sync); 7] =
                [&server, &self.who.class, &memory, &memory_max, &wanted.is_beside, &wanted.own_only, &expected];
            let row = client.query_opt(&statement, &parameters).await?;
            row.map(|row| claimed(&row)).transpose()
        })?;
        makes.extend(claimed.iter().map(|claimed| (claimed.right.job, claimed.right)));
        Ok(claimed)
    }

    /// Others may search for the schedule of a job that is found to be known.
    ///
    /// # Errors
    /// The database failed; they wait for the end of the job.
    pub fn land(&self, Right { job, fence }: Right) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            let statement = "with landed as (
                    update jobs set search = null where job = $1 and fence = $2 and state = 1 returning job
                ) select pg_notify('canopy_jobs', job::text) from landed";
            client.query(statement, &[&job, &fence]).await?;
            Ok(())
        })
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
    /// [`DatabaseError::Overtaken`], as for [`SharedSpace::change`], and [`DatabaseError::Away`]: it is to be ended again, or
    /// given back. With all other errors this server does not make it any more: [`DatabaseError::Fenced`], the right is worth
    /// nothing; or the database refused, and the job is to be ended in another way.
    pub fn end(
        &self,
        right: Right,
        how: &End<'_>,
        records: Option<(&SharedSpace, Vec<Change>)>,
    ) -> Result<(), DatabaseError> {
        let (space, changes) = records.unzip();
        let expecting = space.map_or_else(Vec::new, |space| space.expecting(changes.unwrap_or_default()));
        let attempt = new_attempt()?;
        let end = async |client: &Object, columns: &Columns| end(client, right, how, &attempt, columns).await;
        let ended = async |client: &Object| {
            let statement = "select (select version from changes where attempt = $3 limit 1) from jobs
                             where job = $1 and fence = $2 and state >= 2";
            let row = client.query_opt(statement, &[&right.job, &right.fence, &attempt.as_slice()]).await?;
            row.map(|row| Ok(row.try_get::<_, Option<i64>>(0)?.unwrap_or_default())).transpose()
        };
        let version = make_by(&self.database, &expecting, end, ended);
        if matches!(version, Err(DatabaseError::Fenced)) && self.has_ended(right)? {
            // By itself: an earlier attempt, of which nothing was heard.
            self.makes.lock().remove(&right.job);
            return space.map_or(Ok(()), SharedSpace::hear_of_all);
        }
        if matches!(version, Ok(_) | Err(DatabaseError::Fenced)) {
            self.makes.lock().remove(&right.job);
        }
        if let Some(space) = space {
            space.settle(&version, expecting)?;
        }
        version.map(drop)
    }

    /// Whether a job was ended by this right, with its plan.
    fn has_ended(&self, Right { job, fence }: Right) -> Result<bool, DatabaseError> {
        let statement = "select from jobs where job = $1 and fence = $2 and state in (2, 3) and not is_unwanted";
        self.database.call(async |client| Ok(client.query_opt(statement, &[&job, &fence]).await?.is_some()))
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

    /// This server's callers wait for a job no more; it is cancelled if no others do, unless it may go on alone.
    ///
    /// # Errors
    /// The database failed; the job goes on until this server has been silent for long.
    pub fn leave(&self, job: i64, may_go_on: bool) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            client.query("select leave_job($1, $2, $3)", &[&self.server(), &job, &may_go_on]).await?;
            Ok(())
        })
    }

    /// Ends an operation, and its job if that is for this operation first. Returns false if it has ended, or is unknown.
    ///
    /// # Errors
    /// The database failed.
    pub fn cancel(&self, operation: i64, outcome: &[u8]) -> Result<bool, DatabaseError> {
        self.database.call(async |client| {
            Ok(client.query_one("select cancel_operation($1, $2)", &[&operation, &outcome]).await?.try_get(0)?)
        })
    }

    /// Forgets which jobs would fail again, at all servers.
    ///
    /// # Errors
    /// The database failed.
    pub fn forget_refusals(&self) -> Result<u64, DatabaseError> {
        self.database.call(async |client| {
            let forgotten = client.execute("update jobs set is_lasting = false where is_lasting and state = 3", &[]);
            let forgotten = forgotten.await?;
            client.query_one("select nextval('forgettings')", &[]).await?;
            Ok(forgotten)
        })
    }

    /// What is known of jobs. Those that are remembered no more are left out.
    ///
    /// # Errors
    /// The database failed.
    pub fn look(&self, jobs: &[i64]) -> Result<Vec<JobNow>, DatabaseError> {
        let statement = "select j.job, j.key, j.state, j.outcome, p.report,
                array(select operation from operations o where o.job = j.job and o.is_cancelled)
            from jobs j left join progress p on p.job = j.job where j.job = any($1)";
        self.database.call(async |client| {
            let statement = client.prepare_cached(statement).await?;
            client.query(&statement, &[&jobs]).await?.iter().map(job_now).collect()
        })
    }
}

fn join(database: &Database, Who { name, class, role }: &Who) -> Result<i64, DatabaseError> {
    let statement = format!(
        "insert into servers (name, class, role, until) values ($1, $2, $3, now() + interval '{} s') returning server",
        SILENCE.as_secs()
    );
    database.call_once(async |client| Ok(client.query_one(&statement, &[name, class, role]).await?.try_get(0)?))
}

async fn end(
    client: &Object,
    Right { job, fence }: Right,
    how: &End<'_>,
    attempt: &Attempt,
    columns: &Columns,
) -> Result<i64, DatabaseError> {
    let statement = "select end_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let statement = client.prepare_cached(statement).await?;
    let Columns { kind, space, key, expected, size, digest, small, body, summary } = columns;
    let (number, attempt, more) = (how.state.number(), attempt.as_slice(), micros(how.took) - micros(EXPECTED));
    let of_job: [&(dyn ToSql + Sync); 7] = [&job, &fence, &number, &how.outcome, &how.is_lasting, &more, &attempt];
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
        memory: row.try_get::<_, i64>(6)?.unsigned_abs(),
        search: row.try_get::<_, Option<&[u8]>>(7)?.and_then(|key| key.try_into().ok()),
        slice: row.try_get(8)?,
    })
}

fn job_now(row: &Row) -> Result<JobNow, DatabaseError> {
    Ok(JobNow {
        job: row.try_get(0)?,
        key: key_of(row, 1)?,
        state: JobState::of_number(row.try_get(2)?)?,
        outcome: row.try_get(3)?,
        report: row.try_get(4)?,
        cancelled: row.try_get(5)?,
    })
}

pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn key_of(row: &Row, column: usize) -> Result<Key, DatabaseError> {
    let key: &[u8] = row.try_get(column)?;
    key.try_into().map_err(|_| DatabaseError::Damaged { reason: format!("a key of {} bytes", key.len()) })
}
