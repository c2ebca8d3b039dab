//! Backups of a server that goes on meanwhile: what is restored from one hangs together, and has all that was
//! acknowledged before.

use std::path::Path;

use canopy_proto::v1::archive_event::Event as Archived;
use canopy_proto::v1::cluster_description::Fabric;
use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::import_plans_request::Event as Imported;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, ArchiveContents, ArchiveEnd, ArchivePiece, BackUpRequest, CheckStoreEntry, CheckStoreRequest,
    ClusterDescription, ClusterNodes, Collective, CollectiveSpec, DeviceTarget, Fault, FaultEvent, HostKind,
    ImportPlansRequest, ListClustersRequest, ListFaultsRequest, ListLeasesRequest, ListPlansRequest,
    ListTopologiesRequest, PinPlanRequest, PlanSpec, PlanSummary, PutClusterRequest, PutTopologyRequest,
    ReportFaultsRequest, TopologyDocument, TopologySource, fault,
};
use canopy_wire::sha256_hex;
use tonic::Status;
use tonic::transport::Channel;

use crate::kills::{Acknowledged, NETWORK, Random, Told, Workspace, check_told, follow, settled, start};
use crate::support::{Process, canopyd, request, spawn};

const BACKUPS: u64 = 6;

async fn back_up(channel: Channel) -> Result<(Vec<u8>, ArchiveContents), Status> {
    let mut stream = ServerClient::new(channel).back_up(BackUpRequest {}).await?.into_inner();
    let mut archive = Vec::new();
    while let Some(event) = stream.message().await? {
        match event.event.unwrap() {
            Archived::Contents(_) => {}
            Archived::Piece(piece) => archive.extend_from_slice(&piece.data),
            Archived::End(end) => return Ok((archive, end.contents.unwrap())),
        }
    }
    panic!("the archive has no end")
}

/// A server on what a backup holds. The archive is restored and checked by hand, as an administrator would.
fn restored(archive: &[u8]) -> Process {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.canopy");
    std::fs::write(&file, archive).unwrap();
    let run = |arguments: &[&Path]| {
        let output = canopyd().arg("--data-dir").arg(folder.path().join("data")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&[Path::new("restore"), &file]);
    run(&[Path::new("fsck")]);
    start(Some(folder))
}

/// What a server restored from a backup must have, given what was known before the backup began and after it had ended.
fn certain(before: &Acknowledged, after: &Acknowledged) -> Acknowledged {
    let mut known = before.clone();
    known.held.retain(|name, _| after.held.contains_key(name));
    known.maybe_broken.extend(&after.touched);
    known
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_restored_from_a_backup_of_a_busy_server_hangs_together() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut known, told) = (Acknowledged::default(), Told::default());
    let process = start(None);
    let pinned =
        process.client().await.plan(request(NETWORK).into_plan()).await.unwrap().into_inner().plan.unwrap().name;
    let mut plans = PlansClient::new(process.channel().await);
    plans.pin_plan(PinPlanRequest { name: pinned.clone(), request_id: String::new() }).await.unwrap();
    let _watching = follow(&process, &told).await;
    let mut workspace = Workspace::at(&process).await;
    for number in 0..BACKUPS {
        for _ in 0..20 + random.below(20) {
            workspace.act(&mut random, &mut known).await.unwrap();
        }
        known.touched.clear();
        let (before, heard) = (known.clone(), told.lock().unwrap().clone());
        let backup = spawn(back_up(process.channel().await));
        while !backup.is_finished() {
            workspace.act(&mut random, &mut known).await.unwrap();
        }
        let (archive, contents) = backup.await.unwrap().unwrap();
        let successor = restored(&archive);
        // Whoever has watched goes on at the successor with the token it has: nothing is missing, nothing comes twice.
        let told_there = Told::new(std::sync::Mutex::new(heard));
        let _watching = follow(&successor, &told_there).await;
        let mut there = Workspace::at(&successor).await;
        let mut certain = certain(&before, &known);
        there.check(&mut certain, number).await;
        let leases = settled(&mut there, &told_there).await;
        assert!(leases.len() as u64 <= contents.leases && contents.events > 0, "{contents:?}");
        check_told(&told_there.lock().unwrap());
        let asked = ListPlansRequest { filter: "pinned = true".to_owned(), ..ListPlansRequest::default() };
        let mut plans = PlansClient::new(successor.channel().await);
        let listed = plans.list_plans(asked).await.unwrap().into_inner().plans;
        assert_eq!(listed.iter().map(|plan| &plan.name).collect::<Vec<_>>(), [&pinned]);
    }
}

const DUMP: &str = include_str!("../../../crates/import/tests/data/four-gpus.xml");
const CONF: &str =
    "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine Switches=leaf[1-2]\n";

/// Has a server store something of every kind.
async fn fill(process: &Process) {
    let channel = process.channel().await;
    let file = |text: &str| TopologyDocument { format: 0, content: text.to_owned().into() };
    let put = PutTopologyRequest { topology: request("dgx-h100:boxes=2,gpus=2").topology, request_id: String::new() };
    let id = NetworksClient::new(channel.clone()).put_topology(put).await.unwrap().into_inner().topology.unwrap().name;
    let hosts = vec![HostKind { file: Some(file(DUMP)), nodes: String::new() }];
    let description = ClusterDescription { fabric: Some(Fabric::File(file(CONF))), hosts, rates: String::new() };
    let name = "clusters/prod".to_owned();
    let put = PutClusterRequest { name, description: Some(description), ..PutClusterRequest::default() };
    NetworksClient::new(channel.clone()).put_cluster(put).await.unwrap();
    let stored = || PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Name(id.clone())) }),
        collective: Some(CollectiveSpec { kind: Collective::Allreduce.into(), root: None }),
        ..request("")
    };
    let nodes = ClusterNodes { cluster: "clusters/prod".to_owned(), nodes: vec!["gpu[01-02]".to_owned()] };
    let part = PlanSpec { topology: Some(TopologySource { source: Some(Source::Cluster(nodes)) }), ..request("") };
    let mut planner = process.client().await;
    for wanted in [stored(), part, request("dgx-a100:boxes=736"), request("torus:72x81")] {
        planner.plan(wanted.into_plan()).await.unwrap();
    }
    let pinned = planner.plan(request(NETWORK).into_plan()).await.unwrap().into_inner().plan.unwrap().name;
    let pin = PinPlanRequest { name: pinned, request_id: String::new() };
    PlansClient::new(channel.clone()).pin_plan(pin).await.unwrap();
    let asked = AcquireLeaseRequest { job: "17".to_owned(), specs: vec![stored()], ..Default::default() };
    LeasesClient::new(channel.clone()).acquire_lease(asked).await.unwrap();
    let target = DeviceTarget { node: "2".to_owned(), ..DeviceTarget::default() };
    let fault = Some(Fault { target: Some(fault::Target::Device(target)), remaining: None });
    let event = FaultEvent { source: "test".to_owned(), event_id: "1".to_owned(), fault, ..FaultEvent::default() };
    let report =
        ReportFaultsRequest { topology: request("ring:7").topology, events: vec![event], ..Default::default() };
    FaultsClient::new(channel).report_faults(report).await.unwrap();
}

/// Plans and topologies that a server stores; clusters, leases and faults.
async fn holdings(process: &Process) -> ([Vec<String>; 2], [Vec<String>; 3]) {
    let channel = process.channel().await;
    fn shown<T: std::fmt::Debug>(items: Vec<T>) -> Vec<String> {
        let mut shown: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
        shown.sort();
        shown
    }
    let plans = PlansClient::new(channel.clone()).list_plans(ListPlansRequest::default()).await.unwrap();
    let topologies =
        NetworksClient::new(channel.clone()).list_topologies(ListTopologiesRequest::default()).await.unwrap();
    let clusters = NetworksClient::new(channel.clone()).list_clusters(ListClustersRequest::default()).await.unwrap();
    let leases = LeasesClient::new(channel.clone()).list_leases(ListLeasesRequest::default()).await.unwrap();
    let faults = FaultsClient::new(channel).list_faults(ListFaultsRequest::default()).await.unwrap();
    let plans = plans.into_inner().plans.into_iter().map(|plan| PlanSummary { age: None, ..plan });
    let kept = [shown(plans.collect()), shown(topologies.into_inner().topologies)];
    let of_one =
        [shown(clusters.into_inner().clusters), shown(leases.into_inner().leases), shown(faults.into_inner().faults)];
    (kept, of_one)
}

/// A restored server has everything; one that imports a backup has its plans and topologies.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_server_stores_comes_back_from_a_backup() {
    let process = start(None);
    fill(&process).await;
    let (kept, of_one) = holdings(&process).await;
    assert!(kept.iter().chain(&of_one).all(|list| !list.is_empty()), "{kept:?} {of_one:?}");
    let (archive, contents) = back_up(process.channel().await).await.unwrap();
    let counts = [contents.plans, contents.topologies, contents.clusters, contents.leases, contents.faults];
    let expected: Vec<u64> = kept.iter().chain(&of_one).map(|list| list.len() as u64).collect();
    assert_eq!(counts, *expected);
    assert_eq!(holdings(&restored(&archive)).await, (kept.clone(), of_one));
    let importing = start(None);
    let event = |event| ImportPlansRequest { event: Some(event), request_id: String::new() };
    let pieces = archive.chunks(100_000).enumerate().map(|(number, data)| {
        let piece =
            ArchivePiece { offset: number as u64 * 100_000, data: data.to_vec().into(), sha256: sha256_hex(data) };
        event(Imported::Piece(piece))
    });
    let end = ArchiveEnd { size_bytes: archive.len() as u64, sha256: sha256_hex(&archive), contents: None };
    let all: Vec<ImportPlansRequest> = pieces.chain([event(Imported::End(end))]).collect();
    let reply = PlansClient::new(importing.channel().await).import_plans(tokio_stream::iter(all)).await.unwrap();
    assert_eq!(reply.into_inner().skipped, Vec::new());
    assert_eq!(holdings(&importing).await, (kept, [Vec::new(), Vec::new(), Vec::new()]));
}

async fn check_store(channel: &Channel) -> Vec<CheckStoreEntry> {
    let mut stream = ServerClient::new(channel.clone()).check_store(CheckStoreRequest {}).await.unwrap().into_inner();
    let mut entries = Vec::new();
    while let Some(entry) = stream.message().await.unwrap() {
        entries.push(entry);
    }
    entries
}

/// While all goes on nothing seems wrong, and what is damaged is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_checked_while_it_is_used() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut known = Acknowledged::default();
    let process = start(None);
    let channel = process.channel().await;
    let mut workspace = Workspace::at(&process).await;
    for _ in 0..5 {
        for ranks in 8..16 {
            process.client().await.plan(request(&format!("ring:{ranks}")).into_plan()).await.unwrap();
        }
        let asked = channel.clone();
        let checking = spawn(async move { check_store(&asked).await });
        while !checking.is_finished() {
            workspace.act(&mut random, &mut known).await.unwrap();
        }
        let entries = checking.await.unwrap();
        assert_eq!(entries.len(), 10);
        let is_clean = |entry: &CheckStoreEntry| entry.damaged + entry.without_summary + entry.without_record == 0;
        assert!(entries.iter().all(|entry| is_clean(entry) && entry.problems.is_empty()), "{entries:?}");
        assert!(entries[0].space == "plans" && entries[0].intact >= 8 && entries[0].bytes > 0, "{entries:?}");
    }
    let folder = process.folder.path().join("data").join("records-4").join("plans");
    let file = walk(&folder).into_iter().find(|path| path.metadata().is_ok_and(|file| file.len() > 500)).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, bytes).unwrap();
    let plans = check_store(&channel).await.swap_remove(0);
    assert_eq!((plans.damaged, plans.problems.len(), plans.problems[0].key.len()), (1, 1, 64), "{plans:?}");
    // Backups say what they had to leave out.
    assert_eq!(back_up(channel).await.unwrap().1.damaged_plans, 1);
}

/// All files below a folder.
pub(crate) fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
