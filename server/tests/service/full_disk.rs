//! A disk that is full for a while: nothing is acknowledged that is not on it, and all is well again by itself.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use canopy_prerequisites::SmallDisk;
use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, DeviceTarget, Fault, FaultEvent, ListFaultsRequest, ListLeasesRequest, ReportFaultsRequest,
    fault,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tokio::time::timeout;
use tonic::{Code, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::operators::page;
use crate::support::{TestServer, request};

/// Room that a new store needs many times over, in mebibytes.
const DISK: u32 = 32;
/// Most reports until a full disk is noticed: engines write into what they have set aside before.
const REPORTS_MAX: u32 = 500;
/// Most leases until then.
const LEASES_MAX: usize = 100;

/// Fills a disk to the last byte, or what has become free of it since.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("ballast");
    let mut file = File::options().create(true).append(true).open(&path).unwrap();
    for block in [1 << 16, 1 << 9, 1] {
        while file.write(&vec![7; block]).is_ok_and(|written| written > 0) {}
    }
    path
}

async fn report(server: &TestServer, number: u32) -> Result<(), tonic::Status> {
    let device = DeviceTarget { node: "1".to_owned(), ..DeviceTarget::default() };
    let event = FaultEvent {
        source: format!("source {}", number % 8),
        event_id: number.to_string(),
        fault: Some(Fault { target: Some(fault::Target::Device(device)), remaining: None }),
        ..FaultEvent::default()
    };
    let asked = ReportFaultsRequest { topology: request("ring:4").topology, events: vec![event], ..Default::default() };
    FaultsClient::new(server.channel.clone()).report_faults(asked).await.map(drop)
}

async fn acquire(server: &TestServer, job: &str) -> Result<String, tonic::Status> {
    let (job, requests) = (job.to_owned(), vec![request("ring:4")]);
    let asked = AcquireLeaseRequest { job, specs: requests, ..AcquireLeaseRequest::default() };
    LeasesClient::new(server.channel.clone()).acquire_lease(asked).await.map(|lease| lease.into_inner().name)
}

async fn wait_for(health: &mut Streaming<HealthCheckResponse>, status: ServingStatus) {
    let heard = timeout(Duration::from_secs(20), async {
        while health.message().await.unwrap().unwrap().status() != status {}
    });
    heard.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_works_again_as_soon_as_there_is_room_on_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::on(directory.path(), DISK) else { return };
    let place = directory.path().to_owned();
    let start = async |directory| {
        let pipeline = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
        TestServer::start_in(directory, |_| {}, pipeline).await
    };
    let server = start(directory).await;
    server.client().plan(request("ring:4").into_plan()).await.unwrap();
    let mut acknowledged = vec![acquire(&server, "before").await.unwrap()];
    report(&server, 0).await.unwrap();
    let watched = HealthClient::new(server.channel.clone()).watch(HealthCheckRequest::default()).await;
    let mut health = watched.unwrap().into_inner();
    wait_for(&mut health, ServingStatus::Serving).await;

    let ballast = fill(&place);
    let refused = loop {
        match acquire(&server, "refused").await {
            // sled may go on in what it has set aside, and the server's own look for room may just have ended.
            Ok(lease) if acknowledged.len() < LEASES_MAX => {
                acknowledged.push(lease);
                fill(&place);
            }
            answer => break answer.unwrap_err(),
        }
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let mut number = 1;
    while let Ok(()) = report(&server, number).await {
        number += 1;
        assert!(number < REPORTS_MAX, "the disk is full, and everything is taken");
    }
    wait_for(&mut health, ServingStatus::NotServing).await;
    let (code, reason) = page(&server, "/readyz").await;
    assert!(code == 503 && reason.contains("cannot be written"), "{code} {reason}");
    if let Err(status) = server.client().prefetch_plan(request("torus:5x5").into_prefetch()).await {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
    server.client().plan(request("ring:4").into_plan()).await.expect("what is known is served");

    std::fs::remove_file(ballast).unwrap();
    wait_for(&mut health, ServingStatus::Serving).await;
    assert_eq!(page(&server, "/readyz").await, (200, "ready\n".to_owned()));
    report(&server, number + 1).await.unwrap();
    acknowledged.push(acquire(&server, "after").await.unwrap());
    server.client().prefetch_plan(request("torus:5x5").into_prefetch()).await.unwrap();
    drop(health);
    let server = start(server.stop().await).await;
    let listed = LeasesClient::new(server.channel.clone()).list_leases(ListLeasesRequest::default()).await.unwrap();
    let mut names: Vec<String> = listed.into_inner().leases.into_iter().map(|lease| lease.name).collect();
    names.sort();
    acknowledged.sort();
    assert_eq!(names, acknowledged, "those that were acknowledged, and no other");
    let faults = FaultsClient::new(server.channel.clone()).list_faults(ListFaultsRequest::default()).await.unwrap();
    assert_eq!(faults.into_inner().total_size, 1);
    let _directory = server.stop().await;
    drop(disk);
}
