//! Quotas, and what belongs to one tenant alone.

use std::time::Duration;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::plan_moving_request::Request as Message;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, CancelOperationRequest, ClearFaultsRequest, DeviceTarget, EvictPlansRequest, Fault,
    FaultEvent, ForgetRefusalsRequest, GetQuotaRequest, GetStatusRequest, ListFaultsRequest, MovingMatrix,
    MovingNetwork, PinPlanRequest, PlanMovingRequest, PlanRequest, Priority, PutTopologyRequest, QuotaUse,
    ReleaseLeaseRequest, RenewLeaseRequest, ReportFaultsRequest, TopologyDocument, TopologySource, UnpinPlanRequest,
    WatchLeasesRequest, fault,
};
use canopy_wire::reason_of;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::access::{Issued, Shows, reason};
use crate::support::{Process, request};

const PATIENCE: Duration = Duration::from_secs(60);
/// Callers of a second tenant, by tokens of the issuer.
const BLUE: &str = "[[grant]]\nissuer = \"site\"\nsubject = \"blue\"\nroles = [\"operator\"]\ntenants = [\"blue\"]\n";

/// A server with these quotas, a channel to it, and callers of tenants red and blue.
async fn serving(quotas: &str) -> (Process, Channel, Shows, Shows) {
    let issued = Issued::new();
    let rules = format!("{BLUE}[quotas]\n{quotas}\n");
    let process = Process::start(|command, folder| issued.serve_with(command, &folder, &rules));
    let channel = process.channel().await;
    (process, channel, issued.token("operator"), issued.jwt("blue", "canopy"))
}

/// A call was refused because of this quota, and says when to try again.
#[track_caller]
fn assert_over(status: &Status, quota: &str) -> Duration {
    assert_eq!((status.code(), reason(status).as_str()), (Code::ResourceExhausted, "QUOTA_EXCEEDED"), "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["quota"], quota);
    assert_eq!(details.quota_failure().unwrap().violations[0].subject, quota);
    assert!(status.message().contains(quota), "{status:?}");
    details.retry_info().unwrap().retry_delay.unwrap()
}

async fn status(channel: &Channel, shows: &Shows) -> Result<(), Status> {
    let asked = shows.with(GetStatusRequest::default());
    ServerClient::new(channel.clone()).get_status(asked).await.map(drop)
}

async fn put(channel: &Channel, shows: &Shows, expression: &str) -> Result<(), Status> {
    let asked = PutTopologyRequest { topology: request(expression).topology, ..PutTopologyRequest::default() };
    NetworksClient::new(channel.clone()).put_topology(shows.with(asked)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_a_quota_are_refused_until_there_is_room() {
    let (process, channel, red, blue) =
        serving("tenants.red = { requests_per_second = 3, topologies_per_hour = 2 }\ntenants.blue = { calls = 2 }")
            .await;
    let refused = loop {
        if let Err(refused) = status(&channel, &red).await {
            break refused;
        }
    };
    let wait = assert_over(&refused, "requests_per_second");
    assert!(wait <= Duration::from_millis(334), "{wait:?}");
    status(&channel, &blue).await.unwrap();
    sleep(wait).await;
    status(&channel, &red).await.unwrap();
    // Streams are calls as long as they are open.
    let mut watching = LeasesClient::new(channel.clone());
    let watch = || blue.with(WatchLeasesRequest::default());
    let streams = [watching.watch_leases(watch()).await.unwrap(), watching.watch_leases(watch()).await.unwrap()];
    assert_over(&status(&channel, &blue).await.unwrap_err(), "calls");
    drop(streams);
    let again = async {
        while status(&channel, &blue).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("the streams are over");
    // What is stored already counts for nothing.
    for (expression, is_new) in [("ring:4", true), ("ring:5", true), ("ring:4", false), ("ring:6", true)] {
        sleep(Duration::from_millis(400)).await;
        let outcome = put(&channel, &red, expression).await;
        if is_new && expression == "ring:6" {
            assert!(assert_over(&outcome.unwrap_err(), "topologies_per_hour") > Duration::from_secs(60));
        } else {
            outcome.unwrap();
        }
    }
    put(&channel, &blue, "ring:6").await.unwrap();
    let viewer = Issued::new().token("viewer");
    let (_, token) = viewer.headers().next().unwrap();
    let page = process.page_with("/metrics", &[("Authorization", token)]).await;
    assert!(page.contains("canopy_quota_refusals_total{quota=\"calls\"}"), "{page}");
}

/// A stream that plans on and on uses its tenant's planning time; matrices are refused once that is used up.
#[tokio::test(flavor = "multi_thread")]
async fn matrices_of_a_stream_count_as_planning() {
    // Looking at the network counts, too.
    let (_process, channel, red, _) = serving("tenants.red = { planning_seconds_per_hour = 5 }").await;
    let (messages, waiting) = mpsc::channel(1);
    let mut planner = PlannerClient::new(channel.clone()).max_decoding_message_size(64 << 20);
    let topology = request("rail:boxes=64,gpus=8").topology;
    let network = Message::Network(MovingNetwork { topology, ..MovingNetwork::default() });
    messages.send(PlanMovingRequest { request: Some(network) }).await.unwrap();
    let mut events = planner.plan_moving(red.with(ReceiverStream::new(waiting))).await.unwrap().into_inner();
    let bytes: Vec<u64> = (0..512 * 512).map(|at| if at % 513 == 0 { 0 } else { at % 97 }).collect();
    let mut number = 0;
    let refused = loop {
        let event = timeout(PATIENCE, events.message()).await.expect("it comes in time").unwrap().unwrap();
        if let Some(Event::Refusal(refusal)) = event.event {
            break refusal.error.unwrap();
        }
        number += 1;
        assert!(number < 10_000, "five seconds are used up");
        let matrix = Message::Matrix(MovingMatrix { number, bytes: bytes.clone() });
        messages.send(PlanMovingRequest { request: Some(matrix) }).await.unwrap();
    };
    assert_eq!((Code::from(refused.code), &*reason_of(&refused)), (Code::ResourceExhausted, "QUOTA_EXCEEDED"));
    assert!(number > 1, "{number}");
}

/// A long request counts until it is answered, whoever works on it.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_long_requests_are_limited() {
    let (_process, channel, red, blue) = serving("tenants.red = { request_bytes = 300000 }").await;
    let long = |length: usize| {
        let text = format!("canopy: 1\nnodes: []\nlinks: []\n# {}\n", "x".repeat(length));
        let source = Source::Document(TopologyDocument { content: text.into(), ..TopologyDocument::default() });
        PutTopologyRequest { topology: Some(TopologySource { source: Some(source) }), ..PutTopologyRequest::default() }
    };
    let mut topologies = NetworksClient::new(channel.clone());
    assert_over(&topologies.put_topology(red.with(long(400_000))).await.unwrap_err(), "request_bytes");
    // They are read, and refused for what they say; each gives its room back.
    for shows in [&red, &red, &blue] {
        let length = if std::ptr::eq(shows, &red) { 200_000 } else { 400_000 };
        let refused = topologies.put_topology(shows.with(long(length))).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
}

/// What is stored counts afterwards, and sham networks leave room for the faults of others.
#[tokio::test(flavor = "multi_thread")]
async fn stored_bytes_and_networks_with_faults_are_limited() {
    let (_process, channel, red, blue) =
        serving("tenants.red = { stored_bytes_per_hour = 500 }\ntenants.blue = { fault_scopes_per_hour = 2 }").await;
    let mut planner = PlannerClient::new(channel.clone());
    planner.plan(red.with(request("ring:8").into_plan())).await.unwrap();
    for refused in [
        planner.plan(red.with(request("ring:9").into_plan())).await.map(drop).unwrap_err(),
        put(&channel, &red, "ring:9").await.unwrap_err(),
    ] {
        assert!(assert_over(&refused, "stored_bytes_per_hour") > Duration::from_secs(60), "{refused:?}");
    }
    // What is there already takes no room, and others have theirs.
    planner.plan(red.with(request("ring:8").into_plan())).await.unwrap();
    planner.plan(blue.with(request("ring:9").into_plan())).await.unwrap();
    let mut faults = FaultsClient::new(channel.clone());
    let device = DeviceTarget { node: "0".to_owned(), ..DeviceTarget::default() };
    let dead = |ranks: u32| FaultEvent {
        source: "dcgm".to_owned(),
        event_id: ranks.to_string(),
        fault: Some(Fault { target: Some(fault::Target::Device(device.clone())), remaining: None }),
        ..FaultEvent::default()
    };
    for (ranks, is_room) in [(4, true), (5, true), (6, false), (4, true)] {
        let asked = ReportFaultsRequest {
            topology: request(&format!("ring:{ranks}")).topology,
            events: vec![dead(ranks)],
            ..ReportFaultsRequest::default()
        };
        let reported = faults.report_faults(blue.with(asked)).await.unwrap().into_inner();
        let refused = reported.outcomes[0].error.as_ref().map(reason_of);
        assert_eq!(refused.as_deref(), (!is_room).then_some("QUOTA_EXCEEDED"), "{ranks}: {reported:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_belong_to_the_tenant_that_acquired_them() {
    let (_process, channel, red, blue) = serving("default = { leases = 1 }").await;
    let mut planner = PlannerClient::new(channel.clone());
    let repair = || PlanRequest { priority: Priority::Repair.into(), ..request("ring:4").into_plan() };
    let refused = planner.plan(red.with(repair())).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::PermissionDenied, "REPAIR_WITHOUT_LEASE"));
    planner.plan(red.with(request("ring:4").into_plan())).await.unwrap();
    let mut leases = LeasesClient::new(channel.clone());
    let acquire = || AcquireLeaseRequest {
        job: "train".to_owned(),
        specs: vec![request("ring:4")],
        ..AcquireLeaseRequest::default()
    };
    let lease = leases.acquire_lease(red.with(acquire())).await.unwrap().into_inner().name;
    let asked = red.with(GetQuotaRequest {});
    let quota = ServerClient::new(channel.clone()).get_quota(asked).await.unwrap().into_inner();
    assert_eq!((quota.identity.as_str(), quota.tenant.as_str(), quota.weight), ("operator", "red", 1));
    let one_lease = QuotaUse { quota: "leases".to_owned(), limit: 1, used: 1 };
    assert_eq!((quota.of_tenant, quota.of_identity), (vec![one_lease], Vec::new()));
    assert_over(&leases.acquire_lease(red.with(acquire())).await.unwrap_err(), "leases");
    planner.plan(red.with(repair())).await.unwrap();
    assert_eq!(planner.plan(blue.with(repair())).await.unwrap_err().code(), Code::PermissionDenied);
    let by_name = || ReleaseLeaseRequest { name: lease.clone(), ..ReleaseLeaseRequest::default() };
    let by_job = || ReleaseLeaseRequest { job: "train".to_owned(), ..ReleaseLeaseRequest::default() };
    let renew = || RenewLeaseRequest { name: lease.clone(), ttl: None, ..RenewLeaseRequest::default() };
    for refused in [
        leases.release_lease(blue.with(by_name())).await.map(drop),
        leases.release_lease(blue.with(by_job())).await.map(drop),
        leases.renew_lease(blue.with(renew())).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!((refused.code(), reason(&refused).as_str()), (Code::PermissionDenied, "NOT_OWNER"), "{refused:?}");
        assert!(refused.message().contains("belongs to tenant `red`"), "{refused:?}");
    }
    // Of one job, each tenant releases what is its own.
    leases.acquire_lease(blue.with(acquire())).await.unwrap();
    assert_eq!(leases.release_lease(blue.with(by_job())).await.unwrap().into_inner().released, 1);
    leases.renew_lease(red.with(renew())).await.unwrap();
    assert_eq!(leases.release_lease(red.with(by_job())).await.unwrap().into_inner().released, 1);
}

/// A job that a crash has interrupted is still its tenant's.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_belong_to_their_tenant_after_a_crash() {
    let issued = Issued::new();
    let (red, blue) = (issued.token("operator"), issued.jwt("blue", "canopy"));
    let start = |folder| Process::start_in(folder, |command, folder| issued.serve_with(command, &folder, BLUE));
    let process = start(tempfile::tempdir().unwrap());
    let prefetched = PlannerClient::new(process.channel().await)
        .prefetch_plan(red.with(request("torus:24x24").into_prefetch()))
        .await;
    let name = prefetched.unwrap().into_inner().name;
    let process = start(process.crash());
    let mut operations = OperationsClient::new(process.channel().await);
    let cancel = || CancelOperationRequest { name: name.clone(), ..CancelOperationRequest::default() };
    let refused = operations.cancel_operation(blue.with(cancel())).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::PermissionDenied, "NOT_OWNER"), "{refused:?}");
    operations.cancel_operation(red.with(cancel())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_change_neither_what_is_shared_nor_what_others_report() {
    let (_process, channel, red, blue) = serving("").await;
    let mut planner = PlannerClient::new(channel.clone());
    let plan = planner.plan(red.with(request("ring:4").into_plan())).await.unwrap().into_inner().plan.unwrap().name;
    let mut admin = PlansClient::new(channel.clone());
    let name = || plan.clone();
    for refused in [
        admin.pin_plan(red.with(PinPlanRequest { name: name(), ..Default::default() })).await.map(drop),
        admin.unpin_plan(red.with(UnpinPlanRequest { name: name(), ..Default::default() })).await.map(drop),
        admin.evict_plans(red.with(EvictPlansRequest { names: vec![name()], ..Default::default() })).await.map(drop),
        ServerClient::new(channel.clone()).forget_refusals(red.with(ForgetRefusalsRequest::default())).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!((refused.code(), reason(&refused).as_str()), (Code::PermissionDenied, "NOT_OWNER"), "{refused:?}");
    }
    // A filter picks only what one may evict.
    let all = EvictPlansRequest { filter: "ranks > 0".to_owned(), ..Default::default() };
    assert_eq!(admin.evict_plans(red.with(all)).await.unwrap().into_inner().evicted, 0);
    let mut faults = FaultsClient::new(channel.clone());
    let device = DeviceTarget { node: "1".to_owned(), ..DeviceTarget::default() };
    let fault = || Fault { target: Some(fault::Target::Device(device.clone())), remaining: None };
    let mut number = 0;
    let mut report = |cleared: bool| {
        number += 1;
        let event_id = number.to_string();
        let event =
            FaultEvent { source: "dcgm".to_owned(), event_id, cleared, fault: Some(fault()), ..Default::default() };
        ReportFaultsRequest { topology: request("ring:4").topology, events: vec![event], ..Default::default() }
    };
    let reported = faults.report_faults(red.with(report(false))).await.unwrap().into_inner();
    assert_eq!(reported.active, 1);
    let clear = || ClearFaultsRequest { topology: reported.topology.clone(), ..Default::default() };
    // Neither a clear of its own source of that name nor a clear of all takes it back.
    faults.report_faults(blue.with(report(true))).await.unwrap();
    faults.clear_faults(blue.with(clear())).await.unwrap();
    for (caller, sources) in [(&blue, &[][..]), (&red, &["red/dcgm".to_owned()])] {
        let shown = faults.list_faults(caller.with(ListFaultsRequest::default())).await.unwrap().into_inner();
        let found: Vec<String> = shown.faults.into_iter().flat_map(|fault| fault.sources).collect();
        assert_eq!(found, sources);
    }
    let cleared = faults.clear_faults(red.with(clear())).await.unwrap().into_inner();
    assert_eq!(cleared.active, 0, "{cleared:?}");
}
