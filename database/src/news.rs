//! What becomes of jobs, as the database says it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::database::Database;
use crate::jobs::Jobs;

/// Whether something has become of a job somewhere.
#[derive(Debug)]
pub struct JobNews {
    database: Database,
    news: watch::Receiver<u64>,
}

impl JobNews {
    /// Waits until there is any since the last time, but not for longer than this; says whether there is.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let Self { database, news } = self;
        database.wait(async { timeout(limit, news.changed()).await.is_ok() })
    }
}

impl Jobs {
    /// What becomes of jobs from now on.
    pub fn news(&self) -> JobNews {
        JobNews { database: self.database.clone(), news: self.database.job_news() }
    }
}
