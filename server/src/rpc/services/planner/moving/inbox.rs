//! The messages of a stream as they come: the network, and then the latest matrix, which replaces one that waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use canopy_proto::v1::plan_moving_request::Request;
use canopy_proto::v1::{MovingMatrix, MovingNetwork, PlanMovingRequest};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::block_in_place;
use tonic::{Status, Streaming};

use crate::failure::{CallFailure, MovingFailure};
use crate::rpc::shared::status::call_status;

/// Ranks from which on a matrix takes milliseconds to decode, so that other calls must not wait for it.
const LARGE_RANKS: u32 = 384;

/// The network, which comes first. `None`: the caller says nothing.
pub(super) async fn network(messages: &mut Streaming<PlanMovingRequest>) -> Result<Option<MovingNetwork>, Status> {
    let Some(message) = messages.message().await? else { return Ok(None) };
    match message.request {
        Some(Request::Network(network)) => Ok(Some(network)),
        Some(Request::Matrix(_)) => {
            Err(wrong(MovingFailure::NotFirst { field: "matrix", expected: "the first message states `network`" }))
        }
        None => Err(wrong(MovingFailure::Empty)),
    }
}

/// What is wrong with a message.
fn wrong(failure: MovingFailure) -> Status {
    call_status(&CallFailure::from(failure))
}

/// What has come and is not worked on.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The latest matrix.
    latest: Option<MovingMatrix>,
    /// Matrices that others have replaced.
    skipped: u64,
    /// How the messages ended, once they have.
    end: Option<Result<(), Status>>,
}

/// What is to be done next.
pub(super) enum Next {
    Matrix { matrix: MovingMatrix, skipped: u64 },
    End,
}

impl Inbox {
    /// Takes what comes until it ends.
    pub(super) async fn fill(self: Arc<Self>, mut messages: Streaming<PlanMovingRequest>, ranks: u32) {
        let mut last = None;
        let end = loop {
            match read(&mut messages, ranks, &mut last).await {
                Ok(Some(matrix)) => self.put(matrix),
                Ok(None) => break Ok(()),
                Err(status) => break Err(status),
            }
        };
        self.state.lock().end = Some(end);
        self.changed.notify_one();
    }

    fn put(&self, matrix: MovingMatrix) {
        let mut state = self.state.lock();
        let replaced = state.latest.replace(matrix);
        state.skipped += u64::from(replaced.is_some());
        drop(state);
        self.changed.notify_one();
        drop(replaced);
    }

    /// The latest matrix, once there is one; what is wrong with the messages ends it at once.
    pub(super) async fn next(&self) -> Result<Next, Status> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some(Err(status)) = &state.end {
                    return Err(status.clone());
                }
                if let Some(matrix) = state.latest.take() {
                    return Ok(Next::Matrix { matrix, skipped: std::mem::take(&mut state.skipped) });
                }
                if state.end.is_some() {
                    return Ok(Next::End);
                }
            }
            self.changed.notified().await;
        }
    }
}

/// The next matrix, whose number must be greater than the last.
async fn read(
    messages: &mut Streaming<PlanMovingRequest>,
    ranks: u32,
    last: &mut Option<u64>,
) -> Result<Option<MovingMatrix>, Status> {
    let matrix = match message(messages, ranks).await?.map(|message| message.request) {
        None => return Ok(None),
        Some(Some(Request::Matrix(matrix))) => matrix,
        Some(Some(Request::Network(_))) => {
            let expected = "after the first message each states `matrix`; open another stream for another network";
            return Err(wrong(MovingFailure::NotFirst { field: "network", expected }));
        }
        Some(None) => return Err(wrong(MovingFailure::Empty)),
    };
    if let Some(last) = last.replace(matrix.number).filter(|last| *last >= matrix.number) {
        return Err(wrong(MovingFailure::Number { found: matrix.number, last }));
    }
    Ok(Some(matrix))
}

/// The next message; a long one is decoded where no other call waits for it.
async fn message(messages: &mut Streaming<PlanMovingRequest>, ranks: u32) -> Result<Option<PlanMovingRequest>, Status> {
    // The runtime of a single thread has nobody to take over its other tasks.
    let is_large = ranks >= LARGE_RANKS && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    let mut message = pin!(messages.message());
    poll_fn(|context| match is_large {
        true => block_in_place(|| message.as_mut().poll(context)),
        false => message.as_mut().poll(context),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(number: u64) -> MovingMatrix {
        MovingMatrix { number, bytes: Vec::new() }
    }

    async fn next(inbox: &Inbox) -> Option<(u64, u64)> {
        match inbox.next().await.unwrap() {
            Next::Matrix { matrix, skipped } => Some((matrix.number, skipped)),
            Next::End => None,
        }
    }

    #[tokio::test]
    async fn the_latest_wins_and_those_before_it_are_counted() {
        let inbox = Inbox::default();
        (1..=3).for_each(|number| inbox.put(matrix(number)));
        assert_eq!(next(&inbox).await, Some((3, 2)));
        inbox.put(matrix(4));
        inbox.state.lock().end = Some(Ok(()));
        assert_eq!(next(&inbox).await, Some((4, 0)));
        assert_eq!(next(&inbox).await, None);
    }

    #[tokio::test]
    async fn what_is_wrong_ends_a_stream_whatever_waits() {
        let inbox = Inbox::default();
        inbox.put(matrix(1));
        inbox.state.lock().end = Some(Err(wrong(MovingFailure::Empty)));
        assert_eq!(inbox.next().await.err().map(|status| status.code()), Some(tonic::Code::InvalidArgument));
    }
}
