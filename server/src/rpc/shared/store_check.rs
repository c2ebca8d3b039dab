//! The check of all that is stored, while the server uses it.

use std::sync::Arc;

use canopy_planner::chain;
use canopy_proto::v1::{CheckStoreEntry, StoreProblem};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::failure::CallFailure;
use crate::rpc::EventStream;
use crate::rpc::shared::status::call_status;
use crate::store::{CheckReport, Space, Store, check_store_in_use};
use crate::tasks;

/// Most problems of a space that are named.
const PROBLEMS_MAX: usize = 100;

/// Every space of a store, in the order in which they are checked.
#[derive(Clone)]
pub(crate) struct AllSpaces(pub(crate) Arc<[(Space, Arc<dyn Store>)]>);

impl AllSpaces {
    /// Checks one space after another, and sends what it finds.
    pub(in crate::rpc) fn check(&self) -> EventStream<CheckStoreEntry> {
        let (sender, receiver) = mpsc::channel(1);
        let spaces = self.clone();
        let task = tasks::spawn("check-store", async move {
            for (space, store) in spaces.0.iter() {
                let (space, store) = (*space, Arc::clone(store));
                let checked = spawn_blocking(move || check_store_in_use(space, store.as_ref())).await;
                let entry = match checked {
                    Ok(Ok(report)) => Ok(on_the_wire(space, &report)),
                    Ok(Err(error)) => Err(call_status(&CallFailure::from(error))),
                    Err(panic) => Err(call_status(&CallFailure::Broken { what: panic.to_string() })),
                };
                let is_last = entry.is_err();
                if sender.send(entry).await.is_err() || is_last {
                    return;
                }
            }
        });
        EventStream::new(receiver, task)
    }
}

fn on_the_wire(space: Space, report: &CheckReport) -> CheckStoreEntry {
    let CheckReport { intact, bytes, damaged, without_summary, without_record, quarantined } = report;
    let problem = |key: &dyn ToString, problem: String| StoreProblem { key: key.to_string(), problem };
    let damages = damaged.iter().map(|(key, damage)| problem(key, chain(damage)));
    let summaries = without_summary.iter().map(|key| problem(key, "its summary is missing or wrong".to_owned()));
    let records = without_record.iter().map(|key| problem(key, "a summary without a record".to_owned()));
    CheckStoreEntry {
        space: space.name().to_owned(),
        intact: *intact as u64,
        bytes: *bytes,
        damaged: damaged.len() as u64,
        without_summary: without_summary.len() as u64,
        without_record: without_record.len() as u64,
        quarantined: *quarantined as u64,
        problems: damages.chain(summaries).chain(records).take(PROBLEMS_MAX).collect(),
    }
}
