//! What other servers that share the store have acknowledged, learned before a call decides anything by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use canopy_planner::chain;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::failure::CallFailure;
use crate::replan::Replanner;
use crate::store::topologies::TopologyStoreError;
use crate::store::{Others, Records, StoreError};

/// Longest time that a request for a plan waits to learn of faults before it is answered by those that are known.
const PATIENCE: Duration = Duration::from_secs(2);

/// Learns from the database. Clones share it.
#[derive(Clone)]
pub(crate) struct Learning {
    others: Others,
    replanner: Replanner,
    records: Records,
    attempts: Arc<AtomicU64>,
    /// Has all that is in memory follow.
    follow: Arc<dyn Fn() -> Result<(), TopologyStoreError> + Send + Sync>,
}

/// What came of asking the database.
pub(in crate::rpc) struct Heard {
    number: u64,
    heard: Result<(), StoreError>,
}

/// How much is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    /// Faults.
    Faults,
    /// Faults, and which plans there are.
    Plans,
    /// Faults, and who has leases.
    Leases,
}

impl Learning {
    pub(crate) fn new(
        others: Others,
        replanner: Replanner,
        records: Records,
        follow: impl Fn() -> Result<(), TopologyStoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { others, replanner, records, attempts: Arc::default(), follow: Arc::new(follow) }
    }

    /// Waits until the database has said what changed up to now. One answer serves all who wait for one.
    pub(in crate::rpc) async fn hear(&self) -> Heard {
        let number = self.begin();
        Heard { number, heard: self.others.heard_of_all().await }
    }

    /// Has all that is in memory follow what was heard. Runs where it may block.
    pub(in crate::rpc) fn follow(&self, Heard { number, heard }: Heard) -> Result<(), CallFailure> {
        let learned = heard.map_err(CallFailure::from).and_then(|()| (self.follow)().map_err(CallFailure::from));
        self.note(number, learned)
    }

    /// Learns what a request for a plan is decided by. Without the database, that is what was known before, and the
    /// answer says so.
    pub(in crate::rpc) async fn learn(&self, matter: Matter) {
        let this = self.clone();
        let number = self.begin();
        let learned = timeout(PATIENCE, async {
            self.others.heard_of_all().await?;
            let followed = spawn_blocking(move || {
                this.replanner.fault_logs().follow()?;
                match matter {
                    Matter::Faults => Ok(()),
                    Matter::Plans => this.records.follow(),
                    Matter::Leases => this.replanner.leases().follow_others(),
                }
            });
            followed.await.map_err(|error| CallFailure::Broken { what: error.to_string() })?.map_err(CallFailure::from)
        });
        let slow = |_| Err(StoreError::Away { reason: "it is slow to answer".to_owned() }.into());
        let _said_in_the_answer = self.note(number, learned.await.unwrap_or_else(slow));
    }

    /// The number of an attempt: whoever begins later has a greater one.
    fn begin(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes whether what is known is all that others had acknowledged when this attempt began.
    fn note(&self, number: u64, learned: Result<(), CallFailure>) -> Result<(), CallFailure> {
        let trouble = learned.as_ref().err().map(|failure| chain(failure));
        if let Some(trouble) = &trouble {
            tracing::debug!(trouble, "the latest changes of other servers are not known");
        }
        self.replanner.note_learned(number, trouble);
        learned
    }
}
