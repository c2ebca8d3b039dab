//! Ends calls that state a deadline when it has passed, and no later.
//!
//! A handler ends its own work ahead of the deadline, and says more. This is for what handlers do not see: a request
//! that trickles in, and deadlines so short that the answer of a handler would come too late.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time;
use tonic::body::Body;
use tonic::codegen::http;
use tower::{Layer, Service};

use crate::failure::CallFailure;
use crate::service::DeadlinePolicy;
use crate::status::call_status;

/// Wraps a service in [`Timeout`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutLayer(pub(crate) DeadlinePolicy);

/// Answers DEADLINE_EXCEEDED when the inner service has not answered in time. A stream has answered when it begins.
#[derive(Clone, Debug)]
pub(crate) struct Timeout<S> {
    inner: S,
    policy: DeadlinePolicy,
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner, policy: self.0 }
    }
}

impl<S, R> Service<http::Request<R>> for Timeout<S>
where
    S: Service<http::Request<R>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(ready!(self.inner.poll_ready(context)))
    }

    fn call(&mut self, request: http::Request<R>) -> Self::Future {
        let limit = self.policy.limit(request.headers());
        let answer = self.inner.call(request);
        Box::pin(async move {
            time::timeout(limit, answer).await.unwrap_or_else(|_| {
                let deadline_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Ok(call_status(&CallFailure::Late { deadline_ms }).into_http())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::{Code, Status};

    use super::*;

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
        let answer = TimeoutLayer(policy).layer(slow).call(request).await.unwrap();
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
}
