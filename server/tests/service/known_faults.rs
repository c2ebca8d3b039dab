//! Requests for new plans where faults are known.

use std::time::Duration;

use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plan_event::Event as PlanStreamEvent;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, BundleCommunicator, ClearFaultsRequest, Collective, CollectiveSpec, ComputeBoundResponse,
    FaultPolicy, JointBundleSpec, JointCollective, Lease, ListTopologiesRequest, OutputFormat, OutputSpec,
    PlanBundleRequest, PlanResponse, PlanSpec, Punctured, ReplanStage, TopologySource, WaitOperationRequest,
};
use canopy_wire::reason_of;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::replans::{BOXES, event, faults, gpu, leases, link, next, next_final, report, source, start, watch};
use crate::support::{TestServer, request};

async fn plan(server: &TestServer, request: PlanSpec) -> PlanResponse {
    server.client().plan(request.into_plan()).await.unwrap().into_inner()
}

fn id(reply: &PlanResponse) -> &str {
    reply.plan.as_ref().unwrap().name.as_str()
}

fn applied(reply: &PlanResponse) -> Vec<&str> {
    let told = reply.warnings.iter().filter(|warning| warning.code == "FAULTS_APPLIED");
    told.map(|warning| warning.text.as_str()).collect()
}

fn ignoring(request: PlanSpec) -> PlanSpec {
    PlanSpec { fault_policy: FaultPolicy::Ignore.into(), ..request }
}

fn without(expression: &str, gpus: &[&str]) -> PlanSpec {
    let (base, faults) = (Some(Box::new(source(expression))), gpus.iter().map(|id| gpu(id)).collect());
    let punctured = Box::new(Punctured { base, faults });
    PlanSpec { topology: Some(TopologySource { source: Some(Source::Punctured(punctured)) }), ..request("") }
}

async fn clear(server: &TestServer, topology: &str) {
    let asked = ClearFaultsRequest { topology: topology.to_owned(), ..ClearFaultsRequest::default() };
    faults(server).clear_faults(asked).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_plans_are_made_around_known_faults_unless_they_are_ignored() {
    let server = start().await;
    let healthy = plan(&server, request(BOXES)).await;
    assert_eq!((applied(&healthy).len(), healthy.puncture.as_ref()), (0, None));
    let topology = report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await.topology;
    // It is not the plan for the healthy network that is there.
    let missing = server.client().look_up_plan(request(BOXES).into_look_up()).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let around = plan(&server, request(BOXES)).await;
    assert_eq!(applied(&around), ["planned around 1 known fault: gpu:b0g3"]);
    assert_ne!(id(&around), id(&healthy));
    let puncture = around.puncture.as_ref().unwrap();
    assert_eq!((puncture.faults.as_slice(), puncture.survivors.len()), ([gpu("b0g3")].as_slice(), 15));
    assert_eq!(id(&plan(&server, ignoring(without(BOXES, &["b0g3"]))).await), id(&around), "as if it was asked for");

    let looked_up = server.client().look_up_plan(request(BOXES).into_look_up()).await.unwrap().into_inner();
    assert_eq!((id(&looked_up), applied(&looked_up).len()), (id(&around), 1));
    let mut stream = server.client().stream_plan(request(BOXES).into_plan()).await.unwrap().into_inner();
    let last = loop {
        if let Some(PlanStreamEvent::Final(last)) = stream.message().await.unwrap().unwrap().event {
            break last;
        }
    };
    assert_eq!((id(&last), applied(&last).len()), (id(&around), 1));
    let operation = server.client().prefetch_plan(request(BOXES).into_prefetch()).await.unwrap().into_inner();
    let asked = WaitOperationRequest { name: operation.name, ..WaitOperationRequest::default() };
    let ended = OperationsClient::new(server.channel.clone()).wait_operation(asked).await.unwrap().into_inner();
    let Some(canopy_proto::v1::operation::Result::Response(made)) = ended.result else { panic!("{ended:?}") };
    assert_eq!(id(&made), id(&around));

    let ignored = plan(&server, ignoring(request(BOXES))).await;
    assert_eq!((id(&ignored), applied(&ignored).len(), ignored.puncture.as_ref()), (id(&healthy), 0, None));
    // What a request names counts beside what is known.
    let both = plan(&server, without(BOXES, &["b1g0"])).await;
    assert_eq!((applied(&both).len(), both.puncture.as_ref().unwrap().survivors.len()), (1, 14));
    // Of another network nothing is known, nor of a box in which nothing is broken.
    assert!(applied(&plan(&server, request("dgx-a100:boxes=3")).await).is_empty());
    let other_box = PlanSpec { ranks: (8..16).collect(), ..request(BOXES) };
    assert!(applied(&plan(&server, other_box).await).is_empty());

    clear(&server, &topology).await;
    let again = plan(&server, request(BOXES)).await;
    assert_eq!((id(&again), applied(&again).len()), (id(&healthy), 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_is_that_of_the_network_as_known_faults_leave_it() {
    let server = start().await;
    let bound = async |request: PlanSpec| server.analysis().compute_bound(request.into_bound()).await;
    let healthy = bound(request(BOXES)).await.unwrap().into_inner();
    let quality = plan(&server, request(BOXES)).await.plan.unwrap().quality.unwrap();
    let said = |reply: &ComputeBoundResponse| (reply.bound.clone(), reply.tight, reply.certificate.clone());
    assert_eq!(said(&healthy), (quality.bound, quality.tight, quality.certificate));
    assert!(healthy.puncture.is_none(), "{healthy:?}");

    report(&server, BOXES, vec![event("1", link("b0g3", "ib", None), false)]).await;
    let around = bound(request(BOXES)).await.unwrap().into_inner();
    let quality = plan(&server, request(BOXES)).await.plan.unwrap().quality.unwrap();
    assert_ne!(around.bound, healthy.bound);
    assert_eq!(said(&around), (quality.bound, quality.tight, quality.certificate));
    assert_eq!(around.puncture.unwrap().faults, [link("b0g3", "ib", None)]);
    assert!(around.warnings.iter().any(|warning| warning.code == "FAULTS_APPLIED"), "{:?}", around.warnings);
    assert_eq!(said(&bound(ignoring(request(BOXES))).await.unwrap().into_inner()), said(&healthy));

    let refused = bound(request("ring:1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_faults_that_were_applied_and_the_way_out() {
    let server = start().await;
    report(&server, "ring:6", vec![event("1", link("0", "1", None), false), event("2", link("3", "4", None), false)])
        .await;
    let refused = server.client().plan(request("ring:6").into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "TOPOLOGY_DISCONNECTED");
    let way_out = " ignore 2 known faults: link:0=1, link:3=4 (FAULT_POLICY_IGNORE)";
    assert!(refused.message().ends_with(way_out), "{}", refused.message());
    plan(&server, ignoring(request("ring:6"))).await;

    let unknown = PlanSpec { fault_policy: 77, ..request("ring:6") };
    assert_eq!(server.client().plan(unknown.into_plan()).await.unwrap_err().code(), Code::InvalidArgument);
    server.stop().await;
}

/// Otherwise anybody could fill the places of stored topologies as long as something is broken.
#[tokio::test(flavor = "multi_thread")]
async fn requests_for_plans_store_no_topologies() {
    let server = start().await;
    report(&server, "ring:6", vec![event("1", gpu("3"), false)]).await;
    for ranks in 4..8 {
        plan(&server, request(&format!("ring:{ranks}"))).await;
    }
    let listed = NetworksClient::new(server.channel.clone()).list_topologies(ListTopologiesRequest::default()).await;
    assert_eq!(listed.unwrap().into_inner().total_size, 1);
    server.stop().await;
}

async fn acquire(server: &TestServer, job: &str, requests: Vec<PlanSpec>) -> Result<Lease, tonic::Status> {
    let asked = AcquireLeaseRequest { job: job.to_owned(), specs: requests, ..AcquireLeaseRequest::default() };
    leases(server).acquire_lease(asked).await.map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_begins_with_a_plan_around_known_faults_and_gets_the_healthy_one_when_they_are_over() {
    let server = start().await;
    let topology = report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await.topology;
    let mut events = watch(&server, "").await;
    // Nothing is cached by now.
    let lease = acquire(&server, "job", vec![request(BOXES)]).await.unwrap();
    let held = &lease.plans[0];
    assert_ne!(held.current, held.original);
    assert_eq!(held.survivors, (0..16).filter(|&rank| rank != 3).collect::<Vec<u32>>());
    let around = plan(&server, request(BOXES)).await;
    if held.current != id(&around) {
        // It was provisional, and what follows it is told.
        assert_eq!(next_final(&mut events).await.1.new_plan, id(&around));
    }
    // Another job finds the plan.
    let second = acquire(&server, "second", vec![request(BOXES)]).await.unwrap();
    assert_eq!((second.plans[0].current.as_str(), second.plans[0].is_replanning), (id(&around), false));
    // Lists say what it goes around.
    assert_eq!(second.plans[0].faults, ["gpu:b0g3"]);
    let plan = around.plan.as_ref().unwrap();
    assert_eq!((plan.network.as_str(), plan.without.as_str()), (BOXES, "gpu:b0g3"));
    clear(&server, &topology).await;
    for _ in 0..2 {
        let restored = next_final(&mut events).await.1;
        assert!(matches!(restored.stage(), ReplanStage::Restored | ReplanStage::Optimum), "{restored:?}");
        assert_eq!((restored.new_plan.as_str(), restored.survivors.len()), (held.original.as_str(), 0));
        assert!(Duration::try_from(restored.elapsed.unwrap()).unwrap() < Duration::from_secs(2), "{restored:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_refused_where_known_faults_leave_no_plan_and_cannot_ignore_them() {
    let server = start().await;
    report(&server, "ring:6", vec![event("1", link("0", "1", None), false), event("2", link("3", "4", None), false)])
        .await;
    let refused = acquire(&server, "job", vec![request("ring:6")]).await.unwrap_err();
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "TOPOLOGY_DISCONNECTED");
    assert!(refused.message().contains("2 known faults: link:0=1, link:3=4"), "{}", refused.message());
    let refused = acquire(&server, "job", vec![ignoring(request("ring:6"))]).await.unwrap_err();
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "LEASE_INVALID");
    server.stop().await;
}

/// A value that a later version knows must not be taken for the default, whichever call it came in.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_takes_an_unknown_fault_policy_for_the_default() {
    let server = start().await;
    let wrong = || PlanSpec { fault_policy: 77, ..request("ring:6") };
    let mut client = server.client();
    let refused = [
        ("plan", client.plan(wrong().into_plan()).await.err()),
        ("stream", client.stream_plan(wrong().into_plan()).await.err()),
        ("lookup", client.look_up_plan(wrong().into_look_up()).await.err()),
        ("prefetch", client.prefetch_plan(wrong().into_prefetch()).await.err()),
        ("bound", server.analysis().compute_bound(wrong().into_bound()).await.err()),
        ("what if", server.analysis().weigh_faults(wrong().into_weigh_faults()).await.err()),
        ("lease", acquire(&server, "job", vec![wrong()]).await.err()),
    ];
    for (call, refused) in refused {
        let refused = refused.unwrap_or_else(|| panic!("{call} took it"));
        assert_eq!(refused.code(), Code::InvalidArgument, "{call}: {refused:?}");
        let details = refused.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "ENUM_VALUE_UNKNOWN", "{call}");
        let field = &details.bad_request().unwrap().field_violations[0].field;
        assert!(field.ends_with("fault_policy"), "{call}: {field}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_made_around_known_faults() {
    let server = start().await;
    let party =
        |name: &str, ranks: std::ops::Range<u32>| BundleCommunicator { name: name.to_owned(), ranks: ranks.collect() };
    let bundle = PlanBundleRequest {
        topology: Some(source(BOXES)),
        communicators: vec![party("all", 0..16), party("left", 0..8), party("pair", 3..5)],
        collectives: vec![CollectiveSpec { kind: Collective::Allgather.into(), root: None }],
        output: Some(OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() }),
        ..PlanBundleRequest::default()
    };
    report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await;
    let made = server.client().plan_bundle(bundle.clone()).await.unwrap().into_inner();
    let told: Vec<_> = made.warnings.iter().filter(|warning| warning.code == "FAULTS_APPLIED").collect();
    assert_eq!(told.len(), 1, "{:?}", made.warnings);
    let ranks: Vec<u32> = made.items.iter().map(|item| item.ranks).collect();
    assert_eq!(ranks, [15, 7, 2]);
    assert!(!made.items[0].files.is_empty() && !made.items[1].files.is_empty());
    assert_eq!(reason_of(made.items[2].error.as_ref().unwrap()), "TOO_FEW_RANKS");
    let all = plan(&server, PlanSpec { outputs: bundle.output.iter().cloned().collect(), ..request(BOXES) }).await;
    assert_eq!(all.plan.unwrap().topology.unwrap().ranks, 15);
    let healthy = PlanBundleRequest { fault_policy: FaultPolicy::Ignore.into(), ..bundle };
    let made = server.client().plan_bundle(healthy).await.unwrap().into_inner();
    assert_eq!(made.items.iter().map(|item| item.ranks).collect::<Vec<_>>(), [16, 8, 2]);

    let collective = Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None });
    let joint = PlanBundleRequest {
        topology: Some(source(BOXES)),
        joint: Some(JointBundleSpec {
            collectives: vec![JointCollective { name: "one".to_owned(), collective, ..JointCollective::default() }],
            outputs: Vec::new(),
        }),
        ..PlanBundleRequest::default()
    };
    let refused = server.client().plan_bundle(joint.clone()).await.unwrap_err();
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "FAULTS_KNOWN");
    let ignored = PlanBundleRequest { fault_policy: FaultPolicy::Ignore.into(), ..joint };
    server.client().plan_bundle(ignored).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_on_no_broken_part_keeps_its_plan() {
    let server = start().await;
    let inside = PlanSpec { ranks: (8..16).collect(), ..request(BOXES) };
    let healthy = plan(&server, inside.clone()).await;
    report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await;
    let mut events = watch(&server, "").await;
    let lease = acquire(&server, "inside", vec![inside]).await.unwrap();
    assert_eq!((lease.plans[0].current.as_str(), lease.plans[0].original.as_str()), (id(&healthy), id(&healthy)));
    report(&server, BOXES, vec![event("2", gpu("b1g3"), false)]).await;
    let told = next(&mut events).await.event;
    assert!(matches!(told, Some(Event::Superseded(_))), "{told:?}");
    server.stop().await;
}
