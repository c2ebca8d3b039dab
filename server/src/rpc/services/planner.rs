//! The service `Planner`: decode, call one method, encode. No policy of planning lives here.

mod bound;
mod bundle;
mod groups;
mod lasting;
mod moving;
mod order;
mod paths;
mod session;
mod simulate;
mod stream;
mod what_if;

use std::time::Duration;

use canopy_proto::v1::fetch_artifact_event::Event;
use canopy_proto::v1::planner_server::Planner;
use canopy_proto::v1::{
    Artifact, BoundReply, ExplainPlanRequest, FetchArtifactEvent, FetchArtifactRequest, GetPlanRequest, Operation,
    OrderMachinesReply, OrderMachinesRequest, PathsReply, PathsRequest, Plan, PlanBundleReply, PlanBundleRequest,
    PlanEvent, PlanExplanation, PlanGroupsEvent, PlanGroupsRequest, PlanMovingEvent, PlanMovingRequest, PlanReply,
    PlanRequest, SimulatePlanReply, SimulatePlanRequest, WhatIfEvent, WhatIfRequest,
};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time;
use tonic::{Code, Request, Response, Status, Streaming};

use self::lasting::Lasting;
use crate::call;
use crate::clock;
use crate::drain::DrainHandle;
use crate::failure::CallFailure;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::cached;
use crate::rpc::shared::cached::ChosenFile;
use crate::rpc::shared::call_pool::{self, CallPool};
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::decode::Method;
use crate::rpc::shared::deliver::{INLINE_BYTES_MAX, STALL_MAX, Sink, pieces};
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::parts::{self, Parts};
use crate::rpc::shared::rank_map;
use crate::rpc::shared::resolve::Resolver;
use crate::rpc::shared::status::call_status;
use crate::store::StoreError;
use crate::store::receipts::{Claim, Open, Repeatable};
use crate::tasks;
use crate::tenant::Viewer;

/// Events a stream holds before the one who fills it waits for its reader.
pub(in crate::rpc) const STREAM_BUFFER: usize = 2;

/// The service.
#[derive(Clone)]
pub(crate) struct PlannerService {
    admission: Admission,
    /// Jobs whose groups are planned again when faults come.
    following: Lasting,
    /// Streams of traffic that changes.
    moving: Lasting,
    simulations: simulate::Simulations,
    /// Shortest time between two reports of progress of one stream.
    progress_interval: Duration,
}

impl PlannerService {
    /// A service whose streams end when the drain begins.
    pub(crate) fn new(admission: Admission, drain: &DrainHandle) -> Self {
        let lasting = || Lasting::new(drain.clone());
        Self {
            simulations: simulate::Simulations::new(&admission.pool),
            admission,
            following: lasting(),
            moving: lasting(),
            progress_interval: Duration::from_millis(100),
        }
    }

    /// Threads and places for the work of its calls.
    const fn pool(&self) -> &CallPool {
        &self.admission.pool
    }

    const fn resolver(&self) -> &Resolver {
        &self.admission.resolver
    }

    const fn deadlines(&self) -> &DeadlinePolicy {
        &self.admission.reader.deadlines
    }

    /// A refusal, but for one by what only the database can say while that cannot be asked.
    fn certain(&self, status: Status) -> Status {
        match self.resolver().replanner.unlearned() {
            Some(reason) if status.code() == Code::NotFound => call_status(&StoreError::Away { reason }.into()),
            _ => status,
        }
    }

    /// Looks for the answer that a prefetch of this id got before. None: it is to be done, and its answer kept.
    async fn repeated(&self, request: &Request<PlanRequest>) -> Result<Result<Operation, Option<Open>>, Status> {
        let wanted = Viewer::of(request.metadata()).map_err(CallFailure::from).and_then(|viewer| {
            let (method, request) = (viewer.method(Method::Prefetch.name()), request.get_ref());
            Ok(Repeatable::new(&method, &request.request_id, request)?)
        });
        let receipts = self.pool().receipts().clone();
        let arrived = clock::now();
        let claimed = self.pool().work(request.metadata(), move |_| match wanted? {
            None => Ok(Err(None)),
            Some(wanted) => match receipts.claim(&wanted)? {
                Claim::Answered(answer) => call_pool::read_answer(&answer).map(Ok),
                Claim::Open(open) => Ok(Err(Some(open))),
            },
        });
        claimed.await.map_err(|failure| {
            call_pool::log(Method::Prefetch.name(), arrived, Some(&failure));
            call_status(&failure)
        })
    }
}

#[tonic::async_trait]
impl Planner for PlannerService {
    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        let answer = self.admission.answer(request, Method::Plan).await?;
        Ok(one(PlanReply::default(), answer.parts(INLINE_BYTES_MAX)))
    }

    type PlanStreamStream = EventStream<PlanEvent>;

    async fn plan_stream(&self, request: Request<PlanRequest>) -> Result<Response<Self::PlanStreamStream>, Status> {
        let (headers, detached) = (request.metadata().clone(), request.get_ref().detached);
        let call = self.admission.admit(request, Method::PlanStream).await?;
        if detached {
            self.admission.write_down(&headers, &call).await?;
        }
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("plan-stream", call.stream(Sink::new(sender), self.progress_interval));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }

    async fn lookup_plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        let answer = self.admission.answer(request, Method::LookupPlan).await;
        let answer = answer.map_err(|status| self.certain(status))?;
        Ok(one(PlanReply::default(), answer.parts(0)))
    }

    async fn prefetch(&self, request: Request<PlanRequest>) -> Result<Response<Operation>, Status> {
        call::has_request_id(&request.get_ref().request_id);
        if request.get_ref().request_id.is_empty() {
            return self.admission.leave(request).await.map(Response::new);
        }
        let open = match self.repeated(&request).await? {
            Ok(operation) => return Ok(Response::new(operation)),
            Err(open) => open,
        };
        let headers = request.metadata().clone();
        let operation = self.admission.leave(request).await?;
        let answer = operation.encode_to_vec();
        let kept = self.pool().work(&headers, move |_| {
            if let Some(open) = open {
                open.keep(answer);
            }
            Ok(())
        });
        // The job is there whether its receipt is or not; a repeat joins it, or finds its plan.
        let _kept = kept.await;
        Ok(Response::new(operation))
    }

    async fn get_plan(&self, request: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        let (headers, _, GetPlanRequest { name, placement }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let found = self.pool().run("GetPlan", &headers, move |records| {
            let plan = call_pool::plan_of(records, &viewer?, &name, false)?;
            rank_map::require(&plan.plan, placement)?;
            let successor = Plan { superseded_by: call_pool::successor(records, &plan)?, ..Plan::default() };
            Ok(Parts::plan(plan.header_sent(), &successor))
        });
        found.await.map(|found| one(Plan::default(), found))
    }

    async fn explain_plan(&self, request: Request<ExplainPlanRequest>) -> Result<Response<PlanExplanation>, Status> {
        let (headers, _, ExplainPlanRequest { name, placement }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let explained = self.pool().run("ExplainPlan", &headers, move |records| {
            let plan = call_pool::plan_of(records, &viewer?, &name, false)?;
            rank_map::require(&plan.plan, placement)?;
            let mut explained = cached::explain(&plan)?;
            explained.plan.get_or_insert_default().superseded_by = call_pool::successor(records, &plan)?;
            Ok(explained)
        });
        explained.await.map(Response::new)
    }

    async fn simulate_plan(
        &self,
        request: Request<SimulatePlanRequest>,
    ) -> Result<Response<SimulatePlanReply>, Status> {
        self.simulations.simulate_plan(request, self.resolver().limits).await.map(Response::new)
    }

    async fn plan_bundle(&self, request: Request<PlanBundleRequest>) -> Result<Response<PlanBundleReply>, Status> {
        bundle::plan_bundle(self, request).await.map(Response::new)
    }

    async fn bound(&self, request: Request<PlanRequest>) -> Result<Response<BoundReply>, Status> {
        bound::bound(self, request).await.map(Response::new)
    }

    async fn paths(&self, request: Request<PathsRequest>) -> Result<Response<PathsReply>, Status> {
        paths::paths(self, request).await.map(Response::new)
    }

    async fn order_machines(
        &self,
        request: Request<OrderMachinesRequest>,
    ) -> Result<Response<OrderMachinesReply>, Status> {
        order::order_machines(self, request).await.map(Response::new)
    }

    type WhatIfStream = EventStream<WhatIfEvent>;

    async fn what_if(&self, request: Request<WhatIfRequest>) -> Result<Response<Self::WhatIfStream>, Status> {
        what_if::what_if(self, request).await.map(Response::new)
    }

    type PlanGroupsStream = EventStream<PlanGroupsEvent>;

    async fn plan_groups(
        &self,
        request: Request<PlanGroupsRequest>,
    ) -> Result<Response<Self::PlanGroupsStream>, Status> {
        groups::plan_groups(self, request).map(Response::new)
    }

    type FollowGroupsStream = EventStream<PlanGroupsEvent>;

    async fn follow_groups(
        &self,
        request: Request<PlanGroupsRequest>,
    ) -> Result<Response<Self::FollowGroupsStream>, Status> {
        groups::follow_groups(self, request).map(Response::new)
    }

    type PlanMovingStream = EventStream<PlanMovingEvent>;

    async fn plan_moving(
        &self,
        request: Request<Streaming<PlanMovingRequest>>,
    ) -> Result<Response<Self::PlanMovingStream>, Status> {
        let events = moving::plan_moving(self, request)?;
        Ok(parts::respond(EventStream::empty(), events))
    }

    type FetchArtifactStream = EventStream<FetchArtifactEvent>;

    async fn fetch_artifact(
        &self,
        request: Request<FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        let (headers, _, request) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let chosen = self.pool().run("FetchArtifact", &headers, move |records| {
            // A transfer that goes on is not another use.
            let plan = call_pool::plan_of(records, &viewer?, &request.plan, request.offset == 0)?;
            rank_map::require(&plan.plan, request.placement.clone())?;
            Ok((cached::choose(&plan, &request)?, call_pool::successor(records, &plan)?))
        });
        let (chosen, superseded_by) = chosen.await?;
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("fetch-artifact", send_file(chosen, superseded_by, sender));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }
}

/// Sends a file: what it is, then its pieces, which share its memory. A reader that takes nothing for a long time is given up.
async fn send_file(file: ChosenFile, superseded_by: String, sender: mpsc::Sender<Result<Parts, Status>>) {
    let ChosenFile { position, artifact, offset } = file;
    let content = artifact.content.clone().unwrap_or_default();
    let header = Event::Artifact(Artifact { content: None, ..artifact });
    let header = Parts::of(&FetchArtifactEvent { event: Some(header), superseded_by });
    for event in std::iter::once(header).chain(pieces(position, content, offset).map(Parts::fetched_piece)) {
        if !matches!(time::timeout(STALL_MAX, sender.send(Ok(event))).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// A response that is one message, in parts.
fn one<T>(shell: T, message: Parts) -> Response<T> {
    parts::respond(shell, tokio_stream::once(Ok(message)))
}
