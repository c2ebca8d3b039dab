//! A server that answers two calls as a test says, and refuses every other.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use canopy_proto::v1::planner_server::{Planner, PlannerServer};
use canopy_proto::v1::plans_server::{Plans, PlansServer};
use canopy_proto::v1::{
    ArchiveEvent, EvictPlansRequest, EvictPlansResponse, ExplainPlanRequest, ExportPlansRequest, FetchPlanFileEvent,
    FetchPlanFileRequest, GetPlanRequest, GetPlanSummaryRequest, ImportPlansRequest, ImportPlansResponse,
    ListPlansRequest, ListPlansResponse, LookUpPlanRequest, Operation, PinPlanRequest, Plan, PlanBundleRequest,
    PlanBundleResponse, PlanEvent, PlanExplanation, PlanGroupsEvent, PlanGroupsRequest, PlanMovingEvent,
    PlanMovingRequest, PlanRequest, PlanResponse, PlanSummary, PrefetchPlanRequest, SimulatePlanRequest,
    SimulatePlanResponse, UnpinPlanRequest,
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
    fn fetched(&self, _: FetchPlanFileRequest) -> Result<Events<FetchPlanFileEvent>, Status> {
        Err(unscripted())
    }
}

/// Serves a script at a socket, which is there when this returns.
pub(crate) fn serve<S: Script>(
    script: S,
    socket: &Path,
) -> impl Future<Output = Result<(), tonic::transport::Error>> + use<S> {
    let listener = UnixListenerStream::new(tokio::net::UnixListener::bind(socket).unwrap());
    let script = Arc::new(Scripted(script));
    let server = tonic::transport::Server::builder().add_service(PlannerServer::from_arc(Arc::clone(&script)));
    server.add_service(PlansServer::from_arc(script)).serve_with_incoming(listener)
}

fn unscripted() -> Status {
    Status::unimplemented("not in the script")
}

struct Scripted<S>(S);

#[tonic::async_trait]
impl<S: Script> Planner for Scripted<S> {
    async fn plan(&self, _: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        Err(unscripted())
    }

    type StreamPlanStream = Events<PlanEvent>;

    async fn stream_plan(&self, _: Request<PlanRequest>) -> Result<Response<Self::StreamPlanStream>, Status> {
        self.0.planned().map(Response::new)
    }

    async fn plan_bundle(&self, _: Request<PlanBundleRequest>) -> Result<Response<PlanBundleResponse>, Status> {
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

    async fn look_up_plan(&self, _: Request<LookUpPlanRequest>) -> Result<Response<PlanResponse>, Status> {
        Err(unscripted())
    }

    async fn prefetch_plan(&self, _: Request<PrefetchPlanRequest>) -> Result<Response<Operation>, Status> {
        Err(unscripted())
    }
}

#[tonic::async_trait]
impl<S: Script> Plans for Scripted<S> {
    async fn get_plan(&self, _: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        Err(unscripted())
    }

    async fn list_plans(&self, _: Request<ListPlansRequest>) -> Result<Response<ListPlansResponse>, Status> {
        Err(unscripted())
    }

    async fn get_plan_summary(&self, _: Request<GetPlanSummaryRequest>) -> Result<Response<PlanSummary>, Status> {
        Err(unscripted())
    }

    async fn explain_plan(&self, _: Request<ExplainPlanRequest>) -> Result<Response<PlanExplanation>, Status> {
        Err(unscripted())
    }

    async fn simulate_plan(&self, _: Request<SimulatePlanRequest>) -> Result<Response<SimulatePlanResponse>, Status> {
        Err(unscripted())
    }

    async fn pin_plan(&self, _: Request<PinPlanRequest>) -> Result<Response<PlanSummary>, Status> {
        Err(unscripted())
    }

    async fn unpin_plan(&self, _: Request<UnpinPlanRequest>) -> Result<Response<PlanSummary>, Status> {
        Err(unscripted())
    }

    async fn evict_plans(&self, _: Request<EvictPlansRequest>) -> Result<Response<EvictPlansResponse>, Status> {
        Err(unscripted())
    }

    type ExportPlansStream = Events<ArchiveEvent>;

    async fn export_plans(&self, _: Request<ExportPlansRequest>) -> Result<Response<Self::ExportPlansStream>, Status> {
        Err(unscripted())
    }

    async fn import_plans(
        &self,
        _: Request<Streaming<ImportPlansRequest>>,
    ) -> Result<Response<ImportPlansResponse>, Status> {
        Err(unscripted())
    }

    type FetchPlanFileStream = Events<FetchPlanFileEvent>;

    async fn fetch_plan_file(
        &self,
        request: Request<FetchPlanFileRequest>,
    ) -> Result<Response<Self::FetchPlanFileStream>, Status> {
        self.0.fetched(request.into_inner()).map(Response::new)
    }
}
