//! Hears what others have changed: hints say when to look, and it is looked once a second in any case.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Row, Statement};

use crate::Key;
use crate::clock::{Answer, since_start_ms};
use crate::copies::{Shared, SpaceNumber};
use crate::database::{Connected, Database, JOBS_CHANNEL};
use crate::error::DatabaseError;
use crate::mirror::{COLUMNS, Entry, Heard};

/// Longest time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time until the next attempt to connect, but for the first one after a connection that was good for so long.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Most changes that are read at once.
const AT_ONCE: i64 = 1000;
/// Time between two times that old things are removed.
const CLEANING_INTERVAL: Duration = Duration::from_secs(600);
/// Longest time that one look may take, and what is done after it.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
/// Longest time that the database may take to answer a question that is none.
const ALIVE_LIMIT: Duration = Duration::from_secs(5);

/// The last change that was heard of: its number, and which of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    version: i64,
    number: i32,
}

/// The columns that [`answer`] takes, of the head called `h`.
const TIME: &str = "(extract(epoch from clock_timestamp()) * 1000)::bigint, h.clock_shift_ms";

/// Reads what is said of the time from this column on.
fn answer(row: &Row, first: usize, asked_ms: i64) -> Result<Answer, DatabaseError> {
    let (day_ms, shift_ms) = (row.try_get(first)?, row.try_get(first + 1)?);
    Ok(Answer { day_ms, shift_ms, asked_ms, answered_ms: since_start_ms() })
}

/// Compares the time of the servers with what the database says; where its time of day was set, that is written down once.
async fn compare_clocks(client: &Client, shared: &Shared) -> Result<(), DatabaseError> {
    let asked_ms = since_start_ms();
    let head = client.query_one(&format!("select {TIME} from head h"), &[]).await?;
    let answer = answer(&head, 0, asked_ms)?;
    let Some(by_ms) = shared.clock.compare(answer) else { return Ok(()) };
    let statement = "update head set clock_shift_ms = clock_shift_ms - $1 where clock_shift_ms = $2";
    if client.execute(statement, &[&by_ms, &answer.shift_ms]).await? == 1 {
        shared.clock.note_jump();
        tracing::warn!(by_ms, "the clock of the database was set; leases and faults are not affected");
    }
    Ok(())
}

/// Reads all spaces; returns the last change that they show.
pub(crate) async fn read_all(client: &Client, shared: &Shared) -> Result<Place, DatabaseError> {
    client.batch_execute("begin isolation level repeatable read, read only").await?;
    let read = async {
        let asked_ms = since_start_ms();
        let head = client.query_one(&format!("select version, {TIME} from head h"), &[]).await?;
        let version: i64 = head.try_get(0)?;
        shared.clock.begin(answer(&head, 1, asked_ms)?);
        for (&number, space) in &shared.spaces {
            let select = format!("select r.key, {COLUMNS} from records r where r.space = $1");
            let mut all = BTreeMap::new();
            for row in client.query(&select, &[&number]).await? {
                let entry = Entry::read(&row, 1, space.keeps_small)?;
                all.extend(entry.map(|entry| Ok::<_, DatabaseError>((key_of(&row, 0)?, entry))).transpose()?);
            }
            space.mirror.lock().heard_all(version, all);
        }
        Ok(Place { version, number: i32::MAX })
    };
    let read = read.await;
    let ended = client.batch_execute("rollback").await;
    read.and_then(|place| ended.map(|()| place).map_err(DatabaseError::from))
}

/// Hears of changes for as long as somebody uses the records.
pub(crate) async fn follow(shared: Weak<Shared>, mut place: Place) {
    loop {
        let Some(here) = shared.upgrade() else { return };
        let began = Instant::now();
        let connected = connect(&here.database).await;
        here.database.note(&connected.as_ref().map(drop).map_err(Clone::clone));
        drop(here);
        if let Ok(connected) = connected {
            let ended = listen(&shared, connected, &mut place).await;
            let Some(here) = shared.upgrade() else { return };
            here.database.note(&ended);
        }
        if began.elapsed() < RETRY_INTERVAL {
            sleep(RETRY_INTERVAL).await;
        }
    }
}

/// A connection, once the database has said that it may be used.
async fn connect(database: &Database) -> Result<Connected, DatabaseError> {
    let connected = timeout(ALIVE_LIMIT, database.connect()).await.map_err(|_| silent())?;
    connected.map_err(|error| database.not_connected(error))
}

fn silent() -> DatabaseError {
    DatabaseError::Away { reason: "it does not answer".to_owned() }
}

/// Does what may take a while, unless the database answers nobody meanwhile: calls that wait for it end by what is
/// found here.
async fn while_alive<T>(
    database: &Database,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    let answers_nobody = async {
        sleep(LOOK_INTERVAL).await;
        let other = match connect(database).await {
            Ok(other) => other.client,
            Err(error) => return error,
        };
        while let Ok(answer) = timeout(ALIVE_LIMIT, other.simple_query("")).await {
            if let Err(error) = answer {
                return error.into();
            }
            sleep(LOOK_INTERVAL).await;
        }
        silent()
    };
    tokio::select! {
        biased;
        done = timeout(LOOK_LIMIT, work) => done.map_err(|_| silent())?,
        error = answers_nobody => Err(error),
    }
}

/// Looks again and again on one connection, until it breaks: as soon as anybody asks for it, or the database has a hint.
async fn listen(shared: &Weak<Shared>, connected: Connected, place: &mut Place) -> Result<(), DatabaseError> {
    let Connected { client, mut hints } = connected;
    let channels = format!("listen canopy_changes; listen {JOBS_CHANNEL}");
    timeout(ALIVE_LIMIT, client.batch_execute(&channels)).await.map_err(|_| silent())??;
    let questions = timeout(ALIVE_LIMIT, Questions::prepare(&client)).await.map_err(|_| silent())??;
    let Some(mut asked) = shared.upgrade().map(|here| here.asked.subscribe()) else { return Ok(()) };
    let (mut cleaned, mut compared) = (Instant::now(), Instant::now());
    loop {
        hints.borrow_and_update();
        // Before the look: whoever asks during it is served by the next one.
        let number = *asked.borrow_and_update();
        let Some(here) = shared.upgrade() else { return Ok(()) };
        let is_news = while_alive(&here.database, async {
            let is_news = look(&client, &questions, &here, place).await?;
            if compared.elapsed() > LOOK_INTERVAL {
                compared = Instant::now();
                compare_clocks(&client, &here).await?;
            }
            Ok(is_news)
        });
        let is_news = is_news.await?;
        here.database.note(&Ok(()));
        here.looked.send_replace(number);
        if is_news {
            here.news.send_modify(|count| *count += 1);
        }
        if cleaned.elapsed() > CLEANING_INTERVAL {
            cleaned = Instant::now();
            // On another connection: nobody who asks waits for it.
            let database = here.database.clone();
            here.database.runtime().spawn(async move {
                if let Err(error) = database.attempt(&async |client: &Object| clean(client).await).await {
                    tracing::debug!(%error, "old changes are removed later");
                }
            });
        }
        drop(here);
        tokio::select! {
            hinted = hints.changed() => if hinted.is_err() {
                return Err(DatabaseError::Away { reason: "the connection has broken".to_owned() });
            },
            // There are none who may ask once nobody has the spaces.
            _asked = asked.changed() => {}
            () = sleep(LOOK_INTERVAL) => {}
        }
    }
}

/// What [`look`] asks.
struct Questions {
    /// The number of the last change.
    last: Statement,
    /// The same, and those after a place.
    changes: Statement,
}

impl Questions {
    async fn prepare(client: &Client) -> Result<Self, DatabaseError> {
        let last = client.prepare("select version from head").await?;
        let changes = format!(
            "select h.version, c.version, c.number, c.space, c.key, {COLUMNS}
             from head h
             left join lateral (
                 select * from changes where (version, number) > ($1, $2) order by version, number limit {AT_ONCE}
             ) c on true
             left join records r on r.space = c.space and r.key = c.key
             order by c.version, c.number"
        );
        Ok(Self { last, changes: client.prepare(&changes).await? })
    }
}

/// Reads what has changed since; returns whether any of it is news. The records of one change become known together.
async fn look(
    client: &Client,
    questions: &Questions,
    shared: &Shared,
    place: &mut Place,
) -> Result<bool, DatabaseError> {
    if client.query_one(&questions.last, &[]).await?.try_get::<_, i64>(0)? == place.version {
        return Ok(false);
    }
    let mut at = *place;
    let mut heard = BTreeMap::<SpaceNumber, Vec<Heard>>::new();
    loop {
        let rows = client.query(&questions.changes, &[&at.version, &at.number]).await?;
        let head: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let first: Option<i64> = rows.first().map_or(Ok(None), |row| row.try_get(1))?;
        let has_gap = match first {
            Some(first) => first > at.version + 1,
            None => head != at.version,
        };
        if has_gap {
            // What changed since is not known any more; or the database is another one, of an older backup.
            tracing::warn!(head, seen = at.version, "changes are no longer known; all records are compared");
            *place = read_all(client, shared).await?;
            return Ok(true);
        }
        for row in rows.iter().filter(|_| first.is_some()) {
            at = Place { version: row.try_get(1)?, number: row.try_get(2)? };
            let number: SpaceNumber = row.try_get(3)?;
            // Another one only newer servers have.
            if let Some(space) = shared.spaces.get(&number) {
                let entry = Entry::read(row, 5, space.keeps_small)?;
                heard.entry(number).or_default().push(Heard { key: key_of(row, 4)?, version: at.version, entry });
            }
        }
        if (rows.len() as i64) < AT_ONCE {
            *place = at;
            return Ok(shared.hear(heard));
        }
    }
}

/// Removes changes older than an hour, and bodies that no record took within one.
async fn clean(client: &Object) -> Result<(), DatabaseError> {
    client.execute("delete from changes where changed < now() - interval '1 hour'", &[]).await?;
    client.execute("delete from bodies where not is_taken and created < now() - interval '1 hour'", &[]).await?;
    Ok(())
}

fn key_of(row: &Row, column: usize) -> Result<Key, DatabaseError> {
    let key: &[u8] = row.try_get(column)?;
    key.try_into().map_err(|_| DatabaseError::Damaged { reason: format!("a key of {} bytes", key.len()) })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;

    use super::*;
    use crate::Options;

    #[test]
    fn what_takes_a_while_ends_soon_where_the_database_answers_nobody() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // The connections of those who call wait there, and nobody takes them.
        let silent = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("postgres://canopy@{}/plans?sslmode=disable", silent.local_addr().unwrap());
        let database = Database::new(&Options { address: address.parse().unwrap(), connections: 1 }).unwrap();
        let begun = Instant::now();
        let ended = runtime.block_on(while_alive(&database, std::future::pending::<Result<(), _>>()));
        assert!(matches!(&ended, Err(DatabaseError::Away { reason }) if reason == "it does not answer"), "{ended:?}");
        assert!(begun.elapsed() < LOOK_INTERVAL + ALIVE_LIMIT + Duration::from_secs(4), "{:?}", begun.elapsed());
        assert!(matches!(runtime.block_on(while_alive(&database, async { Ok(1) })), Ok(1)));
    }
}
