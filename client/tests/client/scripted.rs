//! A planner that answers two calls as a test says, and refuses every other.

use std::path::Path;
use std::pin::Pin;

use canopy_proto::v1::planner_server::{Planner, PlannerServer};
use canopy_proto::v1::{
    BoundReply, ExplainPlanRequest, FetchArtifactEvent, FetchArtifactRequest, GetPlanRequest, Operation,
    OrderMachinesReply, OrderMachinesRequest, PathsReply, PathsRequest, Plan, PlanBundleReply, PlanBundleRequest,
    PlanEvent, PlanExplanation, PlanGroupsEvent, PlanGroupsRequest, PlanMovingEvent, PlanMovingRequest, PlanReply,
    PlanRequest, SimulatePlanReply, SimulatePlanRequest, WhatIfEvent, WhatIfRequest,
};
use tokio_stream::Stream;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, Streaming};

/// What comes in answer to a call.
pub(crate) type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What a test says to the calls that are answered by streams.
pub(crate) trait Script: Send + Sync + 'static {
    /// The answer to a request for a plan.
    fn planned(&self) -> Result<Events<PlanEvent>, Status> {
        Err(unscripted())
    }

    /// The answer to a request for a file.
    fn fetched(&self, _: FetchArtifactRequest) -> Result<Events<FetchArtifactEvent>, Status> {
        Err(unscripted())
    }
}

/// Serves a script at a socket, which is there when this returns.
pub(crate) fn serve<S: Script>(
    script: S,
    socket: &Path,
) -> impl Future<Output = Result<(), tonic::transport::Error>> + use<S> {
    let listener = UnixListenerStream::new(tokio::net::UnixListener::bind(socket).unwrap());
    let service = PlannerServer::new(Scripted(script));
    tonic::transport::Server::builder().add_service(service).serve_with_incoming(listener)
}

fn unscripted() -> Status {
    Status::unimplemented("not in the script")
}

struct Scripted<S>(S);

#[tonic::async_trait]
impl<S: Script> Planner for Scripted<S> {
    async fn plan(&self, _: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        Err(unscripted())
    }

    type PlanStreamStream = Events<PlanEvent>;

    async fn plan_stream(&self, _: Request<PlanRequest>) -> Result<Response<Self::PlanStreamStream>, Status> {
        self.0.planned().map(Response::new)
    }

    async fn plan_bundle(&self, _: Request<PlanBundleRequest>) -> Result<Response<PlanBundleReply>, Status> {
        Err(unscripted())
    }

    type PlanGroupsStream = Events<PlanGroupsEvent>;

    async fn plan_groups(&self, _: Request<PlanGroupsRequest>) -> Result<Response<Self::PlanGroupsStream>, Status> {
        Err(unscripted())
    }

    type FollowGroupsStream = Events<PlanGroupsEvent>;

    async fn follow_groups(&self, _: Request<PlanGroupsRequest>) -> Result<Response<Self::FollowGroupsStream>, Status> {
        Err(unscripted())
    }

    type PlanMovingStream = Events<PlanMovingEvent>;

    async fn plan_moving(
        &self,
        _: Request<Streaming<PlanMovingRequest>>,
    ) -> Result<Response<Self::PlanMovingStream>, Status> {
        Err(unscripted())
    }

    async fn bound(&self, _: Request<PlanRequest>) -> Result<Response<BoundReply>, Status> {
        Err(unscripted())
    }

    type WhatIfStream = Events<WhatIfEvent>;

    async fn what_if(&self, _: Request<WhatIfRequest>) -> Result<Response<Self::WhatIfStream>, Status> {
        Err(unscripted())
    }

    async fn order_machines(&self, _: Request<OrderMachinesRequest>) -> Result<Response<OrderMachinesReply>, Status> {
        Err(unscripted())
    }

    async fn paths(&self, _: Request<PathsRequest>) -> Result<Response<PathsReply>, Status> {
        Err(unscripted())
    }

    async fn lookup_plan(&self, _: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        Err(unscripted())
    }

    async fn prefetch(&self, _: Request<PlanRequest>) -> Result<Response<Operation>, Status> {
        Err(unscripted())
    }

    async fn simulate_plan(&self, _: Request<SimulatePlanRequest>) -> Result<Response<SimulatePlanReply>, Status> {
        Err(unscripted())
    }

    async fn get_plan(&self, _: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        Err(unscripted())
    }

    async fn explain_plan(&self, _: Request<ExplainPlanRequest>) -> Result<Response<PlanExplanation>, Status> {
        Err(unscripted())
    }

    type FetchArtifactStream = Events<FetchArtifactEvent>;

    async fn fetch_artifact(
        &self,
        request: Request<FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        self.0.fetched(request.into_inner()).map(Response::new)
    }
}
