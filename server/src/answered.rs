//! A layer that looks at the answers of a service, and gives others in their place.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;
use tower::{Layer, Service};

use crate::call;

/// Wraps a service in [`Answered`]. The function is given the path of the request and the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerLayer<F>(pub(crate) F);

/// Gives the answers that a function makes of those of the inner service.
#[derive(Clone, Debug)]
pub(crate) struct Answered<S, F> {
    inner: S,
    change: F,
}

impl<S, F: Clone> Layer<S> for AnswerLayer<F> {
    type Service = Answered<S, F>;

    fn layer(&self, inner: S) -> Answered<S, F> {
        Answered { inner, change: self.0.clone() }
    }
}

impl<S: NamedService, F> NamedService for Answered<S, F> {
    const NAME: &'static str = S::NAME;
}

impl<S, F, R> Service<http::Request<R>> for Answered<S, F>
where
    S: Service<http::Request<R>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
    F: Fn(&str, http::Response<Body>) -> http::Response<Body> + Clone + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(ready!(self.inner.poll_ready(context)))
    }

    fn call(&mut self, request: http::Request<R>) -> Self::Future {
        let (uri, change) = (request.uri().clone(), self.change.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(change(uri.path(), response))
        })
    }
}

/// The answer to a call that was refused before its handler saw it, in other words if `reword` has any; those are logged.
pub(crate) fn reworded(
    path: &str,
    response: http::Response<Body>,
    reword: impl Fn(&Status) -> Option<Status>,
) -> http::Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()).and_then(|status| reword(&status)) else {
        return response;
    };
    if let Some(skipped) = call::may_log() {
        let method: String = path.rsplit('/').next().unwrap_or_default().chars().take(80).collect();
        let skipped = (skipped > 0).then_some(skipped);
        tracing::info!(method, code = ?status.code(), skipped, message = status.message());
    }
    status.into_http()
}
