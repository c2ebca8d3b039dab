//! How requests share, wait, run out of time and are given up.

use std::num::NonZeroUsize;
use std::time::Duration;

use canopy_proto::v1::CacheOutcome;
use canopy_proto::v1::plan_event::Event;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::bare::answered;
use crate::support::{GatedPlanner, TestServer, request, spawn, stream};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_equal_requests_cost_one_synthesis() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let mut client = server.client();
            spawn(async move { client.plan(request("ring:6").into_plan()).await.unwrap().into_inner() })
        })
        .collect();
    gate.wait_for(1, 0);
    gate.open();
    let mut outcomes = Vec::new();
    let mut plans = Vec::new();
    for call in calls {
        let reply = call.await.unwrap();
        outcomes.push(reply.cache());
        plans.push(reply.plan.unwrap());
    }
    assert_eq!(server.statistics.synthesis_count(), 1);
    assert!(plans.iter().all(|plan| *plan == plans[0]));
    assert_eq!(outcomes.iter().filter(|&&outcome| outcome == CacheOutcome::Miss).count(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_answered_in_time_and_stops_the_work() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut asked = Request::new(request("ring:6").into_plan());
    // Time enough to begin on a busy machine.
    asked.set_timeout(Duration::from_secs(4));
    let status = stream(&server, asked).await.err().unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((&*info.reason, &*info.metadata["stage"]), ("SOLVER_TIME_LIMIT", "trees"));
    gate.wait_for(1, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_in_the_queue_counts_and_a_short_deadline_is_no_trouble() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|options| options.worker_count = NonZeroUsize::MIN, planner).await;
    let mut client = server.client();
    let busy = spawn(async move { client.plan(request("ring:6").into_plan()).await });
    gate.wait_for(1, 0);
    for timeout_ms in [0, 1, 20, 200] {
        let mut asked = Request::new(request("ring:7").into_plan());
        asked.set_timeout(Duration::from_millis(timeout_ms));
        let status = answered(server.bare().await.plan(asked)).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{timeout_ms} ms: {status:?}");
    }
    gate.open();
    busy.await.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_stops_the_work() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    for (arrived, unary) in [(1, true), (2, false)] {
        let mut client = server.client();
        let call = spawn(async move {
            match unary {
                true => client.plan(request("ring:6").into_plan()).await.map(|_| ()),
                false => {
                    let mut events = client.stream_plan(request("ring:6").into_plan()).await?.into_inner();
                    while events.message().await?.is_some() {}
                    Ok(())
                }
            }
        });
        gate.wait_for(arrived, arrived - 1);
        call.abort();
        gate.wait_for(arrived, arrived);
    }
    assert_eq!(server.statistics.waiting_count(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_says_so_and_when_to_come_back() {
    let (planner, gate) = GatedPlanner::new();
    let one = NonZeroUsize::MIN;
    let server =
        TestServer::start_with(|options| (options.worker_count, options.queue_length_max) = (one, one), planner).await;
    let call = |expression: &'static str| {
        let mut client = server.client();
        spawn(async move { client.plan(request(expression).into_plan()).await })
    };
    let running = call("ring:5");
    gate.wait_for(1, 0);
    let mut waiting = server.client().stream_plan(request("ring:6").into_plan()).await.unwrap().into_inner();
    // The job waits for a planning thread as soon as it is back in stage `queue` after `read`, or still is in `queue`.
    assert!(matches!(waiting.message().await.unwrap().unwrap().event, Some(Event::Accepted(_))));
    let status = server.client().plan(request("ring:7").into_plan()).await.unwrap_err();
    let details = status.get_error_details();
    assert_eq!((status.code(), &*details.error_info().unwrap().reason), (Code::ResourceExhausted, "QUEUE_FULL"));
    assert!(details.retry_info().unwrap().retry_delay.unwrap() > Duration::ZERO);
    gate.open();
    running.await.unwrap().unwrap();
    server.stop().await;
}
