//! Cached plans: lookups, descriptions, explanations and files.

use canopy_proto::Exact as _;
use canopy_wire::fraction;
use canopy_wire::fraction_of;
use std::num::NonZeroUsize;
use std::time::Duration;

use canopy_proto::v1::fetch_plan_file_event::Event;
use canopy_proto::v1::output_spec::Instancing;
use canopy_proto::v1::{
    Artifact, AutomaticInstances, CacheOutcome, ExplainPlanRequest, FetchPlanFileRequest, GetPlanRequest,
    LookUpPlanRequest, OutputFormat, OutputSpec, Plan, PlanSpec,
};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::bare::answered;
use crate::support::{GatedPlanner, TestServer, both_outputs, request, sha256, spawn, stream};

/// The reason of a refusal and what its details name.
#[track_caller]
pub(crate) fn check_refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, reason: &str, named: &str) {
    let status = answer.expect_err("it is refused");
    let details = status.get_error_details();
    let info = details.error_info().expect("every refusal says why");
    assert_eq!((status.code(), &*info.reason, &*info.domain), (code, reason, "canopy"), "{status:?}");
    let field = details.bad_request().map(|detail| detail.field_violations[0].field.clone());
    let resource = details.resource_info().map(|detail| detail.resource_name.clone());
    assert_eq!(field.or(resource).unwrap_or_default(), named);
}

async fn planned(server: &TestServer, asked: PlanSpec) -> (Plan, Vec<Vec<u8>>) {
    let streamed = stream(server, asked.into_plan()).await.unwrap();
    (streamed.header.plan.unwrap(), streamed.files)
}

/// The description and the bytes of a file from an offset on.
async fn fetch(server: &TestServer, wanted: FetchPlanFileRequest) -> Result<(Artifact, Vec<u8>), Status> {
    let start = wanted.offset;
    let mut incoming = server.plans().fetch_plan_file(wanted).await?.into_inner();
    let (mut described, mut bytes) = (None, Vec::new());
    while let Some(event) = incoming.message().await? {
        match event.event.unwrap() {
            Event::Artifact(artifact) => {
                assert!(described.is_none() && artifact.content.is_none());
                described = Some(artifact);
            }
            Event::Content(piece) => {
                assert!(described.is_some(), "the description comes first");
                assert_eq!(piece.offset, start + bytes.len() as u64);
                assert_eq!(piece.sha256, sha256(&piece.data));
                assert!(piece.data.len() <= 256 << 10);
                bytes.extend_from_slice(&piece.data);
            }
        }
    }
    Ok((described.expect("a file is described"), bytes))
}

#[tokio::test]
async fn a_lookup_answers_from_the_cache_only_and_sends_no_files() {
    let server = TestServer::start().await;
    let missing = server.client().look_up_plan(request("ring:6").into_look_up()).await;
    check_refused(missing, Code::NotFound, "PLAN_NOT_CACHED", "");
    assert_eq!(server.statistics.synthesis_count(), 0);
    let made = server.client().plan(request("ring:6").into_plan()).await.unwrap().into_inner();
    let found = server.client().look_up_plan(request("ring:6").into_look_up()).await.unwrap().into_inner();
    assert_eq!(found.cache(), CacheOutcome::Hit);
    let (made, found) = (made.plan.unwrap(), found.plan.unwrap());
    assert_eq!((&found.name, &found.quality), (&made.name, &made.quality));
    assert!(found.artifacts.iter().all(|artifact| artifact.content.is_none() && artifact.size_bytes > 0));
    let best = LookUpPlanRequest { minimum_optimality: Some(fraction_of(3, 2)), ..request("ring:6").into_look_up() };
    let refused = server.client().look_up_plan(best).await;
    check_refused(refused, Code::InvalidArgument, "OPTIMALITY_INVALID", "minimum_optimality");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_waits_for_no_synthesis_even_when_the_queue_is_full() {
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
    let _waiting = server.client().stream_plan(request("ring:6").into_plan()).await.unwrap();
    for expression in ["ring:5", "ring:6", "ring:7"] {
        let missing = server.client().look_up_plan(request(expression).into_look_up()).await;
        check_refused(missing, Code::NotFound, "PLAN_NOT_CACHED", "");
    }
    gate.open();
    running.await.unwrap().unwrap();
    server.client().look_up_plan(request("ring:5").into_look_up()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_plan_is_described_and_explained_by_its_name() {
    let server = TestServer::start().await;
    let (plan, _) = planned(&server, PlanSpec { outputs: both_outputs(), ..request("torus:4x4") }).await;
    let name = plan.name.clone();
    let described =
        server.plans().get_plan(GetPlanRequest { name: name.clone(), placement: None }).await.unwrap().into_inner();
    assert_eq!(described, plan);
    let explained =
        server.plans().explain_plan(ExplainPlanRequest { name, placement: None }).await.unwrap().into_inner();
    assert_eq!(explained.gap, fraction("0/1"));
    let bound = plan.quality.as_ref().unwrap().bound.exact();
    assert!(explained.limit.contains(&format!("no schedule exceeds {bound} bytes/s")), "{}", explained.limit);
    assert!(explained.limit.contains("of 16 ranks"), "{}", explained.limit);
    assert_eq!(explained.plan.unwrap(), plan);
    let [json, msccl] = &explained.artifacts[..] else { panic!("two files") };
    assert_eq!((&json.artifact, &json.msccl), (&Some(plan.artifacts[0].clone()), &None));
    let facts = msccl.msccl.as_ref().unwrap();
    assert!(facts.channels >= 1 && facts.thread_blocks_max >= 1 && facts.steps_max >= 1 && facts.chunks_per_loop >= 16);
    assert!(facts.size_bytes_max > facts.size_bytes_min);
    assert!(facts.rank_steps_max >= facts.steps_max);
    let binding = facts.binding.as_ref().unwrap();
    assert!(!binding.name.is_empty() && binding.need >= 1 && binding.need <= binding.limit, "{binding:?}");
    server.stop().await;
}

#[tokio::test]
async fn files_of_one_runtime_are_told_apart_by_their_instances() {
    let server = TestServer::start().await;
    let of = |instancing| OutputSpec {
        format: OutputFormat::MscclXml.into(),
        profile: None,
        instancing,
        plain_channels: false,
        max_layers: None,
    };
    let automatic = Instancing::AutomaticInstances(AutomaticInstances {});
    let outputs = vec![of(Some(Instancing::Instances(2))), of(None), of(Some(automatic))];
    let (plan, files) = planned(&server, PlanSpec { outputs, ..request("ring:4") }).await;
    let (alone, _) = planned(&server, PlanSpec { outputs: vec![of(None)], ..request("ring:4") }).await;
    assert_ne!(alone.name, plan.name);
    let instances: Vec<u32> = plan.artifacts.iter().filter_map(|artifact| artifact.instances).collect();
    assert_eq!(instances, [2, 1, 32]);
    let wanted = |instances| FetchPlanFileRequest {
        name: plan.name.clone(),
        format: OutputFormat::MscclXml.into(),
        instances,
        ..FetchPlanFileRequest::default()
    };
    for (position, instances) in [(0, None), (0, Some(2)), (1, Some(1)), (2, Some(32))] {
        let (described, bytes) = fetch(&server, wanted(instances)).await.unwrap();
        assert_eq!((&described, &bytes), (&plan.artifacts[position], &files[position]), "{instances:?}");
    }
    let refused = fetch(&server, wanted(Some(3))).await;
    check_refused(refused, Code::NotFound, "ARTIFACT_UNKNOWN", &plan.name);
    let name = plan.name.clone();
    let explained =
        server.plans().explain_plan(ExplainPlanRequest { name, placement: None }).await.unwrap().into_inner();
    for facts in &explained.artifacts {
        let msccl = facts.msccl.as_ref().unwrap();
        assert_eq!(Some(msccl.channels), facts.artifact.as_ref().unwrap().instances);
        let limit = msccl.instances_limit.as_ref().unwrap();
        assert_eq!((msccl.instances_max, &*limit.name, limit.need, limit.limit), (32, "channels", 33, 32));
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_cached_has_no_name() {
    let server = TestServer::start().await;
    let unknown = format!("plans/{:032}", 7);
    for name in ["", "plans/", "plans/x", "ring:4", "operations/1", &unknown] {
        let (code, reason, at) = match name == unknown {
            true => (Code::NotFound, "PLAN_UNKNOWN", name),
            false => (Code::InvalidArgument, "NAME_INVALID", "name"),
        };
        let name = name.to_owned();
        let refused = server.plans().get_plan(GetPlanRequest { name: name.clone(), placement: None }).await;
        check_refused(refused, code, reason, at);
        let refused = server.plans().explain_plan(ExplainPlanRequest { name: name.clone(), placement: None }).await;
        check_refused(refused, code, reason, at);
        let format = OutputFormat::Json.into();
        let wanted = FetchPlanFileRequest { name: name.clone(), format, ..FetchPlanFileRequest::default() };
        check_refused(fetch(&server, wanted).await, code, reason, at);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_file_is_fetched_whole_and_from_any_offset() {
    let server = TestServer::start().await;
    let (plan, files) = planned(&server, PlanSpec { outputs: both_outputs(), ..request("ring:32") }).await;
    for (artifact, file) in plan.artifacts.iter().zip(&files) {
        let wanted = |offset| FetchPlanFileRequest {
            name: plan.name.clone(),
            format: artifact.format,
            profile: None,
            offset,
            ..FetchPlanFileRequest::default()
        };
        for offset in [0, 1, file.len() / 2, 256 << 10, file.len() - 1, file.len()] {
            if offset > file.len() {
                continue;
            }
            let (described, bytes) = fetch(&server, wanted(offset as u64)).await.unwrap();
            assert_eq!((&described, &bytes[..]), (artifact, &file[offset..]), "from {offset}");
        }
        let beyond = fetch(&server, wanted(file.len() as u64 + 1)).await;
        check_refused(beyond, Code::InvalidArgument, "OFFSET_INVALID", "offset");
        check_refused(fetch(&server, wanted(u64::MAX)).await, Code::InvalidArgument, "OFFSET_INVALID", "offset");
    }
    let json = |format: i32, profile: &str| FetchPlanFileRequest {
        name: plan.name.clone(),
        format,
        profile: Some(profile.to_owned()),
        ..FetchPlanFileRequest::default()
    };
    let refused = fetch(&server, json(0, "")).await;
    check_refused(refused, Code::InvalidArgument, "ENUM_VALUE_UNKNOWN", "format");
    let refused = fetch(&server, json(OutputFormat::Json.into(), "msccl")).await;
    check_refused(refused, Code::NotFound, "ARTIFACT_UNKNOWN", &plan.name);
    server.stop().await;
}

/// The lines of each `<gpu>` of a file, which canopy writes one element a line.
fn parts_of_ranks(file: &[u8]) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for line in std::str::from_utf8(file).unwrap().lines() {
        if line.starts_with("  <gpu ") {
            parts.push(Vec::new());
        }
        if line != "</algo>"
            && let Some(part) = parts.last_mut()
        {
            part.push(line.to_owned());
        }
    }
    parts
}

#[tokio::test]
async fn some_ranks_fetch_their_part_of_a_file() {
    let server = TestServer::start().await;
    let (plan, files) = planned(&server, PlanSpec { outputs: both_outputs(), ..request("ring:8") }).await;
    let wanted = |ranks: &[u32], offset| FetchPlanFileRequest {
        name: plan.name.clone(),
        format: OutputFormat::MscclXml.into(),
        offset,
        ranks: ranks.to_vec(),
        ..FetchPlanFileRequest::default()
    };
    let whole = parts_of_ranks(&files[1]);
    let (described, slice) = fetch(&server, wanted(&[6, 2, 6], 0)).await.unwrap();
    assert_eq!(described.size_bytes, slice.len() as u64);
    assert_ne!(described.sha256, plan.artifacts[1].sha256);
    let head = |file: &[u8]| file.split(|&byte| byte == b'\n').next().unwrap().to_vec();
    assert_eq!(head(&slice), head(&files[1]));
    for (rank, (part, of_whole)) in parts_of_ranks(&slice).into_iter().zip(whole).enumerate() {
        match rank {
            2 | 6 => assert_eq!(part, of_whole),
            // Its buffers, without its steps.
            _ => assert_eq!(part, [of_whole[0].replace("\">", "\"/>")]),
        }
    }
    // A transfer goes on within the slice, whatever the order in which the ranks are named.
    let (again, rest) = fetch(&server, wanted(&[2, 6], 100)).await.unwrap();
    assert_eq!((again, &rest[..]), (described, &slice[100..]));
    let beyond = fetch(&server, wanted(&[2, 6], slice.len() as u64 + 1)).await;
    check_refused(beyond, Code::InvalidArgument, "OFFSET_INVALID", "offset");
    // All ranks: the whole file, byte by byte.
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(fetch(&server, wanted(&all, 0)).await.unwrap(), (plan.artifacts[1].clone(), files[1].clone()));
    let refused = fetch(&server, wanted(&[0, 8], 0)).await;
    check_refused(refused, Code::InvalidArgument, "SLICE_RANK_UNKNOWN", "ranks");
    let json = FetchPlanFileRequest { format: OutputFormat::Json.into(), ..wanted(&[0], 0) };
    check_refused(fetch(&server, json).await, Code::InvalidArgument, "SLICE_UNSUPPORTED", "ranks");
    server.stop().await;
}

#[tokio::test]
async fn one_rank_of_a_plan_in_stages_has_files_that_the_plan_has_not() {
    let server = TestServer::start().await;
    let asked = PlanSpec { algorithm: Some("stages".to_owned()), ..request("dgx-h100:boxes=3") };
    let (plan, files) = planned(&server, asked).await;
    assert_eq!(files.len(), 1);
    let wanted = |format: OutputFormat, ranks: &[u32], offset| FetchPlanFileRequest {
        name: plan.name.clone(),
        format: format.into(),
        offset,
        ranks: ranks.to_vec(),
        ..FetchPlanFileRequest::default()
    };
    let rule = canopy_plan::read_rule(&files[0]).unwrap();
    for (format, begins) in
        [(OutputFormat::Json, "{"), (OutputFormat::OnecclXml, "<onecclplan"), (OutputFormat::MscclppJson, "{")]
    {
        let (described, file) = fetch(&server, wanted(format, &[23], 0)).await.unwrap();
        assert_eq!((described.format(), described.size_bytes), (format, file.len() as u64));
        assert!(file.starts_with(begins.as_bytes()));
        let (_, rest) = fetch(&server, wanted(format, &[23], 10)).await.unwrap();
        assert_eq!(rest, file[10..]);
        let refused = fetch(&server, wanted(format, &[24], 0)).await;
        check_refused(refused, Code::InvalidArgument, "SLICE_RANK_UNKNOWN", "ranks");
    }
    let (_, steps) = fetch(&server, wanted(OutputFormat::Json, &[5], 0)).await.unwrap();
    let steps = canopy_plan::parse_rank_steps(std::str::from_utf8(&steps).unwrap()).unwrap();
    assert_eq!(steps.program, rule.stages.program(5, 24).unwrap());
    let routes = fetch(&server, wanted(OutputFormat::RoutesXml, &[0], 0)).await;
    check_refused(routes, Code::FailedPrecondition, "RANK_FILE_INFEASIBLE", "");
    // Several at once have only what the plan has.
    let refused = fetch(&server, wanted(OutputFormat::OnecclXml, &[0, 1], 0)).await;
    check_refused(refused, Code::NotFound, "ARTIFACT_UNKNOWN", &plan.name);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unary_plan_that_is_late_says_so_with_its_own_code() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut client = server.bare().await;
    // The server's own words come ahead of the deadline, by a tenth of it.
    let mut asked = Request::new(request("ring:6"));
    asked.set_timeout(Duration::from_secs(4));
    check_refused(
        answered(client.plan(asked.map(PlanSpec::into_plan))).await,
        Code::DeadlineExceeded,
        "SOLVER_TIME_LIMIT",
        "",
    );
    gate.open();
    server.stop().await;
}
