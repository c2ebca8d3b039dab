//! Hostile requests of permitted size: they end within their deadline, and the one worker is free for the next.

use std::num::NonZeroUsize;
use std::sync::Arc;

use canopy_proto::v1::DocumentFormat;
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::support::{TestServer, document_request, request};

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
    server.client().plan(request("ring:6").into_plan()).await.unwrap();
    let pipeline = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let change = |options: &mut canopy_server::Options| options.job_memory_bytes_max = 1 << 20;
    let server = TestServer::start_in(server.stop().await, change, pipeline).await;
    server.client().plan(request("ring:6").into_plan()).await.expect("what is stored takes no memory to make");
    let refused = server.client().plan(request("ring:7").into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let details = refused.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((&*info.reason, &*info.metadata["limit"]), ("MEMORY_BUDGET", "1048576"));
    assert!(info.metadata["needed"].parse::<u64>().unwrap() > 1 << 20);
    assert_eq!(server.statistics.synthesis_count(), 0);
    server.stop().await;
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
        let status = server.client().plan(document_request(format, &text).into_plan()).await.expect_err(&beginning);
        assert!(
            matches!(status.code(), Code::InvalidArgument | Code::ResourceExhausted),
            "{format:?} {beginning}: {status:?}"
        );
    }
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
    server.stop().await;
}
