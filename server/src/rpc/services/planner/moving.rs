//! `PlanMoving`: an all-to-all whose traffic changes, matrix by matrix.
//!
//! | step | where |
//! |---|---|
//! | how many streams there may be, and how they end | `lasting`, beside this |
//! | messages as they come: the network, then the latest matrix | `inbox` |
//! | the network after the faults that are known now, and the plan of a matrix | `planning` |
//! | what is said of them | `describe` |
//! | one matrix after the other, each on a thread of the pool | here |

mod describe;
mod inbox;
mod planning;

use std::sync::Arc;
use std::time::Instant;

use canopy_proto::v1::{MovingMatrix, PlanMovingRequest};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status, Streaming};

use self::inbox::{Inbox, Next};
use self::planning::Planning;
use super::PlannerService;
use super::lasting::lasting;
use crate::clock;
use crate::failure::CallFailure;
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::outgoing::{Ended, Outgoing};
use crate::rpc::shared::parts::Parts;
use crate::tasks;

/// The name of the method.
const METHOD: &str = "PlanMoving";
/// Begins a stream, which goes on until its caller ends it, says something wrong, or has gone.
pub(super) fn plan_moving(
    service: &PlannerService,
    request: Request<Streaming<PlanMovingRequest>>,
) -> Result<EventStream<Parts>, Status> {
    let arrived = clock::now();
    let (headers, extensions, messages) = request.into_parts();
    let service = service.clone();
    let streams = service.moving.clone();
    let begin = |events| Stream { service, headers, events }.follow(messages);
    lasting(METHOD, &streams, (arrived, &extensions), begin)
}

/// One stream.
struct Stream {
    service: PlannerService,
    headers: MetadataMap,
    events: Outgoing<Parts>,
}

impl Stream {
    async fn follow(self, mut messages: Streaming<PlanMovingRequest>) -> Result<(), Ended> {
        let Some(network) = inbox::network(&mut messages).await? else { return Ok(()) };
        let service = self.service.clone();
        let opened = self.service.pool().computed(self.end(), move |_, seat| {
            let planning = Planning::open(&service, network, &|| seat.is_over())?;
            let tiers = planning.tiers()?;
            Ok((planning, tiers))
        });
        let (mut planning, tiers) = opened.await.unwrap_or_else(|| Err(self.late()))?;
        let ranks = planning.ranks();
        self.events.send(tiers).await?;
        let inbox = Arc::new(Inbox::default());
        let read = tasks::spawn("plan-moving-read", Arc::clone(&inbox).fill(messages, ranks));
        let planned = async {
            while let Next::Matrix { matrix, skipped } = inbox.next().await? {
                planning = self.plan(planning, matrix, skipped).await?;
            }
            Ok(())
        };
        let ended = planned.await;
        drop(read);
        ended
    }

    /// When what begins now must have ended.
    fn end(&self) -> Instant {
        clock::now() + self.service.deadlines().apply(&self.headers).work
    }

    fn late(&self) -> CallFailure {
        let stated = self.service.deadlines().apply(&self.headers).stated;
        CallFailure::Late { deadline_ms: u64::try_from(stated.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Plans a matrix around the faults that are known now, and sends what comes of it.
    async fn plan(&self, mut planning: Planning, matrix: MovingMatrix, skipped: u64) -> Result<Planning, Ended> {
        // A matrix beyond the quota is refused, and the stream goes on.
        let work = self.service.pool().computed_in_turn(self.end(), move |_, seat| {
            let events = planning.next(matrix, skipped, &|| seat.is_over())?;
            Ok((planning, events))
        });
        let (planning, events) = work.await.unwrap_or_else(|| Err(self.late()))?;
        for event in events {
            self.events.send(event).await?;
        }
        Ok(planning)
    }
}
