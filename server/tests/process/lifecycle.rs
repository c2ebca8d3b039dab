//! Signals, the service manager, and what the log looks like.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{PlanSpec, ReloadConfigRequest};
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

/// A request that takes much longer than any of these tests: ranks as scarce as their boxes, which differ in size.
fn endless() -> PlanSpec {
    request("rail:boxes=128,nv=60GB/s,nic=50GB/s,nodes-down=b0g0+b1g1+b5g3")
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_outlasts_the_drain_is_refused_and_the_process_ends_well() {
    let mut process = Process::start(|command, _| {
        command.args(["--drain-timeout", "100ms"]);
    });
    let mut client = process.client().await;
    let call = spawn(async move { client.plan(endless().into_plan()).await });
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
    let call = spawn(async move { client.plan(endless().into_plan()).await });
    process.wait_until_synthesis_runs().await;
    process.signal("TERM");
    process.wait_for("draining");
    process.signal("INT");
    assert!(call.await.unwrap().is_err());
    assert_eq!(process.end().0, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_applies_the_log_filter_of_the_file_and_keeps_it_when_the_file_is_bad() {
    let mut process = Process::start(|command, folder| {
        let path = folder.join("canopyd.toml");
        std::fs::write(&path, "log = \"info\"\n").unwrap();
        command.arg("--config").arg(path);
    });
    let file = process.folder.path().join("canopyd.toml");
    let reload = "the configuration was reloaded; its log filter is in effect";
    // Each is said at a level that the filter lets through.
    for (text, message) in [
        ("log = \"warn,canopy_server::ops::reload=info\"\n", reload),
        ("log = \"a=b=c\"\n", "the configuration is not valid; the current one stays in effect"),
        ("max_deadline = \"1s\"\n", "the configuration is not valid; the current one stays in effect"),
    ] {
        std::fs::write(&file, text).unwrap();
        process.signal("HUP");
        process.wait_for(message);
    }
    // Whoever asks by a call is told what came of it.
    let mut admin = ServerClient::new(process.channel().await);
    let mut reloaded = async || {
        let reply = admin.reload_config(ReloadConfigRequest::default()).await.unwrap().into_inner();
        reply.parts.into_iter().find(|part| part.what == "configuration").unwrap()
    };
    let refused = reloaded().await;
    assert!(refused.error.contains("max_deadline"), "{refused:?}");
    std::fs::write(&file, "log = \"warn,canopy_server::ops=info\"\n").unwrap();
    assert_eq!(reloaded().await.error, "");
    let metrics = process.page("/metrics").await;
    for line in
        ["canopy_config_reloads_total{outcome=\"ok\"} 2\n", "canopy_config_reloads_total{outcome=\"error\"} 3\n"]
    {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // A request is logged at info, which the filter in force does not let through.
    process.client().await.plan(request("ring:4").into_plan()).await.unwrap();
    process.signal("TERM");
    let (status, lines) = process.end();
    assert_eq!(status, Some(0));
    assert!(lines.iter().all(|line| line["method"].is_null()), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_request_names_its_trace_and_the_request() {
    let process = Process::start(|command, _| {
        command.args(["--log", "debug"]);
    });
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut asked = tonic::Request::new(request("ring:4"));
    asked.metadata_mut().insert("traceparent", format!("00-{trace_id}-00f067aa0ba902b7-01").parse().unwrap());
    process.client().await.plan(asked.map(PlanSpec::into_plan)).await.unwrap();
    process.client().await.plan(request("ring:5").into_plan()).await.unwrap();
    process.signal("TERM");
    let (_, lines) = process.end();
    let requests: Vec<&serde_json::Value> = lines.iter().filter(|line| line["method"] == "Plan").collect();
    let ids: Vec<&str> = requests.iter().map(|line| line["trace_id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], trace_id);
    assert!(ids[1].len() == 32 && ids[1] != trace_id, "{ids:?}");
    assert!(requests.iter().all(|line| line["request"].as_str().unwrap().len() == 64));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_shown_as_it_is() {
    let process = Process::start(|command, _| {
        command.args(["--drain-timeout", "0s", "--workers", "1"]);
    });
    let mut client = process.client().await;
    let call = spawn(async move { client.plan(endless().into_plan()).await });
    process.wait_until_synthesis_runs().await;
    let page = process.page("/debug/queue").await;
    let (_, body) = page.split_once("\r\n\r\n").unwrap();
    let queue: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&queue["running"], &queue["waiting"]), (&1.into(), &0.into()));
    let job = &queue["jobs"][0];
    assert_eq!((&job["state"], &job["priority"]), (&"running".into(), &"interactive".into()));
    assert_eq!((&job["collective"], &job["waiters"]), (&"allgather".into(), &1.into()));
    process.signal("TERM");
    assert!(call.await.unwrap().is_err());
    assert_eq!(process.end().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_debug_pages_shows_no_queue() {
    let process = Process::start(|command, _| {
        command.arg("--debug-pages=false");
    });
    assert!(process.page("/debug/queue").await.starts_with("HTTP/1.0 404"));
    assert!(process.page("/readyz").await.starts_with("HTTP/1.0 200"));
    process.signal("TERM");
    assert_eq!(process.end().0, Some(0));
}
