//! Refuses calls once a drain has begun, and counts those that are inside.

use http_body_util::BodyExt as _;
use tonic::body::Body;
use tonic::codegen::http;

use crate::around::{Answer, Around, Calls};
use crate::drain::DrainHandle;
use crate::failure::PlanFailure;
use crate::rpc::status::to_status;

/// Refuses calls as UNAVAILABLE with `RetryInfo` once the drain has begun.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) DrainHandle);

impl<S: Calls<B>, B> Around<S, B> for Gate {
    type Inner = B;

    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer {
        let Some(inside) = self.0.enter() else {
            return Box::pin(async { Ok(to_status(&PlanFailure::Draining).into_http()) });
        };
        let answer = inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            // The response of a stream returns before its work ends: the count goes with the body.
            let counted = move |_: &_| _ = &inside;
            Ok(response.map(|body| Body::new(body.inspect_frame(counted))))
        })
    }
}
