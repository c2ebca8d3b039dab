//! Tenants: plans of those that are isolated are there for nobody else.

use std::sync::Arc;

use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    CacheOutcome, EvictPlansRequest, ExplainPlanRequest, ExportPlansRequest, FetchPlanFileRequest, GetOperationRequest,
    GetPlanRequest, GetPlanSummaryRequest, ListOperationsRequest, ListPlansRequest, ListPlansResponse, OutputFormat,
    PinPlanRequest, PlanResponse, PlanSpec, SimulatePlanRequest, archive_event::Event,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::{Code, Request};

use crate::cached::check_refused;
use crate::support::{TestServer, request};

/// A server that keeps the plans of `red` apart.
async fn start() -> TestServer {
    let planner = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    TestServer::start_with(|options| options.isolated_tenants = vec!["red".parse().unwrap()], planner).await
}

/// A call of a tenant; of nobody where the name is empty.
fn by<T>(tenant: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if !tenant.is_empty() {
        request.metadata_mut().insert("x-canopy-tenant", tenant.parse().unwrap());
    }
    request
}

async fn planned(server: &TestServer, tenant: &str, asked: PlanSpec) -> (String, CacheOutcome) {
    let reply: PlanResponse =
        server.client().plan(by(tenant, asked).map(PlanSpec::into_plan)).await.unwrap().into_inner();
    let cache = reply.cache();
    (reply.plan.unwrap().name, cache)
}

async fn listed(server: &TestServer, tenant: &str, filter: &str) -> ListPlansResponse {
    let wanted = ListPlansRequest { filter: filter.to_owned(), ..ListPlansRequest::default() };
    PlansClient::new(server.channel.clone()).list_plans(by(tenant, wanted)).await.unwrap().into_inner()
}

#[tokio::test]
async fn the_plans_of_an_isolated_tenant_are_there_for_nobody_else() {
    let server = start().await;
    let (red, first) = planned(&server, "red", request("ring:5")).await;
    let (shared, second) = planned(&server, "blue", request("ring:5")).await;
    assert_ne!(red, shared);
    assert_eq!((first, second), (CacheOutcome::Miss, CacheOutcome::Miss));
    // Tenants that are not isolated share, with each other and with callers that name none.
    for (tenant, plan) in [("red", &red), ("", &shared), ("blue", &shared), ("green", &shared)] {
        assert_eq!(planned(&server, tenant, request("ring:5")).await, (plan.clone(), CacheOutcome::Hit), "{tenant}");
    }
    let lookup = server
        .client()
        .look_up_plan(by("red", request("ring:5")).map(PlanSpec::into_look_up))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(lookup.plan.unwrap().provenance.unwrap().tenant, "red");

    let get = GetPlanRequest { name: red.clone(), placement: None };
    let explain = ExplainPlanRequest { name: red.clone(), placement: None };
    let simulate = SimulatePlanRequest { name: red.clone(), ..SimulatePlanRequest::default() };
    let format = OutputFormat::Json.into();
    let fetch = FetchPlanFileRequest { name: red.clone(), format, ..FetchPlanFileRequest::default() };
    let pin = PinPlanRequest { name: red.clone(), request_id: String::new() };
    let evict = EvictPlansRequest { names: vec![red.clone()], ..EvictPlansRequest::default() };
    let mut admin = PlansClient::new(server.channel.clone());
    for other in ["", "blue"] {
        let unknown = (Code::NotFound, "PLAN_UNKNOWN", red.as_str());
        let (code, reason, name) = unknown;
        check_refused(server.plans().get_plan(by(other, get.clone())).await, code, reason, name);
        check_refused(server.plans().explain_plan(by(other, explain.clone())).await, code, reason, name);
        check_refused(server.plans().simulate_plan(by(other, simulate.clone())).await, code, reason, name);
        let fetched = server.plans().fetch_plan_file(by(other, fetch.clone())).await;
        check_refused(fetched.map(|_| ()), code, reason, name);
        let summary = GetPlanSummaryRequest { name: red.clone() };
        check_refused(admin.get_plan_summary(by(other, summary)).await, code, reason, name);
        check_refused(admin.pin_plan(by(other, pin.clone())).await, code, reason, name);
        check_refused(admin.evict_plans(by(other, evict.clone())).await, code, reason, name);
        let all =
            EvictPlansRequest { filter: "ranks=5".to_owned(), validate_only: true, ..EvictPlansRequest::default() };
        assert_eq!(admin.evict_plans(by(other, all)).await.unwrap().into_inner().evicted, 1);
        for filter in ["", "ranks=5"] {
            let list = listed(&server, other, filter).await;
            let ids: Vec<&str> = list.plans.iter().map(|plan| plan.name.as_str()).collect();
            assert_eq!((ids, list.total_size), (vec![shared.as_str()], 1));
        }
        assert_eq!(listed(&server, other, "tenant=red").await.total_size, 0);
    }
    server.plans().get_plan(by("red", get)).await.unwrap();
    server.plans().explain_plan(by("red", explain)).await.unwrap();
    server.plans().simulate_plan(by("red", simulate)).await.unwrap();
    server.plans().fetch_plan_file(by("red", fetch)).await.unwrap();
    assert!(admin.pin_plan(by("red", pin)).await.unwrap().into_inner().pinned);
    let list = listed(&server, "red", "").await;
    assert_eq!((list.plans.len(), list.total_size), (2, 2));
    let own = listed(&server, "red", "tenant=red").await;
    assert_eq!((own.plans[0].name.as_str(), own.plans[0].tenant.as_str()), (red.as_str(), "red"));
    server.stop().await;
}

#[tokio::test]
async fn exports_and_operations_show_what_their_caller_may_see() {
    let server = start().await;
    planned(&server, "", request("ring:5")).await;
    let job = server
        .client()
        .prefetch_plan(by("red", request("ring:6")).map(PlanSpec::into_prefetch))
        .await
        .unwrap()
        .into_inner()
        .name;
    planned(&server, "red", request("ring:6")).await;
    let mut operations = OperationsClient::new(server.channel.clone());
    let wanted = GetOperationRequest { name: job.clone() };
    let hidden = operations.get_operation(by("blue", wanted.clone())).await;
    check_refused(hidden, Code::NotFound, "OPERATION_UNKNOWN", &job);
    let seen = operations.get_operation(by("red", wanted)).await.unwrap().into_inner();
    assert_eq!(seen.metadata.unwrap().tenant, "red");
    for (tenant, count) in [("", 0), ("blue", 0), ("red", 1)] {
        let listed =
            operations.list_operations(by(tenant, ListOperationsRequest::default())).await.unwrap().into_inner();
        let own = listed.operations.iter().filter(|operation| operation.name == job).count();
        assert_eq!(own, count, "{tenant}");
        let mut admin = PlansClient::new(server.channel.clone());
        let mut events = admin.export_plans(by(tenant, ExportPlansRequest::default())).await.unwrap().into_inner();
        let Some(Event::Contents(contents)) = events.message().await.unwrap().unwrap().event else { panic!("first") };
        assert_eq!(contents.plans, 1 + count as u64, "{tenant}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_owner_stays_one_when_the_server_isolates_no_more() {
    let server = start().await;
    let (red, _) = planned(&server, "red", request("ring:5")).await;
    let directory = server.stop().await;
    let planner = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let server = TestServer::start_in(directory, |_| {}, planner).await;
    assert_eq!(listed(&server, "", "").await.total_size, 0);
    let get = GetPlanRequest { name: red.clone(), placement: None };
    check_refused(server.plans().get_plan(by("", get.clone())).await, Code::NotFound, "PLAN_UNKNOWN", &red);
    server.plans().get_plan(by("red", get)).await.unwrap();
    assert_eq!(planned(&server, "red", request("ring:5")).await.1, CacheOutcome::Miss);
    server.stop().await;
}

#[tokio::test]
async fn a_header_that_names_no_tenant_is_refused() {
    let server = start().await;
    let bad = server.client().plan(by("a b", request("ring:5")).map(PlanSpec::into_plan)).await;
    check_refused(bad, Code::InvalidArgument, "TENANT_INVALID", "x-canopy-tenant");
    let mut admin = PlansClient::new(server.channel.clone());
    let bad = admin.list_plans(by("*", ListPlansRequest::default())).await;
    check_refused(bad, Code::InvalidArgument, "TENANT_INVALID", "x-canopy-tenant");
    server.stop().await;
}
