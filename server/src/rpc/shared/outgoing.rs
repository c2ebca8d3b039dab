//! The events of a call that computes for long.

use std::future::Future;
use std::time::{Duration, Instant};

use prost::Message;
use tokio::sync::mpsc;
use tokio::time;
use tonic::Status;

use crate::failure::{CallFailure, PlanFailure};
use crate::rpc::shared::call_pool;
use crate::rpc::shared::deadline::Deadline;
use crate::rpc::shared::deliver::STALL_MAX;
use crate::rpc::shared::events::{EventStream, STREAM_BUFFER};
use crate::rpc::shared::status::{call_status, to_status};
use crate::tasks;

/// Shortest time between two reports of progress of one stream.
pub(in crate::rpc) const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Why a stream ends before its last event.
pub(in crate::rpc) enum Ended {
    Failed(Status),
    /// Its reader has gone, or took nothing for long: nobody's fault.
    Gone,
}

impl From<&PlanFailure> for Ended {
    fn from(failure: &PlanFailure) -> Self {
        Self::Failed(to_status(failure))
    }
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

impl From<CallFailure> for Ended {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(call_status(&failure))
    }
}

/// Where the events go.
pub(in crate::rpc) struct Outgoing<E>(mpsc::Sender<Result<E, Status>>);

impl<E> Outgoing<E> {
    pub(in crate::rpc) const fn new(sender: mpsc::Sender<Result<E, Status>>) -> Self {
        Self(sender)
    }

    /// Waits until its reader has gone.
    pub(in crate::rpc) async fn closed(&self) {
        self.0.closed().await;
    }

    /// Sends one, and waits for a reader that is slow.
    pub(in crate::rpc) async fn send(&self, event: E) -> Result<(), Ended> {
        let sent = time::timeout(STALL_MAX, self.0.send(Ok(event))).await;
        sent.map_err(|_| Ended::Gone)?.map_err(|_| Ended::Gone)
    }
}

/// Bytes of one message of an answer in several, roughly.
pub(in crate::rpc) const MESSAGE_BYTES: usize = 256 << 10;

/// Entries for messages of moderate length, in order; one message where there are no entries.
pub(in crate::rpc) fn batches<E: Message>(entries: impl IntoIterator<Item = E>) -> Vec<Vec<E>> {
    let mut batches = vec![Vec::new()];
    let mut bytes = 0;
    for entry in entries {
        bytes += entry.encoded_len();
        if bytes > MESSAGE_BYTES {
            bytes = entry.encoded_len();
            batches.push(Vec::new());
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(entry);
        }
    }
    batches
}

/// A stream of what `work` sends within the deadline of a call that arrived then. Logs how it ended.
pub(in crate::rpc) fn stream<E, F>(
    method: &'static str,
    (arrived, deadline): (Instant, Deadline),
    work: impl FnOnce(Outgoing<E>) -> F,
) -> EventStream<E>
where
    E: Send + 'static,
    F: Future<Output = Result<(), Ended>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
    let (work, limit) = (work(Outgoing(sender.clone())), time::Instant::from_std(arrived) + deadline.work);
    let task = tasks::spawn(method, async move {
        let late = |_| {
            let deadline_ms = u64::try_from(deadline.stated.as_millis()).unwrap_or(u64::MAX);
            Err(CallFailure::Late { deadline_ms }.into())
        };
        let ended = time::timeout_at(limit, work).await.unwrap_or_else(late);
        conclude(method, arrived, ended, &sender).await;
    });
    EventStream::new(receiver, task)
}

/// Logs how a stream ended, and sends why, if something failed.
pub(in crate::rpc) async fn conclude<E>(
    method: &'static str,
    arrived: Instant,
    ended: Result<(), Ended>,
    sender: &mpsc::Sender<Result<E, Status>>,
) {
    let failed = match ended {
        Ok(()) | Err(Ended::Gone) => None,
        Err(Ended::Failed(status)) => Some(status),
    };
    call_pool::log_status(method, arrived, failed.as_ref());
    if let Some(status) = failed {
        // A reader that has gone is nobody's fault.
        let _gone = time::timeout(STALL_MAX, sender.send(Err(status))).await;
    }
}
