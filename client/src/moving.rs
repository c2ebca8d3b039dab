//! Traffic that changes: matrices in, plans out.

use std::time::Duration;

use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::plan_moving_request::Request as Message;
use canopy_proto::v1::{MovingMatrix, MovingNetwork, PlanMovingEvent, PlanMovingRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::calls::answer;
use crate::client::Client;
use crate::error::{ClientError, from_status};

/// Longest message of a plan: one of 1,024 ranks has some 20 MB.
const PLAN_BYTES_MAX: usize = 64 << 20;

/// Where matrices go; dropping it ends the stream in order, once the last one has its plan.
#[derive(Debug)]
pub struct MovingMatrices {
    sender: mpsc::Sender<PlanMovingRequest>,
}

/// What comes back.
#[derive(Debug)]
pub struct MovingEvents {
    stream: Streaming<PlanMovingEvent>,
    deadline: Option<Duration>,
}

impl Client {
    /// Opens a stream on a network, which is described first. It stays open for any time, or for at most `deadline`.
    ///
    /// # Errors
    /// See [`ClientError`]. What is wrong with the network, the events say.
    pub async fn plan_moving(
        &self,
        network: MovingNetwork,
        deadline: Option<Duration>,
    ) -> Result<(MovingMatrices, MovingEvents), ClientError> {
        let mut service = self.planner.clone().max_decoding_message_size(PLAN_BYTES_MAX);
        let (sender, receiver) = mpsc::channel(1);
        // There is room for one.
        let _sent = sender.try_send(PlanMovingRequest { request: Some(Message::Network(network)) });
        let call = service.plan_moving(self.limited(ReceiverStream::new(receiver), deadline));
        let stream = answer(call, deadline).await?;
        Ok((MovingMatrices { sender }, MovingEvents { stream, deadline }))
    }
}

impl MovingMatrices {
    /// Sends a matrix, whose number must be greater than the one before. While one is planned, only the latest waits.
    ///
    /// False: the stream has ended, and its events say why.
    pub async fn send(&self, matrix: MovingMatrix) -> bool {
        self.sender.send(PlanMovingRequest { request: Some(Message::Matrix(matrix)) }).await.is_ok()
    }
}

impl MovingEvents {
    /// The next event of a kind that this client knows; `None` once all matrices have been answered and no more come.
    ///
    /// # Errors
    /// The server ended the stream, or the connection is lost. See [`ClientError`].
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            let message = self.stream.message().await.map_err(|status| from_status(&status, self.deadline))?;
            match message.map(|message| message.event) {
                None => return Ok(None),
                Some(Some(event)) => return Ok(Some(event)),
                // Of a later version.
                Some(None) => {}
            }
        }
    }
}
