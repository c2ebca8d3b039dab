//! Servers that do jobs: each says that it is there; what silent ones were doing is done by others.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::DatabaseError;
use crate::jobs::{Jobs, SILENCE};
use crate::who::Who;

/// How long callers of a server that went silent have to come back elsewhere.
const RETURN: Duration = Duration::from_secs(30);
/// How long jobs that have ended are remembered, and how many at most.
const REMEMBERED: (Duration, i64) = (Duration::from_secs(24 * 3600), 10_000);

/// A server that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNow {
    /// As it shows itself.
    pub who: Who,
    /// How long it has taken part.
    pub age: Duration,
    /// How long ago it last said that it is there.
    pub heard_ago: Duration,
    /// How many jobs it makes.
    pub makes: u64,
    /// Whether it is the one that asks.
    pub is_this: bool,
}

/// What a server hears when it says that it is there.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Whether it was taken for gone meanwhile: what it makes is made by others.
    pub was_given_up: bool,
    /// Jobs that it makes and that are not wanted any more, or not by it.
    pub unwanted: Vec<i64>,
    /// How often an operator had refusals forgotten.
    pub forgettings: i64,
    /// Whether a job that is no prefetch waits for a server.
    pub is_wanted: bool,
}

impl Jobs {
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
                      where j.job is null or j.is_unwanted),
                 (select last_value from forgettings),
                 exists(select from jobs where state = 0 and priority > 0)",
            SILENCE.as_secs()
        );
        self.database.call(async |client| {
            let statement = client.prepare_typed_cached(&statement, &[Type::INT8, Type::INT8_ARRAY]).await?;
            let row = client.query_one(&statement, &[&self.server(), &jobs, &fences]).await?;
            let unwanted = row.try_get::<_, Option<Vec<i64>>>(1)?.unwrap_or_default();
            let was_given_up = row.try_get::<_, i64>(0)? == 0;
            Ok(Heard { was_given_up, unwanted, forgettings: row.try_get(2)?, is_wanted: row.try_get(3)? })
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
            let again =
                client.query_one("select bury_servers($1, $2, $3)", &[&self.who.class, &starts_max, &outcome]).await?;
            client.execute(&tidy, &[]).await?;
            Ok(again.try_get::<_, i64>(0)?.unsigned_abs())
        })
    }

    /// The servers that are there, as many at most, those that have taken part for longest first.
    ///
    /// # Errors
    /// The database failed.
    pub fn servers(&self, count_max: u32) -> Result<Vec<ServerNow>, DatabaseError> {
        // What has joined at the same moment is in the order of its numbers.
        let statement = format!(
            "select name, class, role,
                 greatest(0, floor(extract(epoch from now() - since) * 1000))::bigint,
                 greatest(0, floor(extract(epoch from now() + interval '{} s' - until) * 1000))::bigint,
                 (select count(*) from jobs j where j.owner = s.server and j.state = 1),
                 server = $1
             from servers s where until > now() order by since, server limit $2",
            SILENCE.as_secs()
        );
        self.database.call(async |client| {
            let statement = client.prepare_cached(&statement).await?;
            let rows = client.query(&statement, &[&self.server(), &i64::from(count_max)]).await?;
            rows.iter().map(server_now).collect()
        })
    }

    /// Leaves: what this server makes is made by others at once.
    ///
    /// # Errors
    /// The database failed; it is made by others when this server has been silent for long.
    pub fn part(&self) -> Result<(), DatabaseError> {
        self.database.call(async |client| {
            client.execute("update servers set until = '-infinity' where server = $1", &[&self.server()]).await?;
            Ok(())
        })
    }
}

fn server_now(row: &Row) -> Result<ServerNow, DatabaseError> {
    let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(ServerNow {
        who: Who { name: row.try_get(0)?, class: row.try_get(1)?, role: row.try_get(2)? },
        age: Duration::from_millis(number(3)?),
        heard_ago: Duration::from_millis(number(4)?),
        makes: number(5)?,
        is_this: row.try_get(6)?,
    })
}
