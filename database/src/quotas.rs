//! What tenants and callers use of all servers together.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::DatabaseError;
use crate::jobs::{Jobs, micros};

/// What is used of a quota at this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// Whose it is.
    pub account: String,
    /// Its name.
    pub quota: String,
    /// What was used since this was told last, as the time in which it comes back.
    pub more: Duration,
    /// What is held now.
    pub held: u64,
}

/// What is used of a quota at all servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaNow {
    /// Whose it is.
    pub account: String,
    /// Its name.
    pub quota: String,
    /// When all that was used will have come back.
    pub back_in: Duration,
    /// What others hold now.
    pub held_elsewhere: u64,
}

impl Jobs {
    /// Tells what is used here, and learns what is used at all servers.
    ///
    /// # Errors
    /// The database failed; what was used may have been counted or not.
    pub fn share_quotas(&self, uses: &[QuotaUse]) -> Result<Vec<QuotaNow>, DatabaseError> {
        let accounts: Vec<&str> = uses.iter().map(|one| one.account.as_str()).collect();
        let quotas: Vec<&str> = uses.iter().map(|one| one.quota.as_str()).collect();
        let more: Vec<i64> = uses.iter().map(|one| micros(one.more)).collect();
        let held: Vec<i64> = uses.iter().map(|one| i64::try_from(one.held).unwrap_or(i64::MAX)).collect();
        let parameters: [&(dyn ToSql + Sync); 5] = [&self.server(), &accounts, &quotas, &more, &held];
        self.database.call_once(async |client| {
            let statement = "select o_account, o_quota, o_back_us, o_held from share_quotas($1, $2, $3, $4, $5)";
            let statement = client.prepare_cached(statement).await?;
            client.query(&statement, &parameters).await?.iter().map(quota_now).collect()
        })
    }
}

fn quota_now(row: &Row) -> Result<QuotaNow, DatabaseError> {
    Ok(QuotaNow {
        account: row.try_get(0)?,
        quota: row.try_get(1)?,
        back_in: Duration::from_micros(u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0)),
        held_elsewhere: row.try_get::<_, i64>(3)?.unsigned_abs(),
    })
}
