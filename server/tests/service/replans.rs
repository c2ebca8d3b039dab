//! Faults, leases and plans that take the place of others.

use canopy_proto::Exact as _;
use canopy_wire::fraction_of;
use canopy_wire::reason_of;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, Collective, CollectiveSpec, DeviceTarget, Fault, FaultEvent,
    GetLeaseRequest, GetPlanRequest, Lease, LinkTarget, ListFaultsRequest, ListLeasesRequest, PinPlanRequest, PlanLost,
    PlanSpec, PlanSuperseded, Punctured, ReleaseLeaseRequest, ReplanEvent, ReplanStage, ReportFaultsRequest,
    ReportFaultsResponse, ReportOutcome, SwitchFeature, TopologySource, WatchLeasesRequest, fault, replan_event::Event,
};
use canopy_server::{
    MaintenanceCommand, MaintenanceError, Making, Options, ReplanOptions, ServerFlags, run_maintenance,
};
use canopy_store::StoreError;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use crate::support::{GatedPlanner, TestServer, request};

pub(crate) const BOXES: &str = "dgx-a100:boxes=2";

/// A server that believes what it is told sooner than others do.
pub(crate) async fn start() -> TestServer {
    TestServer::start_with(
        quick,
        std::sync::Arc::new(canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD)),
    )
    .await
}

pub(crate) fn quick(options: &mut Options) {
    options.replans = ReplanOptions {
        window: Duration::from_millis(300),
        debounce: Duration::from_millis(200),
        hold_down: Duration::from_millis(1000),
        plans_ahead: false,
        ..ReplanOptions::STANDARD
    };
}

pub(crate) fn source(expression: &str) -> TopologySource {
    TopologySource { source: Some(Source::Expression(expression.to_owned())) }
}

pub(crate) fn faults(server: &TestServer) -> FaultsClient<Channel> {
    FaultsClient::new(server.channel.clone())
}

pub(crate) fn leases(server: &TestServer) -> LeasesClient<Channel> {
    LeasesClient::new(server.channel.clone())
}

pub(crate) fn gpu(node: &str) -> Fault {
    let device = DeviceTarget { node: node.to_owned(), ..DeviceTarget::default() };
    Fault { target: Some(fault::Target::Device(device)), remaining: None }
}

pub(crate) fn link(from: &str, to: &str, remaining: Option<(u64, u64)>) -> Fault {
    let ends = LinkTarget { from: from.to_owned(), to: to.to_owned(), one_way: false };
    let remaining = remaining.map(|(numerator, denominator)| fraction_of(numerator, denominator));
    Fault { target: Some(fault::Target::Link(ends)), remaining }
}

pub(crate) fn event(id: &str, fault: Fault, cleared: bool) -> FaultEvent {
    FaultEvent {
        source: "test".to_owned(),
        event_id: id.to_owned(),
        fault: Some(fault),
        cleared,
        ..FaultEvent::default()
    }
}

pub(crate) async fn report(server: &TestServer, topology: &str, events: Vec<FaultEvent>) -> ReportFaultsResponse {
    let asked = ReportFaultsRequest { topology: Some(source(topology)), events, ..ReportFaultsRequest::default() };
    faults(server).report_faults(asked).await.unwrap().into_inner()
}

pub(crate) async fn plan(server: &TestServer, request: PlanSpec) -> String {
    server.client().plan(request.into_plan()).await.unwrap().into_inner().plan.unwrap().name
}

pub(crate) async fn acquire(server: &TestServer, job: &str, requests: Vec<PlanSpec>) -> Lease {
    for request in &requests {
        plan(server, request.clone()).await;
    }
    let asked = AcquireLeaseRequest { job: job.to_owned(), specs: requests, ..AcquireLeaseRequest::default() };
    leases(server).acquire_lease(asked).await.unwrap().into_inner()
}

pub(crate) async fn watch(server: &TestServer, resume_token: &str) -> Streaming<ReplanEvent> {
    let asked = WatchLeasesRequest { resume_token: resume_token.to_owned(), ..WatchLeasesRequest::default() };
    let mut events = leases(server).watch_leases(asked).await.unwrap().into_inner();
    let first = next(&mut events).await;
    assert!(matches!(first.event, Some(Event::Started(_))) && !first.resume_token.is_empty(), "{first:?}");
    events
}

pub(crate) async fn next(events: &mut Streaming<ReplanEvent>) -> ReplanEvent {
    timeout(Duration::from_secs(20), events.message()).await.expect("an event comes in time").unwrap().unwrap()
}

/// The next plan that nothing better follows.
pub(crate) async fn next_final(events: &mut Streaming<ReplanEvent>) -> (ReplanEvent, PlanSuperseded) {
    loop {
        let event = next(events).await;
        if let Some(Event::Superseded(superseded)) = event.event.clone()
            && superseded.is_final
        {
            return (event, superseded);
        }
    }
}

pub(crate) async fn silence(events: &mut Streaming<ReplanEvent>, how_long: u64) {
    let heard = timeout(Duration::from_millis(how_long), events.message()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_gpu_brings_another_plan_and_its_return_the_first_one() {
    let server = start().await;
    let lease = acquire(&server, "job-1", vec![request(BOXES)]).await;
    let original = lease.plans[0].original.clone();
    assert_eq!((lease.plans[0].current.as_str(), lease.plans[0].is_replanning), (original.as_str(), false));
    let mut events = watch(&server, "").await;
    let reported = report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await;
    assert_eq!((reported.outcomes[0].outcome(), reported.active, reported.leases), (ReportOutcome::Applied, 1, 1));
    let (_, superseded) = next_final(&mut events).await;
    let survivors: Vec<u32> = (0..16).filter(|&rank| rank != 3).collect();
    assert_eq!((superseded.survivors.as_slice(), superseded.optimality.exact()), (survivors.as_slice(), "1/1"));
    // What it names is what anybody gets who asks for what is left.
    let punctured = |faults| {
        let base = Some(Box::new(source(BOXES)));
        let punctured = Box::new(Punctured { base, faults });
        PlanSpec { topology: Some(TopologySource { source: Some(Source::Punctured(punctured)) }), ..request("") }
    };
    assert_eq!(plan(&server, punctured(vec![gpu("b0g3")])).await, superseded.new_plan);
    let asked = server.client().plan(punctured(vec![]).into_plan()).await.unwrap().into_inner();
    assert_eq!(asked.plan.unwrap().name, superseded.new_plan);
    assert_eq!(asked.puncture.unwrap().survivors, survivors);

    let again = report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await;
    assert_eq!((again.outcomes[0].outcome(), again.leases), (ReportOutcome::Repeated, 0));
    silence(&mut events, 500).await;

    let made = server.statistics.synthesis_count();
    report(&server, BOXES, vec![event("2", gpu("b0g3"), true)]).await;
    let (_, restored) = next_final(&mut events).await;
    assert_eq!((restored.stage(), restored.new_plan.as_str()), (ReplanStage::Restored, original.as_str()));
    assert_eq!((restored.old_plan, restored.survivors), (superseded.new_plan, vec![]));
    assert_eq!(server.statistics.synthesis_count(), made, "nothing is searched for to go back");
    server.stop().await;
}

/// What was planned in time keeps what can be sent when it was, and is told of before what is found anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_in_time_is_repaired_before_another_is_found() {
    const TORUS: &str = "torus:4x4";
    // The direct plan waits as well: it reaches as much here, and the repair of what comes second is not told of.
    let (planner, gate) = GatedPlanner::holding(|order| order.making == Making::Searched && !order.faults.is_empty());
    let options = |options: &mut Options| {
        quick(options);
        options.worker_count = NonZeroUsize::new(4).unwrap();
    };
    let server = TestServer::start_with(options, planner).await;
    let in_time = PlanSpec { algorithm: Some("tacos".to_owned()), ..request(TORUS) };
    let lease = acquire(&server, "job", vec![in_time]).await;
    let mut events = watch(&server, "").await;
    report(&server, TORUS, vec![event("1", link("00", "01", None), false)]).await;
    let Some(Event::Superseded(first)) = next(&mut events).await.event else { panic!("a plan is told of") };
    assert_eq!((first.stage(), first.is_final), (ReplanStage::Repaired, false), "what is searched for waits");
    let asked = GetPlanRequest { name: first.new_plan.clone(), ..GetPlanRequest::default() };
    let repaired = server.plans().get_plan(asked).await.unwrap().into_inner();
    assert_eq!((repaired.algorithm.as_str(), repaired.checked.len()), ("repair", 5));
    assert_eq!(repaired.provenance.unwrap().repaired_from, lease.plans[0].original);
    gate.open();
    let (_, last) = next_final(&mut events).await;
    assert_eq!((last.stage(), last.old_plan), (ReplanStage::Optimum, first.new_plan));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_do_not_cross_a_fault_stay() {
    let server = start().await;
    let of_box = |first: u32| PlanSpec { ranks: (first..first + 8).collect(), ..request(BOXES) };
    let inside = acquire(&server, "inside", vec![of_box(8)]).await;
    let across = acquire(&server, "across", vec![request(BOXES)]).await;
    let mut events = watch(&server, "").await;
    let reported = report(&server, BOXES, vec![event("1", link("b0g3", "ib", Some((1, 2))), false)]).await;
    assert_eq!(reported.leases, 1);
    let (event_of, superseded) = next_final(&mut events).await;
    assert_eq!((event_of.lease, event_of.job, superseded.survivors), (across.name, "across".to_owned(), vec![]));
    silence(&mut events, 500).await;
    let asked = GetLeaseRequest { name: inside.name.clone() };
    let inside_now = leases(&server).get_lease(asked).await.unwrap().into_inner();
    assert_eq!(inside_now.plans, inside.plans);
    let listed = ListLeasesRequest { filter: "replanned=true".to_owned(), ..ListLeasesRequest::default() };
    let listed = leases(&server).list_leases(listed).await.unwrap().into_inner();
    assert_eq!((listed.total_size, listed.leases[0].job.as_str()), (1, "across"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_falls_apart_has_no_plan_and_says_into_what() {
    let server = start().await;
    acquire(&server, "ring", vec![request("ring:6")]).await;
    let mut events = watch(&server, "").await;
    let broken = || vec![link("0", "1", None), link("3", "4", None)];
    let reported: Vec<FaultEvent> =
        broken().into_iter().zip(["1", "2"]).map(|(fault, id)| event(id, fault, false)).collect();
    report(&server, "ring:6", reported).await;
    let told = next(&mut events).await.event;
    let Some(Event::Lost(lost)) = told else { panic!("{told:?}") };
    let PlanLost { error: Some(error), .. } = lost else { panic!("{lost:?}") };
    assert_eq!((&*reason_of(&error), error.code), ("TOPOLOGY_DISCONNECTED", i32::from(Code::FailedPrecondition)));
    let base = Some(Box::new(source("ring:6")));
    let punctured = Box::new(Punctured { base, faults: broken() });
    let topology = Some(TopologySource { source: Some(Source::Punctured(punctured)) });
    let refused = server.client().plan(PlanSpec { topology, ..request("") }.into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let details = refused.get_error_details();
    assert_eq!(details.error_info().unwrap().reason, "TOPOLOGY_DISCONNECTED");
    assert!(details.precondition_failure().is_some());
    report(&server, "ring:6", vec![event("3", link("0", "1", None), true)]).await;
    let told = next(&mut events).await.event;
    let Some(Event::Superseded(found)) = told else { panic!("{told:?}") };
    assert_eq!((found.old_plan.as_str(), found.survivors.len()), ("", 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flapping_link_brings_no_more_than_one_plan_in_a_window() {
    let server = start().await;
    acquire(&server, "job", vec![request(BOXES)]).await;
    let mut events = watch(&server, "").await;
    for round in 0..60 {
        report(&server, BOXES, vec![event(&format!("{round}"), link("b1g7", "ib", None), round % 2 == 1)]).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    next_final(&mut events).await;
    let held = faults(&server).list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
    assert_eq!((held.len(), held[0].text.as_str()), (1, "link:b1g7=ib"));
    assert!(held[0].suppressed > 0, "{held:?}");
    let (_, restored) = next_final(&mut events).await;
    assert_eq!(restored.stage(), ReplanStage::Restored, "once it was quiet");
    silence(&mut events, 500).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_and_its_leases_go_on_in_the_next_server() {
    let server = start().await;
    let lease = acquire(&server, "job", vec![request(BOXES)]).await;
    let mut events = watch(&server, "").await;
    report(&server, BOXES, vec![event("1", gpu("b1g0"), false)]).await;
    let (last, superseded) = next_final(&mut events).await;
    let directory = server.stop().await;
    let ended = events.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    drop(events);

    let planner = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, quick, std::sync::Arc::new(planner)).await;
    let mut events = watch(&server, &last.resume_token).await;
    silence(&mut events, 700).await;
    let asked = GetLeaseRequest { name: lease.name.clone() };
    let kept = leases(&server).get_lease(asked).await.unwrap().into_inner();
    assert_eq!((&kept.plans[0].current, kept.plans[0].survivors.len()), (&superseded.new_plan, 15));
    let asked = ClearFaultsRequest { topology: lease.topology.clone(), ..ClearFaultsRequest::default() };
    assert_eq!(faults(&server).clear_faults(asked).await.unwrap().into_inner().cleared, 1);
    let (restored, found) = next_final(&mut events).await;
    assert_eq!((restored.sequence, found.stage()), (last.sequence + 1, ReplanStage::Restored));
    let asked = ReleaseLeaseRequest { job: "job".to_owned(), ..ReleaseLeaseRequest::default() };
    assert_eq!(leases(&server).release_lease(asked.clone()).await.unwrap().into_inner().released, 1);
    assert_eq!(leases(&server).release_lease(asked).await.unwrap().into_inner().released, 0);
    let expired = WatchLeasesRequest { resume_token: "7-7".to_owned(), ..WatchLeasesRequest::default() };
    assert_eq!(leases(&server).watch_leases(expired).await.unwrap_err().code(), Code::OutOfRange);
    server.stop().await;
}

/// Single faults of a plan that is leased or pinned are planned for before they happen; of others none is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_leased_or_pinned_is_planned_ahead_of() {
    let ahead = |options: &mut Options| {
        quick(options);
        (options.replans.plans_ahead, options.replans.pinned_ahead) = (true, 1);
    };
    let planner = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let server = TestServer::start_with(ahead, std::sync::Arc::new(planner)).await;
    acquire(&server, "leased", vec![request("ring:4")]).await;
    // No part of these is of the shape of a part of another.
    plan(&server, request("torus:3x4")).await;
    for network in ["torus:3x3", "ring:6"] {
        let name = plan(&server, request(network)).await;
        let asked = PinPlanRequest { name, ..PinPlanRequest::default() };
        PlansClient::new(server.channel.clone()).pin_plan(asked).await.unwrap();
        // They are told apart by when they were used last.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let is_cached = async |network: &str, lost: &str| {
        let base = Some(Box::new(source(network)));
        let punctured = Box::new(Punctured { base, faults: vec![gpu(lost)] });
        let topology = Some(TopologySource { source: Some(Source::Punctured(punctured)) });
        server.client().look_up_plan(PlanSpec { topology, ..request("") }.into_look_up()).await.is_ok()
    };
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    while !(is_cached("ring:4", "2").await && is_cached("ring:6", "2").await) {
        assert!(tokio::time::Instant::now() < limit, "nothing is planned ahead");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // More would be planned ahead of by now, if it was.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!is_cached("torus:3x3", "11").await, "one pinned plan is the most, that which was used last");
    assert!(!is_cached("torus:3x4", "11").await);
    server.stop().await;
}

/// Does what an operator does with a directory that no server uses.
fn maintain(directory: &Path, arguments: [&str; 2]) {
    #[derive(Debug, clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        server: ServerFlags,
        #[command(subcommand)]
        command: MaintenanceCommand,
    }
    let [command, file] = arguments;
    let arguments = ["canopyd", "--data-dir", directory.to_str().unwrap(), command, file];
    let Arguments { server, command } = clap::Parser::parse_from(arguments);
    let mut tries = 0;
    // Connections of a server that has ended hold its directory for a moment longer.
    while let Err(error) = run_maintenance(&command, server.clone(), &mut Vec::new()) {
        assert!(matches!(&error, MaintenanceError::Store(StoreError::InUse { .. })) && tries < 500, "{error}");
        std::thread::sleep(Duration::from_millis(10));
        tries += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_holds_faults_leases_and_the_place_of_a_watch() {
    let server = start().await;
    let lease = acquire(&server, "kept", vec![request("ring:6")]).await;
    let mut events = watch(&server, "").await;
    report(&server, "ring:6", vec![event("1", gpu("3"), false)]).await;
    let (last, superseded) = next_final(&mut events).await;
    drop(events);
    let source = server.stop().await;
    let file = source.path().join("all.canopy");
    maintain(source.path(), ["backup", file.to_str().unwrap()]);

    let server = start().await;
    acquire(&server, "another", vec![request("ring:5")]).await;
    report(&server, "ring:5", vec![event("1", gpu("2"), false)]).await;
    let target = server.stop().await;
    maintain(target.path(), ["restore", file.to_str().unwrap()]);

    let planner = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let server = TestServer::start_in(target, quick, std::sync::Arc::new(planner)).await;
    let listed = leases(&server).list_leases(ListLeasesRequest::default()).await.unwrap().into_inner().leases;
    let held: Vec<_> = listed.iter().map(|lease| (lease.name.as_str(), lease.plans[0].current.as_str())).collect();
    assert_eq!(held, [(lease.name.as_str(), superseded.new_plan.as_str())]);
    let known = faults(&server).list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
    assert_eq!(known.iter().map(|fault| fault.text.as_str()).collect::<Vec<_>>(), ["gpu:3"]);
    let mut events = watch(&server, &last.resume_token).await;
    silence(&mut events, 500).await;
    let asked = ClearFaultsRequest { topology: lease.topology.clone(), ..ClearFaultsRequest::default() };
    faults(&server).clear_faults(asked).await.unwrap();
    let (restored, found) = next_final(&mut events).await;
    assert_eq!((restored.sequence, found.new_plan.as_str()), (last.sequence + 1, lease.plans[0].original.as_str()));
    // The server that the backup is of may have told of another event under this number.
    let (epoch, _) = last.resume_token.split_once('-').unwrap();
    let resume_token = format!("{epoch}-{:016x}", restored.sequence);
    let elsewhere = WatchLeasesRequest { resume_token, ..WatchLeasesRequest::default() };
    assert_eq!(leases(&server).watch_leases(elsewhere).await.unwrap_err().code(), Code::OutOfRange);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_root_is_told_and_bad_requests_are_refused() {
    let server = start().await;
    let collective = Some(CollectiveSpec { kind: Collective::Broadcast.into(), root: Some(2) });
    acquire(&server, "job", vec![PlanSpec { collective, ..request("ring:4") }]).await;
    let mut events = watch(&server, "").await;
    let reply = report(
        &server,
        "ring:4",
        vec![
            event("1", gpu("2"), false),
            event("", gpu("1"), false),
            event("3", gpu("9"), false),
            event("4", Fault::default(), false),
        ],
    )
    .await;
    let outcomes: Vec<ReportOutcome> = reply.outcomes.iter().map(|outcome| outcome.outcome()).collect();
    assert_eq!(
        outcomes,
        [ReportOutcome::Applied, ReportOutcome::Refused, ReportOutcome::Refused, ReportOutcome::Refused]
    );
    let reasons: Vec<String> =
        reply.outcomes.iter().filter_map(|outcome| outcome.error.as_ref()).map(reason_of).collect();
    assert_eq!(reasons, ["FAULT_INVALID", "FAULT_UNKNOWN", "FAULT_INVALID"]);
    // What no plan could be made for is in no book.
    let multicast = SwitchFeature { switch_name: "ib".to_owned(), multicast: true, aggregate: false };
    let half = Some(fraction_of(1, 2));
    let half = Fault { target: Some(fault::Target::SwitchFeature(multicast)), remaining: half };
    let reply = report(&server, BOXES, vec![event("1", half, false)]).await;
    let refused = reply.outcomes[0].error.as_ref().unwrap();
    assert_eq!((&*reason_of(refused), reply.active), ("FAULT_UNKNOWN", 0));
    assert!(refused.message.starts_with("1/2 of a feature of switch ib cannot remain"), "{refused:?}");
    let Some(Event::Lost(lost)) = next(&mut events).await.event else { panic!("the root is lost") };
    assert_eq!(reason_of(&lost.error.unwrap()), "ROOT_LOST");

    let missing =
        AcquireLeaseRequest { job: "x".to_owned(), specs: vec![request("ring:5")], ..AcquireLeaseRequest::default() };
    let refused = leases(&server).acquire_lease(missing.clone()).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.get_error_details().error_info().unwrap().reason.as_str()),
        (Code::NotFound, "PLAN_NOT_CACHED")
    );
    for request in [
        AcquireLeaseRequest { job: String::new(), ..missing.clone() },
        AcquireLeaseRequest { specs: vec![], ..missing.clone() },
        AcquireLeaseRequest { ttl: Some(prost_types::Duration { seconds: 0, nanos: 5 }), ..missing.clone() },
        AcquireLeaseRequest { specs: vec![request("ring:4"), request("ring:5")], ..missing.clone() },
        AcquireLeaseRequest { priority: 77, ..missing },
    ] {
        let refused = leases(&server).acquire_lease(request.clone()).await.unwrap_err();
        assert!(matches!(refused.code(), Code::InvalidArgument | Code::NotFound), "{request:?}: {refused}");
    }
    let unknown = GetLeaseRequest { name: "leases/0000000000000007".to_owned() };
    assert_eq!(leases(&server).get_lease(unknown).await.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}

/// Whoever watches is told that a lease has ended by itself, also after a restart, and once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_nobody_renews_is_told_of_as_expired() {
    let server = start().await;
    let mut events = watch(&server, "").await;
    plan(&server, request("ring:4")).await;
    let asked = AcquireLeaseRequest {
        job: "17".to_owned(),
        specs: vec![request("ring:4")],
        ttl: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..AcquireLeaseRequest::default()
    };
    let lease = leases(&server).acquire_lease(asked).await.unwrap().into_inner();
    let told = next(&mut events).await;
    assert_eq!((&told.lease, &*told.job), (&lease.name, "17"));
    let Some(Event::Expired(expired)) = told.event else { panic!("{told:?}") };
    assert_eq!(expired.expire_time, lease.expire_time);
    drop(events);
    let directory = server.stop().await;
    let pipeline = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, quick, std::sync::Arc::new(pipeline)).await;
    let missing = leases(&server).get_lease(GetLeaseRequest { name: lease.name.clone() }).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert!(missing.message().contains("another server"), "{missing:?}");
    let mut events = watch(&server, &told.resume_token).await;
    acquire(&server, "18", vec![request(BOXES)]).await;
    report(&server, BOXES, vec![event("1", gpu("b0g3"), false)]).await;
    let next = next(&mut events).await;
    assert_eq!((&*next.job, next.sequence), ("18", told.sequence + 1), "it is told of once");
    server.stop().await;
}
