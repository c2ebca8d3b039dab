//! A server of two tenants: what belongs to blue, which is attacked, and what red has to attack with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, DeviceTarget, Fault, FaultEvent, GetPlanSummaryRequest, Lease,
    ListFaultsRequest, ListLeasesRequest, PinPlanRequest, ReportFaultsRequest, fault,
};
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

use super::victim::{Times, times};
use crate::access::{Issued, Shows};
use crate::support::{Process, request};

/// The network whose plan blue has pinned.
const PINNED: &str = "dgx-a100:boxes=2";
/// The network for which blue holds a lease, and of which a device is broken.
const LEASED: &str = "ring:8";
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const JOB: &str = "train-blue";
/// What red may use.
const RULES: &str = r#"
[[grant]]
issuer = "site"
subject = "blue"
roles = ["operator"]
tenants = ["blue"]
[quotas.tenants]
red = { calls = 32, jobs = 4, requests_per_second = 1000, topologies_per_hour = 100, leases = 10 }
"#;

/// A running server, and what belongs to blue.
pub(super) struct Site {
    process: Process,
    issued: Issued,
    channel: Channel,
    blue: Shows,
    plan: String,
    lease: String,
    topology: String,
    /// Of new networks of blue.
    number: AtomicU64,
}

/// What red has to attack with.
#[derive(Clone)]
pub(super) struct Attacker {
    pub(super) channel: Channel,
    pub(super) address: std::net::SocketAddr,
    pub(super) admin_address: std::net::SocketAddr,
    pub(super) viewer: Shows,
    pub(super) planner: Shows,
    pub(super) reporter: Shows,
    pub(super) operator: Shows,
    /// A token that was never issued.
    pub(super) forged: Shows,
    /// Names of what is blue's.
    pub(super) plan: String,
    pub(super) lease: String,
    pub(super) topology: String,
}

fn broken() -> Fault {
    let device = DeviceTarget { node: "1".to_owned(), ..DeviceTarget::default() };
    Fault { target: Some(fault::Target::Device(device)), remaining: None }
}

impl Site {
    pub(super) async fn open() -> Self {
        let issued = Issued::new();
        let process = Process::start(|command, folder| {
            issued.serve_with(command, &folder, RULES);
            command.arg("--audit").arg(folder.join("audit")).args(["--isolate-tenants", "blue"]);
            command.args(["--drain-timeout", "0s"]);
        });
        let channel = process.channel().await;
        let blue = issued.jwt("blue", "canopy");
        let plan = async |network| {
            let planned = PlannerClient::new(channel.clone()).plan(blue.with(request(network).into_plan())).await;
            planned.unwrap().into_inner().plan.unwrap().name
        };
        plan(LEASED).await;
        let plan = plan(PINNED).await;
        let pin = PinPlanRequest { name: plan.clone(), ..PinPlanRequest::default() };
        PlansClient::new(channel.clone()).pin_plan(blue.with(pin)).await.unwrap();
        let lease =
            AcquireLeaseRequest { job: JOB.to_owned(), specs: vec![request(LEASED)], ..AcquireLeaseRequest::default() };
        let lease = LeasesClient::new(channel.clone()).acquire_lease(blue.with(lease)).await.unwrap().into_inner().name;
        let mut site =
            Self { process, issued, channel, blue, plan, lease, topology: String::new(), number: AtomicU64::new(0) };
        site.topology = site.report().await;
        site
    }

    /// Reports the fault that blue knows of once more; the name of its topology.
    async fn report(&self) -> String {
        let event = FaultEvent {
            source: "dcgm".to_owned(),
            event_id: self.number.fetch_add(1, Ordering::Relaxed).to_string(),
            fault: Some(broken()),
            ..FaultEvent::default()
        };
        let asked =
            ReportFaultsRequest { topology: request(LEASED).topology, events: vec![event], ..Default::default() };
        let reply = FaultsClient::new(self.channel.clone()).report_faults(self.blue.with(asked)).await.unwrap();
        reply.into_inner().topology
    }

    pub(super) async fn attacker(&self) -> Attacker {
        Attacker {
            channel: self.process.channel().await,
            address: self.process.address("tcp"),
            admin_address: self.process.address("admin"),
            viewer: self.issued.token("viewer"),
            planner: self.issued.token("planner"),
            reporter: self.issued.token("fault-reporter"),
            operator: self.issued.token("operator"),
            forged: self.issued.of_another_server(),
            plan: self.plan.clone(),
            lease: self.lease.clone(),
            topology: self.topology.clone(),
        }
    }

    /// All that is blue's, as text: its plan with its pin, its leases with their plans, its faults. A new report of its
    /// fault is taken.
    pub(super) async fn state(&self) -> String {
        self.report().await;
        let mut admin = PlansClient::new(self.channel.clone());
        let asked = GetPlanSummaryRequest { name: self.plan.clone() };
        let plan = admin.get_plan_summary(self.blue.with(asked)).await.unwrap().into_inner();
        let held = self.leases().await;
        let mut faults = FaultsClient::new(self.channel.clone());
        let asked = ListFaultsRequest { page_size: 1000, ..ListFaultsRequest::default() };
        let faults = faults.list_faults(self.blue.with(asked)).await.unwrap().into_inner().faults;
        let known = faults.iter().filter(|fault| fault.topology == self.topology).map(|fault| {
            let is_blue = fault.sources.iter().any(|source| source == "blue/dcgm");
            format!("{} by blue {is_blue}: {}", fault.text, fault.state)
        });
        let known: Vec<String> = known.collect();
        format!("{} of {} pinned {}\n{held:?}\n{known:?}", plan.name, plan.tenant, plan.pinned)
    }

    /// The leases of blue with their plans, once none of them is made anew.
    async fn leases(&self) -> Vec<String> {
        let mut client = LeasesClient::new(self.channel.clone());
        let settled = async {
            loop {
                let asked = self.blue.with(ListLeasesRequest::default());
                let leases = client.list_leases(asked).await.unwrap().into_inner().leases;
                let mut plans = leases.iter().flat_map(|lease| &lease.plans);
                if plans.all(|plan| !plan.is_replanning && plan.current != plan.original) {
                    return leases;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let leases = timeout(PATIENCE, settled).await.expect("the plans around the fault are made");
        let text = |lease: &Lease| {
            let plans: Vec<&str> = lease.plans.iter().map(|plan| plan.current.as_str()).collect();
            format!("{} of {}: {plans:?}", lease.name, lease.job)
        };
        leases.iter().map(text).collect()
    }

    /// How long blue waits for its cached plan, and for a new one.
    pub(super) async fn times(&self) -> Times {
        times(&self.process, &self.blue, PINNED, &self.number).await
    }

    pub(super) async fn end(self) {
        // All is blue's to clear.
        let clear = ClearFaultsRequest { topology: self.topology.clone(), ..ClearFaultsRequest::default() };
        FaultsClient::new(self.channel.clone()).clear_faults(self.blue.with(clear)).await.unwrap();
        self.process.signal("TERM");
        let ended = tokio::task::spawn_blocking(|| self.process.end().0).await.unwrap();
        assert_eq!(ended, Some(0));
    }
}
