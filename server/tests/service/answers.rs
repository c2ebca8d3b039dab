//! What a good request gets.

use canopy_proto::Exact as _;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{CacheOutcome, PlanSpec};
use canopy_server::Pipeline;
use canopy_wire::ms_of;

use crate::support::{TestServer, both_outputs, options, request, sha256, stream};

#[tokio::test]
async fn a_stream_brings_acceptance_progress_header_and_whole_files() {
    let server = TestServer::start().await;
    let asked = PlanSpec { outputs: both_outputs(), ..request("ring:8") };
    let streamed = stream(&server, asked.into_plan()).await.unwrap();
    let sequence: Vec<u64> = streamed.events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequence, (0..streamed.events.len() as u64).collect::<Vec<_>>());
    let Some(Event::Accepted(accepted)) = &streamed.events[0].event else { panic!("acceptance comes first") };
    assert_eq!(
        (accepted.joined, accepted.deadline.map(|it| it.seconds), accepted.request_key.len()),
        (false, Some(30), 64)
    );
    let plan = streamed.header.plan.unwrap();
    assert_eq!(plan.artifacts.len(), 2);
    for (artifact, file) in plan.artifacts.iter().zip(&streamed.files) {
        assert_eq!((artifact.size_bytes, &artifact.sha256), (file.len() as u64, &sha256(file)));
        assert_eq!(artifact.content, None, "content comes in pieces");
    }
    assert_eq!(streamed.header.cache, i32::from(CacheOutcome::Miss));
    assert_eq!(plan.checked, ["structure", "meaning", "load", "certificate", "file"]);
    assert_eq!(plan.quality.unwrap().optimality.exact(), "1/1");
    let timings = streamed.header.timings.unwrap();
    let [total, synthesis] = [timings.total, timings.synthesis].map(|time| ms_of(time.as_ref()));
    assert!(total >= synthesis && synthesis > 0.0, "{timings:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_second_answer_comes_from_the_cache_byte_for_byte_even_after_a_restart() {
    let server = TestServer::start().await;
    let asked = || PlanSpec { outputs: both_outputs(), ..request("torus:4x4") };
    let first = stream(&server, asked().into_plan()).await.unwrap();
    let second = stream(&server, asked().into_plan()).await.unwrap();
    assert_eq!(second.header.cache, i32::from(CacheOutcome::Hit));
    assert_eq!(server.statistics.synthesis_count(), 1);
    let directory = server.stop().await;
    let pipeline = Pipeline::new(options(&directory).limits);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    let third = stream(&server, asked().into_plan()).await.unwrap();
    assert_eq!((third.header.cache, server.statistics.synthesis_count()), (i32::from(CacheOutcome::Hit), 0));
    for later in [second, third] {
        assert_eq!(later.files, first.files);
        assert_eq!(later.header.plan, first.header.plan);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_unary_call_brings_small_files_and_describes_large_ones() {
    let server = TestServer::start().await;
    let reply = server.client().plan(request("ring:4").into_plan()).await.unwrap().into_inner();
    let artifact = &reply.plan.unwrap().artifacts[0];
    assert_eq!(sha256(artifact.content.as_ref().unwrap()), artifact.sha256);
    let asked = PlanSpec { outputs: both_outputs(), ..request("ring:64") };
    let large = server.client().plan(asked.clone().into_plan()).await.unwrap().into_inner().plan.unwrap();
    let streamed = stream(&server, asked.into_plan()).await.unwrap();
    for (artifact, file) in large.artifacts.iter().zip(&streamed.files) {
        assert_eq!(artifact.content.is_some(), file.len() <= 64 << 10, "{} bytes", file.len());
    }
    let inline = large.artifacts.iter().filter(|artifact| artifact.content.is_some()).count();
    assert!(inline < 2, "the example has a file over the limit");
    server.stop().await;
}
