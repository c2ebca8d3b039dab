//! Where calls meet the store: off the async runtime, a few at a time, within their deadlines.

use std::sync::Arc;
use std::time::Instant;

use canopy_access::Quota;
use canopy_planner::{PlanKey, chain};
use canopy_wire::StoredPlan;
use prost::Message;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::call::{self, CallContext};
use crate::clock;
use crate::failure::{CallFailure, PlanFailure, shown};
use crate::jobs::computing::{Computing, Seat};
use crate::jobs::workers::Jobs;
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::learning::{Learning, Matter};
use crate::rpc::shared::status::call_status;
use crate::rpc::shared::work::computes;
use crate::store::receipts::{Claim, Open, Receipts, Repeatable};
use crate::store::{Lookup, Records, StoreError};
use crate::tenant::Viewer;

/// Calls that use the store at once; the others wait.
const AT_ONCE: usize = 8;

/// Reads and manages stored plans for calls, and has what they compute computed.
#[derive(Clone)]
pub(crate) struct CallPool {
    records: Records,
    computing: Computing,
    receipts: Receipts,
    permits: Arc<Semaphore>,
    deadlines: DeadlinePolicy,
    /// Learns what other servers have done up to now, where they share a store.
    learning: Option<Learning>,
}

/// What becomes of a call where it cannot be learned what other servers have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unlearned {
    /// It is refused: it would change something, or say that there is nothing to change.
    Refused,
    /// It is answered by what was known before. But that something is not there, only the database can say.
    Remembered,
}

impl CallPool {
    pub(crate) fn new(jobs: &Jobs, receipts: Receipts, deadlines: DeadlinePolicy) -> Self {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        Self {
            records: jobs.records.clone(),
            computing: jobs.computing.clone(),
            receipts,
            permits,
            deadlines,
            learning: None,
        }
    }

    /// The same where other servers share the store: before each call it is learned what they have done, so that whoever goes from one
    /// server to another finds what the first one acknowledged.
    pub(crate) fn learning(self, learning: Learning) -> Self {
        Self { learning: Some(learning), ..self }
    }

    /// The same for calls that concern this server alone.
    pub(crate) fn alone(&self) -> Self {
        Self { learning: None, ..self.clone() }
    }

    /// Whether other servers share the store.
    pub(crate) const fn is_shared(&self) -> bool {
        self.learning.is_some()
    }

    /// Learns what a request for a plan is decided by, as far as that can be learned.
    pub(crate) async fn learn(&self, matter: Matter) {
        if let Some(learning) = &self.learning {
            learning.learn(matter).await;
        }
    }

    /// The same with places of its own, for calls that take long and must not keep the others out.
    pub(crate) fn apart(&self, at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), ..self.clone() }
    }

    /// The stored plans.
    pub(crate) const fn records(&self) -> &Records {
        &self.records
    }

    /// The answers that are kept for repeated requests.
    pub(crate) const fn receipts(&self) -> &Receipts {
        &self.receipts
    }

    /// Runs `work` for the call with these headers, and logs how it ended. Without the database, it goes by what is known.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        method: &'static str,
        headers: &MetadataMap,
        work: impl FnOnce(&Records) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, Status> {
        let arrived = clock::now();
        ended(method, arrived, self.work_or(Unlearned::Remembered, headers, work).await)
    }

    /// The same for `work` that changes something: without the database, it is refused.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        method: &'static str,
        headers: &MetadataMap,
        work: impl FnOnce(&Records) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, Status> {
        let arrived = clock::now();
        ended(method, arrived, self.work_or(Unlearned::Refused, headers, work).await)
    }

    /// Runs `work`, which changes something, unless a request of the same id has been answered already: then that
    /// answer is given again. `after` runs when `work` has been done and its answer kept.
    pub(crate) async fn once<Q: Message, R: Message + Default + 'static>(
        &self,
        method: &'static str,
        (headers, request_id, body): (&MetadataMap, &str, &Q),
        work: impl FnOnce(&Records) -> Result<R, CallFailure> + Send + 'static,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<R, Status> {
        self.once_marked(method, (headers, request_id, body), |records, _| work(records), after).await
    }

    /// The same for work that marks what it does with the request, so that it is found again where a crash has taken the answer.
    pub(crate) async fn once_marked<Q: Message, R: Message + Default + 'static>(
        &self,
        method: &'static str,
        (headers, request_id, body): (&MetadataMap, &str, &Q),
        work: impl FnOnce(&Records, Option<&Open>) -> Result<R, CallFailure> + Send + 'static,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<R, Status> {
        call::has_request_id(request_id);
        let viewer = Viewer::of(headers);
        let wanted = |viewer: &Viewer| Repeatable::new(&viewer.method(method), request_id, body);
        let (receipts, request) = (self.receipts.clone(), viewer.as_ref().map(wanted).unwrap_or(Ok(None)));
        self.change(method, headers, move |records| {
            viewer?;
            let open = match repeated(&receipts, request?)? {
                Repeated::Answered(answer) => return Ok(answer),
                Repeated::Open(open) => open,
            };
            let answer = work(records, open.as_ref())?;
            open.into_iter().for_each(|open| open.keep(answer.encode_to_vec()));
            after();
            Ok(answer)
        })
        .await
    }

    /// Looks for the answer that a request of this id got before, for calls whose work cannot run where it blocks.
    pub(in crate::rpc) async fn repeated<Q: Message, R: Message + Default + 'static>(
        &self,
        method: &'static str,
        (headers, request_id, body): (&MetadataMap, &str, &Q),
    ) -> Result<Repeated<R>, Status> {
        call::has_request_id(request_id);
        if request_id.is_empty() {
            return Ok(Repeated::Open(None));
        }
        let arrived = clock::now();
        let wanted = Viewer::of(headers)
            .map_err(CallFailure::from)
            .and_then(|viewer| Ok(Repeatable::new(&viewer.method(method), request_id, body)?));
        let receipts = self.receipts.clone();
        let found = self.work(headers, move |_| repeated(&receipts, wanted?));
        found.await.map_err(|failure| {
            log(method, arrived, Some(&failure));
            call_status(&failure)
        })
    }

    /// Keeps the answer to a request that [`repeated`](Self::repeated) did not find.
    pub(in crate::rpc) async fn keep(&self, headers: &MetadataMap, open: Option<Open>, answer: &impl Message) {
        let Some(open) = open else { return };
        let answer = answer.encode_to_vec();
        // What was done is done whether its receipt is there or not.
        let keep = move |_: &Records| {
            open.keep(answer);
            Ok(())
        };
        let _kept = self.work(headers, keep).await;
    }

    /// Runs `work` for the call with these headers.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        headers: &MetadataMap,
        work: impl FnOnce(&Records) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, CallFailure> {
        self.work_or(Unlearned::Remembered, headers, work).await
    }

    /// Hears of what other servers have changed, where they share the store; returns what has this server follow, where it
    /// may block.
    async fn hear(&self) -> impl FnOnce() -> Result<(), CallFailure> + Send + 'static {
        let learning = self.learning.clone();
        let heard = match &learning {
            Some(learning) => Some(learning.hear().await),
            None => None,
        };
        move || learning.zip(heard).map_or(Ok(()), |(learning, heard)| learning.follow(heard))
    }

    async fn work_or<T: Send + 'static>(
        &self,
        unlearned: Unlearned,
        headers: &MetadataMap,
        work: impl FnOnce(&Records) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, CallFailure> {
        let arrived = clock::now();
        let deadline = self.deadlines.apply(headers);
        let limit = time::Instant::from_std(arrived) + deadline.work;
        let answer = async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.map_err(|error| CallFailure::Broken { what: error.to_string() })?;
            let records = self.records.clone();
            let learn = self.hear().await;
            let call = CallContext::current();
            let done = spawn_blocking(move || {
                let _in_call = call.as_ref().map(CallContext::enter);
                let done = unlearned.decide(learn(), || work(&records));
                // Work goes on when its caller has left; its place stays taken until it has ended.
                drop(permit);
                done
            });
            done.await.map_err(|error| CallFailure::Broken { what: error.to_string() })?
        };
        time::timeout_at(limit, answer).await.unwrap_or_else(|_| {
            let deadline_ms = u64::try_from(deadline.stated.as_millis()).unwrap_or(u64::MAX);
            Err(CallFailure::Late { deadline_ms })
        })
    }
}

impl Unlearned {
    /// Does some work, as far as that may be done by what was learned.
    fn decide<T>(
        self,
        learned: Result<(), CallFailure>,
        work: impl FnOnce() -> Result<T, CallFailure>,
    ) -> Result<T, CallFailure> {
        match learned {
            Ok(()) => work(),
            Err(failure) if self == Self::Refused => Err(failure),
            Err(failure) => work().map_err(|found| if found.is_of_absence() { failure } else { found }),
        }
    }
}

impl CallPool {
    /// Computes for the call with these headers, in the turn of its tenant and charged to it, and logs how it ended.
    ///
    /// Every call goes this way whose work is not limited by the length of its message or of what is stored.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        method: &'static str,
        headers: &MetadataMap,
        work: impl FnOnce(&Records, &Seat) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, Status> {
        debug_assert!(computes(method), "{method} is not in the table of what computes");
        let arrived = clock::now();
        let deadline = self.deadlines.apply(headers);
        let answer = self.computed(arrived + deadline.work, work).await.unwrap_or_else(|| {
            let deadline_ms = u64::try_from(deadline.stated.as_millis()).unwrap_or(u64::MAX);
            Err(CallFailure::Late { deadline_ms })
        });
        log(method, arrived, answer.as_ref().err());
        answer.map_err(|failure| call_status(&failure))
    }

    /// The same for a part of a call, until `end`; `None` if that has passed before there was an answer.
    pub(crate) async fn computed<T: Send + 'static>(
        &self,
        end: Instant,
        work: impl FnOnce(&Records, &Seat) -> Result<T, CallFailure> + Send + 'static,
    ) -> Option<Result<T, CallFailure>> {
        let charged = call::bill().map_or(Ok(()), |bill| bill.require(Quota::PlanningSecondsPerHour));
        if let Err(over) = charged {
            return Some(Err(PlanFailure::from(over).into()));
        }
        self.computed_in_turn(end, work).await
    }

    /// The same for callers that look at their quota themselves.
    pub(crate) async fn computed_in_turn<T: Send + 'static>(
        &self,
        end: Instant,
        work: impl FnOnce(&Records, &Seat) -> Result<T, CallFailure> + Send + 'static,
    ) -> Option<Result<T, CallFailure>> {
        let records = self.records.clone();
        let answer = async {
            let learn = self.hear().await;
            let computed =
                self.computing.run(end, move |seat| Unlearned::Remembered.decide(learn(), || work(&records, seat)));
            computed.await
        };
        let answer = time::timeout_at(time::Instant::from_std(end), answer).await.ok();
        // Work that stops at the end fails as stopped, before the timer has noticed.
        answer.filter(|answer| answer.is_ok() || clock::now() < end)
    }

    /// Writes the uses of plans down. What cannot be written is tried again with the next ones.
    pub(in crate::rpc) async fn write_back(&self) {
        let records = self.records.clone();
        if let Ok(Err(error)) = spawn_blocking(move || records.write_back()).await {
            tracing::error!(error = chain(&error), "the store failed");
        }
    }
}

/// A request that may have been made before.
pub(in crate::rpc) enum Repeated<R> {
    /// It was, and this was the answer.
    Answered(R),
    /// It is to be done; its answer is kept there, if it has an id.
    Open(Option<Open>),
}

/// Looks a request up among those that were answered. Blocks.
pub(in crate::rpc) fn repeated<R: Message + Default>(
    receipts: &Receipts,
    request: Option<Repeatable>,
) -> Result<Repeated<R>, CallFailure> {
    match request.map(|request| receipts.claim(&request)).transpose()? {
        None => Ok(Repeated::Open(None)),
        Some(Claim::Open(open)) => Ok(Repeated::Open(Some(open))),
        Some(Claim::Answered(answer)) => R::decode(answer.as_ref())
            .map(Repeated::Answered)
            .map_err(|error| CallFailure::Broken { what: format!("a receipt: {error}") }),
    }
}

/// Logs how a call ended.
fn ended<T>(method: &'static str, arrived: Instant, answer: Result<T, CallFailure>) -> Result<T, Status> {
    log(method, arrived, answer.as_ref().err());
    answer.map_err(|failure| call_status(&failure))
}

/// One line per finished call, and one more where a person must look.
pub(crate) fn log(method: &'static str, arrived: Instant, failure: Option<&CallFailure>) {
    match failure {
        Some(CallFailure::Broken { what }) => tracing::error!(method, what, "a call failed because of a bug"),
        Some(CallFailure::Store(error)) if !matches!(error, StoreError::Full { .. } | StoreError::DiskFull { .. }) => {
            tracing::error!(method, error = chain(error), "the store failed")
        }
        _ => {}
    }
    log_status(method, arrived, failure.map(call_status).as_ref());
}

/// One line of a finished call.
pub(crate) fn log_status(method: &'static str, arrived: Instant, failure: Option<&Status>) {
    let (code, message) = failure.map_or((tonic::Code::Ok, ""), |failure| (failure.code(), failure.message()));
    let Some(skipped) = call::may_log(code) else { return };
    let skipped = (skipped > 0).then_some(skipped);
    tracing::info!(method, ?code, total_ms = clock::millis_since(arrived), skipped, message);
}

/// The key of the plan with this name. One of another tenant is not there.
pub(crate) fn key_of(records: &Records, viewer: &Viewer, name: &str) -> Result<PlanKey, CallFailure> {
    let unknown = || CallFailure::no_plan(name);
    let key = records.find(name)?.ok_or_else(unknown)?;
    let summary = records.summary(&key)?.filter(|summary| viewer.sees(&summary.tenant));
    summary.map(|summary| summary.key()).ok_or_else(unknown)
}

/// The plan with this name. Counts as a use if `uses`.
pub(crate) fn plan_of(
    records: &Records,
    viewer: &Viewer,
    name: &str,
    uses: bool,
) -> Result<Arc<StoredPlan>, CallFailure> {
    let key = key_of(records, viewer, name)?;
    match if uses { records.get(&key)? } else { records.peek(&key)? } {
        Lookup::Found(plan) => Ok(plan),
        Lookup::Missing => Err(CallFailure::no_plan(name)),
        Lookup::Quarantined(damage) => {
            tracing::error!(plan = %key, %damage, "a stored plan was damaged and was quarantined");
            Err(CallFailure::PlanDamaged { name: shown(name), damage })
        }
    }
}

/// The id of the plan that a stored one was last sent in place of, if that is there by now; else empty.
pub(crate) fn successor(records: &Records, plan: &StoredPlan) -> Result<String, CallFailure> {
    let Some(key) = PlanKey::from_digits(&plan.plan.content_key) else { return Ok(String::new()) };
    let summary = records.summary(&key)?;
    let successor = summary.as_ref().map(|summary| records.successor(summary)).transpose()?;
    Ok(successor.flatten().unwrap_or_default())
}
