//! Hostile requests of permitted size: they end within their deadline, and the one worker is free for the next.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    Collective, CollectiveSpec, DocumentFormat, Link, Node, NodeKind, PlanRequest, Topology, TopologySource,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, document_request, once_in_three, request, stream};

/// A ring with random chords both ways, whose capacities share no divisor worth mentioning.
fn worst_case(node_count: u64, switch_count: u64, link_count: usize) -> Topology {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let id = |number: u64| format!("n{number}");
    let kind = |number| if number < node_count - switch_count { NodeKind::Compute } else { NodeKind::Switch };
    let nodes =
        (0..node_count).map(|number| Node { id: id(number), kind: kind(number).into(), ..Node::default() }).collect();
    let mut links = Vec::with_capacity(link_count);
    while links.len() + 1 < link_count {
        let pair = links.len() as u64 / 2;
        let (a, b) = if pair < node_count {
            (pair, (pair + 1) % node_count)
        } else {
            (random() % node_count, random() % node_count)
        };
        if a == b {
            continue;
        }
        let bandwidth = (random() >> 1) | 1;
        for (from, to) in [(a, b), (b, a)] {
            links.push(Link { from: id(from), to: id(to), bandwidth, latency_ns: random() % 1000 });
        }
    }
    Topology { name: String::new(), nodes, links }
}

/// A server with one worker and limits that the examples reach.
async fn server_with_one_worker() -> TestServer {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let change = |options: &mut canopy_server::Options| {
        options.limits = TopologyLimits::STANDARD;
        options.worker_count = NonZeroUsize::MIN;
    };
    TestServer::start_with(change, Arc::new(pipeline)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_takes_too_much_memory_is_refused_before_it_is_begun_but_not_when_it_is_there() {
    let server = TestServer::start().await;
    server.client().plan(request("ring:6")).await.unwrap();
    let pipeline = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let change = |options: &mut canopy_server::Options| options.job_memory_bytes_max = 1 << 20;
    let server = TestServer::start_in(server.stop().await, change, pipeline).await;
    server.client().plan(request("ring:6")).await.expect("what is stored takes no memory to make");
    let refused = server.client().plan(request("ring:7")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let details = refused.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((&*info.reason, &*info.metadata["limit"]), ("MEMORY_BUDGET", "1048576"));
    assert!(info.metadata["needed"].parse::<u64>().unwrap() > 1 << 20);
    assert_eq!(server.statistics.synthesis_count(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_topologies_with_awkward_capacities_end_in_time_and_free_the_worker() {
    let server = server_with_one_worker().await;
    let examples = [
        (Collective::Allgather, worst_case(2_000, 200, 40_000)),
        (Collective::Allreduce, worst_case(1_000, 0, 40_000)),
        (Collective::Broadcast, worst_case(4_000, 3_998, 40_000)),
    ];
    for (kind, topology) in examples {
        let asked = PlanRequest {
            topology: Some(TopologySource { source: Some(Source::Inline(topology)) }),
            collective: Some(CollectiveSpec { kind: kind.into(), root: None }),
            ..PlanRequest::default()
        };
        let in_time = once_in_three(async |_| ends_in_time(&server, asked.clone()).await);
        in_time.await.unwrap_or_else(|late| panic!("{kind:?}: {late:?}"));
    }
    server.stop().await;
}

/// Whether a request is answered by its deadline or soon after, and the worker is there for the next one; or what was late.
#[expect(clippy::disallowed_methods, reason = "the test measures")]
async fn ends_in_time(server: &TestServer, asked: PlanRequest) -> Result<(), String> {
    let deadline = Duration::from_secs(2);
    let mut asked = Request::new(asked);
    asked.set_timeout(deadline);
    let started = Instant::now();
    if let Err(status) = stream(server, asked).await {
        // Nothing came: the caller's own clock has ended it.
        if status.code() == Code::Cancelled {
            return Err(format!("no answer within {deadline:?}"));
        }
        assert!(matches!(status.code(), Code::DeadlineExceeded | Code::FailedPrecondition), "{status:?}");
    }
    let elapsed = started.elapsed();
    if elapsed >= 2 * deadline {
        return Err(format!("took {elapsed:?} of {deadline:?}"));
    }
    let started = Instant::now();
    server.client().plan(request("ring:5")).await.unwrap();
    let elapsed = started.elapsed();
    if elapsed >= deadline { Err(format!("the next one took {elapsed:?}")) } else { Ok(()) }
}

#[tokio::test]
async fn hostile_documents_are_refused_and_the_server_goes_on() {
    let server = server_with_one_worker().await;
    let aliases = (1..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        format!("{text}a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1)
    });
    let entities = "<?xml version=\"1.0\"?><!DOCTYPE s [<!ENTITY a \"xxxxxxxx\"><!ENTITY b \"&a;&a;&a;&a;\">]><system>&b;</system>";
    let examples = [
        (DocumentFormat::Yaml, aliases),
        (DocumentFormat::Yaml, "[".repeat(200_000)),
        (DocumentFormat::Yaml, "- ".repeat(200_000)),
        (DocumentFormat::Json, "[".repeat(200_000)),
        (DocumentFormat::Json, "{\"canopy\":".repeat(100_000)),
        (DocumentFormat::Json, "\u{0}".repeat(1_000)),
        (DocumentFormat::NcclXml, entities.to_owned()),
        (DocumentFormat::NcclXml, "<a>".repeat(200_000)),
        (DocumentFormat::NcclXml, "<system version=\"1\"><cpu numaid=\"0\"".to_owned()),
        (DocumentFormat::NcclXml, String::new()),
    ];
    for (format, text) in examples {
        let beginning: String = text.chars().take(40).collect();
        let status = server.client().plan(document_request(format, &text)).await.expect_err(&beginning);
        assert!(
            matches!(status.code(), Code::InvalidArgument | Code::ResourceExhausted),
            "{format:?} {beginning}: {status:?}"
        );
    }
    server.client().plan(request("ring:4")).await.unwrap();
    server.stop().await;
}
