//! Faults belong to devices: they concern what runs there, whichever topology says so, and nothing else.

use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, DeviceTarget, DocumentFormat, Fault, FaultEvent, FaultScope, Lease,
    ListFaultsRequest, NicTarget, Placement, PlanResponse, PlanSpec, RankSlot, ReplanStage, ReportFaultsRequest,
    ReportFaultsResponse, ReportOutcome, fault,
};
use canopy_topology::{TopologyLimits, generate, to_yaml};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::replans::{
    BOXES, acquire, event, faults, link, next, next_final, quick, report, silence, source, start, watch,
};
use crate::support::{TestServer, document_request, request};

fn on(hosts: &[&str], request: PlanSpec) -> PlanSpec {
    let slot = |host: &&str| RankSlot { node: (*host).to_owned(), device: 0, count: Some(8) };
    PlanSpec { placement: Some(Placement { slots: hosts.iter().map(slot).collect() }), ..request }
}

fn placed(hosts: &[&str]) -> PlanSpec {
    on(hosts, request(BOXES))
}

/// The card of a device by its machine.
fn nic(host: &str, index: u32) -> Fault {
    let device = DeviceTarget { host: host.to_owned(), index, ..DeviceTarget::default() };
    let target = fault::Target::Nic(NicTarget { device: Some(device), port: String::new() });
    Fault { target: Some(target), remaining: None }
}

/// The card of a device by the id of its node.
fn nic_of(node: &str) -> Fault {
    let device = DeviceTarget { node: node.to_owned(), ..DeviceTarget::default() };
    let target = fault::Target::Nic(NicTarget { device: Some(device), port: String::new() });
    Fault { target: Some(target), remaining: None }
}

fn host(name: &str) -> Fault {
    Fault { target: Some(fault::Target::Host(name.to_owned())), remaining: None }
}

/// Reports of a job, or of machines where none is named.
async fn report_of(server: &TestServer, job: &str, events: Vec<FaultEvent>) -> Result<ReportFaultsResponse, Status> {
    let asked = ReportFaultsRequest { topology: None, events, job: job.to_owned() };
    faults(server).report_faults(asked).await.map(tonic::Response::into_inner)
}

async fn plan(server: &TestServer, request: PlanSpec) -> PlanResponse {
    server.client().plan(request.into_plan()).await.unwrap().into_inner()
}

/// What a new plan is made around.
async fn around(server: &TestServer, request: PlanSpec) -> Vec<Fault> {
    plan(server, request).await.puncture.map(|puncture| puncture.faults).unwrap_or_default()
}

fn of(reply: &ReportFaultsResponse, event: usize) -> (&str, FaultScope) {
    (reply.outcomes[event].element.as_str(), reply.outcomes[event].scope())
}

async fn jobs(server: &TestServer) -> [Lease; 3] {
    let one = acquire(server, "one", vec![placed(&["gpu01", "gpu02"])]).await;
    let other = acquire(server, "other", vec![placed(&["gpu11", "gpu12"])]).await;
    [one, other, acquire(server, "bare", vec![request(BOXES)]).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_machine_concerns_what_is_placed_there_and_nothing_else() {
    let server = start().await;
    let [one, ..] = jobs(&server).await;
    let mut events = watch(&server, "").await;
    let told = report_of(&server, "", vec![event("1", nic("gpu01.cluster", 3), false)]).await.unwrap();
    assert_eq!(of(&told, 0), ("nic:gpu01.cluster:3", FaultScope::Host));
    assert_eq!((told.active, told.leases, told.topology.as_str()), (1, 1, ""));
    let (replanned, superseded) = next_final(&mut events).await;
    assert_eq!((replanned.job.as_str(), replanned.faults), ("one", vec![nic_of("b0g3")]));
    silence(&mut events, 500).await;

    let new = plan(&server, placed(&["gpu01", "gpu02"])).await;
    assert_eq!(new.plan.unwrap().name, superseded.new_plan);
    // On another box of another network it is another node, and the same device.
    assert_eq!(around(&server, placed(&["gpu07", "gpu01"])).await, [nic_of("b1g3")]);
    let larger = on(&["gpu00", "gpu01", "gpu02"], request("dgx-a100:boxes=3"));
    assert_eq!(around(&server, larger).await, [nic_of("b1g3")]);
    for elsewhere in [placed(&["gpu11", "gpu12"]), placed(&["gpu010", "gpu0"]), request(BOXES)] {
        assert_eq!(around(&server, elsewhere).await, []);
    }

    let asked = ClearFaultsRequest { faults: vec![nic("gpu01", 3)], ..ClearFaultsRequest::default() };
    let cleared = faults(&server).clear_faults(asked).await.unwrap().into_inner();
    assert_eq!((cleared.cleared, cleared.active), (1, 0));
    let (_, restored) = next_final(&mut events).await;
    assert_eq!((restored.stage(), &restored.new_plan), (ReplanStage::Restored, &one.plans[0].original));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_says_which_devices_names_of_its_topology_are() {
    let server = start().await;
    jobs(&server).await;
    let mut events = watch(&server, "").await;
    let reports = vec![
        event("1", nic_of("b0g3"), false),
        event("2", nic("gpu12", 0), false),
        event("3", nic("gpu01", 0), false),
        event("4", nic("gpu12", 8), false),
    ];
    let told = report_of(&server, "other", reports).await.unwrap();
    assert_eq!(of(&told, 0), ("nic:gpu11:3", FaultScope::Host));
    assert_eq!(of(&told, 1), ("nic:gpu12:0", FaultScope::Host));
    let refused: Vec<ReportOutcome> = told.outcomes.iter().skip(2).map(|outcome| outcome.outcome()).collect();
    assert_eq!(refused, [ReportOutcome::Refused; 2], "none of its machines, and none of its devices");
    assert_eq!((told.active, told.leases), (2, 1));
    assert_eq!(next_final(&mut events).await.0.job, "other");

    // What lies between devices has a name in the topology alone, and is broken where that is placed.
    let told = report_of(&server, "other", vec![event("5", link("b1g2", "b1nv", None), false)]).await.unwrap();
    assert_eq!((of(&told, 0), told.leases), (("link:b1g2=b1nv", FaultScope::Placement), 1));
    assert_eq!(next_final(&mut events).await.0.job, "other");
    silence(&mut events, 500).await;
    assert_eq!(around(&server, placed(&["gpu11", "gpu12"])).await.len(), 3);
    assert_eq!(around(&server, placed(&["gpu01", "gpu02"])).await, []);
    assert_eq!(around(&server, placed(&["gpu12", "gpu13"])).await, [nic_of("b0g0")]);

    let unknown = report_of(&server, "nobody", vec![event("6", host("b0"), false)]).await.unwrap_err();
    let reason = unknown.get_error_details().error_info().unwrap().reason.clone();
    assert_eq!((unknown.code(), reason.as_str()), (Code::NotFound, "JOB_UNKNOWN"));
    let unnamed = report_of(&server, "", vec![event("7", nic_of("b0g3"), false)]).await.unwrap();
    let problem = unnamed.outcomes[0].error.clone().unwrap();
    assert!(problem.message.contains("write host:NAME, gpu:HOST:INDEX or nic:HOST:INDEX"), "{problem:?}");
    let asked = ReportFaultsRequest { topology: Some(source(BOXES)), job: "one".to_owned(), events: vec![] };
    assert_eq!(faults(&server).report_faults(asked).await.unwrap_err().code(), Code::InvalidArgument);

    let asked = ClearFaultsRequest { job: "other".to_owned(), ..ClearFaultsRequest::default() };
    let cleared = faults(&server).clear_faults(asked).await.unwrap().into_inner();
    assert_eq!((cleared.cleared, cleared.active), (3, 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_topology_without_hosts_concern_nothing_that_is_placed() {
    let server = start().await;
    jobs(&server).await;
    let mut events = watch(&server, "").await;
    let told = report(&server, BOXES, vec![event("1", nic_of("b0g3"), false)]).await;
    assert_eq!(of(&told, 0), ("nic:b0g3", FaultScope::Topology));
    assert_eq!((told.leases, told.placed_leases), (1, 2));
    assert_eq!(next_final(&mut events).await.0.job, "bare");
    silence(&mut events, 500).await;
    assert_eq!(around(&server, placed(&["gpu01", "gpu02"])).await, []);
    assert_eq!(around(&server, request(BOXES)).await, [nic_of("b0g3")]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_that_names_its_hosts_speaks_of_their_devices() {
    let server = start().await;
    jobs(&server).await;
    let mut events = watch(&server, "").await;
    let boxes = to_yaml(&generate(BOXES, &TopologyLimits::STANDARD).unwrap());
    let hosted = boxes.replace("box: b0", "host: gpu02, box: b0").replace("box: b1", "host: gpu03, box: b1");
    let hosted = document_request(DocumentFormat::Yaml, &hosted).topology;
    let report = async |events| {
        let asked = ReportFaultsRequest { topology: hosted.clone(), events, ..ReportFaultsRequest::default() };
        faults(&server).report_faults(asked).await.unwrap().into_inner()
    };
    let told = report(vec![event("3", nic_of("b0g5"), false), event("4", host("b1"), false)]).await;
    assert_eq!((of(&told, 0), of(&told, 1)), (("nic:gpu02:5", FaultScope::Host), ("host:gpu03", FaultScope::Host)));
    assert_eq!((told.leases, told.placed_leases), (1, 0));
    let (replanned, _) = next_final(&mut events).await;
    assert_eq!((replanned.job.as_str(), replanned.faults), ("one", vec![nic_of("b1g5")]));
    // A machine is the box that is on it.
    assert_eq!(around(&server, placed(&["gpu01", "gpu03"])).await, [host("b1")]);
    let ring = PlanSpec {
        placement: Some(Placement {
            slots: ["gpu03", "gpu04", "gpu05", "gpu06"]
                .into_iter()
                .map(|node| RankSlot { node: node.to_owned(), device: 0, count: Some(1) })
                .collect(),
        }),
        ..request("ring:4")
    };
    let gone = around(&server, ring).await;
    assert!(matches!(gone[0].target, Some(fault::Target::Device(_))) && gone.len() == 1, "{gone:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_listed_and_survive_a_restart() {
    let server = start().await;
    jobs(&server).await;
    report(&server, BOXES, vec![event("1", nic_of("b0g1"), false)]).await;
    report_of(&server, "other", vec![event("2", link("b1g2", "b1nv", None), false)]).await.unwrap();
    let mut events = watch(&server, "").await;
    report_of(&server, "", vec![event("3", nic("gpu01", 3), false)]).await.unwrap();
    let told = loop {
        let told = next(&mut events).await;
        if told.job == "one" && matches!(told.event, Some(Event::Superseded(_))) {
            break told;
        }
    };
    drop(events);
    let directory = server.stop().await;
    let planner = canopy_server::Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, quick, std::sync::Arc::new(planner)).await;
    let listed = faults(&server).list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
    let shown: Vec<_> =
        listed.iter().map(|fault| (fault.text.as_str(), fault.scope(), fault.machines.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("nic:b0g1", FaultScope::Topology, ""),
            ("link:b1g2=b1nv", FaultScope::Placement, "gpu11,gpu12"),
            ("nic:gpu01:3", FaultScope::Host, "gpu01"),
        ]
    );
    assert_eq!(listed[0].topology, listed[1].topology);
    let only = ListFaultsRequest { filter: "scope=host AND machines=gpu01".to_owned(), ..ListFaultsRequest::default() };
    assert_eq!(faults(&server).list_faults(only).await.unwrap().into_inner().total_size, 1);
    assert_eq!(around(&server, placed(&["gpu01", "gpu02"])).await, told.faults);
    let mut events = watch(&server, &told.resume_token).await;
    let asked = ClearFaultsRequest { faults: vec![nic("gpu01", 3)], ..ClearFaultsRequest::default() };
    assert_eq!(faults(&server).clear_faults(asked).await.unwrap().into_inner().cleared, 1);
    loop {
        let (told, superseded) = next_final(&mut events).await;
        if told.job == "one" && superseded.stage() == ReplanStage::Restored {
            break;
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_with_a_placement_begins_around_the_faults_of_its_machines() {
    let server = start().await;
    report_of(&server, "", vec![event("1", nic("gpu01", 3), false)]).await.unwrap();
    let ask = async |job: &str, hosts: &[&str]| {
        let asked =
            AcquireLeaseRequest { job: job.to_owned(), specs: vec![placed(hosts)], ..AcquireLeaseRequest::default() };
        crate::replans::leases(&server).acquire_lease(asked).await.map(tonic::Response::into_inner)
    };
    let lease = ask("one", &["gpu01", "gpu02"]).await.unwrap();
    assert_ne!(lease.plans[0].current, lease.plans[0].original);
    // It is the machine that is broken.
    plan(&server, placed(&["gpu11", "gpu12"])).await;
    let other = ask("other", &["gpu11", "gpu12"]).await.unwrap();
    assert_eq!(other.plans[0].current, other.plans[0].original);
    server.stop().await;
}
