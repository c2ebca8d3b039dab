//! Answers requests that are no messages as the caller's mistakes.
//!
//! The transport refuses bytes that it cannot decode before a service sees them: as INTERNAL, without details and
//! without a line in the log. INTERNAL is for faults of the server, which raise alarms; its own have details.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::call;
use crate::status::malformed;

/// Wraps a service in [`Malformed`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MalformedLayer;

/// Rewrites the refusals of requests that cannot be decoded, and logs them.
#[derive(Clone, Debug)]
pub(crate) struct Malformed<S> {
    inner: S,
}

impl<S> Layer<S> for MalformedLayer {
    type Service = Malformed<S>;

    fn layer(&self, inner: S) -> Malformed<S> {
        Malformed { inner }
    }
}

impl<S, R> Service<http::Request<R>> for Malformed<S>
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
        let path = request.uri().path().to_owned();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let refused = Status::from_header_map(response.headers()).and_then(|status| undecodable(&status));
            Ok(match refused {
                Some(status) => {
                    log_unread(&path, &status);
                    status.into_http()
                }
                None => response,
            })
        })
    }
}

/// The status of a request that the transport could not decode; none if that is not what a status says.
fn undecodable(status: &Status) -> Option<Status> {
    // What cannot be encoded is the server's own answer.
    let is_transport = status.code() == Code::Internal && status.details().is_empty();
    (is_transport && !status.message().starts_with("Error encoding")).then(|| malformed(status.message()))
}

/// The line of a call that was refused before its handler saw it.
pub(crate) fn log_unread(path: &str, status: &Status) {
    let Some(skipped) = call::may_log() else { return };
    let method: String = path.rsplit('/').next().unwrap_or_default().chars().take(80).collect();
    let skipped = (skipped > 0).then_some(skipped);
    tracing::info!(method, code = ?status.code(), skipped, message = status.message());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_transport_says_without_details_is_the_callers_mistake() {
        let refused = undecodable(&Status::internal("failed to decode Protobuf message: no")).unwrap();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("no") && !refused.details().is_empty(), "{refused:?}");
        let own = Status::with_details(Code::Internal, "a bug", vec![1].into());
        for other in [own, Status::internal("Error encoding: x"), Status::invalid_argument("x"), Status::ok("")] {
            assert!(undecodable(&other).is_none(), "{other:?}");
        }
    }
}
