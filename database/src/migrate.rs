//! The schema of a database: made, brought up to date, or refused.

use canopy_migrations::{DATABASE_VERSIONS, DatabaseVersion, current_database_version};
use deadpool_postgres::Object;

use crate::address::SCHEMA;
use crate::database::Database;
use crate::error::{DatabaseError, POOLED};

/// Held while the schema changes: one server at a time, the others wait.
const LOCK: i64 = 0x6361_6e6f_7079_0001;

/// What was done to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Its version before; 0: there was none.
    pub from: u32,
    /// Its version now.
    pub to: u32,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SchemaError {
    #[error(
        "the database has schema version {found}, whose servers must know version {needed} at least, but this build knows {known}; use a newer canopyd or another database"
    )]
    Newer { found: u32, needed: u32, known: u32 },
    #[error("{0}")]
    Database(#[from] DatabaseError),
}

/// What a schema says of itself.
#[derive(Clone, Copy)]
struct Found {
    version: u32,
    works_with: u32,
}

impl Database {
    /// The version of the schema; 0: there is none.
    ///
    /// # Errors
    /// It is too new for this build, or the database failed.
    pub fn schema_version(&self) -> Result<u32, SchemaError> {
        let found = self.call(async |client| found(client).await)?;
        accept(found).map(|found| found.version)
    }

    /// Makes the schema, or brings it up to date, while other servers of the version before go on.
    ///
    /// # Errors
    /// It is too new for this build, or the database failed: what is done of it stands, and the next attempt goes on.
    pub fn migrate(&self) -> Result<Migrated, SchemaError> {
        let found = self.schema_version()?;
        let to = current_database_version().max(found);
        let mut from = to;
        for version in DATABASE_VERSIONS.iter().filter(|version| version.number > found) {
            // Another server may do the same at the same time.
            if self.call(async |client| apply(client, version).await)? {
                from = from.min(version.number - 1);
            }
        }
        Ok(Migrated { from, to })
    }
}

fn accept(found: Found) -> Result<Found, SchemaError> {
    let known = current_database_version();
    if found.works_with <= known {
        return Ok(found);
    }
    Err(SchemaError::Newer { found: found.version, needed: found.works_with, known })
}

async fn found(client: &Object) -> Result<Found, DatabaseError> {
    let there = client
        .query_one(
            "select to_regclass($1) is not null, current_setting('search_path')",
            &[&format!("{SCHEMA}.settings")],
        )
        .await?;
    if there.try_get::<_, &str>(1)? != SCHEMA {
        // A pooler may swallow the settings that connections begin with.
        let reason = format!("connections do not begin with the settings that they are given; {POOLED}");
        return Err(DatabaseError::Refused { reason });
    }
    if !there.try_get::<_, bool>(0)? {
        return Ok(Found { version: 0, works_with: 0 });
    }
    let rows = client.query("select name, value from settings where name in ('schema', 'works_with')", &[]).await?;
    let number = |name: &str| {
        let row = rows.iter().find(|row| row.get::<_, &str>(0) == name);
        let number = row.and_then(|row| row.get::<_, &str>(1).parse().ok());
        number.ok_or_else(|| DatabaseError::Damaged { reason: format!("its settings have no {name}") })
    };
    Ok(Found { version: number("schema")?, works_with: number("works_with")? })
}

/// Does one step, unless another server has: says whether it was done here.
async fn apply(client: &Object, version: &DatabaseVersion) -> Result<bool, DatabaseError> {
    let epoch = random()?;
    client.batch_execute(&format!("begin; select pg_advisory_xact_lock({LOCK})")).await?;
    let done = async {
        client.batch_execute(&format!("create schema if not exists {SCHEMA}")).await?;
        if found(client).await?.version >= version.number {
            return Ok(false);
        }
        // No limit: a version may have much to do.
        client.batch_execute(&format!("set local statement_timeout = 0; {}", version.script)).await?;
        let DatabaseVersion { number, works_with, .. } = version;
        client
            .batch_execute(&format!(
                "insert into settings (name, value) values ('schema', '{number}'), ('works_with', '{works_with}')
                     on conflict (name) do update set value = excluded.value;
                 insert into settings (name, value) values ('epoch', '{epoch}') on conflict (name) do nothing"
            ))
            .await?;
        Ok(true)
    };
    let done = done.await.map_err(|error: DatabaseError| match error {
        DatabaseError::Refused { reason } => {
            let DatabaseVersion { number, name, .. } = version;
            DatabaseError::Refused { reason: format!("schema version {number} ({name}): {reason}") }
        }
        other => other,
    });
    let end = if done.is_ok() { "commit" } else { "rollback" };
    let ended = client.batch_execute(end).await;
    let is_done = done?;
    ended?;
    Ok(is_done)
}

/// A number that no other database has.
fn random() -> Result<u64, DatabaseError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| DatabaseError::Refused { reason: error.to_string() })?;
    // Positive as PostgreSQL counts.
    Ok(u64::from_le_bytes(bytes) >> 1)
}
