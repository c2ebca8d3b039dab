//! The messages of a call that has many.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::tasks::Task;

/// Events a stream holds before the one who fills it waits for its reader.
pub(in crate::rpc) const STREAM_BUFFER: usize = 2;

/// The events of one call. Dropping it, as a cancelled call does, ends the task that fills it.
#[derive(Debug)]
pub(crate) struct EventStream<T> {
    events: ReceiverStream<Result<T, Status>>,
    _task: Option<Task<()>>,
}

impl<T> EventStream<T> {
    /// The events that `task` sends to this receiver.
    pub(in crate::rpc) fn new(receiver: mpsc::Receiver<Result<T, Status>>, task: Task<()>) -> Self {
        Self { events: ReceiverStream::new(receiver), _task: Some(task) }
    }

    /// No events: what is sent is sent in parts.
    pub(in crate::rpc) fn empty() -> Self {
        Self { events: ReceiverStream::new(mpsc::channel(1).1), _task: None }
    }
}

impl<T> Stream for EventStream<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.events).poll_next(context)
    }
}
