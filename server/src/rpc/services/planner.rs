//! The service `Planner`: decode, call one method, encode. No policy of planning lives here.

mod bundle;
mod groups;
mod lasting;
mod moving;
mod session;

use canopy_proto::v1::planner_server::Planner;
use canopy_proto::v1::{
    LookUpPlanRequest, Operation, PlanBundleRequest, PlanBundleResponse, PlanEvent, PlanGroupsEvent, PlanGroupsRequest,
    PlanMovingEvent, PlanMovingRequest, PlanRequest, PlanResponse, PrefetchPlanRequest,
};
use tokio::sync::mpsc;
use tonic::{Code, Request, Response, Status, Streaming};

use self::lasting::Lasting;
use crate::call;
use crate::drain::DrainHandle;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::call_pool::{CallPool, Repeated};
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::decode::Method;
use crate::rpc::shared::deliver::{INLINE_BYTES_MAX, Sink};
use crate::rpc::shared::events::{EventStream, STREAM_BUFFER};
use crate::rpc::shared::outgoing::PROGRESS_INTERVAL;
use crate::rpc::shared::parts::{self};
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::resolve::Resolver;
use crate::rpc::shared::status::call_status;
use crate::store::StoreError;
use crate::store::receipts::read_id;
use crate::tasks;

/// The service.
#[derive(Clone)]
pub(crate) struct PlannerService {
    admission: Admission,
    /// Jobs whose groups are planned again when faults come.
    following: Lasting,
    /// Streams of traffic that changes.
    moving: Lasting,
}

impl PlannerService {
    /// A service whose streams end when the drain begins.
    pub(crate) fn new(admission: Admission, drain: &DrainHandle) -> Self {
        let lasting = || Lasting::new(drain.clone());
        Self { admission, following: lasting(), moving: lasting() }
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
}

/// A request whose fields are those of its `spec`, but for its terms.
fn of_spec<Q: Into<PlanQuery>>(request: Request<Q>) -> Request<PlanQuery> {
    call::has_fields_in("spec");
    request.map(Into::into)
}

/// Notes the id of a request for the logs.
fn note_id(request: &Request<PlanRequest>) -> Result<(), Status> {
    let id = &request.get_ref().request_id;
    if !id.is_empty() {
        read_id(id).map_err(|error| call_status(&error.into()))?;
        call::has_request_id(id);
    }
    Ok(())
}

#[tonic::async_trait]
impl Planner for PlannerService {
    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        note_id(&request)?;
        let answer = self.admission.answer(of_spec(request), Method::Plan).await?;
        Ok(parts::one(PlanResponse::default(), answer.parts(INLINE_BYTES_MAX)))
    }

    type StreamPlanStream = EventStream<PlanEvent>;

    async fn stream_plan(&self, request: Request<PlanRequest>) -> Result<Response<Self::StreamPlanStream>, Status> {
        note_id(&request)?;
        let (headers, detached) = (request.metadata().clone(), request.get_ref().detached);
        let call = self.admission.admit(of_spec(request), Method::StreamPlan).await?;
        if detached {
            self.admission.write_down(&headers, &call).await?;
        }
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("plan-stream", call.stream(Sink::new(sender), PROGRESS_INTERVAL));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }

    async fn look_up_plan(&self, request: Request<LookUpPlanRequest>) -> Result<Response<PlanResponse>, Status> {
        let answer = self.admission.answer(of_spec(request), Method::LookUpPlan).await;
        let answer = answer.map_err(|status| self.certain(status))?;
        Ok(parts::one(PlanResponse::default(), answer.parts(0)))
    }

    async fn prefetch_plan(&self, request: Request<PrefetchPlanRequest>) -> Result<Response<Operation>, Status> {
        let (headers, wanted) = (request.metadata().clone(), request.get_ref());
        let call = (&headers, &*wanted.request_id, wanted);
        let open = match self.pool().repeated(Method::PrefetchPlan.name(), call).await? {
            Repeated::Answered(operation) => return Ok(Response::new(operation)),
            Repeated::Open(open) => open,
        };
        let operation = self.admission.leave(of_spec(request)).await?;
        self.pool().keep(&headers, open, &operation).await;
        Ok(Response::new(operation))
    }

    async fn plan_bundle(&self, request: Request<PlanBundleRequest>) -> Result<Response<PlanBundleResponse>, Status> {
        bundle::plan_bundle(self, request).await.map(Response::new)
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
}
