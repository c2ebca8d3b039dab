//! The bodies of requests on their way in: measured, within a budget, and not waited for without end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::codegen::Bytes;

use super::messages::Messages;
use crate::failure::{CallFailure, PlanFailure};
use crate::metrics::Metrics;
use crate::status::{call_status, to_status};

/// Longest time in which nothing of a request arrives.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Bytes of messages that have begun to arrive, of all calls together; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct UploadBudget {
    held: Arc<AtomicU64>,
    limit: u64,
}

impl UploadBudget {
    /// At most so many bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { held: Arc::default(), limit }
    }
}

/// How much of a call's request has arrived; clones share it. Goes with the request, for those who handle it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived(Arc<AtomicU64>);

impl Arrived {
    /// Bytes of its body so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// As if so many bytes had arrived.
    #[cfg(test)]
    pub(crate) fn of(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }
}

/// The body of a request.
pub(super) struct Received<B> {
    body: B,
    messages: Messages,
    budget: UploadBudget,
    /// What this body has of the budget.
    held: u64,
    arrived: Arrived,
    metrics: Metrics,
    silence: Option<Pin<Box<Sleep>>>,
}

impl<B> Received<B> {
    pub(super) fn new(body: B, budget: UploadBudget, arrived: Arrived, metrics: Metrics) -> Self {
        Self { body, messages: Messages::default(), budget, held: 0, arrived, metrics, silence: None }
    }

    /// Counts bytes that have arrived.
    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        let metrics = &self.metrics;
        self.arrived.add(data.len());
        self.messages.take(data, |length| metrics.message_bytes("in", length));
        let (before, now) = (self.held, self.messages.arrived());
        self.held = now;
        if now <= before {
            self.budget.held.fetch_sub(before - now, Ordering::Relaxed);
            return Ok(());
        }
        let all = self.budget.held.fetch_add(now - before, Ordering::Relaxed).saturating_add(now - before);
        if all <= self.budget.limit {
            return Ok(());
        }
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (held, found, limit) = (bytes(all - now), bytes(now), bytes(self.budget.limit));
        Err(to_status(&PlanFailure::QueueBudget { held, found, limit }))
    }
}

impl<B> Drop for Received<B> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}

impl<B> HttpBody for Received<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE_MAX)));
            ready!(silence.as_mut().poll(context));
            let seconds = SILENCE_MAX.as_secs();
            return Poll::Ready(Some(Err(call_status(&CallFailure::Silence { seconds }))));
        };
        this.silence = None;
        Poll::Ready(match frame {
            None => None,
            Some(Err(error)) => Some(Err(Status::from_error(error.into()))),
            Some(Ok(frame)) => Some(match frame.data_ref().map_or(Ok(()), |data| this.take(data)) {
                Ok(()) => Ok(frame),
                Err(status) => Err(status),
            }),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use tonic::Code;

    use super::*;

    /// Frames, and then nothing for ever.
    struct Trickle(VecDeque<Bytes>);

    impl HttpBody for Trickle {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.pop_front().map_or(Poll::Pending, |data| Poll::Ready(Some(Ok(Frame::data(data)))))
        }
    }

    /// A message of 100 bytes that begins to arrive.
    fn begun(arrived: usize, budget: &UploadBudget) -> Received<Trickle> {
        let mut data = vec![0, 0, 0, 0, 100];
        data.resize(5 + arrived, 7);
        Received::new(Trickle([data.into()].into()), budget.clone(), Arrived::default(), Metrics::off())
    }

    async fn next(body: &mut Received<Trickle>) -> Option<Result<Frame<Bytes>, Status>> {
        poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
    }

    #[tokio::test]
    async fn what_is_beyond_the_budget_is_refused_and_room_comes_back() {
        let budget = UploadBudget::new(100);
        let (mut first, mut second) = (begun(60, &budget), begun(60, &budget));
        assert!(next(&mut first).await.unwrap().is_ok());
        let refused = next(&mut second).await.unwrap().unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        drop((first, second));
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
        let mut whole = begun(100, &budget);
        assert!(next(&mut whole).await.unwrap().is_ok());
        assert_eq!(budget.held.load(Ordering::Relaxed), 0, "a message that is there is its decoder's");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_falls_silent_is_given_up() {
        let mut body = begun(10, &UploadBudget::new(100));
        assert!(next(&mut body).await.unwrap().is_ok());
        assert_eq!(next(&mut body).await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    }
}
