//! Follows every call from its arrival to the last byte of its answer: counts it, measures its messages, and opens its
//! span.
//!
//! What a call is about only its handler knows; [`CallContext`] is how it reaches the counters of the server that
//! serves it.

mod messages;
mod received;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt as _;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};
use tonic::{Code, Status};
use tracing::{Instrument as _, Span};

use self::messages::Messages;
use self::received::Received;
use crate::call::{CallContext, LineLimit};
use crate::clock;
use crate::metrics::{GoingOn, Metrics, Timed};
use crate::net::around::{Answer, Around, Calls};
use crate::net::peer::{Host, Peer};
use crate::trace::call_span;
use crate::uploads::UploadBudget;

pub(crate) use self::received::Arrived;

/// The methods a server knows. A path that names none of them is counted as `other`.
#[derive(Clone, Debug)]
pub(crate) struct Methods(Arc<HashMap<String, Method>>);

#[derive(Clone, Copy, Debug)]
struct Method {
    service: &'static str,
    method: &'static str,
    /// Its requests go on after its answers have begun.
    is_conversation: bool,
}

impl Methods {
    /// The methods of all services in encoded descriptor sets.
    pub(crate) fn of(descriptor_sets: &[&[u8]]) -> Self {
        let mut methods = HashMap::new();
        for set in descriptor_sets {
            let set = FileDescriptorSet::decode(*set).expect("descriptors are compiled in");
            for file in &set.file {
                for service in &file.service {
                    for method in &service.method {
                        let path = format!("{}.{}/{}", file.package(), service.name(), method.name());
                        // One that is not in the table is refused.
                        let Some(known) = canopy_access::method(&path) else { continue };
                        let (service, method) = known.path.split_once('/').unwrap_or_default();
                        let is_conversation = known.conversation;
                        methods.insert(format!("/{path}"), Method { service, method, is_conversation });
                    }
                }
            }
        }
        Self(Arc::new(methods))
    }

    /// The paths of all.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn named(&self, path: &str) -> Method {
        let other = Method { service: "other", method: "other", is_conversation: false };
        self.0.get(path).copied().unwrap_or(other)
    }
}

/// Counts calls.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) metrics: Metrics,
    pub(crate) methods: Methods,
    /// Of all connections together.
    pub(crate) uploads: UploadBudget,
    pub(crate) lines: LineLimit,
}

impl<S, B> Around<S, B> for Record
where
    S: Calls<Body>,
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static,
{
    type Inner = Body;

    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer {
        let method = self.methods.named(request.uri().path());
        let is_conversation = method.is_conversation;
        let span = call_span(method.method, request.headers());
        let metrics = self.metrics.clone();
        let mut call = Call::begin(metrics.clone(), method, span.clone());
        let host = request.extensions().get::<Peer>().map_or(Host::Local, |peer| peer.host);
        let upload = self.uploads.upload(host);
        let arrived = Arrived::default();
        let kept = upload.clone();
        let received = |body| {
            let received = Received::new(body, upload, arrived.clone(), metrics.clone());
            Body::new(if is_conversation { received.patient() } else { received })
        };
        let mut request = request.map(received);
        request.extensions_mut().insert(arrived);
        let context = CallContext::begin(metrics, self.lines.clone(), request.headers(), &span);
        call.trace_id = Some(context.trace_id().bits());
        context.holds(kept.clone());
        let answer = {
            let _within = (span.enter(), context.enter());
            inner.call(request)
        };
        let answer = context.within(answer).instrument(span);
        Box::pin(async move {
            let response = answer.await?;
            // Of a conversation each message counts until the next one, or its end.
            if !is_conversation {
                kept.release();
            }
            // A refusal has its status among the headers, everything else at the end of the body.
            call.code = Status::from_header_map(response.headers()).map_or(call.code, |status| status.code());
            let mut messages = Messages::default();
            // The call ends with the body.
            let follow = move |frame: &Frame<Bytes>| {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    call.code = status.code();
                }
                if let Some(data) = frame.data_ref() {
                    messages.take(data, |length| call.metrics.message_bytes("out", length));
                }
            };
            Ok(response.map(|body| Body::new(body.inspect_frame(follow))))
        })
    }
}

/// A call that goes on; dropping this ends it.
struct Call {
    metrics: Metrics,
    method: Method,
    arrived: Instant,
    code: Code,
    trace_id: Option<u128>,
    _span: Span,
    _in_flight: GoingOn,
}

impl Call {
    fn begin(metrics: Metrics, method: Method, span: Span) -> Self {
        let labels = [("service", method.service.into()), ("method", method.method.into())];
        let in_flight = metrics.going_on("canopy_rpc_in_flight", &labels);
        // Until it has ended otherwise, a call that goes away was cancelled.
        Self {
            metrics,
            method,
            arrived: clock::now(),
            code: Code::Cancelled,
            trace_id: None,
            _span: span,
            _in_flight: in_flight,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Method { service, method, .. } = self.method;
        let labels = [("service", service.into()), ("method", method.into()), ("code", code_name(self.code).into())];
        self.metrics.count("canopy_rpc_requests_total", &labels);
        let time = clock::now().duration_since(self.arrived);
        let timed = Timed { time, trace_id: self.trace_id };
        self.metrics.took_in_call("canopy_rpc_duration_seconds", &labels[..2], timed);
    }
}

/// The name of a code as the specification of gRPC writes it.
pub(crate) const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
