//! The operators' services: cached plans, the server's state, and its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    Collective, CollectiveSpec, DrainRequest, EvictPlansRequest, GetQueueRequest, GetStatusRequest, ListPlansRequest,
    ListPlansResponse, PinPlanRequest, PlanSpec, Priority, UnpinPlanRequest,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::cached::check_refused;
use crate::support::{GatedPlanner, TestServer, request};

fn plans(server: &TestServer) -> PlansClient<Channel> {
    PlansClient::new(server.channel.clone())
}

fn admin(server: &TestServer) -> ServerClient<Channel> {
    ServerClient::new(server.channel.clone())
}

async fn list(server: &TestServer, request: ListPlansRequest) -> Result<ListPlansResponse, Status> {
    plans(server).list_plans(request).await.map(Response::into_inner)
}

fn by(filter: &str, order_by: &str) -> ListPlansRequest {
    ListPlansRequest { filter: filter.to_owned(), order_by: order_by.to_owned(), ..ListPlansRequest::default() }
}

/// Makes plans of rings and one allreduce; ids in order of the ranks.
async fn fill(server: &TestServer) -> Vec<String> {
    let mut ids = Vec::new();
    for ranks in 3..8 {
        let reply = server.client().plan(request(&format!("ring:{ranks}")).into_plan()).await.unwrap().into_inner();
        ids.push(reply.plan.unwrap().name);
    }
    let kind = Collective::Allreduce.into();
    let allreduce = PlanSpec { collective: Some(CollectiveSpec { kind, root: None }), ..request("ring:8") };
    ids.push(server.client().plan(allreduce.into_plan()).await.unwrap().into_inner().plan.unwrap().name);
    ids
}

fn ids(reply: &ListPlansResponse) -> Vec<String> {
    reply.plans.iter().map(|plan| plan.name.clone()).collect()
}

#[tokio::test]
async fn plans_are_listed_by_filter_and_order_in_pages() {
    let server = TestServer::start().await;
    let made = fill(&server).await;
    server.client().look_up_plan(request("ring:5").into_look_up()).await.unwrap();
    let all = list(&server, by("", "")).await.unwrap();
    assert_eq!((all.total_size, ids(&all).into_iter().collect()), (6, made.iter().cloned().collect::<BTreeSet<_>>()));
    assert!(ids(&all).is_sorted());
    let one = &all.plans[0];
    assert!(
        one.size_bytes > 0 && one.create_time.is_some() && one.content_key.starts_with(&one.name["plans/".len()..])
    );
    assert_eq!(ids(&list(&server, by("", "ranks")).await.unwrap()), made);
    let falling = list(&server, by("collective=allgather AND ranks>=4", "ranks desc")).await.unwrap();
    assert_eq!(ids(&falling), [&*made[4], &made[3], &made[2], &made[1]]);
    let used = list(&server, by("hits>0", "")).await.unwrap();
    assert_eq!((ids(&used), used.plans[0].hits), (vec![made[2].clone()], 1));
    assert_eq!(list(&server, by("optimality<1", "")).await.unwrap().total_size, 0);
    for order_by in ["", "ranks desc"] {
        let (mut token, mut seen) = (String::new(), Vec::new());
        loop {
            let request = ListPlansRequest { page_size: 4, page_token: token, ..by("", order_by) };
            let page = list(&server, request).await.unwrap();
            assert_eq!(page.total_size, 6);
            seen.extend(ids(&page));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, ids(&list(&server, by("", order_by)).await.unwrap()), "{order_by}");
    }
    let refused = |request| list(&server, request);
    check_refused(refused(by("size=1", "")).await, Code::InvalidArgument, "FILTER_SYNTAX", "filter");
    check_refused(refused(by("", "size")).await, Code::InvalidArgument, "ORDER_SYNTAX", "order_by");
    let large = ListPlansRequest { page_size: 1001, ..ListPlansRequest::default() };
    check_refused(refused(large).await, Code::InvalidArgument, "PAGE_SIZE_INVALID", "page_size");
    let foreign = ListPlansRequest { page_token: "abcd".to_owned(), ..ListPlansRequest::default() };
    check_refused(refused(foreign).await, Code::InvalidArgument, "PAGE_TOKEN_INVALID", "page_token");
    server.stop().await;
}

#[tokio::test]
async fn pinned_plans_stay_when_others_are_evicted() {
    let server = TestServer::start().await;
    let made = fill(&server).await;
    let name = || made[1].clone();
    let pinned =
        plans(&server).pin_plan(PinPlanRequest { name: name(), request_id: String::new() }).await.unwrap().into_inner();
    assert!(pinned.pinned && pinned.name == name());
    let evict = |request: EvictPlansRequest| {
        let mut client = plans(&server);
        async move { client.evict_plans(request).await.map(Response::into_inner) }
    };
    let small = EvictPlansRequest { filter: "ranks<=4".to_owned(), ..EvictPlansRequest::default() };
    let asked = evict(EvictPlansRequest { validate_only: true, ..small.clone() }).await.unwrap();
    assert_eq!((asked.evicted, asked.pinned, list(&server, by("", "")).await.unwrap().total_size), (1, 1, 6));
    let done = evict(small.clone()).await.unwrap();
    assert_eq!(done, asked);
    assert!(done.freed_bytes > 0);
    assert_eq!(ids(&list(&server, by("ranks<=4", "")).await.unwrap()), [name()]);
    plans(&server).unpin_plan(UnpinPlanRequest { name: name(), request_id: String::new() }).await.unwrap();
    let names = vec![name(), made[2].clone(), name()];
    let done = evict(EvictPlansRequest { names: names.clone(), ..EvictPlansRequest::default() }).await.unwrap();
    assert_eq!((done.evicted, done.pinned), (2, 0));
    let gone = evict(EvictPlansRequest { names: names.clone(), ..EvictPlansRequest::default() }).await;
    check_refused(gone, Code::NotFound, "PLAN_UNKNOWN", &name());
    let neither = evict(EvictPlansRequest::default()).await;
    check_refused(neither, Code::InvalidArgument, "EVICTION_TARGET_INVALID", "filter");
    let both = evict(EvictPlansRequest { names, ..small }).await;
    check_refused(both, Code::InvalidArgument, "EVICTION_TARGET_INVALID", "filter");
    for (name, code, reason) in
        [(name(), Code::NotFound, "PLAN_UNKNOWN"), ("x".to_owned(), Code::InvalidArgument, "NAME_INVALID")]
    {
        let at = if code == Code::NotFound { name.as_str() } else { "name" };
        let refused = plans(&server).pin_plan(PinPlanRequest { name: name.clone(), request_id: String::new() }).await;
        check_refused(refused, code, reason, at);
        let refused =
            plans(&server).unpin_plan(UnpinPlanRequest { name: name.clone(), request_id: String::new() }).await;
        check_refused(refused, code, reason, at);
    }
    // What was evicted is made again.
    let again = server.client().plan(request("ring:4").into_plan()).await.unwrap().into_inner();
    assert_eq!(again.plan.unwrap().name, made[1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_queue_tell_what_there_is() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    server.client().prefetch_plan(request("ring:4").into_prefetch()).await.unwrap();
    gate.wait_for(1, 0);
    let queue = admin(&server).get_queue(GetQueueRequest {}).await.unwrap().into_inner();
    assert_eq!((queue.waiting, queue.length_max, queue.operations.len()), (0, 64, 1));
    let priorities: Vec<_> = queue.priorities.iter().map(|one| (one.priority(), one.waiting, one.running)).collect();
    let idle = [(Priority::Repair, 0, 0), (Priority::JobStart, 0, 0), (Priority::Interactive, 0, 0)];
    assert_eq!(priorities, [&idle[..], &[(Priority::Prefetch, 0, 1)]].concat());
    assert!(queue.held_bytes > 0 && queue.held_bytes < queue.held_bytes_max);
    gate.open();
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
    let status = admin(&server).get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((&*status.version, status.draining), (env!("CARGO_PKG_VERSION"), false));
    assert_eq!(status.algorithms, canopy_baselines::algorithms().map(|one| one.name()).collect::<Vec<_>>());
    assert_eq!(status.formats.iter().map(|one| one.profiles.len()).collect::<Vec<_>>(), [0, 1, 3, 1, 1]);
    let (limits, counts) = (status.limits.unwrap(), status.counts.unwrap());
    assert_eq!((limits.nodes_max, limits.queue_length_max, limits.workers), (1000, 64, 2));
    assert_eq!((counts.plans, counts.pinned_plans, counts.syntheses, counts.corruptions), (1, 0, 1, 0));
    assert!(counts.plan_bytes > 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_refuses_new_work_and_finishes_detached_jobs_too() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    server.client().prefetch_plan(request("ring:4").into_prefetch()).await.unwrap();
    gate.wait_for(1, 0);
    let reply = admin(&server).drain(DrainRequest::default()).await.unwrap().into_inner();
    assert_eq!(reply.unfinished, 1);
    let refused = server.client().plan(request("ring:5").into_plan()).await;
    check_refused(refused, Code::Unavailable, "DRAINING", "");
    assert!(admin(&server).get_status(GetStatusRequest {}).await.unwrap().into_inner().draining);
    gate.open();
    // Nobody waited for the job, and its plan is stored all the same.
    let directory = server.stop().await;
    let server = TestServer::start_in(directory, |_| {}, Arc::new(Pipeline::new(TopologyLimits::STANDARD))).await;
    server.client().look_up_plan(request("ring:4").into_look_up()).await.unwrap();
    server.stop().await;
}
