//! Requests that carry an id: a repeat gets the first answer and does nothing.

use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, CancelOperationRequest, DrainRequest, EvictPlansRequest, ListLeasesRequest, ListPlansRequest,
    PinPlanRequest, PlanRequest, PrefetchPlanRequest, PutTopologyRequest, UnpinPlanRequest,
};
use canopy_server::Pipeline;
use canopy_store::{Space, StoreError, open_store};
use canopy_topology::TopologyLimits;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{GatedPlanner, TestServer, request};

/// One id per number.
fn id(number: u32) -> String {
    format!("{number:08x}-e89b-42d3-a456-426614174000")
}

#[track_caller]
fn check_reused(status: &Status, id: &str) {
    let details = status.get_error_details();
    assert_eq!((status.code(), &*details.error_info().unwrap().reason), (Code::AlreadyExists, "REQUEST_ID_REUSED"));
    assert_eq!(details.resource_info().unwrap().resource_name, id);
}

#[tokio::test]
async fn a_repeated_change_is_answered_as_the_first_and_not_done_again() {
    let server = TestServer::start().await;
    let name = server.client().plan(request("ring:4").into_plan()).await.unwrap().into_inner().plan.unwrap().name;
    let mut plans = PlansClient::new(server.channel.clone());
    let pin = PinPlanRequest { name: name.clone(), request_id: id(1) };
    let pinned = plans.pin_plan(pin.clone()).await.unwrap().into_inner();
    assert!(pinned.pinned);
    plans.unpin_plan(UnpinPlanRequest { name: name.clone(), request_id: id(2) }).await.unwrap();
    assert_eq!(plans.pin_plan(pin).await.unwrap().into_inner(), pinned);
    let listed = plans.list_plans(ListPlansRequest::default()).await.unwrap().into_inner();
    assert!(!listed.plans[0].pinned, "the repeat did not pin it again");

    let evict = EvictPlansRequest { names: vec![name.clone()], request_id: id(3), ..EvictPlansRequest::default() };
    let evicted = plans.evict_plans(evict.clone()).await.unwrap().into_inner();
    assert_eq!(evicted.evicted, 1);
    // The server has ended and another one answers.
    let directory = server.stop().await;
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
    let mut plans = PlansClient::new(server.channel.clone());
    assert_eq!(plans.evict_plans(evict).await.unwrap().into_inner(), evicted);
    assert_eq!(plans.list_plans(ListPlansRequest::default()).await.unwrap().into_inner().total_size, 1);

    let put = PutTopologyRequest { topology: request("ring:5").topology, request_id: id(4) };
    let mut topologies = NetworksClient::new(server.channel.clone());
    assert!(topologies.put_topology(put.clone()).await.unwrap().into_inner().created);
    assert!(topologies.put_topology(put).await.unwrap().into_inner().created, "the first answer");
}

#[tokio::test]
async fn an_id_belongs_to_one_request() {
    let server = TestServer::start().await;
    let name = server.client().plan(request("ring:4").into_plan()).await.unwrap().into_inner().plan.unwrap().name;
    let mut plans = PlansClient::new(server.channel.clone());
    plans.pin_plan(PinPlanRequest { name: name.clone(), request_id: id(1) }).await.unwrap();
    let other = PinPlanRequest { name: "plans/other".to_owned(), request_id: id(1) };
    check_reused(&plans.pin_plan(other).await.unwrap_err(), &id(1));
    let other = UnpinPlanRequest { name: name.clone(), request_id: id(1) };
    check_reused(&plans.unpin_plan(other).await.unwrap_err(), &id(1));
    let other = PrefetchPlanRequest { request_id: id(1), ..request("ring:4").into_prefetch() };
    check_reused(&server.client().prefetch_plan(other).await.unwrap_err(), &id(1));

    // A refusal has changed nothing, and its id is free.
    let unknown = PinPlanRequest { name: "plans/other".to_owned(), request_id: id(2) };
    plans.pin_plan(unknown).await.unwrap_err();
    plans.pin_plan(PinPlanRequest { name: name.clone(), request_id: id(2) }).await.unwrap();

    for bad in ["1", "not-a-uuid", "123e4567e89b42d3a456426614174000"] {
        let status = plans.pin_plan(PinPlanRequest { name: name.clone(), request_id: bad.to_owned() }).await;
        let details = status.unwrap_err().get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "REQUEST_ID_INVALID");
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "request_id");
    }
    // Equal requests get equal answers, whatever their ids are.
    for number in [3, 4, 3] {
        let asked = PlanRequest { request_id: id(number), ..request("ring:4").into_plan() };
        assert_eq!(server.client().plan(asked).await.unwrap().into_inner().plan.unwrap().name, name);
    }
    let asked = PlanRequest { request_id: "1".to_owned(), ..request("ring:4").into_plan() };
    let status = server.client().plan(asked).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "REQUEST_ID_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_prefetch_and_cancel_name_the_same_operation() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let prefetch = PrefetchPlanRequest { request_id: id(1), ..request("ring:4").into_prefetch() };
    let first = server.client().prefetch_plan(prefetch.clone()).await.unwrap().into_inner();
    let cancel = CancelOperationRequest { name: first.name.clone(), request_id: id(2) };
    let mut operations = OperationsClient::new(server.channel.clone());
    let cancelled = operations.cancel_operation(cancel.clone()).await.unwrap().into_inner();
    assert!(cancelled.done);
    assert_eq!(operations.cancel_operation(cancel).await.unwrap().into_inner(), cancelled);
    assert_eq!(server.client().prefetch_plan(prefetch).await.unwrap().into_inner(), first, "no second job");
    gate.open();
}

#[tokio::test]
async fn a_repeated_drain_does_not_end_the_successor() {
    let server = TestServer::start().await;
    let drain = DrainRequest { request_id: id(1) };
    let mut admin = ServerClient::new(server.channel.clone());
    let first = admin.drain(drain.clone()).await.unwrap().into_inner();
    assert!(server.drain.is_draining());
    drop(admin);
    let directory = server.stop().await;
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    let mut admin = ServerClient::new(server.channel.clone());
    assert_eq!(admin.drain(drain).await.unwrap().into_inner(), first);
    assert!(!server.drain.is_draining());
}

/// Removes every kept answer, as if the server had been killed before it wrote any of them.
async fn lose_answers(directory: &std::path::Path) {
    let spaces = loop {
        // Connections of a server that has ended hold its directory for a moment longer.
        match open_store(directory) {
            Err(StoreError::InUse { .. }) => tokio::task::yield_now().await,
            opened => break opened.unwrap(),
        }
    };
    let answers = spaces.space(Space::Requests);
    let keys = answers.keys(None, 100).unwrap();
    assert!(!keys.is_empty());
    answers.remove(&keys).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_id_is_one_lease_also_where_its_answer_was_lost_in_a_crash() {
    let server = TestServer::start().await;
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
    let asked = AcquireLeaseRequest {
        job: "17".to_owned(),
        specs: vec![request("ring:4")],
        request_id: id(1),
        ..AcquireLeaseRequest::default()
    };
    let acquired = LeasesClient::new(server.channel.clone()).acquire_lease(asked.clone()).await.unwrap().into_inner();
    let directory = server.stop().await;
    lose_answers(directory.path()).await;

    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    let mut leases = LeasesClient::new(server.channel.clone());
    for _ in 0..2 {
        assert_eq!(leases.acquire_lease(asked.clone()).await.unwrap().into_inner(), acquired);
        assert_eq!(leases.list_leases(ListLeasesRequest::default()).await.unwrap().into_inner().total_size, 1);
    }
    let directory = server.stop().await;
    lose_answers(directory.path()).await;
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    let mut leases = LeasesClient::new(server.channel.clone());
    let other = AcquireLeaseRequest { job: "18".to_owned(), ..asked };
    check_reused(&leases.acquire_lease(other).await.unwrap_err(), &id(1));
}
