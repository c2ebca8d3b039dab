//! The watch of changes to leases.

use std::time::Duration;

use canopy_proto::v1::{ReplanEvent, WatchLeasesRequest};
use tonic::{Code, Streaming};

use crate::client::Client;
use crate::error::{ClientError, from_status};

/// A stream of events.
#[derive(Debug)]
pub struct ReplanEvents {
    stream: Streaming<ReplanEvent>,
    silence_max: Duration,
}

impl Client {
    /// Watches the changes to leases, starting at the resume token of the request. The server sends an event at least
    /// every half minute.
    ///
    /// # Errors
    /// See [`ClientError`]; an expired token is refused with reason `RESUME_TOKEN_EXPIRED`.
    pub async fn watch_leases(
        &self,
        request: WatchLeasesRequest,
        silence_max: Duration,
    ) -> Result<ReplanEvents, ClientError> {
        let mut service = self.leases.clone();
        let opened = tokio::time::timeout(silence_max, service.watch_leases(self.limited(request, None))).await;
        let opened = opened.map_err(|_| ClientError::Deadline { limit: silence_max })?;
        let stream = opened.map_err(|status| from_status(&status, None))?.into_inner();
        Ok(ReplanEvents { stream, silence_max })
    }
}

impl ReplanEvents {
    /// The next event, including keep-alives.
    ///
    /// # Errors
    /// The server or the connection has ended, or nothing arrived for too long: watch again with the last token.
    pub async fn next(&mut self) -> Result<ReplanEvent, ClientError> {
        let next = tokio::time::timeout(self.silence_max, self.stream.message()).await;
        let next = next.map_err(|_| ClientError::Deadline { limit: self.silence_max })?;
        let ended = || tonic::Status::new(Code::Unavailable, "the server ended the watch");
        next.and_then(|event| event.ok_or_else(ended)).map_err(|status| from_status(&status, None))
    }
}
