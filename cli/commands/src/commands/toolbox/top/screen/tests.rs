use canopy_proto::v1::{
    CollectiveSpec, ListFaultsResponse, OperationMetadata, PriorityStatus, Progress, QueueStatus, ServerCounts,
    ServerLimits, ServerStatus,
};

use super::super::metrics::Metrics;
use super::super::snapshot::Snapshot;
use super::*;

fn lines(moments: &Moments, view: &View, (width, height): (u16, u16)) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    paint(&mut buffer, area, moments, view);
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn job(number: u32) -> Operation {
    let metadata = OperationMetadata {
        state: 2,
        priority: Priority::Interactive.into(),
        waiters: 3,
        collective: Some(CollectiveSpec { kind: 3, root: None }),
        progress: Some(Progress { stage: "search".to_owned(), done: 5, total: 40, ..Progress::default() }),
        ..OperationMetadata::default()
    };
    Operation { name: format!("operations/{number:08x}-1"), metadata: Some(metadata), ..Operation::default() }
}

fn busy(faults: u64) -> Moments {
    let status = ServerStatus {
        version: "0.1.0".to_owned(),
        uptime: Some(prost_types::Duration { seconds: 3 * 3600 + 125, nanos: 0 }),
        limits: Some(ServerLimits { workers: 2, ..ServerLimits::default() }),
        counts: Some(ServerCounts { plans: 12, pinned_plans: 1, plan_bytes: 5 << 20, ..ServerCounts::default() }),
        ..ServerStatus::default()
    };
    let row = PriorityStatus { priority: Priority::Interactive.into(), waiting: 7, running: 1 };
    let queue = QueueStatus {
        waiting: 7,
        length_max: 256,
        priorities: vec![row],
        operations: (0..30).map(job).collect(),
        ..QueueStatus::default()
    };
    let fault =
        KnownFault { text: "nic:gpu01:3".to_owned(), sources: vec!["dcgm".to_owned()], ..KnownFault::default() };
    let faults = ListFaultsResponse { faults: vec![fault], total_size: faults, ..ListFaultsResponse::default() };
    let before = Snapshot {
        status: ServerStatus {
            uptime: Some(prost_types::Duration { seconds: 3 * 3600 + 123, nanos: 0 }),
            ..status.clone()
        },
        ..Snapshot::default()
    };
    let metrics = Metrics::read(
        "canopy_rpc_requests_total{method=\"Plan\"} 500\ncanopy_plan_requests_total{cache=\"hit\"} 480\n\
         canopy_plan_latency_seconds_bucket{cache=\"hit\",le=\"0.001\"} 240\n\
         canopy_plan_latency_seconds_bucket{cache=\"hit\",le=\"0.0025\"} 480\n\
         canopy_plan_latency_seconds_bucket{cache=\"hit\",le=\"+Inf\"} 480\n\
         canopy_cache_capacity_bytes{tier=\"disk\"} 4294967296\ncanopy_disk_free_bytes 1073741824\n\
         canopy_leases_active 4\ncanopy_replans_waiting 0\ncanopy_watchers 2\ncanopy_store_writable 1\n",
    );
    Moments { before, now: Snapshot { status, queue, faults, metrics } }
}

#[test]
fn all_that_matters_is_on_eighty_columns_and_twenty_four_lines() {
    let view = View { server: "unix:/run/canopy.sock".to_owned(), ..View::default() };
    let screen = lines(&busy(1), &view, (80, 24));
    let text = screen.join("\n");
    assert_eq!(screen[0], "canopyd 0.1.0 at unix:/run/canopy.sock, up 3 h 2 min");
    for expected in [
        "workers    1 busy of 2",
        "waiting    7 of 256",
        "interactive    7    1",
        "calls/s    250",
        "cached/s   240",
        "1.0 ms / 2.5 ms",
        "searched/s 0",
        "plans      12, 1 pinned",
        "5.0 MiB/4.0 GiB",
        "faults     1",
        "leases     4, 0 to replan",
        "Jobs (30)",
        "00000000-1   running  interactive allreduce      search      5 of 40   3",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(screen[23].starts_with("q quit   p pause"));
    assert!(!text.contains("READ ONLY") && !text.contains("DRAINING"));
}

#[test]
fn lists_scroll_to_their_ends_and_no_further() {
    let scrolled = |scrolled| {
        let view = View { scrolled, ..View::default() };
        lines(&busy(0), &view, (80, 24)).join("\n")
    };
    assert!(scrolled(0).contains("00000000-1") && !scrolled(0).contains("0000001d-1"));
    assert!(scrolled(1000).contains("0000001d-1"), "the last job");
    assert_eq!(scrolled(1000), scrolled(1 << 40));
}

#[test]
fn faults_and_trouble_are_shown() {
    let view = View { list: List::Faults, problem: Some("the server does not answer".to_owned()), ..View::default() };
    let mut moments = busy(1);
    moments.now.status.draining = true;
    moments.now.metrics = Metrics::read("canopy_store_writable 0\ncanopy_database_reachable 0");
    let text = lines(&moments, &view, (100, 30)).join("\n");
    for expected in
        ["DRAINING", "the server does not answer", "READ ONLY", "DATABASE AWAY", "Faults (1)", "nic:gpu01:3", "dcgm"]
    {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

/// A terminal that is much too small, and a server that says nothing, are drawn all the same.
#[test]
fn nothing_fails_for_want_of_space_or_words() {
    for size in [(1, 1), (10, 3), (80, 5), (300, 100)] {
        for moments in [Moments::default(), busy(0)] {
            assert_eq!(lines(&moments, &View::default(), size).len(), usize::from(size.1));
        }
    }
}

#[test]
fn times_have_as_many_digits_as_say_something() {
    let times = [0.19, 12.4, 1500.0, 12_000.0].map(short_time);
    assert_eq!(times, ["0.2 ms", "12 ms", "1.5 s", "12 s"]);
    let times = [5.0, 600.0, 7500.0, 400_000.0].map(long_time);
    assert_eq!(times, ["5 s", "10 min", "2 h 5 min", "4 days"]);
    assert_eq!([0.0, 0.25, 12.34, 250.0].map(number), ["0", "0.2", "12.3", "250"]);
}
