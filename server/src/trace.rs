//! The spans of a request: call → job → queue, canonicalise, lookup, solve, verify, lower, store.
//!
//! They have a target of their own at level `debug`: where no collector is configured, making one comes down to a
//! look at a flag.

use std::time::Instant;

use canopy_wire::Priority;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use parking_lot::Mutex;
use tonic::codegen::http::HeaderMap;
use tracing::Span;
use tracing::span::EnteredSpan;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::call::{CallContext, InCall};
use crate::clock;
use crate::metrics::Metrics;

/// Target of all spans that make up the trace of a request.
pub(crate) const TRACE: &str = "canopy_trace";

/// A stage of a job's work.
macro_rules! stage_span {
    ($name:literal) => {
        tracing::debug_span!(target: $crate::trace::TRACE, $name)
    };
}
pub(crate) use stage_span;

/// The span of a call, below the caller's own if the headers name one (W3C `traceparent`).
pub(crate) fn call_span(method: &str, headers: &HeaderMap) -> Span {
    let span = tracing::debug_span!(target: TRACE, "call", otel.name = method, otel.kind = "server");
    if !span.is_disabled() && headers.contains_key("traceparent") {
        let context = TraceContextPropagator::new().extract(&Headers(headers));
        // It fails only where no traces are sent.
        let _set = span.set_parent(context);
    }
    span
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(AsRef::as_ref).collect()
    }
}

/// The spans of a job, from the call that brought it to its end, and the time it waits.
pub(crate) struct JobTrace {
    /// The call that brought it, if one did.
    call: Option<CallContext>,
    state: Mutex<State>,
}

/// While this lives the thread works on a job.
pub(crate) struct InJob {
    _span: EnteredSpan,
    _call: Option<InCall>,
}

#[derive(Debug)]
struct State {
    job: Span,
    queue: Span,
    /// Since when it waits for a planning worker.
    waiting: Option<Instant>,
}

impl JobTrace {
    /// A job of the call that is being handled, at the end of a line.
    pub(crate) fn begin() -> Self {
        let job = stage_span!("job");
        let queue = job.in_scope(|| stage_span!("queue"));
        Self { call: CallContext::current(), state: Mutex::new(State { job, queue, waiting: None }) }
    }

    /// The job is at the end of the line for planning workers.
    pub(crate) fn wait(&self) {
        let mut state = self.state.lock();
        state.queue = state.job.in_scope(|| stage_span!("queue"));
        state.waiting = Some(clock::now());
    }

    /// A worker has taken the job and works on it until the result is dropped.
    pub(crate) fn enter(&self, priority: Priority, metrics: &Metrics) -> InJob {
        let mut state = self.state.lock();
        state.queue = Span::none();
        if let Some(since) = state.waiting.take() {
            let time = clock::now().duration_since(since);
            let priority = [("priority", priority.name().into())];
            metrics.took("canopy_synthesis_queue_wait_seconds", &priority, time);
        }
        InJob { _span: state.job.clone().entered(), _call: self.call.as_ref().map(CallContext::enter) }
    }

    /// The job has ended, though somebody may remember it.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        (state.job, state.queue) = (Span::none(), Span::none());
    }
}
