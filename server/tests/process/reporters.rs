//! Faults that the reporters of one tenant report, and what they are to the others.

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, DeviceTarget, Fault, FaultEvent, Lease, ListFaultsRequest,
    ListLeasesRequest, Placement, PlanSpec, RankSlot, ReportFaultsRequest, ReportFaultsResponse, ReportOutcome, fault,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::access::{Issued, Shows, reason};
use crate::support::{Process, request};

/// Callers beside those of tenant red: some of tenant blue, and monitors that act for no tenant.
const RULES: &str = r#"
[[grant]]
issuer = "site"
subject = "blue"
roles = ["planner", "fault-reporter"]
tenants = ["blue"]

[[grant]]
issuer = "site"
subject = "monitor"
roles = ["operator"]
"#;

/// A network, and a placement of its ranks on machines.
fn placed() -> PlanSpec {
    let slot = |rank: u32| RankSlot { node: format!("gpu{:02}", rank / 4), device: rank % 4, ..RankSlot::default() };
    PlanSpec { placement: Some(Placement { slots: (0..8).map(slot).collect() }), ..request("dgx-a100:boxes=2,gpus=4") }
}

struct Site {
    _process: Process,
    channel: Channel,
    red: Shows,
    blue: Shows,
    monitor: Shows,
}

impl Site {
    async fn new() -> Self {
        let issued = Issued::new();
        let process = Process::start(|command, folder| {
            command.args(["--replan-window", "100ms", "--fault-debounce", "200ms", "--plan-ahead=false"]);
            issued.serve_with(command, &folder, RULES);
        });
        let channel = process.channel().await;
        let [blue, monitor] = ["blue", "monitor"].map(|subject| issued.jwt(subject, "canopy"));
        Self { _process: process, channel, red: issued.token("planner"), blue, monitor }
    }

    async fn lease(&self, job: &str, asked: PlanSpec) {
        PlannerClient::new(self.channel.clone()).plan(self.red.with(asked.clone().into_plan())).await.unwrap();
        let asked = AcquireLeaseRequest { job: job.to_owned(), specs: vec![asked], ..AcquireLeaseRequest::default() };
        LeasesClient::new(self.channel.clone()).acquire_lease(self.red.with(asked)).await.unwrap();
    }

    async fn leases(&self) -> Vec<Lease> {
        let asked = self.red.with(ListLeasesRequest::default());
        LeasesClient::new(self.channel.clone()).list_leases(asked).await.unwrap().into_inner().leases
    }

    /// Whether a plan for a caller is made around faults.
    async fn is_around(&self, caller: &Shows, asked: PlanSpec) -> bool {
        let reply =
            PlannerClient::new(self.channel.clone()).plan(caller.with(asked.into_plan())).await.unwrap().into_inner();
        reply.warnings.iter().any(|warning| warning.code == "FAULTS_APPLIED")
    }

    async fn report(
        &self,
        caller: &Shows,
        subject: ReportFaultsRequest,
        device: DeviceTarget,
    ) -> Result<ReportFaultsResponse, Status> {
        let event = FaultEvent {
            source: "dcgm".to_owned(),
            event_id: format!("{device:?}"),
            fault: Some(Fault { target: Some(fault::Target::Device(device)), remaining: None }),
            ..FaultEvent::default()
        };
        let asked = ReportFaultsRequest { events: vec![event], ..subject };
        FaultsClient::new(self.channel.clone()).report_faults(caller.with(asked)).await.map(tonic::Response::into_inner)
    }

    async fn sources(&self, caller: &Shows) -> Vec<String> {
        let asked = caller.with(ListFaultsRequest { page_size: 100, ..ListFaultsRequest::default() });
        let faults = FaultsClient::new(self.channel.clone()).list_faults(asked).await.unwrap().into_inner().faults;
        faults.into_iter().flat_map(|fault| fault.sources).collect()
    }
}

fn node(name: &str) -> DeviceTarget {
    DeviceTarget { node: name.to_owned(), ..DeviceTarget::default() }
}

fn on_machine(host: &str, index: u32) -> DeviceTarget {
    DeviceTarget { host: host.to_owned(), index, ..DeviceTarget::default() }
}

/// However a reporter names what it calls broken, only its own tenant's plans avoid it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_reporter_changes_no_plan_of_another_tenant() {
    let site = Site::new().await;
    site.lease("ring", request("ring:6")).await;
    site.lease("placed", placed()).await;
    let before = site.leases().await;
    for job in ["ring", "placed"] {
        let of_job = ReportFaultsRequest { job: job.to_owned(), ..ReportFaultsRequest::default() };
        let status = site.report(&site.blue, of_job, node("b0g1")).await.unwrap_err();
        assert_eq!((status.code(), reason(&status)), (Code::PermissionDenied, "NOT_OWNER".to_owned()), "{job}");
    }
    let topology = || ReportFaultsRequest { topology: request("ring:6").topology, ..ReportFaultsRequest::default() };
    for (subject, device) in [(topology(), node("3")), (ReportFaultsRequest::default(), on_machine("gpu00", 1))] {
        let reply = site.report(&site.blue, subject, device).await.unwrap();
        assert_eq!(reply.outcomes[0].outcome(), ReportOutcome::Applied, "{reply:?}");
        assert_eq!(reply.leases, 0, "{reply:?}");
    }
    for asked in [request("ring:6"), placed()] {
        assert!(site.is_around(&site.blue, asked.clone()).await);
        assert!(!site.is_around(&site.red, asked.clone()).await);
        assert!(!site.is_around(&site.monitor, asked).await);
    }
    assert_eq!(site.leases().await, before);
    assert_eq!(site.sources(&site.red).await, [""; 0]);
    assert_eq!(site.sources(&site.blue).await, ["blue/dcgm", "blue/dcgm"]);
    assert_eq!(site.sources(&site.monitor).await, ["blue/dcgm", "blue/dcgm"]);
    // A monitor that acts for no tenant speaks to all of them, and clears what any of them has reported.
    let reply = site.report(&site.monitor, topology(), node("4")).await.unwrap();
    assert_eq!(reply.leases, 1, "{reply:?}");
    assert!(site.is_around(&site.red, request("ring:6")).await);
    let name = site.report(&site.monitor, topology(), node("4")).await.unwrap().topology;
    let asked = site.monitor.with(ClearFaultsRequest { topology: name, ..ClearFaultsRequest::default() });
    FaultsClient::new(site.channel.clone()).clear_faults(asked).await.unwrap();
    assert!(!site.is_around(&site.blue, request("ring:6")).await);
    assert_eq!(site.sources(&site.monitor).await, ["blue/dcgm"]);
}
