//! Gives messages over the size limit the code that other limits have.
//!
//! The transport refuses such a message before the service sees it, as OUT_OF_RANGE without details. What the service itself
//! answers with that code has details.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::malformed::log_unread;
use crate::status::oversized;

/// Wraps a service in [`Oversize`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OversizeLayer {
    /// Greatest message in bytes.
    pub(crate) limit: usize,
}

/// Rewrites the refusals of messages that are too large.
#[derive(Clone, Debug)]
pub(crate) struct Oversize<S> {
    inner: S,
    limit: usize,
}

impl<S> Layer<S> for OversizeLayer {
    type Service = Oversize<S>;

    fn layer(&self, inner: S) -> Oversize<S> {
        Oversize { inner, limit: self.limit }
    }
}

impl<S: NamedService> NamedService for Oversize<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, R> Service<http::Request<R>> for Oversize<S>
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
        let limit = self.limit;
        Box::pin(async move {
            let response = answer.await?;
            Ok(match Status::from_header_map(response.headers()) {
                Some(status) if status.code() == Code::OutOfRange && status.details().is_empty() => {
                    let status = oversized(limit, status.message());
                    log_unread(&path, &status);
                    status.into_http()
                }
                _ => response,
            })
        })
    }
}
