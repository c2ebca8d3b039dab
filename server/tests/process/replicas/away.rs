//! A database that is gone, or does not answer: what is cached is served, all else is refused, and soon after it is back all is well.

use std::time::Duration;

use canopy_prerequisites::Commits;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, GetClusterRequest, GetLeaseRequest, GetPlanRequest, GetTopologyRequest,
    Lease, ListFaultsRequest, PinPlanRequest, PutTopologyRequest, ReleaseLeaseRequest, RenewLeaseRequest,
};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::Cluster;
use super::fresh::lost_of;
use crate::kills::Workspace;
use crate::support::{Process, request};

/// From the moment the database is back until plans are made again.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// A refusal that says when to try again.
fn is_to_be_tried_again(status: &Status) -> bool {
    let details = status.get_error_details();
    status.code() == Code::Unavailable
        && details.error_info().is_some_and(|info| info.reason == "STORE_UNREACHABLE")
        && details.retry_info().is_some_and(|info| info.retry_delay.is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_cached_plans_are_served_and_all_else_waits_for_it() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let process = cluster.replica(0);
    let mut planner = PlannerClient::new(process.channel().await);
    let mut topologies = NetworksClient::new(process.channel().await);
    planner.plan(request("torus:3x3").into_plan()).await.unwrap();
    for (round, is_cut) in [false, true].into_iter().enumerate() {
        if is_cut {
            cluster.wires[0].cut();
        } else {
            cluster.postgres.kill();
        }
        // What is asked for before anybody has noticed ends, too.
        let fresh = request(&format!("torus:4x{}", 5 + round));
        let begun = Instant::now();
        let status =
            timeout(Duration::from_secs(20), planner.plan(fresh.clone().into_plan())).await.unwrap().unwrap_err();
        assert!(is_to_be_tried_again(&status), "{status:?}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        let page = process.page("/readyz").await;
        assert!(
            page.starts_with("HTTP/1.0 200") && page.contains("ready, but the database cannot be reached"),
            "{page}"
        );
        let asked = Instant::now();
        planner.plan(request("torus:3x3").into_plan()).await.unwrap();
        planner.look_up_plan(request("torus:3x3").into_look_up()).await.unwrap();
        let put = PutTopologyRequest { topology: request("torus:5x5").topology, ..PutTopologyRequest::default() };
        let status = topologies.put_topology(put).await.unwrap_err();
        assert!(is_to_be_tried_again(&status), "{status:?}");
        assert!(asked.elapsed() < Duration::from_secs(2), "nothing waits for it: {:?}", asked.elapsed());
        let limit = Instant::now() + RECOVERY_MAX;
        while process.metric("canopy_database_reachable").await != Some(0.0) {
            assert!(Instant::now() < limit, "no metric says so");
            sleep(Duration::from_millis(50)).await;
        }
        if is_cut {
            cluster.wires[0].mend();
        } else {
            cluster.postgres.begin();
        }
        let back = Instant::now();
        while planner.plan(fresh.clone().into_plan()).await.is_err() {
            assert!(back.elapsed() < RECOVERY_MAX, "{:?}", back.elapsed());
            sleep(Duration::from_millis(20)).await;
        }
        eprintln!("plans are made again {:?} after the database is back", back.elapsed());
    }
}

/// What one server has acknowledged while another one is cut off, that one neither denies nor undoes in words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_ask_the_database_denies_nothing_and_acknowledges_nothing() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let one = cluster.replica(0);
    let other = cluster.replica(1);
    let mut here = Workspace::at(one).await;
    let mut there = Workspace::at(other).await;
    let mut planner = other.client().await;
    one.client().await.plan(request("ring:6").into_plan()).await.unwrap();
    planner.plan(request("ring:6").into_plan()).await.unwrap();
    for is_noticed in [false, true] {
        let known = here.acquired("known").await;
        let get = GetLeaseRequest { name: known.name.clone() };
        assert_eq!(there.leases.get_lease(get.clone()).await.unwrap().get_ref(), &known);
        cluster.wires[1].cut();
        let done = Done::by(one, if is_noticed { 7 } else { 8 }).await;
        if is_noticed {
            until_noticed(other).await;
        }
        for (call, status) in done.asked_of(other).await {
            assert!(status.as_ref().is_some_and(is_to_be_tried_again), "{call}: {status:?}");
        }
        // What it knows, it serves, and says that there may be more.
        assert_eq!(there.leases.get_lease(get).await.unwrap().get_ref().job, "known");
        let reply = planner.plan(request("ring:6").into_plan()).await.unwrap().into_inner();
        assert!(reply.warnings.iter().any(|warning| warning.code == "FAULTS_OUTDATED"), "{:?}", reply.warnings);
        cluster.wires[1].mend();
        cluster.until_ready().await;
        done.is_undone_at(&mut there).await;
        there.release(&known.name).await;
        // Now it knows.
        let status = here.leases.get_lease(GetLeaseRequest { name: known.name.clone() }).await.unwrap_err();
        let ended = format!("lease `{}` does not exist or has ended; acquire it again, or list the leases", known.name);
        assert_eq!((status.code(), status.message()), (Code::NotFound, &*ended), "no other server has it");
        let reply = planner.plan(request("ring:6").into_plan()).await.unwrap().into_inner();
        assert!(reply.warnings.iter().all(|warning| warning.code != "FAULTS_OUTDATED"), "{:?}", reply.warnings);
    }
}

/// What a server has acknowledged.
struct Done {
    size: u64,
    lease: Lease,
    /// Of which a fault is known.
    topology: String,
    plan: String,
    stored: String,
}

impl Done {
    async fn by(process: &Process, size: u64) -> Self {
        let mut workspace = Workspace::at(process).await;
        let plan =
            process.client().await.plan(request(&format!("ring:{size}")).into_plan()).await.unwrap().into_inner().plan;
        let put = PutTopologyRequest { topology: request(&format!("torus:3x{size}")).topology, ..Default::default() };
        let put = NetworksClient::new(process.channel().await).put_topology(put).await.unwrap().into_inner();
        let told = workspace.faults.report_faults(lost_of("ring:9", size)).await.unwrap().into_inner();
        let lease = workspace.acquired("new").await;
        Self { size, lease, topology: told.topology, plan: plan.unwrap().name, stored: put.topology.unwrap().name }
    }

    fn clear(&self) -> ClearFaultsRequest {
        ClearFaultsRequest { topology: self.topology.clone(), ..ClearFaultsRequest::default() }
    }

    /// The refusals of a server that is asked for all of it, and to undo it.
    async fn asked_of(&self, process: &Process) -> [(&'static str, Option<Status>); 12] {
        let Workspace { mut faults, mut leases } = Workspace::at(process).await;
        let mut planner = process.client().await;
        let mut plans = PlansClient::new(process.channel().await);
        let mut topologies = NetworksClient::new(process.channel().await);
        let mut clusters = NetworksClient::new(process.channel().await);
        let name = self.lease.name.clone();
        let of_job = ReleaseLeaseRequest { job: "new".to_owned(), ..ReleaseLeaseRequest::default() };
        let of_name = ReleaseLeaseRequest { name: name.clone(), ..ReleaseLeaseRequest::default() };
        let renew = RenewLeaseRequest { name: name.clone(), ttl: None, ..RenewLeaseRequest::default() };
        let pin = PinPlanRequest { name: self.plan.clone(), ..PinPlanRequest::default() };
        let by_id = GetTopologyRequest { name: self.stored.clone(), ..GetTopologyRequest::default() };
        let get = GetPlanRequest { name: self.plan.clone(), ..GetPlanRequest::default() };
        let look = request(&format!("ring:{}", self.size));
        [
            ("ClearFaults", faults.clear_faults(self.clear()).await.err()),
            ("ReleaseLease of a job", leases.release_lease(of_job).await.err()),
            ("ReleaseLease", leases.release_lease(of_name).await.err()),
            ("RenewLease", leases.renew_lease(renew).await.err()),
            ("GetLease", leases.get_lease(GetLeaseRequest { name }).await.err()),
            ("AcquireLease", leases.acquire_lease(asked("third")).await.err()),
            ("ReportFaults", faults.report_faults(lost_of("ring:9", 3)).await.err()),
            ("PinPlan", plans.pin_plan(pin).await.err()),
            ("GetPlan", plans.get_plan(get).await.err()),
            ("LookUpPlan", planner.look_up_plan(look.into_look_up()).await.err()),
            ("GetTopology", topologies.get_topology(by_id).await.err()),
            ("GetCluster", clusters.get_cluster(GetClusterRequest { name: "clusters/new".to_owned() }).await.err()),
        ]
    }

    /// Undoes all of it: nothing has been undone before.
    async fn is_undone_at(&self, workspace: &mut Workspace) {
        let listed = workspace.faults.list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
        assert_eq!(listed.len(), 1, "it was not cleared: {listed:?}");
        let renew = RenewLeaseRequest { name: self.lease.name.clone(), ttl: None, ..RenewLeaseRequest::default() };
        assert_eq!(workspace.leases.renew_lease(renew).await.unwrap().get_ref().job, "new");
        assert_eq!(workspace.faults.clear_faults(self.clear()).await.unwrap().get_ref().cleared, 1);
        workspace.release(&self.lease.name).await;
    }
}

/// A request for a lease on a plan that all have.
fn asked(job: &str) -> AcquireLeaseRequest {
    AcquireLeaseRequest { job: job.to_owned(), specs: vec![request("ring:6")], ..AcquireLeaseRequest::default() }
}

impl Workspace {
    async fn acquired(&mut self, job: &str) -> Lease {
        self.leases.acquire_lease(asked(job)).await.unwrap().into_inner()
    }

    async fn release(&mut self, name: &str) {
        let release = ReleaseLeaseRequest { name: name.to_owned(), ..ReleaseLeaseRequest::default() };
        assert_eq!(self.leases.release_lease(release).await.unwrap().get_ref().released, 1);
    }
}

/// Waits until a server says that it cannot reach the database.
async fn until_noticed(process: &Process) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !process.page("/readyz").await.contains("the database cannot be reached") {
        assert!(Instant::now() < limit, "it does not notice");
        sleep(Duration::from_millis(20)).await;
    }
}
