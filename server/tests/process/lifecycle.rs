//! Signals, the service manager, and what the log looks like.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use canopy_proto::v1::PlanRequest;
use tonic::Code;

use crate::support::{Process, request, spawn};

fn heard(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 256];
    let length = manager.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[test]
fn the_service_manager_hears_of_start_life_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let process = Process::start(|command, _| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "20000").env_remove("WATCHDOG_PID");
    });
    assert!(heard(&manager).starts_with("READY=1\n"));
    for _ in 0..3 {
        assert_eq!(heard(&manager), "WATCHDOG=1\n");
    }
    process.signal("TERM");
    while !heard(&manager).starts_with("STOPPING=1\n") {}
    assert_eq!(process.end().0, Some(0));
}

/// A request that takes much longer than any of these tests.
fn endless() -> PlanRequest {
    request("torus:24x24")
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_outlasts_the_drain_is_refused_and_the_process_ends_well() {
    let mut process = Process::start(|command, _| {
        command.args(["--drain-timeout", "100ms"]);
    });
    let mut client = process.client().await;
    let call = spawn(async move { client.plan(endless()).await });
    process.wait_until_synthesis_runs().await;
    process.signal("TERM");
    assert_eq!(process.wait_for("draining")["calls_inside"], 1);
    assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
    let (status, lines) = process.end();
    assert_eq!(status, Some(0));
    let request = lines.iter().find(|line| line["method"] == "Plan").unwrap();
    assert_eq!((&request["level"], &request["code"]), (&"INFO".into(), &"Unavailable".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_process_at_once() {
    let mut process = Process::start(|command, _| {
        command.args(["--drain-timeout", "10m"]);
    });
    let mut client = process.client().await;
    let call = spawn(async move { client.plan(endless()).await });
    process.wait_until_synthesis_runs().await;
    process.signal("TERM");
    process.wait_for("draining");
    process.signal("INT");
    assert!(call.await.unwrap().is_err());
    assert_eq!(process.end().0, Some(130));
}
