//! Servers on one database: what a cached plan takes through each, how much more several workers do, and how soon one hears of what
//! was reported to another.
//!
//! `cargo run --release -p canopy-benches --bin replicas -- --database URL [--canopyd PATH] [--rounds 2]`
//!
//! It starts real `canopyd` processes with folders of their own on a new and empty database, and prints tables. Searches use one
//! thread each, so that workers can be compared.

mod rates;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use canopy_benches::{Stopwatch, print_table};
use canopy_client::Client;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, Collective, CollectiveSpec, Fault, FaultEvent, FaultKind, LinkTarget,
    PlanSpec, ReportFaultsRequest, TopologySource, WatchLeasesRequest, WeighFaultsRequest, fault,
};
use clap::Parser;

use self::server::{Role, Server, program};

type Failure = Box<dyn Error>;

/// Plans of 16 GPUs, each on a network of its own.
const PLANS: u64 = 200;
/// Lookups of plans that are cached.
const LOOKUPS: usize = 2000;
/// Searches that workers share.
const SEARCHES: u64 = 12;

/// Measures servers that share a database.
#[derive(Debug, Parser)]
#[command(name = "replicas")]
struct Arguments {
    /// An empty database, such as postgres://canopy@/bench?host=/run/postgresql
    #[arg(long, value_name = "URL")]
    database: String,
    /// The server; by default the one beside this program.
    #[arg(long, env = "CANOPY_CANOPYD", value_name = "PATH")]
    canopyd: Option<PathBuf>,
    /// How often searches and faults are repeated.
    #[arg(long, default_value_t = 2)]
    rounds: u64,
    /// What is measured; by default all of it.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Lookups,
    Faults,
    Rates,
    Searches,
    WhatIf,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let program = program(arguments.canopyd.clone())?;
        let is_asked = |part| arguments.only.is_empty() || arguments.only.contains(&part);
        if is_asked(Part::Lookups) {
            lookups(&program, &arguments).await?;
        }
        if is_asked(Part::Faults) {
            faults(&program, &arguments).await?;
        }
        if is_asked(Part::Rates) {
            rates::rates(&program, &arguments.database).await?;
        }
        if is_asked(Part::Searches) {
            searches(&program, &arguments).await?;
        }
        if is_asked(Part::WhatIf) {
            what_if(&program, &arguments).await?;
        }
        Ok(())
    })
}

/// A request of sixteen GPUs; each number is another network.
fn sixteen(number: u64) -> PlanSpec {
    asked(format!("torus:4x4,bw={}GB/s", 10 + number))
}

fn asked(expression: String) -> PlanSpec {
    PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Expression(expression)) }),
        collective: Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None }),
        ..PlanSpec::default()
    }
}

/// What a cached plan takes: without a database, at the server that made it, and at one that has not read it yet.
async fn lookups(program: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
    let alone = Server::start(program, None, Role::All)?;
    let first = Server::start(program, Some(&arguments.database), Role::All)?;
    let (mut by_itself, mut warm) = (alone.connect().await?, first.connect().await?);
    for number in 0..PLANS {
        for client in [&mut by_itself, &mut warm] {
            client.plan_metadata(sixteen(number).into_plan(), None).await?;
        }
    }
    // By turns, as machines are noisy.
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..LOOKUPS {
        for (client, times) in [&mut by_itself, &mut warm].into_iter().zip(&mut times) {
            times.push(timed_lookup(client, turn as u64 % PLANS).await?);
        }
    }
    let cold_server = Server::start(program, Some(&arguments.database), Role::All)?;
    let mut cold = cold_server.connect().await?;
    // The connection itself is not what is measured.
    cold.get_status(Default::default(), None).await?;
    let mut cold_times = Vec::new();
    for number in 0..PLANS {
        cold_times.push(timed_lookup(&mut cold, number).await?);
    }
    let [alone, warm] = times;
    let rows = [("no database", alone), ("database, warm", warm), ("database, nothing cached here", cold_times)];
    let rows = rows.map(|(name, times)| row(name, times));
    print_table(["cached plan of 16 GPUs", "lookups", "p50 ms", "p90 ms", "p99 ms", "most ms"], &rows);
    Ok(())
}

async fn timed_lookup(client: &mut Client, number: u64) -> Result<Duration, Failure> {
    let watch = Stopwatch::start();
    client.look_up_plan(sixteen(number).into_look_up(), None).await?;
    Ok(watch.elapsed())
}

fn row(name: &str, mut times: Vec<Duration>) -> [String; 6] {
    times.sort_unstable();
    let quantile = |hundredths: usize| {
        let place = (times.len() * hundredths / 100).min(times.len().saturating_sub(1));
        times.get(place).map_or_else(String::new, |time| format!("{:.2}", time.as_secs_f64() * 1e3))
    };
    [name.to_owned(), times.len().to_string(), quantile(50), quantile(90), quantile(99), quantile(100)]
}

/// How many distinct searches several workers make in the time of one.
async fn searches(program: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
    let front = Server::start(program, Some(&arguments.database), Role::Api)?;
    let client = front.connect().await?;
    let mut rows = Vec::new();
    let mut network = 0;
    let mut single = 0.0;
    for count in 1..=3_usize {
        let workers: Vec<Server> = (0..count)
            .map(|_| Server::start(program, Some(&arguments.database), Role::Worker))
            .collect::<Result<_, _>>()?;
        let mut best = f64::INFINITY;
        for _ in 0..arguments.rounds {
            let watch = Stopwatch::start();
            let mut calls = Vec::new();
            for _ in 0..SEARCHES {
                network += 1;
                let (client, request) = (client.clone(), distinct(network));
                calls.push(async move { client.plan_metadata(request.into_plan(), None).await });
            }
            for done in join_all(calls).await {
                done?;
            }
            best = best.min(watch.elapsed().as_secs_f64());
        }
        drop(workers);
        if count == 1 {
            single = best;
        }
        rows.push([count.to_string(), SEARCHES.to_string(), format!("{best:.2}"), format!("{:.2}", single / best)]);
    }
    print_table(["workers of one thread", "distinct searches", "best s", "times one"], &rows);
    Ok(())
}

/// How soon several workers answer what one does alone.
async fn what_if(program: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
    let front = Server::start(program, Some(&arguments.database), Role::Api)?;
    let client = front.connect().await?;
    let (mut rows, mut single, mut seed) = (Vec::new(), 0.0, 0);
    for count in 1..=3_usize {
        let workers: Vec<Server> = (0..count)
            .map(|_| Server::start(program, Some(&arguments.database), Role::Worker))
            .collect::<Result<_, _>>()?;
        let (mut best, mut slices, mut groups) = (f64::INFINITY, 0, 0);
        for _ in 0..arguments.rounds {
            seed += 1;
            let collective = Some(CollectiveSpec { kind: Collective::Allreduce.into(), root: None });
            let network = asked(format!("random-regular:n=512,d=8,seed={seed}"));
            let asked = PlanSpec { collective, ..network }.into_weigh_faults();
            let asked = WeighFaultsRequest { kinds: vec![FaultKind::Gpus.into()], ..asked };
            let watch = Stopwatch::start();
            let (started, weighed) = client.weigh_faults(asked, Some(Duration::from_secs(600)), |_| {}).await?;
            best = best.min(watch.elapsed().as_secs_f64());
            (slices, groups) = (started.slices, weighed.len());
        }
        drop(workers);
        if count == 1 {
            single = best;
        }
        let times = format!("{:.2}", single / best);
        rows.push([count.to_string(), groups.to_string(), slices.to_string(), format!("{best:.2}"), times]);
    }
    print_table(["workers of one thread", "faults weighed", "slices", "best s", "times one"], &rows);
    Ok(())
}

/// A search of some seconds of which no other one here has the seed: all take about as long, on a small network.
fn distinct(number: u64) -> PlanSpec {
    PlanSpec {
        algorithm: Some("tacos".to_owned()),
        seed: number,
        ..asked("random-euler:n=96,switches=48,seed=1".to_owned())
    }
}

async fn join_all<F: Future>(calls: Vec<F>) -> Vec<F::Output> {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (call, done) in calls.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = call.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// How soon a watch at one server tells of a plan around a fault that was reported at another one.
async fn faults(program: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
    const NETWORK: &str = "dgx-a100:boxes=2";
    let servers = [(), ()].map(|()| Server::start(program, Some(&arguments.database), Role::All));
    let [here, there] = servers;
    let (here, there) = (here?, there?);
    let (watcher, reporter) = (here.connect().await?, there.connect().await?);
    let request = asked(NETWORK.to_owned());
    watcher.plan_metadata(request.clone().into_plan(), None).await?;
    let lease = AcquireLeaseRequest { job: "job".to_owned(), specs: vec![request.clone()], ..Default::default() };
    let lease = watcher.acquire_lease(lease, None).await?;
    let patience = Duration::from_secs(20);
    let mut events = watcher.watch_leases(WatchLeasesRequest::default(), patience).await?;
    let mut times = Vec::new();
    for round in 0..arguments.rounds * 5 {
        let target = LinkTarget { from: "b0g0".to_owned(), to: "ib".to_owned(), ..Default::default() };
        let fault = Fault { target: Some(fault::Target::Link(target)), remaining: None };
        let event = FaultEvent {
            source: "bench".to_owned(),
            event_id: round.to_string(),
            fault: Some(fault),
            ..FaultEvent::default()
        };
        let report =
            ReportFaultsRequest { topology: request.topology.clone(), events: vec![event], ..Default::default() };
        let watch = Stopwatch::start();
        let reply = reporter.report_faults(report, None).await?;
        loop {
            let event = tokio::time::timeout(patience, events.next()).await??;
            if matches!(&event.event, Some(Event::Superseded(told)) if event.faults.len() == 1 && !told.new_plan.is_empty())
            {
                times.push(watch.elapsed());
                break;
            }
        }
        let clear = ClearFaultsRequest { topology: reply.topology, ..ClearFaultsRequest::default() };
        reporter.clear_faults(clear, None).await?;
        // Until it is whole again.
        loop {
            let event = tokio::time::timeout(patience, events.next()).await??;
            if matches!(&event.event, Some(Event::Superseded(told)) if told.is_final && event.faults.is_empty()) {
                break;
            }
        }
    }
    drop(lease);
    let rows = [row("reported there, plan told here", times)];
    print_table(["fault", "reports", "p50 ms", "p90 ms", "p99 ms", "most ms"], &rows);
    Ok(())
}
