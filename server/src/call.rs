//! What code in the depths may know of the call it works for: where it is counted, and what its log lines carry.
//!
//! It goes with the work, from the handler into tasks and onto worker threads; nothing is decided by it.

mod lines;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use canopy_planner::RequestKey;
use opentelemetry::trace::TraceContextExt as _;
use parking_lot::Mutex;
use tonic::Code;
use tonic::codegen::http::HeaderMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub(crate) use self::lines::LineLimit;
use crate::clock;
use crate::metrics::Metrics;
use crate::quota::Bill;
use crate::uploads::Upload;

thread_local! {
    static CURRENT: RefCell<Option<CallContext>> = const { RefCell::new(None) };
}

/// A call that is being handled; clones share it.
#[derive(Clone)]
pub(crate) struct CallContext(Arc<Call>);

struct Call {
    metrics: Metrics,
    lines: LineLimit,
    trace_id: TraceId,
    request: OnceLock<RequestKey>,
    caller: OnceLock<Caller>,
    bill: OnceLock<Bill>,
    upload: OnceLock<Upload>,
    object: OnceLock<String>,
    request_id: OnceLock<String>,
    /// The message in its request that has the fields of a plan; empty: the request itself.
    fields_in: Mutex<String>,
}

/// Who makes a call, and for whom, where callers are told apart.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) identity: String,
    /// Empty: for nobody in particular.
    pub(crate) tenant: String,
}

/// 128 bits that tell a call from all others, as in W3C trace contexts. Prints 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(u128);

impl CallContext {
    /// A call that has arrived with these headers, and whose span has been opened.
    pub(crate) fn begin(metrics: Metrics, lines: LineLimit, headers: &HeaderMap, span: &Span) -> Self {
        let trace_id = TraceId::of(headers, span);
        Self(Arc::new(Call {
            metrics,
            lines,
            trace_id,
            request: OnceLock::new(),
            caller: OnceLock::new(),
            bill: OnceLock::new(),
            upload: OnceLock::new(),
            object: OnceLock::new(),
            request_id: OnceLock::new(),
            fields_in: Mutex::default(),
        }))
    }

    /// The call that the present code works for.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes this the present call of the thread until the result is dropped.
    pub(crate) fn enter(&self) -> InCall {
        InCall { before: CURRENT.replace(Some(self.clone())) }
    }

    /// Makes this the present call wherever the future is worked on.
    pub(crate) async fn within<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _in_call = self.enter();
            future.as_mut().poll(context)
        })
        .await
    }

    /// What the call asks for, once it is known.
    pub(crate) fn asks(&self, request: RequestKey) {
        let _known_already = self.0.request.set(request);
    }

    /// Who makes the call, once it is known.
    pub(crate) fn comes_from(&self, caller: Caller) {
        let _known_already = self.0.caller.set(caller);
    }

    /// Whose quotas it counts against.
    pub(crate) fn billed_to(&self, bill: Bill) {
        let _known_already = self.0.bill.set(bill);
    }

    /// What its request takes of the memory for requests.
    pub(crate) fn holds(&self, upload: Upload) {
        let _known_already = self.0.upload.set(upload);
    }

    /// What the call is about, for the audit log.
    pub(crate) fn object(&self) -> Option<&str> {
        self.0.object.get().map(String::as_str)
    }

    /// The id that its caller gave it.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.0.request_id.get().map(String::as_str)
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn trace_id(&self) -> TraceId {
        self.0.trace_id
    }

    pub(crate) fn request(&self) -> Option<&RequestKey> {
        self.0.request.get()
    }
}

/// Where the call that is being handled is counted; outside of a call nowhere.
pub(crate) fn metrics_of_call() -> Metrics {
    CallContext::current().map(|call| call.metrics().clone()).unwrap_or_default()
}

/// Whether the caller of the present call is known, so that what belongs to others can be kept from it.
pub(crate) fn is_guarded() -> bool {
    CallContext::current().is_some_and(|call| call.caller().is_some())
}

/// The tenant that the present call is for, where callers are told apart; empty: none.
pub(crate) fn tenant() -> String {
    CallContext::current().and_then(|call| call.caller().map(|caller| caller.tenant.clone())).unwrap_or_default()
}

/// Whose quotas the present call counts against; `None` for what the server does by itself.
pub(crate) fn bill() -> Option<Bill> {
    CallContext::current().and_then(|call| call.0.bill.get().cloned())
}

/// Says that the request of the present call is counted elsewhere from now on.
pub(crate) fn hands_on() {
    if let Some(upload) = CallContext::current().as_ref().and_then(|call| call.0.upload.get()) {
        upload.release();
    }
}

/// Longest text that is kept of what a call is about.
const OBJECT_CHARS_MAX: usize = 200;

/// Says what the present call is about: the name of a plan, a job or the like. The first word counts.
pub(crate) fn concerns(object: &str) {
    if let Some(call) = CallContext::current() {
        let _said_already = call.0.object.set(object.chars().take(OBJECT_CHARS_MAX).collect());
    }
}

/// Says which id the caller gave the present call.
pub(crate) fn has_request_id(id: &str) {
    if let Some(call) = CallContext::current().filter(|_| !id.is_empty()) {
        let _said_already = call.0.request_id.set(id.chars().take(OBJECT_CHARS_MAX).collect());
    }
}

/// Says in which message of its request the present call has the fields of a plan.
pub(crate) fn has_fields_in(message: impl Into<String>) {
    if let Some(call) = CallContext::current() {
        *call.0.fields_in.lock() = message.into();
    }
}

/// The path of a field of a plan, or of the request itself, in the request of the present call.
pub(crate) fn path_of(field: String) -> String {
    let Some(call) = CallContext::current().filter(|_| canopy_wire::is_of_spec(&field)) else { return field };
    let message = call.0.fields_in.lock();
    if message.is_empty() { field } else { format!("{message}.{field}") }
}

/// Whether the call that ends with this code may have its line in the log: none if not, else how many of those that ended
/// as it did had to go without since the last one. Outside of a call every line may.
pub(crate) fn may_log(code: Code) -> Option<u64> {
    CallContext::current().map_or(Some(0), |call| call.0.lines.admit(code, clock::unix_ms()))
}

/// Runs a future within a call, if there is one.
pub(crate) async fn within<F: Future>(call: Option<CallContext>, future: F) -> F::Output {
    match call {
        Some(call) => call.within(future).await,
        None => future.await,
    }
}

/// While this lives the thread works for a call.
pub(crate) struct InCall {
    before: Option<CallContext>,
}

impl Drop for InCall {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

impl TraceId {
    pub(crate) const fn bits(self) -> u128 {
        self.0
    }

    /// The one of the span where traces are sent, else the caller's own (W3C `traceparent`), else a new one.
    fn of(headers: &HeaderMap, span: &Span) -> Self {
        if !span.is_disabled() {
            let traced = u128::from_be_bytes(span.context().span().span_context().trace_id().to_bytes());
            if traced != 0 {
                return Self(traced);
            }
        }
        let stated = headers.get("traceparent").and_then(|value| Self::stated(value.to_str().ok()?));
        stated.unwrap_or_else(Self::new)
    }

    /// Reads `00-` and 32 hexadecimal digits, not all zero; what follows is not of interest.
    fn stated(traceparent: &str) -> Option<Self> {
        let digits = traceparent.strip_prefix("00-")?.split_once('-')?.0;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 32 || !digits.bytes().all(is_digit) {
            return None;
        }
        u128::from_str_radix(digits, 16).ok().filter(|&id| id != 0).map(Self)
    }

    /// One that no other process is likely to have.
    fn new() -> Self {
        static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [high, low] = SEEDS.each_ref().map(|seed| u128::from(seed.hash_one(number)));
        Self((high << 64) | low)
    }
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallContext {
        CallContext::begin(Metrics::off(), LineLimit::default(), &HeaderMap::new(), &Span::none())
    }

    fn current() -> Option<TraceId> {
        CallContext::current().map(|call| call.trace_id())
    }

    #[tokio::test]
    async fn the_present_call_is_that_of_the_innermost_work() {
        let (first, second) = (call(), call());
        assert_ne!(first.trace_id(), second.trace_id());
        assert_eq!(current(), None);
        first
            .clone()
            .within(async {
                assert_eq!(current(), Some(first.trace_id()));
                tokio::task::yield_now().await;
                {
                    let _inner = second.enter();
                    assert_eq!(current(), Some(second.trace_id()));
                }
                assert_eq!(current(), Some(first.trace_id()));
            })
            .await;
        assert_eq!(current(), None);
    }

    #[test]
    fn a_stated_trace_is_kept_and_a_bad_one_is_replaced() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(TraceId::stated(&format!("00-{id}-00f067aa0ba902b7-01")).unwrap().to_string(), id);
        let zero = "0".repeat(32);
        for bad in
            ["", "00-", "00-12-x", &format!("00-{zero}-x"), &format!("01-{id}-x"), &format!("00-+{}-x", &id[1..])]
        {
            assert_eq!(TraceId::stated(bad), None, "{bad}");
        }
    }
}
