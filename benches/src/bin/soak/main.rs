//! A server under a mixed load for a long time: does anything grow that should not, and is any answer lost?
//!
//! `cargo run --release -p canopy-benches --bin soak [-- --minutes 20 --seed 1 --canopyd PATH]`
//!
//! It starts a real `canopyd` with a folder of its own and little room for plans. Closed loops on several connections then ask for
//! cached, new and recalled plans, hold leases on networks whose links break, start jobs in the background, leave calls early,
//! pin, evict, store and delete, have the configuration read again, and look at the status. From one seed, each loop asks for
//! the same sequence; how they interleave depends on time. Plans and topologies come from finite sets, so that after the first
//! part of a run nothing has a reason to grow.
//!
//! It prints what it measured, then its checks. The exit status is 1 if a check does not hold.

mod caller;
mod ledger;
mod load;
mod log;
mod report;
mod requests;
mod samples;
mod server;
mod verdict;
mod watches;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use canopy_benches::{Random, Stopwatch};
use canopy_client::Client;
use canopy_proto::v1::{GetStatusRequest, ListLeasesRequest};
use clap::Parser;
use tokio::sync::watch;
use tokio::time::sleep;

use self::caller::Caller;
use self::ledger::Kind;
use self::load::{Load, RESUMED};
use self::samples::Sample;
use self::server::{Launch, Server};
use self::verdict::Outcome;
use self::watches::{Change, witnessed};

type Failure = Box<dyn Error>;

/// Time for all loops to end once the load is over: the longest call, and then some.
const LOOPS_END_MAX: Duration = Duration::from_secs(150);
/// Time for the queue to empty, leases to expire and watches to catch up after that.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long all of that must hold: longer than the server waits before it plans for a lease again.
const REST: Duration = Duration::from_secs(3);

/// Drives a server for a long time, and checks that nothing grows and no answer is lost.
#[derive(Debug, Parser)]
#[command(name = "soak")]
struct Arguments {
    /// Length of the load.
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Seconds between measurements.
    #[arg(long, default_value_t = 5.0)]
    every: f64,
    /// Seed of what is asked for.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The server; by default the one beside this program.
    #[arg(long, env = "CANOPY_CANOPYD", value_name = "PATH")]
    canopyd: Option<PathBuf>,
    /// Planning threads of the server.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Most bytes of stored plans: less than all plans of the load take.
    #[arg(long, default_value_t = 4 << 20)]
    store_bytes: u64,
    /// Network of the large all-to-all.
    #[arg(long, default_value = "dgx-a100:boxes=8")]
    large: String,
}

fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(soak(&arguments))?;
    let checks = verdict::checks(&outcome);
    report::print(&outcome, &checks);
    Ok(if checks.iter().all(|check| check.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The whole run: load, rest, end.
async fn soak(arguments: &Arguments) -> Result<Outcome, Failure> {
    let program = server::program(arguments.canopyd.clone())?;
    let launch = Launch { program, workers: arguments.workers, store_bytes: arguments.store_bytes };
    let server = Server::start(&launch)?;
    let log = server.log();
    let mut load = Load::start(&server, arguments.seed, &arguments.large).await?;
    let (_over, over) = watch::channel(false);
    let client = server.connect().await?;
    let mut observer = Caller { client, random: Random::new(0), ledger: Arc::clone(&load.ledger), over };
    let every = Duration::try_from_secs_f64(arguments.every)?;
    let samples =
        measure(&server, &mut observer, every, Duration::try_from_secs_f64(arguments.minutes * 60.0)?).await?;

    let stuck_loops = load.stop(LOOPS_END_MAX).await;
    let settled = settle(&observer, &load).await;
    let current = current_plans(&observer.client).await?;
    let stayed = witnessed(&load.stayed);
    let resumed = RESUMED.iter().zip(&load.resumed).map(|(job, seen)| ((*job).to_owned(), witnessed(seen))).collect();
    let resting = sample(&server, &observer, samples.last().map_or(Duration::ZERO, |last| last.at)).await;
    let ledger = load.ledger.all();
    // The watches are open, and end by the drain.
    let stopping = tokio::task::spawn_blocking(move || server.stop().map_err(|error| error.to_string()));
    let (status, drain) = stopping.await??;
    load.leave_watches().await;
    Ok(Outcome {
        minutes: arguments.minutes,
        samples,
        resting,
        ledger,
        leases: load.leases.known(),
        operations: load.operations.counts(),
        stayed,
        resumed,
        current,
        stuck_loops,
        settled,
        status,
        drain,
        log,
    })
}

/// Measures until the load has lasted long enough, and shows some of it meanwhile.
async fn measure(
    server: &Server,
    observer: &mut Caller,
    every: Duration,
    length: Duration,
) -> Result<Vec<Sample>, Failure> {
    let watch = Stopwatch::start();
    let mut samples = Vec::new();
    while watch.elapsed() < length {
        sleep(every.min(length.saturating_sub(watch.elapsed()))).await;
        let sample = sample(server, observer, watch.elapsed()).await;
        if sample.resident == 0 {
            return Err(format!("canopyd has ended: {:#?}", server.log().unexpected().1).into());
        }
        eprintln!("{}", report::progress(&sample));
        samples.push(sample);
    }
    Ok(samples)
}

/// The state of the server: what the system says, and what it says itself.
async fn sample(server: &Server, observer: &Caller, at: Duration) -> Sample {
    let call = observer.client.get_status(GetStatusRequest {}, None);
    let counts = observer.call(Kind::Status, call).await.ok().and_then(|status| status.counts).unwrap_or_default();
    Sample {
        log_bytes: server.log().written().0,
        plans: counts.plans,
        plan_bytes: counts.plan_bytes,
        jobs: counts.waiting + counts.running,
        calls: observer.ledger.ended(),
        ..Sample::of_process(server.pid(), at)
    }
}

/// Waits until the queue is empty, leases have expired and watches have caught up, and stay so; after how long, or what is not so.
async fn settle(observer: &Caller, load: &Load) -> Result<Duration, String> {
    let watch = Stopwatch::start();
    let mut since = None;
    loop {
        match unsettled(observer, load).await {
            None => {
                let since = *since.get_or_insert_with(|| watch.elapsed());
                if watch.elapsed() >= since + REST {
                    return Ok(since);
                }
            }
            Some(waiting) if watch.elapsed() > SETTLE_MAX => return Err(waiting),
            Some(_) => since = None,
        }
        sleep(Duration::from_millis(250)).await;
    }
}

/// What has not come to rest.
async fn unsettled(observer: &Caller, load: &Load) -> Option<String> {
    let call = observer.client.get_status(GetStatusRequest {}, None);
    let counts = match observer.call(Kind::Status, call).await {
        Ok(status) => status.counts.unwrap_or_default(),
        Err(reason) => return Some(format!("GetStatus: {reason}")),
    };
    if counts.waiting + counts.running > 0 {
        return Some(format!("{} jobs wait and {} run", counts.waiting, counts.running));
    }
    let listed = observer.client.list_leases(ListLeasesRequest { page_size: 1000, ..Default::default() }, None).await;
    let leases = match listed {
        Ok(listed) => listed.leases,
        Err(error) => return Some(format!("ListLeases: {error}")),
    };
    if let Some(lease) = leases.iter().find(|lease| lease.plans.iter().any(|plan| plan.is_replanning)) {
        return Some(format!("{} is being replanned", lease.name));
    }
    let stayed = witnessed(&load.stayed);
    let current = leases.into_iter().filter_map(|lease| Some((lease.name, lease.plans.first()?.current.clone())));
    let held = load.leases.known().held;
    if let Some(problem) = watches::broken_chains(&stayed, &held, &current.collect()).into_iter().next() {
        return Some(problem);
    }
    let expired =
        |lease: &String| stayed.events.values().any(|seen| seen.lease == *lease && seen.change == Change::Expired);
    if let Some(lease) = load.leases.known().expiring.iter().find(|lease| !expired(lease)) {
        return Some(format!("{lease} has not expired"));
    }
    let mut resumed = RESUMED.iter().zip(&load.resumed);
    resumed.find_map(|(job, seen)| watches::compare(&stayed, &witnessed(seen), job).into_iter().next())
}

/// The plans that leases have.
async fn current_plans(client: &Client) -> Result<BTreeMap<String, String>, Failure> {
    let listed = client.list_leases(ListLeasesRequest { page_size: 1000, ..Default::default() }, None).await?;
    let plans = listed.leases.into_iter().filter_map(|lease| Some((lease.name, lease.plans.first()?.current.clone())));
    Ok(plans.collect())
}
