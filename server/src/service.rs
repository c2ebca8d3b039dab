//! `canopy.v1.Planner`: decode, hand to the queue, encode. No policy of planning lives here.

mod deadline;
mod decode;
mod deliver;
mod oversize;
mod request_log;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use canopy_proto::v1::planner_server::Planner;
use canopy_proto::v1::{PlanEvent, PlanReply, PlanRequest};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use self::decode::{Decoded, decode};
use self::deliver::{Call, Sink};
use self::request_log::RequestLog;
use crate::clock;
use crate::key::RequestKey;
use crate::queue::Queue;
use crate::status::to_status;
use crate::tasks::{self, Task};

pub(crate) use deadline::DeadlinePolicy;
pub(crate) use oversize::OversizeLayer;

/// Events a stream holds before the one who fills it waits for its reader.
const STREAM_BUFFER: usize = 2;

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct PlannerService {
    queue: Queue,
    deadlines: DeadlinePolicy,
    /// Shortest time between two reports of progress of one stream.
    progress_interval: Duration,
}

impl PlannerService {
    pub(crate) fn new(queue: Queue, deadlines: DeadlinePolicy) -> Self {
        Self { queue, deadlines, progress_interval: Duration::from_millis(100) }
    }

    /// Decodes a request and puts it in line.
    fn admit(&self, request: Request<PlanRequest>, method: &'static str) -> Result<Call, Status> {
        let arrived = clock::now();
        let deadline = self.deadlines.apply(request.metadata());
        let mut log = RequestLog::new(method, arrived);
        let admitted = decode(request.into_inner()).map_err(Into::into).and_then(|decoded| {
            let Decoded { order, minimum_optimality } = decoded;
            let key = RequestKey::of(&order);
            log.describe(&key, &order);
            Ok((key, minimum_optimality, self.queue.submit(key, order)?))
        });
        match admitted {
            Ok((key, minimum_optimality, subscription)) => {
                Ok(Call { arrived, deadline, key, minimum_optimality, subscription, log })
            }
            Err(failure) => {
                let status = to_status(&failure);
                log.failed(&status);
                Err(status)
            }
        }
    }
}

#[tonic::async_trait]
impl Planner for PlannerService {
    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        let call = self.admit(request, "Plan")?;
        call.reply().await.map(Response::new)
    }

    type PlanStreamStream = EventStream;

    async fn plan_stream(&self, request: Request<PlanRequest>) -> Result<Response<EventStream>, Status> {
        let call = self.admit(request, "PlanStream")?;
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("plan-stream", call.stream(Sink::new(sender), self.progress_interval));
        Ok(Response::new(EventStream { events: ReceiverStream::new(receiver), _task: task }))
    }
}

/// The events of one call. Dropping it, as a cancelled call does, ends the task that fills it.
#[derive(Debug)]
pub(crate) struct EventStream {
    events: ReceiverStream<Result<PlanEvent, Status>>,
    _task: Task<()>,
}

impl Stream for EventStream {
    type Item = Result<PlanEvent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.events).poll_next(context)
    }
}
