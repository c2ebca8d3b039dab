//! Requests that are known to have no plan: refused without a search, for a time, and until somebody wants another try.

use std::time::Duration;

use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    ForgetRefusalsRequest, GetStatusRequest, OnMiss, Operation, PlanRequest, PlanSpec, WaitOperationRequest, operation,
    operations_client::OperationsClient,
};
use canopy_server::RefusalOptions;
use canopy_wire::reason_of;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, request};

/// Rank 0 has no links left.
const FALLS_APART: &str = "mesh:2x2,down=00-01+00-10";

/// The reason of a refusal, and what its details say of the cache.
fn reason(refused: &Status) -> (String, Option<String>) {
    let info = refused.get_error_details().error_info().cloned().expect("every refusal says why");
    (info.reason, info.metadata.get("cache").cloned())
}

async fn refused(server: &TestServer, expression: &str) -> Status {
    server.client().plan(request(expression).into_plan()).await.expect_err("it cannot be planned")
}

#[tokio::test]
async fn what_cannot_be_is_searched_for_once_until_it_is_forgotten() {
    let server = TestServer::start().await;
    let first = refused(&server, FALLS_APART).await;
    assert_eq!(reason(&first), ("TOPOLOGY_DISCONNECTED".to_owned(), None));
    for _ in 0..2 {
        let again = refused(&server, FALLS_APART).await;
        assert_eq!(reason(&again), ("TOPOLOGY_DISCONNECTED".to_owned(), Some("negative".to_owned())));
        assert_eq!((again.code(), again.message()), (first.code(), first.message()));
    }
    assert_eq!(server.statistics.synthesis_count(), 1);
    let lookup = server.client().look_up_plan(request(FALLS_APART).into_look_up()).await.unwrap_err();
    assert_eq!(reason(&lookup).0, "PLAN_NOT_CACHED");
    let job: Operation =
        server.client().prefetch_plan(request(FALLS_APART).into_prefetch()).await.unwrap().into_inner();
    let mut operations = OperationsClient::new(server.channel.clone());
    let ended = operations.wait_operation(WaitOperationRequest { name: job.name, timeout: None }).await;
    let Some(operation::Result::Error(error)) = ended.unwrap().into_inner().result else { panic!("it has no plan") };
    assert_eq!(reason_of(&error), "TOPOLOGY_DISCONNECTED");

    let status = ServerClient::new(server.channel.clone()).get_status(GetStatusRequest {}).await;
    let counts = status.unwrap().into_inner().counts.unwrap();
    assert_eq!((counts.syntheses, counts.refusals, counts.refusals_served), (1, 1, 3));
    let mut admin = ServerClient::new(server.channel.clone());
    let forgotten = admin.forget_refusals(ForgetRefusalsRequest::default()).await.unwrap().into_inner();
    assert_eq!(forgotten.forgotten, 1);
    assert_eq!(reason(&refused(&server, FALLS_APART).await).1, None);
    assert_eq!(server.statistics.synthesis_count(), 2);
}

#[tokio::test]
async fn a_plan_may_stand_in_for_one_that_is_known_not_to_be() {
    let server = TestServer::start().await;
    let spec = PlanSpec { max_depth: Some(1), ..request("ring:8") };
    let shallow = PlanRequest { on_miss: OnMiss::Fallback.into(), ..spec.into_plan() };
    for _ in 0..2 {
        let reply = server.client().plan(shallow.clone()).await.unwrap().into_inner();
        assert_eq!(reply.fallback.unwrap().reason, "DEPTH_INFEASIBLE");
    }
    // The search, and the plan that stands in: each once.
    assert_eq!(server.statistics.synthesis_count(), 2);
}

#[tokio::test]
async fn nothing_is_remembered_where_the_time_is_zero() {
    let planner = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let forgetful = RefusalOptions { lifetime: Duration::ZERO, ..RefusalOptions::STANDARD };
    let server = TestServer::start_with(|options| options.refusals = forgetful, std::sync::Arc::new(planner)).await;
    for count in 1..=2 {
        assert_eq!(reason(&refused(&server, FALLS_APART).await).1, None);
        assert_eq!(server.statistics.synthesis_count(), count);
    }
}

/// A deadline says nothing of the request: the next one has a search of its own.
#[tokio::test]
async fn a_deadline_is_not_remembered() {
    let (planner, gate) = crate::support::GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut hurried = tonic::Request::new(request("ring:4"));
    hurried.set_timeout(Duration::from_millis(200));
    let late = crate::bare::answered(server.bare().await.plan(hurried.map(PlanSpec::into_plan))).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    gate.open();
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
}
