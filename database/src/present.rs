//! Who uses a database at the moment, for those who change it as a whole.

use crate::database::Database;
use crate::error::DatabaseError;

impl Database {
    /// Names of the servers that are there, in order; one that has crashed counts for [`SILENCE`](crate::SILENCE).
    ///
    /// # Errors
    /// The database failed, or its schema is not up to date.
    pub fn servers(&self) -> Result<Vec<String>, DatabaseError> {
        self.call(async |client| {
            let found = client.query("select name from servers where until > now() order by name", &[]).await?;
            found.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
    }

    /// Number of jobs that have not ended.
    ///
    /// # Errors
    /// As [`Database::servers`].
    pub fn unfinished_jobs(&self) -> Result<u64, DatabaseError> {
        let count: i64 = self.call(async |client| {
            let row = client.query_one("select count(*) from jobs where state < 2", &[]).await?;
            Ok(row.try_get(0)?)
        })?;
        Ok(count.unsigned_abs())
    }
}
