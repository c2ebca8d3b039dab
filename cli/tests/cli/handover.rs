//! What happens to a command when the process whose server it joined ends.

use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;

use canopy_proto::v1::planner_server::{Planner, PlannerServer};
use canopy_proto::v1::{
    BoundReply, ExplainPlanRequest, FetchArtifactEvent, FetchArtifactRequest, GetPlanRequest, Operation, PathsReply,
    PathsRequest, Plan, PlanBundleReply, PlanBundleRequest, PlanEvent, PlanExplanation, PlanReply, PlanRequest,
};
use canopy_server::{StoreEngine, open_store};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio_stream::Stream;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use crate::support::{CallPool, Run};

/// Takes every call and never answers it.
struct Silent {
    called: Arc<Notify>,
}

#[tonic::async_trait]
impl Planner for Silent {
    async fn plan(&self, _: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    type PlanStreamStream = Pin<Box<dyn Stream<Item = Result<PlanEvent, Status>> + Send>>;

    async fn plan_stream(&self, _: Request<PlanRequest>) -> Result<Response<Self::PlanStreamStream>, Status> {
        self.called.notify_one();
        Ok(Response::new(Box::pin(tokio_stream::pending())))
    }

    async fn plan_bundle(&self, _: Request<PlanBundleRequest>) -> Result<Response<PlanBundleReply>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn bound(&self, _: Request<PlanRequest>) -> Result<Response<BoundReply>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn paths(&self, _: Request<PathsRequest>) -> Result<Response<PathsReply>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn lookup_plan(&self, _: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn prefetch(&self, _: Request<PlanRequest>) -> Result<Response<Operation>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn get_plan(&self, _: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    async fn explain_plan(&self, _: Request<ExplainPlanRequest>) -> Result<Response<PlanExplanation>, Status> {
        Err(Status::unimplemented("only streams"))
    }

    type FetchArtifactStream = Pin<Box<dyn Stream<Item = Result<FetchArtifactEvent, Status>> + Send>>;

    async fn fetch_artifact(
        &self,
        _: Request<FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        Err(Status::unimplemented("only plans"))
    }
}

#[test]
fn a_command_survives_the_end_of_the_server_it_joined() {
    let desk = CallPool::new();
    let data = desk.path("data");
    let store = open_store(&data, StoreEngine::Sled).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let called = Arc::new(Notify::new());
    let child = runtime.block_on(async {
        let listener = UnixListenerStream::new(UnixListener::bind(data.join("canopy.sock")).unwrap());
        let service = PlannerServer::new(Silent { called: Arc::clone(&called) });
        let server = tonic::transport::Server::builder().add_service(service).serve_with_incoming(listener);
        let mut command = desk.command("plan ring:4 --collective allgather -o plan.json --json");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        tokio::select! {
            _ = server => panic!("the server ended"),
            () = called.notified() => {}
        }
        child
    });
    // As when a process ends: its connections close, its lock is free, and its socket stays behind.
    drop(runtime);
    drop(store);
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(run.object()["cache"], "miss", "the command made the plan itself");
    assert_eq!(desk.names(), ["plan.json"]);
}
