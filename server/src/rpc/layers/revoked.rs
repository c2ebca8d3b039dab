//! Streams of callers that are no longer let in: they end, as the next call would be refused.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame};
use tokio::time::sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::HeaderMap;

use crate::access::Access;
use crate::clock;

/// Why a stream ends, once it must.
type Revoked = Pin<Box<dyn Future<Output = Status> + Send>>;

/// Judges again whenever the rules change, or what the caller showed ends, until the caller is refused. `judge` gives the time
/// at which what it showed ends, in milliseconds since 1970.
pub(in crate::rpc) async fn revoked(access: Access, judge: impl Fn() -> Result<Option<u64>, Status> + Send) -> Status {
    let mut changes = access.changes();
    loop {
        let ends_ms = match judge() {
            Ok(ends_ms) => ends_ms,
            Err(status) => return status,
        };
        let left = ends_ms.map(|end| Duration::from_millis(end.saturating_sub(clock::unix_ms()).max(1)));
        let ends = async {
            match left {
                Some(left) => sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                // The server ends.
                std::future::pending::<()>().await;
            },
            () = ends => {}
        }
    }
}

/// The body of a stream that ends with its caller's rights.
pub(in crate::rpc) struct Revocable {
    body: Body,
    revoked: Option<Revoked>,
}

impl Revocable {
    /// This body, until there is a reason to end it.
    pub(in crate::rpc) fn new(body: Body, revoked: impl Future<Output = Status> + Send + 'static) -> Self {
        Self { body, revoked: Some(Box::pin(revoked)) }
    }
}

impl HttpBody for Revocable {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(revoked) = &mut self.revoked else { return Poll::Ready(None) };
        if let Poll::Ready(status) = revoked.as_mut().poll(context) {
            self.revoked = None;
            self.body = Body::empty();
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
