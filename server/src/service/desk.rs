//! Where calls meet the store: off the async runtime, a few at a time, within their deadlines.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time;
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::deadline::DeadlinePolicy;
use crate::call::{self, CallContext};
use crate::clock;
use crate::failure::{CallFailure, chain};
use crate::key::PlanKey;
use crate::status::call_status;
use crate::store::{Lookup, Records, StoredPlan};

/// Calls that use the store at once; the others wait.
const AT_ONCE: usize = 8;

/// Reads and manages stored plans for calls.
#[derive(Clone)]
pub(crate) struct Desk {
    records: Records,
    permits: Arc<Semaphore>,
    deadlines: DeadlinePolicy,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("deadlines", &self.deadlines).finish_non_exhaustive()
    }
}

impl Desk {
    pub(crate) fn new(records: Records, deadlines: DeadlinePolicy) -> Self {
        Self { records, permits: Arc::new(Semaphore::new(AT_ONCE)), deadlines }
    }

    /// Runs `work` for the call with these headers.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        method: &'static str,
        headers: &MetadataMap,
        work: impl FnOnce(&Records) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, Status> {
        let arrived = clock::now();
        let deadline = self.deadlines.apply(headers);
        let limit = time::Instant::from_std(arrived) + deadline.work;
        let answer = async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.map_err(|error| CallFailure::Broken { what: error.to_string() })?;
            let records = self.records.clone();
            let call = CallContext::current();
            let done = spawn_blocking(move || {
                let _in_call = call.as_ref().map(CallContext::enter);
                let done = work(&records);
                // Work goes on when its caller has left; its place stays taken until it has ended.
                drop(permit);
                done
            });
            done.await.map_err(|error| CallFailure::Broken { what: error.to_string() })?
        };
        let answer = time::timeout_at(limit, answer).await.unwrap_or_else(|_| {
            let deadline_ms = u64::try_from(deadline.stated.as_millis()).unwrap_or(u64::MAX);
            Err(CallFailure::Late { deadline_ms })
        });
        log(method, arrived, answer.as_ref().err());
        answer.map_err(|failure| call_status(&failure))
    }
}

impl Desk {
    /// Writes the uses of plans down. What cannot be written is tried again with the next ones.
    pub(super) async fn write_back(&self) {
        let records = self.records.clone();
        if let Ok(Err(error)) = spawn_blocking(move || records.write_back()).await {
            tracing::error!(error = chain(&error), "the store failed");
        }
    }
}

/// One line per finished call, and one more where a person must look.
pub(crate) fn log(method: &'static str, arrived: Instant, failure: Option<&CallFailure>) {
    match failure {
        Some(CallFailure::Broken { what }) => tracing::error!(method, what, "a call failed through a bug"),
        Some(CallFailure::Store(error)) => tracing::error!(method, error = chain(error), "the store failed"),
        _ => {}
    }
    let message = failure.map(ToString::to_string).unwrap_or_default();
    let code = failure.map_or(tonic::Code::Ok, |failure| call_status(failure).code());
    let Some(skipped) = call::may_log() else { return };
    let skipped = (skipped > 0).then_some(skipped);
    tracing::info!(method, ?code, total_ms = clock::millis_since(arrived), skipped, message);
}

/// The key of the plan with this name.
pub(crate) fn key_of(records: &Records, name: &str) -> Result<PlanKey, CallFailure> {
    records.find(name)?.ok_or_else(|| CallFailure::PlanUnknown { name: shown(name) })
}

/// The plan with this name. Counts as a use if `uses`.
pub(crate) fn plan_of(records: &Records, name: &str, uses: bool) -> Result<Arc<StoredPlan>, CallFailure> {
    let key = key_of(records, name)?;
    match if uses { records.get(&key)? } else { records.peek(&key)? } {
        Lookup::Found(plan) => Ok(plan),
        Lookup::Missing => Err(CallFailure::PlanUnknown { name: shown(name) }),
        Lookup::Quarantined(damage) => {
            tracing::error!(plan = %key, %damage, "a stored plan was damaged and is in quarantine");
            Err(CallFailure::PlanDamaged { name: shown(name), damage })
        }
    }
}

/// As much of a caller's text as is given back.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
