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

use canopy_proto::v1::{MovingMatrix, PlanMovingRequest};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status, Streaming};

use self::inbox::{Inbox, Next};
use self::planning::Planning;
use super::PlannerService;
use super::lasting::{Lasting, lasting};
use super::stream::{Ended, Outgoing};
use crate::clock;
use crate::drain::DrainHandle;
use crate::rpc::call_pool::CallPool;
use crate::rpc::events::EventStream;
use crate::rpc::parts::Parts;
use crate::rpc::sources::Presence;
use crate::tasks;

/// The name of the method.
const METHOD: &str = "PlanMoving";
/// Matrices that are planned at once; the others wait some milliseconds.
const AT_ONCE: usize = 4;

/// What all streams share.
#[derive(Clone)]
pub(super) struct Streams {
    /// Where matrices are planned.
    pool: CallPool,
    lasting: Lasting,
}

impl Streams {
    pub(super) fn new(pool: &CallPool) -> Self {
        Self { pool: pool.apart(AT_ONCE), lasting: Lasting::new() }
    }

    /// The same with streams that end when this drain begins.
    pub(super) fn draining(self, drain: DrainHandle) -> Self {
        Self { lasting: self.lasting.draining(drain), ..self }
    }
}

/// Begins a stream, which goes on until its caller ends it, says something wrong, or has gone.
pub(super) fn plan_moving(
    service: &PlannerService,
    request: Request<Streaming<PlanMovingRequest>>,
) -> Result<EventStream<Parts>, Status> {
    let arrived = clock::now();
    let (headers, extensions, messages) = request.into_parts();
    let service = service.clone();
    let streams = service.moving.lasting.clone();
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
        // Ends what is computed when the stream ends.
        let presence = Presence::default();
        let gone = presence.ended();
        let service = self.service.clone();
        let opened = self.service.moving.pool.work(&self.headers, move |_| {
            let planning = Planning::open(&service, network, Arc::new(gone))?;
            let tiers = planning.tiers()?;
            Ok((planning, tiers))
        });
        let (mut planning, tiers) = opened.await?;
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

    /// Plans a matrix around the faults that are known now, and sends what comes of it.
    async fn plan(&self, mut planning: Planning, matrix: MovingMatrix, skipped: u64) -> Result<Planning, Ended> {
        let work = self.service.moving.pool.work(&self.headers, move |_| {
            let events = planning.next(matrix, skipped)?;
            Ok((planning, events))
        });
        let (planning, events) = work.await?;
        for event in events {
            self.events.send(event).await?;
        }
        Ok(planning)
    }
}
