//! The end of a job that all servers share.

use std::time::Duration;

use canopy_database::{Change, End, JobState, Jobs, Right, SharedSpace};

use super::{StoreError, of_database};

/// How a job of all servers ends; with the plan that it made, if it made one.
#[derive(Clone, Debug)]
pub struct JobEnd {
    pub(crate) jobs: Jobs,
    /// By which this server makes it.
    pub(crate) right: Right,
    pub(crate) state: JobState,
    /// What came of it, for those who wait elsewhere.
    pub(crate) outcome: Vec<u8>,
    /// Whether it has failed, and would fail again.
    pub(crate) is_lasting: bool,
    pub(crate) took: Duration,
}

impl canopy_store::JobEnd for JobEnd {}

impl JobEnd {
    /// Writes it down, with a record of a space if there is one: both or neither.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when another server makes it by now; otherwise the database failed.
    pub(crate) fn make(&self, record: Option<(&SharedSpace, Change)>) -> Result<(), StoreError> {
        let Self { state, is_lasting, took, .. } = *self;
        let end = End { state, outcome: &self.outcome, is_lasting, took };
        let records = record.map(|(space, change)| (space, vec![change]));
        self.jobs.end(self.right, &end, records).map_err(of_database)
    }
}
