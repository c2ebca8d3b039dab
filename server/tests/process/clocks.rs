//! The time of day is set by days, forwards and back, while leases are held and links break.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use canopy_prerequisites::compiler_with;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, FaultEvent, Lease, ListLeasesRequest, RenewLeaseRequest,
    ReportFaultsRequest,
};
use tokio::time::{sleep, timeout};

use crate::kills::{NETWORK, Told, Workspace, follow, lost};
use crate::support::{Process, request};

const DAYS: i64 = 8 * 24 * 3600;
const TTL: i64 = 3600;
/// From a report to a plan around it, and back: far more than it takes, and far less than days.
const PATIENCE: Duration = Duration::from_secs(30);

/// A library that adds the seconds of a file to the time of day, and to no other clock.
const SHIFT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile const long *shift;

__attribute__((constructor)) static void open_shift(void) {
    int file = open(getenv("SHIFT_FILE"), O_RDONLY);
    void *mapped = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    shift = mapped == MAP_FAILED ? 0 : mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int outcome = real(clock, time);
    if (!outcome && clock == CLOCK_REALTIME && shift) time->tv_sec += *shift;
    return outcome;
}
"#;

/// The time of day of one process.
struct TimeOfDay {
    library: PathBuf,
    file: PathBuf,
}

impl TimeOfDay {
    fn new(folder: &Path) -> Self {
        let (source, library, file) = (folder.join("shift.c"), folder.join("shift.so"), folder.join("shift"));
        fs::write(&source, SHIFT).unwrap();
        let mut compiler = Command::new("cc");
        let compiled =
            compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let made = Self { library, file };
        fs::write(&made.file, 0_i64.to_ne_bytes()).unwrap();
        made
    }

    /// Sets it ahead of the machine's time by this many seconds.
    fn set(&self, ahead_s: i64) {
        use std::os::unix::fs::FileExt as _;
        let file = fs::OpenOptions::new().write(true).open(&self.file).unwrap();
        file.write_all_at(&ahead_s.to_ne_bytes(), 0).unwrap();
    }
}

fn unix_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

async fn the_lease(workspace: &mut Workspace) -> Lease {
    let listed = workspace.leases.list_leases(ListLeasesRequest::default()).await.unwrap().into_inner().leases;
    let [lease] = listed.try_into().expect("the lease is held");
    lease
}

/// Waits until the lease has another plan than the first one, or that one again.
async fn wait_until_planned_around(workspace: &mut Workspace, around: bool) {
    let planned = async {
        loop {
            let lease = the_lease(workspace).await;
            let plan = &lease.plans[0];
            if !plan.is_replanning && (plan.current != plan.original) == around {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, planned).await.unwrap_or_else(|_| panic!("planned around a fault: {around}"));
}

async fn jumps(process: &Process) -> f64 {
    process.metric("canopy_clock_jumps_total").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_by_days_ends_no_lease_and_delays_no_plan() {
    if !compiler_with("cc", "dlfcn.h") {
        return;
    }
    let tools = tempfile::tempdir().unwrap();
    let time = TimeOfDay::new(tools.path());
    let process = Process::start(|command, _| {
        command.env("LD_PRELOAD", &time.library).env("SHIFT_FILE", &time.file);
        command.args(["--replan-window", "20ms", "--fault-debounce", "200ms", "--fault-hold-down", "400ms"]);
        command.arg("--plan-ahead=false");
    });
    process.client().await.plan(request(NETWORK).into_plan()).await.unwrap();
    let (mut workspace, told) = (Workspace::at(&process).await, Told::default());
    let ttl = Some(prost_types::Duration { seconds: TTL, nanos: 0 });
    let asked = AcquireLeaseRequest {
        job: "job".to_owned(),
        specs: vec![request(NETWORK)],
        ttl,
        ..AcquireLeaseRequest::default()
    };
    let first = workspace.leases.acquire_lease(asked).await.unwrap().into_inner();
    let _watching = follow(&process, &told).await;
    let mut seen = jumps(&process).await;
    for (number, ahead_s) in [DAYS, 0, -DAYS, 0].into_iter().enumerate() {
        time.set(ahead_s);
        let topology = request(NETWORK).topology;
        let (source, event_id) = ("test".to_owned(), number.to_string());
        let event = FaultEvent { source, event_id, fault: Some(lost(2)), ..FaultEvent::default() };
        let asked = ReportFaultsRequest { topology, events: vec![event], ..Default::default() };
        let topology = workspace.faults.report_faults(asked).await.unwrap().into_inner().topology;
        wait_until_planned_around(&mut workspace, true).await;
        workspace.faults.clear_faults(ClearFaultsRequest { topology, ..Default::default() }).await.unwrap();
        wait_until_planned_around(&mut workspace, false).await;
        let lease = the_lease(&mut workspace).await;
        // What is shown of it is by the time of day as it is now.
        let left_s = lease.expire_time.unwrap().seconds - (unix_s() + ahead_s);
        assert!((TTL - 300..=TTL + 5).contains(&left_s), "{left_s} s are left, {ahead_s} s ahead");
        let renewed = workspace
            .leases
            .renew_lease(RenewLeaseRequest { name: first.name.clone(), ttl, ..RenewLeaseRequest::default() })
            .await
            .unwrap();
        assert_eq!(renewed.into_inner().name, first.name);
        let counted = async {
            while jumps(&process).await <= seen {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, counted).await.expect("the jump is counted, which raises an alert");
        seen = jumps(&process).await;
    }
    let told = told.lock().unwrap();
    assert!(!told.is_empty() && !told.iter().any(|event| matches!(event.event, Some(Event::Expired(_)))), "{told:?}");
}
