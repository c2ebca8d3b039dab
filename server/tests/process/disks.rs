//! Full disks: what is refused is refused for good, and all is well again soon after there is room.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use canopy_prerequisites::SmallDisk;
use canopy_proto::v1::ListFaultsRequest;
use tokio::time::{Instant, sleep};
use tonic_types::StatusExt as _;

use crate::kills::{Acknowledged, Random, Workspace, start_with};
use crate::support::{Process, request, stated};

/// How often a disk is full, unless `CANOPY_ROUNDS` says so.
const ROUNDS: u64 = 2;
const MEBIBYTES: u32 = 12;
/// Changes that are tried while the disk is full, at most until one is refused.
const TRIES_MAX: usize = 20_000;
/// From room on the disk to a server that takes everything.
const RECOVERY_MAX: Duration = Duration::from_secs(5);

/// Does one thing. What is refused must not have been done: nothing is open then. Returns whether it was taken.
async fn act(workspace: &mut Workspace, random: &mut Random, known: &mut Acknowledged) -> bool {
    let before = known.clone();
    match workspace.act(random, known).await {
        Ok(()) => true,
        Err(status) => {
            assert!(status.get_error_details().error_info().is_some(), "the server answers: {status}");
            known.takes_back(before);
            // It may have made room for others; nothing is wrong with the disk then.
            status.get_error_details().error_info().is_some_and(|info| info.reason == "PLAN_NOT_CACHED")
        }
    }
}

/// The leases and faults of a server are what it acknowledged, no more and no less.
async fn compare(workspace: &mut Workspace, known: &mut Acknowledged, round: u64) {
    let held: BTreeSet<String> = known.held.keys().cloned().collect();
    workspace.check(known, round).await;
    let found: BTreeSet<String> = known.held.keys().cloned().collect();
    assert_eq!(found, held, "round {round}: what was refused is there");
}

async fn is_ready(process: &Process) -> bool {
    process.page("/readyz").await.starts_with("HTTP/1.0 200")
}

/// Fills the disk, and has changes refused.
async fn fill(process: &Process, random: &mut Random, known: &mut Acknowledged) -> File {
    let mut workspace = Workspace::at(process).await;
    for _ in 0..10 {
        assert!(act(&mut workspace, random, known).await);
    }
    let mut ballast = File::create(process.folder.path().join("data").join("ballast")).unwrap();
    while ballast.write(&[7; 1 << 12]).is_ok_and(|written| written > 0) {}
    let mut tries = 0;
    while act(&mut workspace, random, known).await {
        tries += 1;
        assert!(tries < TRIES_MAX, "the disk is full, and everything is taken");
    }
    for _ in 0..20 {
        act(&mut workspace, random, known).await;
    }
    let unready = async {
        while is_ready(process).await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(RECOVERY_MAX, unready).await.expect("the server says that it cannot write");
    assert!(workspace.faults.list_faults(ListFaultsRequest::default()).await.is_ok(), "what is there can be read");
    ballast
}

/// Waits until everything is taken again; how long that took.
async fn recover(process: &Process, random: &mut Random, known: &mut Acknowledged) -> Duration {
    let mut workspace = Workspace::at(process).await;
    let room = Instant::now();
    let mut taken = 0;
    // Whatever is tried next, in whichever space.
    while taken < 12 || !is_ready(process).await {
        match act(&mut workspace, random, known).await {
            true => taken += 1,
            false => {
                taken = 0;
                sleep(Duration::from_millis(20)).await;
            }
        }
        assert!(room.elapsed() < RECOVERY_MAX * 4, "nothing is taken after {:?}", room.elapsed());
    }
    room.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_recovers_from_a_full_disk_without_a_restart() {
    let rounds = stated("CANOPY_ROUNDS").unwrap_or(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let Some(_disk) = SmallDisk::on(&data, MEBIBYTES) else { return };
    let mut process = start_with(folder);
    let (mut random, mut known) = (Random(0x9e37_79b9_7f4a_7c15), Acknowledged::default());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let ballast = fill(&process, &mut random, &mut known).await;
        ballast.set_len(0).unwrap();
        slowest = slowest.max(recover(&process, &mut random, &mut known).await);
        compare(&mut Workspace::at(&process).await, &mut known, round).await;
        let reply = process
            .client()
            .await
            .plan(request(&format!("ring:{}", 7 + round)).into_plan())
            .await
            .unwrap()
            .into_inner();
        let is_kept = reply.warnings.iter().all(|warning| warning.code != "NOT_STORED");
        assert!(is_kept, "{:?}", reply.warnings);
        if round % 2 == 1 {
            process = start_with(process.crash());
            compare(&mut Workspace::at(&process).await, &mut known, round).await;
        }
    }
    eprintln!("{rounds} rounds, all taken {slowest:?} after there was room at the latest");
    assert!(slowest <= RECOVERY_MAX, "{slowest:?}");
}
