//! Inspects the replies of a service, and replaces some of them.

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;

use crate::call;
use crate::net::around::{Answer, Around, Calls};

/// Gives the answers that a function makes of those of the inner service: it is given the path of the request and the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered<F>(pub(crate) F);

impl<S, F, B> Around<S, B> for Answered<F>
where
    S: Calls<B>,
    F: Fn(&str, http::Response<Body>) -> http::Response<Body> + Clone + Send + 'static,
{
    type Inner = B;

    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer {
        let (uri, change) = (request.uri().clone(), self.0.clone());
        let answer = inner.call(request);
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
    if let Some(skipped) = call::may_log(status.code()) {
        let method: String = path.rsplit('/').next().unwrap_or_default().chars().take(80).collect();
        let skipped = (skipped > 0).then_some(skipped);
        tracing::info!(method, code = ?status.code(), skipped, message = status.message());
    }
    status.into_http()
}
