//! Ends calls that state a deadline when it has passed, and no later.
//!
//! A handler ends its own work ahead of the deadline, and says more. This is for what handlers do not see: a request
//! that trickles in, a message so long that reading it takes longer than the caller has, deadlines so short that the
//! answer of a handler would come too late, and streams that go on past the deadline. A conversation, whose caller goes
//! on to ask, ends at a deadline that is stated, and at no other.

mod handling;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use canopy_access::method;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{self, Sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};

use self::handling::Handling;
use crate::failure::CallFailure;
use crate::net::around::{Answer, Around, Calls};
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::status::call_status;

/// Where health is asked for: answered on the threads of the connection, which never have much to do.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Answers DEADLINE_EXCEEDED when the inner service has not answered in time, or its answer has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Timeout {
    pub(crate) policy: DeadlinePolicy,
    /// Where calls are handled.
    pub(crate) runtime: Handle,
}

impl<S: Calls<B>, B> Around<S, B> for Timeout {
    type Inner = B;

    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer {
        let is_conversation = method(request.uri().path().trim_start_matches('/')).is_some_and(|row| row.conversation);
        let limit = match is_conversation {
            true => DeadlinePolicy::of_conversation(request.headers()),
            false => self.policy.limit(request.headers()),
        };
        let late = move || {
            let deadline_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            call_status(&CallFailure::Late { deadline_ms })
        };
        let over = time::sleep(limit);
        if request.uri().path().starts_with(HEALTH) {
            let answer = inner.call(request);
            return Box::pin(async move {
                let over = Box::pin(over);
                answer.await.map(|answer| answer.map(|body| Body::new(Limited { body: Some(body), over, late })))
            });
        }
        let arrived = request.extensions().get().cloned().unwrap_or_default();
        let answer = Handling::new(Box::pin(inner.call(request)), arrived, self.runtime.clone());
        Box::pin(async move {
            let mut over = Box::pin(over);
            tokio::select! {
                biased;
                answer = answer => Ok(match answer {
                    Ok(Ok(answer)) => answer.map(|body| Body::new(Limited { body: Some(body), over, late })),
                    Err(what) => call_status(&CallFailure::Broken { what }).into_http(),
                }),
                () = over.as_mut() => Ok(late().into_http()),
            }
        })
    }
}

/// The body of an answer, which ends at the deadline.
struct Limited<L> {
    /// None: it has ended.
    body: Option<Body>,
    over: Pin<Box<Sleep>>,
    late: L,
}

impl<L: Fn() -> Status + Unpin> HttpBody for Limited<L> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if this.over.as_mut().poll(context).is_pending() {
            return Pin::new(body).poll_frame(context);
        }
        // A stream whose last word is due has ended in time.
        if let Poll::Ready(last) = Pin::new(body).poll_frame(context)
            && last.as_ref().is_none_or(|last| last.as_ref().is_ok_and(Frame::is_trailers))
        {
            return Poll::Ready(last);
        }
        this.body = None;
        let mut trailers = http::HeaderMap::new();
        let status = (this.late)();
        Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::ready;
    use std::time::Duration;

    use tokio_stream::StreamExt as _;
    use tonic::Code;
    use tower::Service as _;

    use super::handling::LONG_BYTES;
    use super::*;
    use crate::net::around::{Surrounded, around};
    use crate::rpc::layers::record::Arrived;
    use crate::tasks;

    fn limited<S>(policy: DeadlinePolicy, inner: S) -> Surrounded<Timeout, S> {
        around(Timeout { policy, runtime: Handle::current() }, inner)
    }

    /// Calls a service that answers after a second, with these headers.
    async fn code(timeout: Option<&str>) -> Code {
        let policy = DeadlinePolicy { default: Duration::from_millis(100), max: Duration::from_secs(2) };
        let slow = tower::service_fn(async |_: http::Request<()>| {
            time::sleep(Duration::from_secs(1)).await;
            Ok(Status::ok("").into_http())
        });
        let mut request = http::Request::new(());
        if let Some(timeout) = timeout {
            request.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
        }
        let answer = limited(policy, slow).call(request).await.unwrap();
        Status::from_header_map(answer.headers()).unwrap().code()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stated_deadline_holds_and_the_default_is_the_handlers_business() {
        for (timeout, expected) in [
            (Some("1m"), Code::DeadlineExceeded),
            (Some("1n"), Code::DeadlineExceeded),
            (Some("999m"), Code::DeadlineExceeded),
            (Some("1500m"), Code::Ok),
            (Some("1H"), Code::Ok),
            (Some("soon"), Code::Ok),
            (None, Code::Ok),
        ] {
            assert_eq!(code(timeout).await, expected, "{timeout:?}");
        }
    }

    /// Frames of one byte, each 100 ms after the other; then the call is over.
    struct Drip(Pin<Box<dyn tokio_stream::Stream<Item = u8> + Send>>);

    impl HttpBody for Drip {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            let next = ready!(self.0.as_mut().poll_next(context));
            Poll::Ready(next.map(|byte| Ok(Frame::data(vec![byte].into()))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_at_its_deadline() {
        let policy = DeadlinePolicy { default: Duration::from_millis(100), max: Duration::from_secs(60) };
        let service = tower::service_fn(async |_: http::Request<()>| {
            let drops = tokio_stream::iter(0..10).throttle(Duration::from_millis(100));
            Ok(http::Response::new(Body::new(Drip(Box::pin(drops)))))
        });
        for (timeout, bytes, code) in [("550m", 6, Some(Code::DeadlineExceeded)), ("5S", 10, None)] {
            let mut request = http::Request::new(());
            request.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
            let answer = limited(policy, service).call(request).await.unwrap();
            let mut body = answer.into_body();
            let (mut found, mut status) = (0, None);
            while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                let frame = frame.unwrap();
                found += frame.data_ref().map_or(0, Bytes::len);
                status = frame.trailers_ref().and_then(Status::from_header_map).map(|status| status.code());
            }
            assert_eq!((found, status), (bytes, code), "{timeout}");
        }
    }

    /// While one call reads a long message the deadlines of all calls hold, its own included.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_message_holds_up_nobody_not_even_its_own_deadline() {
        let policy = DeadlinePolicy { default: Duration::from_millis(100), max: Duration::from_secs(60) };
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        let service = tower::service_fn(move |_: http::Request<()>| {
            let held = std::sync::Arc::clone(&held);
            async move {
                // As a decoder, which looks at nothing else until it is done.
                let _let_go = held.lock().unwrap().recv();
                Ok(Status::ok("").into_http())
            }
        });
        let mut request = http::Request::new(());
        request.headers_mut().insert("grpc-timeout", "20m".parse().unwrap());
        request.extensions_mut().insert(Arrived::of(LONG_BYTES + 1));
        let call = tasks::spawn("test", limited(policy, service).call(request));
        let answer = call.join().await.unwrap().unwrap();
        assert_eq!(Status::from_header_map(answer.headers()).unwrap().code(), Code::DeadlineExceeded);
        drop(let_go);
    }

    #[tokio::test]
    async fn a_handler_that_panics_fails_its_call_alone() {
        let policy = DeadlinePolicy { default: Duration::from_millis(100), max: Duration::from_secs(60) };
        let service = tower::service_fn(async |request: http::Request<()>| {
            assert!(request.headers().is_empty(), "on purpose");
            Ok(Status::ok("").into_http())
        });
        for (header, code) in [(None, Code::Ok), (Some("x"), Code::Internal), (None, Code::Ok)] {
            let mut request = http::Request::new(());
            header.map(|name: &str| {
                request
                    .headers_mut()
                    .insert(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), "1".parse().unwrap())
            });
            let answer = limited(policy, service).call(request).await.unwrap();
            assert_eq!(Status::from_header_map(answer.headers()).unwrap().code(), code);
        }
    }
}
