//! The bodies of requests on their way in: measured, within a budget, and not waited for without end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::codegen::Bytes;

use super::messages::Messages;
use crate::call;
use crate::failure::{CallFailure, PlanFailure};
use crate::metrics::Metrics;
use crate::rpc::shared::status::{call_status, to_status};
use crate::uploads::{NoRoom, Upload};

/// Longest time in which nothing of a request arrives.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A message that has begun must be whole after this time, and as much more as it takes at the slowest rate that is
/// waited for, in bytes per second: it holds room that others need.
const MESSAGE_MAX: Duration = Duration::from_secs(10);
const RATE_MIN: u64 = 512 << 10;

/// How much of a call's request has arrived; clones share it. Goes with the request, for those who handle it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    is_whole: AtomicBool,
}

impl Arrived {
    /// Bytes of its body so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing more of it comes.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_whole.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// As if all had arrived.
    #[cfg(test)]
    pub(crate) fn whole() -> Self {
        let arrived = Self::default();
        arrived.0.is_whole.store(true, Ordering::Relaxed);
        arrived
    }

    /// As if so many bytes had arrived.
    #[cfg(test)]
    pub(crate) fn of(bytes: u64) -> Self {
        Self(Arc::new(Progress { bytes: AtomicU64::new(bytes), is_whole: AtomicBool::new(false) }))
    }
}

/// The body of a request.
pub(super) struct Received<B> {
    body: B,
    messages: Messages,
    upload: Upload,
    arrived: Arrived,
    metrics: Metrics,
    /// Whether there may be any time between two messages.
    is_patient: bool,
    silence: Option<Pin<Box<Sleep>>>,
    /// When the message that has begun must be whole.
    whole_by: Option<Pin<Box<Sleep>>>,
}

impl<B> Received<B> {
    pub(super) fn new(body: B, upload: Upload, arrived: Arrived, metrics: Metrics) -> Self {
        let messages = Messages::default();
        Self { body, messages, upload, arrived, metrics, is_patient: false, silence: None, whole_by: None }
    }

    /// The same for a caller who may say nothing for any time between two messages.
    pub(super) fn patient(self) -> Self {
        Self { is_patient: true, ..self }
    }

    /// Counts bytes that have arrived.
    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        let metrics = &self.metrics;
        self.arrived.add(data.len());
        let mut ended = None;
        self.messages.take(data, |length| {
            ended = Some(length);
            metrics.message_bytes("in", length);
        });
        let begun = self.messages.announced();
        if ended.is_some() || begun.is_none() {
            self.whole_by = None;
        }
        if let (None, Some(length)) = (&self.whole_by, begun) {
            self.whole_by = Some(Box::pin(sleep(MESSAGE_MAX + Duration::from_secs(length / RATE_MIN))));
        }
        let held = match (begun, ended) {
            (Some(length), _) => self.upload.arriving(self.messages.arrived(), length, call::bill()),
            (None, Some(length)) => self.upload.arrived(length),
            (None, None) => Ok(()),
        };
        held.map_err(|no_room| {
            to_status(&match no_room {
                NoRoom::Budget { held, found, limit } => PlanFailure::QueueBudget { held, found, limit },
                NoRoom::Quota(over) => PlanFailure::OverQuota(over),
            })
        })
    }

    /// Why a request that does not go on is given up, once it is.
    fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<CallFailure> {
        if let Some(whole_by) = &mut self.whole_by
            && whole_by.as_mut().poll(context).is_ready()
        {
            let (arrived, length) = (self.messages.arrived(), self.messages.announced().unwrap_or_default());
            return Poll::Ready(CallFailure::Slow { arrived, length, rate: RATE_MIN });
        }
        if self.is_patient && self.messages.announced().is_none() {
            return Poll::Pending;
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE_MAX)));
        ready!(silence.as_mut().poll(context));
        Poll::Ready(CallFailure::Silence { seconds: SILENCE_MAX.as_secs() })
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
            let failure = ready!(this.poll_given_up(context));
            return Poll::Ready(Some(Err(call_status(&failure))));
        };
        this.silence = None;
        if this.body.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            this.arrived.0.is_whole.store(true, Ordering::Relaxed);
        }
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
    use crate::net::peer::Host;
    use crate::uploads::UploadBudget;

    const HOST: Host = Host::Local;

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
        Received::new(Trickle([data.into()].into()), budget.upload(HOST), Arrived::default(), Metrics::off())
    }

    async fn next<B>(body: &mut Received<B>) -> Option<Result<Frame<Bytes>, Status>>
    where
        B: HttpBody<Data = Bytes, Error = Status> + Unpin,
    {
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
        let mut whole = begun(100, &budget);
        assert!(next(&mut whole).await.unwrap().is_ok());
        assert_eq!(whole.upload.bytes(), 0, "a message that is there is its decoder's");
        let mut again = begun(100, &budget);
        assert!(next(&mut again).await.unwrap().is_ok(), "all of the budget is there");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_falls_silent_is_given_up() {
        let mut body = begun(10, &UploadBudget::new(100));
        assert!(next(&mut body).await.unwrap().is_ok());
        assert_eq!(next(&mut body).await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_may_pause_is_given_up_within_a_message_only() {
        let budget = UploadBudget::new(1000);
        let whole = begun(100, &budget).patient();
        let mut part = begun(10, &budget).patient();
        assert!(next(&mut part).await.unwrap().is_ok());
        assert_eq!(next(&mut part).await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
        let mut whole = whole;
        assert!(next(&mut whole).await.unwrap().is_ok());
        let waits = tokio::time::timeout(Duration::from_secs(3600), next(&mut whole)).await;
        assert!(waits.is_err(), "nothing is due");
    }

    #[tokio::test]
    async fn one_host_leaves_half_of_the_budget_to_others_but_may_always_send_a_message() {
        let budget = UploadBudget::new(100);
        let other = Host::at([10, 0, 0, 1].into());
        let mut large = begun(90, &budget);
        assert!(next(&mut large).await.unwrap().is_ok(), "it is the only one of its host");
        drop(large);
        let (mut first, mut second) = (begun(45, &budget), begun(10, &budget));
        assert!(next(&mut first).await.unwrap().is_ok());
        assert_eq!(next(&mut second).await.unwrap().unwrap_err().code(), Code::ResourceExhausted);
        drop(second);
        let mut third = begun(45, &budget);
        third.upload = budget.upload(other);
        assert!(next(&mut third).await.unwrap().is_ok());
    }

    /// A message that goes on, a byte at a time.
    struct Drops(Pin<Box<dyn tokio_stream::Stream<Item = Bytes> + Send>>);

    impl HttpBody for Drops {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.as_mut().poll_next(context).map(|next| next.map(|data| Ok(Frame::data(data))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_trickles_in_is_given_up_after_the_time_that_its_length_deserves() {
        use tokio_stream::StreamExt as _;

        for length in [100_u32, 64 << 20] {
            let mut head = vec![0];
            head.extend(length.to_be_bytes());
            let drops = std::iter::once(Bytes::from(head)).chain(std::iter::repeat_n(Bytes::from_static(&[7]), 99));
            let drops = tokio_stream::iter(drops).throttle(Duration::from_secs(20)).chain(tokio_stream::pending());
            let upload = UploadBudget::new(1 << 30).upload(HOST);
            let mut body = Received::new(Drops(Box::pin(drops)), upload, Arrived::default(), Metrics::off());
            let started = tokio::time::Instant::now();
            let status = loop {
                match next(&mut body).await.unwrap() {
                    Ok(_) => {}
                    Err(status) => break status,
                }
            };
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
            let (expected, taken) = (MESSAGE_MAX.as_secs() + u64::from(length) / RATE_MIN, started.elapsed().as_secs());
            assert!(taken.abs_diff(expected) <= 1, "{length}: {taken} s");
        }
    }
}
