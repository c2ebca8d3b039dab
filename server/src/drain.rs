//! The end of a server's service, in order: no new calls, those inside go on for a while.
//!
//! A [`Gate`] stands before every service that begins something. It counts who is inside, until the last byte of the
//! answer, and refuses everybody else once a drain has begun. Health, reflection and the services with which one
//! follows a drain have no gate.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http;

use crate::around::{Answer, Around, Calls};
use crate::failure::PlanFailure;
use crate::status::to_status;

/// Begins the drain of a server, and tells whether it has begun. Clones share it.
#[derive(Clone, Debug)]
pub struct DrainHandle {
    draining: Arc<watch::Sender<bool>>,
    inside: Arc<watch::Sender<usize>>,
}

impl DrainHandle {
    pub(crate) fn new() -> Self {
        Self { draining: Arc::new(watch::Sender::new(false)), inside: Arc::new(watch::Sender::new(0)) }
    }

    /// Begins the drain: the server takes no new work, finishes what it has within its drain time-out, and ends.
    /// False if it had begun already.
    pub fn start(&self) -> bool {
        !self.draining.send_replace(true)
    }

    /// Whether the drain has begun.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until the drain begins.
    pub async fn started(&self) {
        // This handle owns the sender, so there is always one.
        let mut draining = self.draining.subscribe();
        let _begun = draining.wait_for(|&draining| draining).await;
    }

    /// Calls that were let in and whose answers have not ended.
    pub fn calls_inside(&self) -> usize {
        *self.inside.borrow()
    }

    /// Waits until no call is inside. After the drain began nobody enters, so this is final.
    pub(crate) async fn empty(&self) {
        let mut inside = self.inside.subscribe();
        let _empty = inside.wait_for(|&inside| inside == 0).await;
    }

    /// Lets a call in, unless the drain has begun.
    fn enter(&self) -> Option<Inside> {
        self.inside.send_modify(|inside| *inside += 1);
        let inside = Inside(Arc::clone(&self.inside));
        // Asked after counting: whoever is not refused here is seen by those who wait for the last to leave.
        (!self.is_draining()).then_some(inside)
    }
}

/// A call that was let in; dropping this counts it out.
#[derive(Debug)]
struct Inside(Arc<watch::Sender<usize>>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.send_modify(|inside| *inside -= 1);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_begins_once_and_ends_when_the_last_call_has_left() {
        let drain = DrainHandle::new();
        let first = drain.enter().unwrap();
        let second = drain.enter().unwrap();
        assert_eq!(drain.calls_inside(), 2);
        assert!(drain.start());
        assert!(!drain.start() && drain.is_draining());
        drain.started().await;
        assert!(drain.enter().is_none());
        drop(first);
        assert_eq!(drain.calls_inside(), 1);
        drop(second);
        drain.empty().await;
    }
}
