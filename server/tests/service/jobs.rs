//! Operations: jobs seen from outside, detached and cancelled ones among them.

use std::num::NonZeroUsize;
use std::time::Duration;

use canopy_proto::v1::operation::Result as Ended;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{
    CancelOperationRequest, GetOperationRequest, ListOperationsRequest, Operation, OperationState, PlanRequest,
    PlanSpec, Priority, WaitOperationRequest,
};
use canopy_wire::reason_of;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::bare::answered;
use crate::cached::check_refused;
use crate::support::{GatedPlanner, TestServer, request};

fn operations(server: &TestServer) -> OperationsClient<Channel> {
    OperationsClient::new(server.channel.clone())
}

async fn prefetch(server: &TestServer, expression: &str) -> Operation {
    server.client().prefetch_plan(request(expression).into_prefetch()).await.unwrap().into_inner()
}

/// Waits for the end, without a time-out of its own.
async fn wait(server: &TestServer, name: &str) -> Operation {
    let request = WaitOperationRequest { name: name.to_owned(), timeout: None };
    operations(server).wait_operation(request).await.unwrap().into_inner()
}

fn state(operation: &Operation) -> OperationState {
    operation.metadata.as_ref().unwrap().state()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefetch_returns_at_once_and_its_job_goes_on_alone() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let started = prefetch(&server, "ring:6").await;
    assert!(started.name.starts_with("operations/") && !started.done);
    let metadata = started.metadata.unwrap();
    assert_eq!((metadata.priority(), metadata.detached), (Priority::Prefetch, true));
    gate.wait_for(1, 0);
    let request = GetOperationRequest { name: started.name.clone() };
    let running = operations(&server).get_operation(request).await.unwrap().into_inner();
    let metadata = running.metadata.as_ref().unwrap();
    assert_eq!((state(&running), metadata.waiters, &*metadata.progress.as_ref().unwrap().stage), {
        (OperationState::Running, 0, "trees")
    });
    let timeout = Some(prost_types::Duration { seconds: 0, nanos: 20_000_000 });
    let request = WaitOperationRequest { name: started.name.clone(), timeout };
    assert!(!operations(&server).wait_operation(request).await.unwrap().into_inner().done);
    gate.open();
    let ended = wait(&server, &started.name).await;
    assert_eq!((ended.done, state(&ended)), (true, OperationState::Succeeded));
    let Some(Ended::Response(reply)) = ended.result else { panic!("it has a plan") };
    assert!(reply.plan.unwrap().artifacts[0].content.is_none());
    server.client().look_up_plan(crate::support::request("ring:6").into_look_up()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_prefetch_that_fails_says_why_and_a_bad_one_is_refused_at_once() {
    let server = TestServer::start().await;
    let failed = prefetch(&server, "nonsense:6").await;
    let ended = wait(&server, &failed.name).await;
    assert_eq!(state(&ended), OperationState::Failed);
    let Some(Ended::Error(error)) = ended.result else { panic!("it has none") };
    assert_eq!((error.code, &*reason_of(&error)), (Code::InvalidArgument as i32, "TOPOLOGY_MALFORMED"));
    let refused = server.client().prefetch_plan(PlanSpec::default().into_prefetch()).await;
    check_refused(refused, Code::InvalidArgument, "FIELD_MISSING", "spec.topology");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_operation_ends_for_all_who_wait() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut events = server.client().stream_plan(request("ring:6").into_plan()).await.unwrap().into_inner();
    let Some(Event::Accepted(accepted)) = events.message().await.unwrap().unwrap().event else { panic!("accepted") };
    gate.wait_for(1, 0);
    let cancel = CancelOperationRequest { name: accepted.operation.clone(), request_id: String::new() };
    let ended = operations(&server).cancel_operation(cancel.clone()).await.unwrap().into_inner();
    assert_eq!(state(&ended), OperationState::Cancelled);
    gate.wait_for(1, 1);
    let status = loop {
        match events.message().await {
            Ok(event) => assert!(event.is_some(), "it ends with a refusal"),
            Err(status) => break status,
        }
    };
    let reason = status.get_error_details().error_info().unwrap().reason.clone();
    assert_eq!((status.code(), &*reason), (Code::Aborted, "OPERATION_CANCELLED"));
    let again = operations(&server).cancel_operation(cancel).await.unwrap().into_inner();
    // The call that waited may have left in between.
    assert_eq!((state(&again), again.result), (OperationState::Cancelled, ended.result), "an end is the end");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_request_outlives_its_deadline_and_tells_its_operation() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut asked = Request::new(PlanRequest { detached: true, ..request("ring:6").into_plan() });
    asked.set_timeout(Duration::from_secs(4));
    let status = answered(server.bare().await.plan(asked)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let name = status.get_error_details().error_info().unwrap().metadata["operation"].clone();
    gate.open();
    assert_eq!(state(&wait(&server, &name).await), OperationState::Succeeded);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_listed_newest_first_in_pages_and_by_filter() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|options| options.worker_count = NonZeroUsize::MIN, planner).await;
    let mut names = Vec::new();
    for expression in ["ring:4", "ring:5", "ring:6"] {
        names.insert(0, prefetch(&server, expression).await.name);
    }
    gate.wait_for(1, 0);
    let list = |page_token: String, filter: &str| {
        let request =
            ListOperationsRequest { page_size: 2, page_token, filter: filter.to_owned(), order_by: String::new() };
        let mut client = operations(&server);
        async move { client.list_operations(request).await.map(tonic::Response::into_inner) }
    };
    let first = list(String::new(), "detached=true").await.unwrap();
    let second = list(first.next_page_token.clone(), "detached=true").await.unwrap();
    let listed: Vec<_> = first.operations.iter().chain(&second.operations).map(|one| one.name.clone()).collect();
    assert_eq!((listed, &*second.next_page_token), (names.clone(), ""));
    // Jobs that are being read run, too, for a moment.
    let running = loop {
        let filter = "state=running AND priority=prefetch AND collective=allgather";
        let running = list(String::new(), filter).await.unwrap().operations;
        if running.len() == 1 {
            break running;
        }
        tokio::task::yield_now().await;
    };
    // Two readers: the first to arrive need not be the first to be planned.
    assert!(names.contains(&running[0].name), "{running:?}");
    assert!(list(String::new(), "priority=repair").await.unwrap().operations.is_empty());
    check_refused(list(String::new(), "state=idle").await, Code::InvalidArgument, "FILTER_SYNTAX", "filter");
    check_refused(list("00".to_owned(), "").await, Code::InvalidArgument, "PAGE_TOKEN_INVALID", "page_token");
    gate.open();
    for name in &names {
        wait(&server, name).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn unknown_operations_and_bad_timeouts_are_refused() {
    let server = TestServer::start().await;
    for (name, code, reason) in [
        ("", Code::InvalidArgument, "NAME_INVALID"),
        ("operations/", Code::InvalidArgument, "NAME_INVALID"),
        ("operations/0123456789abcdef-1", Code::NotFound, "OPERATION_UNKNOWN"),
        ("plans/1-1", Code::InvalidArgument, "NAME_INVALID"),
    ] {
        let at = if code == Code::NotFound { name } else { "name" };
        let name = name.to_owned();
        let refused = operations(&server).get_operation(GetOperationRequest { name: name.clone() }).await;
        check_refused(refused, code, reason, at);
        let refused = operations(&server)
            .cancel_operation(CancelOperationRequest { name: name.clone(), request_id: String::new() })
            .await;
        check_refused(refused, code, reason, at);
        let wanted = WaitOperationRequest { name: name.clone(), timeout: None };
        check_refused(operations(&server).wait_operation(wanted).await, code, reason, at);
    }
    let timeout = Some(prost_types::Duration { seconds: -1, nanos: 0 });
    let refused = operations(&server).wait_operation(WaitOperationRequest { name: String::new(), timeout }).await;
    check_refused(refused, Code::InvalidArgument, "TIMEOUT_INVALID", "timeout");
    server.stop().await;
}
