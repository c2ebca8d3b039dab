//! Refuses calls once a drain has begun, and counts those that are inside.

use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::http;

use crate::drain::DrainHandle;
use crate::failure::PlanFailure;
use crate::net::around::{Answer, Around, Calls};
use crate::rpc::layers::record::Arrived;
use crate::rpc::shared::status::to_status;

/// Time for requests to arrive whole after a drain has begun. Nothing of a request that is still on its way was begun,
/// and the next server takes it.
const ARRIVAL_MAX: Duration = Duration::from_secs(2);

/// Refuses calls as UNAVAILABLE with `RetryInfo` once the drain has begun.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) DrainHandle);

impl Gate {
    /// Ends when a drain has begun and the request has not arrived in time.
    async fn gives_up(drain: DrainHandle, arrived: Option<Arrived>) {
        drain.started().await;
        sleep(ARRIVAL_MAX).await;
        if arrived.is_none_or(|arrived| arrived.is_whole()) {
            std::future::pending::<()>().await;
        }
    }
}

impl<S: Calls<B>, B> Around<S, B> for Gate {
    type Inner = B;

    fn call(&self, request: http::Request<B>, inner: &mut S) -> Answer {
        let refused = || Ok(to_status(&PlanFailure::Draining).into_http());
        let Some(inside) = self.0.enter() else { return Box::pin(async move { refused() }) };
        let given_up = Self::gives_up(self.0.clone(), request.extensions().get::<Arrived>().cloned());
        let answer = inner.call(request);
        Box::pin(async move {
            let response = tokio::select! {
                biased;
                response = answer => response?,
                () = given_up => return refused(),
            };
            // The response of a stream returns before its work ends: the count goes with the body.
            let counted = move |_: &_| _ = &inside;
            Ok(response.map(|body| Body::new(body.inspect_frame(counted))))
        })
    }
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Status};
    use tower::Service as _;

    use super::*;
    use crate::net::around::around;
    use crate::tasks;

    /// A drain waits for calls whose requests are there, and for no request that is still on its way.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_arrive_holds_up_no_drain() {
        for (is_whole, expected) in [(true, None), (false, Some(Code::Unavailable))] {
            let drain = DrainHandle::new();
            let service = tower::service_fn(async |_: http::Request<()>| {
                sleep(10 * ARRIVAL_MAX).await;
                Ok(http::Response::new(Body::empty()))
            });
            let mut request = http::Request::new(());
            request.extensions_mut().insert(if is_whole { Arrived::whole() } else { Arrived::of(1) });
            let answer = tasks::spawn("answer", around(Gate(drain.clone()), service).call(request));
            // A slow request is refused only during a drain.
            sleep(ARRIVAL_MAX).await;
            drain.start();
            drain.empty().await;
            let response = answer.join().await.unwrap().unwrap();
            let code = Status::from_header_map(response.headers()).map(|status| status.code());
            assert_eq!(code, expected);
        }
    }
}
