//! Plans of collectives that run at the same time: made in common, each for itself, and judged together by who gets them.

use std::num::NonZeroU64;

use canopy_plan::read_plan;
use canopy_proto::Exact as _;
use canopy_proto::v1::{
    CacheOutcome, Collective, CollectiveSpec, FetchPlanFileRequest, JointBundle, JointBundleSpec, JointCollective,
    JointSpec, OutputFormat, OutputSpec, Plan, PlanBundleRequest, PlanSpec, fetch_plan_file_event,
};
use canopy_schedule::{JointPart, check_joint};
use canopy_topology::{Ratio, TopologyLimits, generate};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, both_outputs, request};

fn collective(
    name: &str,
    ranks: std::ops::Range<u32>,
    kind: Collective,
    root: Option<u32>,
    size: u64,
) -> JointCollective {
    JointCollective {
        name: name.to_owned(),
        ranks: ranks.collect(),
        collective: Some(CollectiveSpec { kind: kind.into(), root }),
        size_bytes: Some(size << 20),
        chunks: None,
    }
}

/// An allgather on three rows of a mesh; on the others a broadcast from rank 35, and a reduce to rank 18.
fn rows() -> Vec<JointCollective> {
    // Files of runtimes know no root but rank 0, so it is named first.
    let down = collective("down", 18..36, Collective::Broadcast, None, 1);
    let ranks = std::iter::once(35).chain(18..35).collect();
    vec![
        collective("up", 0..18, Collective::Allgather, None, 18),
        JointCollective { ranks, ..down },
        collective("sum", 18..36, Collective::Reduce, Some(0), 1),
    ]
}

/// Both on the rows in the middle.
fn overlapping() -> Vec<JointCollective> {
    vec![
        collective("up", 0..24, Collective::Allgather, None, 24),
        collective("down", 12..36, Collective::ReduceScatter, None, 24),
    ]
}

fn bundle_request(expression: &str, collectives: Vec<JointCollective>) -> PlanBundleRequest {
    let joint = Some(JointBundleSpec { collectives, outputs: Vec::new() });
    PlanBundleRequest { topology: request(expression).topology, joint, ..PlanBundleRequest::default() }
}

/// The rows with two files each.
fn of_both(expression: &str) -> PlanBundleRequest {
    let joint = Some(JointBundleSpec { collectives: rows(), outputs: both_outputs() });
    PlanBundleRequest { joint, ..bundle_request(expression, Vec::new()) }
}

/// The collectives of a request.
fn of(asked: &mut PlanBundleRequest) -> &mut Vec<JointCollective> {
    &mut asked.joint.as_mut().unwrap().collectives
}

async fn bundle(server: &TestServer, asked: PlanBundleRequest) -> JointBundle {
    server.client().plan_bundle(asked).await.unwrap().into_inner().joint.unwrap()
}

fn plans(bundle: &JointBundle) -> Vec<&Plan> {
    bundle.items.iter().map(|item| item.plan.as_ref().unwrap()).collect()
}

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

async fn file(server: &TestServer, plan: &str) -> Vec<u8> {
    let format = OutputFormat::Json.into();
    let wanted = FetchPlanFileRequest { name: plan.to_owned(), format, ..FetchPlanFileRequest::default() };
    let mut events = server.plans().fetch_plan_file(wanted).await.unwrap().into_inner();
    let mut content = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        if let Some(fetch_plan_file_event::Event::Content(piece)) = event.event {
            content.extend_from_slice(&piece.data);
        }
    }
    content
}

/// The steps of the plans as they are kept, in none of which two use the same link.
async fn judged(server: &TestServer, expression: &str, bundle: &JointBundle) -> u64 {
    let (mut files, mut sizes) = (Vec::new(), Vec::new());
    for plan in plans(bundle) {
        assert_eq!(plan.checked, ["structure", "meaning", "load", "certificate", "file"]);
        files.push(read_plan(&file(server, &plan.name).await, &TopologyLimits::STANDARD).unwrap());
        sizes.push(NonZeroU64::new(plan.joint.as_ref().unwrap().size_bytes).unwrap());
    }
    let parts = files.iter().zip(&sizes).map(|(file, &size_bytes)| JointPart {
        topology: &file.topology,
        schedule: &file.schedule,
        size_bytes,
    });
    let whole = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let verdict = check_joint(&whole, &parts.collect::<Vec<_>>(), &|| false).unwrap();
    assert_eq!(verdict.shared_links, 0);
    verdict.steps
}

/// Nine steps, as many as the longest takes alone; one after the other takes 23.
#[tokio::test]
async fn three_collectives_take_no_longer_than_the_longest() {
    let server = TestServer::start().await;
    let asked = of_both("mesh:6x6");
    let first = bundle(&server, asked.clone()).await;
    let times = first.times.clone().unwrap();
    assert_eq!((times.collectives, times.steps, judged(&server, "mesh:6x6", &first).await), (3, 9, 9));
    let alone: Vec<u64> = plans(&first).iter().map(|plan| plan.joint.as_ref().unwrap().steps_alone).collect();
    assert_eq!(alone, [9, 7, 7]);
    assert_eq!(times.seconds, times.seconds_longest_alone);
    // Nine mebibytes over 25 GB/s.
    assert_eq!(Some(ratio(times.seconds.exact())), Ratio::new(9_u64 << 20, 25_000_000_000_u64));
    assert_eq!(Some(ratio(times.seconds_one_by_one.exact())), Ratio::new(23_u64 << 20, 25_000_000_000_u64));
    assert!(ratio(first.seconds_bound.exact()) <= ratio(times.seconds.exact()) && !first.bound_sets.is_empty());
    let names: Vec<&str> = first.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["up", "down", "sum"]);
    for (plan, asked) in plans(&first).iter().zip(rows()) {
        assert_eq!((plan.algorithm.as_str(), &plan.joint.as_ref().unwrap().ranks), ("tacos", &asked.ranks));
        assert_eq!(plan.artifacts.len(), 2);
        assert!(plan.artifacts.iter().all(|artifact| artifact.content.is_none()));
    }
    assert!(first.items.iter().all(|item| item.cache() == CacheOutcome::Miss));
    assert_eq!(server.statistics.synthesis_count(), 1, "the others are taken from the same schedule");
    let again = bundle(&server, asked).await;
    assert!(again.items.iter().all(|item| item.cache() == CacheOutcome::Hit));
    assert_eq!((plans(&again), &again.seconds_bound), (plans(&first), &first.seconds_bound));
    server.stop().await;
}

#[tokio::test]
async fn overlapping_collectives_take_less_than_one_after_the_other() {
    let server = TestServer::start().await;
    let found = bundle(&server, bundle_request("mesh:6x6", overlapping())).await;
    let times = found.times.clone().unwrap();
    assert_eq!(judged(&server, "mesh:6x6", &found).await, times.steps);
    assert!(ratio(times.seconds.exact()) < ratio(times.seconds_one_by_one.exact()));
    assert!(ratio(times.seconds_longest_alone.exact()) <= ratio(times.seconds.exact()));
    assert!(ratio(found.seconds_bound.exact()) <= ratio(times.seconds.exact()));
    // All ranks, where none are listed; through switches.
    let all = JointCollective { ranks: Vec::new(), ..collective("all", 0..0, Collective::Allreduce, None, 8) };
    let some = collective("some", 3..12, Collective::AllToAll, None, 9);
    let found = bundle(&server, bundle_request("dgx-a100:boxes=2", vec![all, some])).await;
    assert_eq!(judged(&server, "dgx-a100:boxes=2", &found).await, found.times.unwrap().steps);
    assert_eq!(found.items[0].plan.as_ref().unwrap().joint.as_ref().unwrap().ranks.len(), 16);
    server.stop().await;
}

/// Whoever asks for the same at the same time, or for another of the plans, waits for the one search.
#[tokio::test(flavor = "multi_thread")]
async fn requests_at_once_cost_one_synthesis() {
    let server = TestServer::start().await;
    let asked = || bundle_request("mesh:6x6", rows());
    let plan = |position| {
        let outputs = vec![OutputSpec { format: OutputFormat::Json.into(), ..OutputSpec::default() }];
        let topology = request("mesh:6x6").topology;
        let asked = PlanSpec {
            topology,
            outputs,
            joint: Some(JointSpec { collectives: rows(), position }),
            ..PlanSpec::default()
        };
        let mut client = server.client();
        async move { client.plan(asked.into_plan()).await.unwrap().into_inner().plan.unwrap().name }
    };
    let (one, two, last, middle) = tokio::join!(bundle(&server, asked()), bundle(&server, asked()), plan(2), plan(1));
    let ids = |bundle: &JointBundle| -> Vec<String> { plans(bundle).iter().map(|plan| plan.name.clone()).collect() };
    assert_eq!(ids(&one), ids(&two));
    assert_eq!((&ids(&one)[1], &ids(&one)[2]), (&middle, &last));
    assert_eq!(server.statistics.synthesis_count(), 1);
    server.stop().await;
}

/// The field that a refused bundle is refused for, and why.
fn refusal(status: &Status) -> (Code, String, String) {
    let details = status.get_error_details();
    let reason = details.error_info().unwrap().reason.clone();
    let field = details.bad_request().map(|detail| detail.field_violations[0].field.clone());
    (status.code(), reason, field.unwrap_or_default())
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_kept() {
    let server = TestServer::start().await;
    let changed = |change: fn(&mut PlanBundleRequest)| {
        let mut asked = bundle_request("mesh:6x6", rows());
        change(&mut asked);
        let mut client = server.client();
        async move {
            let status = client.plan_bundle(asked).await.expect_err("it is wrong");
            assert!(!status.message().is_empty());
            refusal(&status)
        }
    };
    let invalid = |reason: &str, field: &str| (Code::InvalidArgument, reason.to_owned(), field.to_owned());
    type Change = fn(&mut PlanBundleRequest);
    let wrong: [(Change, &str, &str); 16] = [
        (|asked| of(asked)[1].ranks = vec![0, 99], "GROUP_INVALID", "joint.collectives[1].ranks[1]"),
        (|asked| of(asked)[1].ranks = vec![4, 5, 4], "GROUP_INVALID", "joint.collectives[1].ranks[2]"),
        (|asked| of(asked)[2].ranks = vec![4], "GROUP_INVALID", "joint.collectives[2].ranks"),
        (
            |asked| of(asked)[2].collective.as_mut().unwrap().root = Some(18),
            "ROOT_INVALID",
            "joint.collectives[2].collective.root",
        ),
        (
            |asked| of(asked)[0].collective.as_mut().unwrap().root = Some(0),
            "ROOT_INVALID",
            "joint.collectives[0].collective.root",
        ),
        (|asked| of(asked)[0].collective = None, "FIELD_MISSING", "joint.collectives[0].collective"),
        (|asked| of(asked)[0].size_bytes = Some(0), "SIZE_INVALID", "joint.collectives[0].size_bytes"),
        (|asked| of(asked)[1].name = "up".to_owned(), "BUNDLE_INVALID", "joint.collectives[1].name"),
        (|asked| of(asked)[1].name = "a/b".to_owned(), "BUNDLE_INVALID", "joint.collectives[1].name"),
        (|asked| of(asked).clear(), "FIELD_MISSING", "joint.collectives"),
        (
            |asked| {
                *of(asked) = (0..17)
                    .map(|number| collective(&format!("c{number}"), 0..2, Collective::Allgather, None, 1))
                    .collect()
            },
            "BUNDLE_INVALID",
            "joint.collectives",
        ),
        (|asked| asked.joint = None, "FIELD_MISSING", "output"),
        (|asked| asked.strict = true, "FIELD_NOT_APPLICABLE", "strict"),
        (|asked| asked.size_bytes_max = Some(1), "FIELD_NOT_APPLICABLE", "size_bytes_max"),
        (|asked| asked.topology = None, "FIELD_MISSING", "topology"),
        (|asked| asked.topology = request("mesh:0x6").topology, "TOPOLOGY_MALFORMED", "topology.expression"),
    ];
    for (change, reason, field) in wrong {
        assert_eq!(changed(change).await, invalid(reason, field));
    }
    // Too many chunks are refused before there is room for them.
    let (code, ..) = changed(|asked| of(asked)[0].chunks = Some(u64::MAX)).await;
    assert!(matches!(code, Code::FailedPrecondition | Code::ResourceExhausted | Code::InvalidArgument), "{code:?}");
    check_nothing_is_kept(&server).await;
    server.stop().await;
}

async fn check_nothing_is_kept(server: &TestServer) {
    let left = canopy_proto::v1::plans_client::PlansClient::new(server.channel.clone())
        .list_plans(canopy_proto::v1::ListPlansRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(left.total_size, 0);
}

#[tokio::test]
async fn whose_plan_cannot_be_made_is_named_and_nothing_is_kept() {
    let server = TestServer::start().await;
    // Who cannot reach each other is told which collective that is.
    let apart = "canopy: 1\nnodes: [{id: a}, {id: b}, {id: c}, {id: d}]\nlinks: [{from: a, to: b, bandwidth: 1GB/s, both: true}, {from: c, to: d, bandwidth: 1GB/s, both: true}]";
    let topology = crate::support::document_request(canopy_proto::v1::DocumentFormat::Yaml, apart).topology;
    let collectives = vec![
        collective("one", 0..2, Collective::Allgather, None, 1),
        collective("both", 1..3, Collective::Allgather, None, 1),
    ];
    let joint = Some(JointBundleSpec { collectives, outputs: Vec::new() });
    let asked = PlanBundleRequest { topology, joint, ..PlanBundleRequest::default() };
    let status = server.client().plan_bundle(asked).await.unwrap_err();
    assert_eq!(refusal(&status).1, "TOPOLOGY_DISCONNECTED", "{status:?}");
    assert!(status.message().contains("joint collective 1: "), "{}", status.message());
    // So is whose file a runtime cannot run, in spite of all others.
    let mut asked = of_both("mesh:6x6");
    of(&mut asked).swap(0, 2);
    of(&mut asked)[1].collective.as_mut().unwrap().root = Some(3);
    of(&mut asked).remove(0);
    let status = server.client().plan_bundle(asked).await.unwrap_err();
    assert_eq!(refusal(&status).1, "FORMAT_UNSUPPORTED_BY_RUNTIME", "{status:?}");
    assert!(status.message().contains("joint collective 0: "), "{}", status.message());
    check_nothing_is_kept(&server).await;
    server.stop().await;
}
