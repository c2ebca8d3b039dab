//! One shape for all that is done around the calls of a service: what, is an [`Around`]; the rest is written here once.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;
use tower::Service;
use tower::util::BoxCloneSyncService;

/// A service of gRPC for requests with bodies of type `B`: every refusal is an answer.
pub(crate) trait Calls<B>:
    Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible, Future: Send + 'static>
{
}

impl<S, B> Calls<B> for S where
    S: Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible, Future: Send + 'static>
{
}

/// A service for the calls of browsers.
pub(crate) type WebCalls = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, Infallible>;

/// The answer of a service to come.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

/// What is done around the calls of a service `S` whose requests have bodies of type `B`.
pub(crate) trait Around<S, B> {
    /// The type of the body that the inner service gets.
    type Inner;

    /// Answers a request with the help of the inner service, which is ready.
    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer;
}

/// Wraps a service.
pub(crate) fn around<A, S>(around: A, inner: S) -> Surrounded<A, S> {
    Surrounded { around, inner }
}

/// A service with something around its calls.
#[derive(Clone, Debug)]
pub(crate) struct Surrounded<A, S> {
    around: A,
    inner: S,
}

impl<A, S: NamedService> NamedService for Surrounded<A, S> {
    const NAME: &'static str = S::NAME;
}

impl<A: Around<S, B>, S: Calls<A::Inner>, B> Service<http::Request<B>> for Surrounded<A, S> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Answer {
        self.around.call(request, &mut self.inner)
    }
}
