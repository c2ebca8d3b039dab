//! The audit log: what is in it, after a kill, and while its disk is full.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use canopy_access::audit::{Chain, Entry, is_file_name};
use canopy_prerequisites::SmallDisk;
use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, DeleteClusterRequest, DeviceTarget, Fault, FaultEvent, ForgetRefusalsRequest,
    ListLeasesRequest, PinPlanRequest, ReportFaultsRequest, fault,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::access::{Issued, Shows, reason};
use crate::support::{Process, request, spawn};

/// Processes that are killed, unless `CANOPY_LIVES` says how many.
const LIVES: u64 = 5;
/// Callers that change something at once.
const CALLERS: usize = 4;
/// Room for a log, in mebibytes: more than it sets aside.
const DISK: u32 = 8;
/// Calls on their way at once.
const AT_ONCE: usize = 200;
/// The metric of failed writes.
const FAILURES: &str = "canopy_audit_write_failures_total";
const REQUEST_ID: &str = "123e4567-e89b-42d3-a456-426614174000";
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of a log, which must be whole from the first one.
fn lines(folder: &Path) -> Vec<Entry> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_file_name));
    paths.sort();
    let mut chain = Chain::default();
    let texts: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| chain.follow(line).unwrap()).collect()
}

fn audited_in(command: &mut Command, folder: &Path) {
    command.arg("--audit").arg(folder.join("audit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_refusals_have_lines_and_reads_have_none() {
    let issued = Issued::new();
    let process = Process::start(|command, folder| {
        issued.serve(command, &folder);
        audited_in(command, &folder);
    });
    let channel = process.channel().await;
    let (planner, viewer, reporter) = (issued.token("planner"), issued.token("viewer"), issued.token("fault-reporter"));
    process.client().await.plan(planner.with(request("ring:4").into_plan())).await.unwrap();
    let mut leases = LeasesClient::new(channel.clone());
    let asked = AcquireLeaseRequest {
        job: "train-7".to_owned(),
        specs: vec![request("ring:4")],
        request_id: REQUEST_ID.to_owned(),
        ..AcquireLeaseRequest::default()
    };
    leases.acquire_lease(planner.with(asked)).await.unwrap();
    leases.list_leases(viewer.with(ListLeasesRequest::default())).await.unwrap();
    let device = DeviceTarget { node: "1".to_owned(), ..DeviceTarget::default() };
    let event = FaultEvent {
        source: "dcgm".to_owned(),
        event_id: "1".to_owned(),
        fault: Some(Fault { target: Some(fault::Target::Device(device)), remaining: None }),
        ..FaultEvent::default()
    };
    let asked = ReportFaultsRequest { job: "train-7".to_owned(), events: vec![event], ..Default::default() };
    FaultsClient::new(channel.clone()).report_faults(reporter.with(asked)).await.unwrap();
    let mut admin = PlansClient::new(channel.clone());
    let pin = || PinPlanRequest { name: format!("plans/{}", "0".repeat(32)), ..PinPlanRequest::default() };
    for (shows, code) in [
        (issued.token("operator"), Code::NotFound),
        (viewer, Code::PermissionDenied),
        (Shows::nothing(), Code::Unauthenticated),
    ] {
        assert_eq!(admin.pin_plan(shows.with(pin())).await.unwrap_err().code(), code);
    }
    let folder = process.crash();
    let lines = lines(&folder.path().join("audit"));
    let told = lines.iter().map(|line| {
        let Entry { identity, tenant, method, object, outcome, request_id, peer, .. } = line;
        assert_eq!(peer, "127.0.0.1");
        let method = method.strip_prefix("canopy.v1.").unwrap();
        format!("{identity}|{tenant}|{method}|{object}|{outcome}|{request_id}")
    });
    let plan = format!("plans/{}", "0".repeat(32));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            format!("planner|red|Leases/AcquireLease|train-7|OK|{REQUEST_ID}"),
            "fault-reporter|red|Faults/ReportFaults|train-7: gpu:1|OK|".to_owned(),
            format!("operator|red|Plans/PinPlan|{plan}|NOT_FOUND|"),
            "viewer||Plans/PinPlan||PERMISSION_DENIED|".to_owned(),
            "||Plans/PinPlan||UNAUTHENTICATED|".to_owned(),
        ]
    );
    assert!(lines.iter().all(|line| line.outcome == "OK" || !line.message.is_empty()));
    let secret = planner.headers().next().unwrap().1.trim_start_matches("Bearer ").to_owned();
    assert!(!format!("{lines:?}").contains(&secret));
}

/// Changes until the server is gone; whatever it acknowledges is noted.
async fn change(channel: Channel, life: u64, caller: usize, acknowledged: Arc<Mutex<Vec<String>>>) {
    let mut admin = ServerClient::new(channel);
    for number in 0_u64.. {
        let request_id = format!("{life:08x}-{caller:04x}-4000-8000-{number:012x}");
        match admin.forget_refusals(ForgetRefusalsRequest { request_id: request_id.clone() }).await {
            Ok(_) => acknowledged.lock().unwrap().push(request_id),
            Err(status) => return assert!(reason(&status).is_empty(), "a server that lives refuses nothing: {status}"),
        }
    }
}

/// What was acknowledged before a kill has its line, and the log is whole.
#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_change_is_in_the_log_after_every_kill() {
    let lives = std::env::var("CANOPY_LIVES").map_or(LIVES, |text| text.parse().expect("a number"));
    let acknowledged: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut folder: TempDir = tempfile::tempdir().unwrap();
    for life in 0..lives {
        let process = Process::start_in(folder, |command, folder| audited_in(command, &folder));
        let mut callers = Vec::new();
        for caller in 0..CALLERS {
            callers.push(spawn(change(process.channel().await, life, caller, Arc::clone(&acknowledged))));
        }
        let before = acknowledged.lock().unwrap().len();
        let first = async {
            while acknowledged.lock().unwrap().len() == before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, first).await.expect("a change is acknowledged");
        sleep(Duration::from_millis(life * 37 % 150)).await;
        folder = process.crash();
        for caller in callers {
            timeout(PATIENCE, caller).await.unwrap().unwrap();
        }
        let lines = lines(&folder.path().join("audit"));
        let written: Vec<&str> =
            lines.iter().filter(|line| line.outcome == "OK").map(|line| line.request_id.as_str()).collect();
        let written: std::collections::BTreeSet<&str> = written.into_iter().collect();
        let missing: Vec<String> = acknowledged
            .lock()
            .unwrap()
            .iter()
            .filter(|id: &&String| !written.contains(id.as_str()))
            .cloned()
            .collect();
        assert!(missing.is_empty(), "life {life}: {missing:?}");
    }
}

/// A server whose log is on a disk that is full by now.
struct Full {
    process: Process,
    channel: Channel,
    ballast: File,
    _disk: SmallDisk,
}

impl Full {
    /// `None`: no disk can be mounted, and the test says so.
    async fn new(policy: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let audit = folder.path().join("audit");
        fs::create_dir(&audit).unwrap();
        let disk = SmallDisk::on(&audit, DISK)?;
        let process = Process::start_in(folder, |command, folder| {
            audited_in(command, &folder);
            command.args(["--audit-when-full", policy]);
        });
        let mut ballast = File::create(audit.join("ballast")).unwrap();
        while ballast.write(&[7; 1 << 12]).is_ok_and(|written| written > 0) {}
        Some(Self { channel: process.channel().await, process, ballast, _disk: disk })
    }

    fn lines(&self) -> usize {
        lines(&self.process.folder.path().join("audit")).len()
    }

    async fn has_failed(&self) -> bool {
        !self.process.page("/metrics").await.contains(&format!("{FAILURES} 0"))
    }

    /// Deletes clusters that do not exist, many at once: what comes of each.
    async fn delete(&self, count: usize) -> Vec<Status> {
        let mut calls = Vec::new();
        for number in 0..count {
            let name = format!("clusters/a{number}-{}", "x".repeat(40));
            let (mut client, asked) = (NetworksClient::new(self.channel.clone()), DeleteClusterRequest::default());
            calls.push(spawn(async move { client.delete_cluster(DeleteClusterRequest { name, ..asked }).await }));
        }
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap().unwrap_err());
        }
        outcomes
    }
}

/// While the log cannot be written, changes are refused before they are made, and reads are answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_changes_until_there_is_room() {
    let Some(mut full) = Full::new("refuse").await else { return };
    let mut answered = 0;
    let refused = loop {
        let outcomes = full.delete(AT_ONCE).await;
        let (taken, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|one| one.code() == Code::NotFound);
        answered += taken.len();
        if let Some(refused) = refused.into_iter().next() {
            break refused;
        }
        assert!(answered < 100_000, "the disk is full, and everything is taken");
    };
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Unavailable, "AUDIT_UNWRITABLE"));
    assert_eq!(full.lines(), answered);
    full.process.wait_for("the audit log cannot be written; changes are refused until it can be");
    let listed = LeasesClient::new(full.channel.clone()).list_leases(ListLeasesRequest::default()).await;
    assert!(listed.is_ok(), "{listed:?}");
    assert!(full.has_failed().await);
    full.ballast.set_len(0).unwrap();
    let written = async {
        while full.delete(1).await[0].code() != Code::NotFound {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, written).await.expect("there is room again");
    full.process.wait_for("the audit log can be written again");
    assert_eq!(full.lines(), answered + 1);
}

/// Where a site would rather go on without lines, changes are made.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_nothing_where_a_site_says_so() {
    let Some(mut full) = Full::new("continue").await else { return };
    let mut answered = 0;
    while !full.has_failed().await {
        assert!(full.delete(AT_ONCE).await.iter().all(|outcome| outcome.code() == Code::NotFound));
        answered += AT_ONCE;
        assert!(answered < 100_000, "the disk is full, and everything has its line");
    }
    full.process.wait_for("the audit log cannot be written; changes go on without lines");
}
