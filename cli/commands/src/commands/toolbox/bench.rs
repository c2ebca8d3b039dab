//! `canopy tools bench`: how fast a server answers.

mod load;
mod permuted;

use std::time::Duration;

use canopy_client::{Client, FileName, RequestId};
use canopy_plan::Profile;
use canopy_proto::v1::{self, PlanResponse, PlanSpec};
use clap::ValueEnum;
use serde::Serialize;

use crate::args::{self, CollectiveArgs};
use crate::clock;
use crate::connection::{Connections, ServerArgs};
use crate::exit::Failure;
use crate::input;
use crate::messages::say;
use crate::output::{print_json, to_thousandths};
use crate::request;
use crate::stdout::print;
use crate::stored_plan::file_name;
use crate::table::Table;

use load::{Load, Measured, Supply};

/// Most bytes that the calls for content transfer in all.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// Measure how fast a server answers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy tools bench dgx-a100:boxes=2 --collective allgather --burst 10000 --concurrency 64
  canopy tools bench dgx-a100:boxes=2 --collective allgather --server 127.0.0.1:7423 --connections 4
  canopy tools bench torus:4x4 --collective allreduce --burst 10000 --concurrency 10000 --call plan --cold --json
  canopy tools bench torus:4x4 --collective allreduce --burst 1000 --concurrency 1000 --call plan --cold --distinct 1000
  canopy tools bench dgx-a100:boxes=8 --collective allgather --burst 10000 --concurrency 1 --call plan --permuted

Latencies are those of single calls. A cold burst shows that identical requests cost one synthesis: one answer is `miss`,
the others are `joined` or `hit`, and all name one plan. Distinct requests differ in the latencies of links only.
Permuted ones are all answered from the schedule of the first: each is a `hit`, and each names a plan of its own.")]
pub(crate) struct BenchArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// Calls of each kind; calls with content end after 1 GiB
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    burst: u32,
    /// Calls in flight at once
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// Connections that the calls are spread over; more than one only to a server that is named
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    connections: u32,
    /// Kinds of calls, separated by commas
    #[arg(long, value_name = "KIND,...", value_enum, value_delimiter = ',', default_value = "lookup,plan,content")]
    call: Vec<Kind>,
    /// Do not have the plan made before the first call; for `--call plan`
    #[arg(long)]
    cold: bool,
    /// Different requests among the calls, each of which costs a synthesis; for `--cold`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    distinct: u32,
    /// Ask for the same network under other names and ranks in each call, as other machines of the same shape would; for
    /// `--call plan` and `--call lookup`
    #[arg(long, conflicts_with = "cold")]
    permuted: bool,
    /// Write MSCCL files for this runtime instead of canopy's own format
    #[arg(long, value_name = "P")]
    profile: Option<Profile>,
    /// Longest time of one call, such as 30s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// LookUpPlan: from the cache, without files
    Lookup,
    /// Plan: made if need be, with files of at most 64 KiB
    Plan,
    /// FetchPlanFile: the whole file, checked
    Content,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Benched {
    burst: u32,
    concurrency: u32,
    connections: u32,
    distinct: u32,
    calls: Vec<Measurement>,
}

/// What came of one kind of calls.
#[derive(Serialize)]
struct Measurement {
    call: String,
    requests: u64,
    failed: u64,
    seconds: f64,
    requests_per_second: f64,
    #[serde(rename = "MBps", skip_serializing_if = "Option::is_none")]
    megabytes_per_second: Option<f64>,
    latency_ms: Latency,
    /// Of the calls that the server says its own time of.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_ms: Option<Latency>,
    cache: Cache,
    /// Different plans among the answers.
    plans: usize,
}

#[derive(Serialize)]
struct Latency {
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Cache {
    hit: u64,
    joined: u64,
    miss: u64,
}

/// Runs the kinds of calls one after another.
pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let request = plan_request(&args)?;
    if args.cold && args.call != [Kind::Plan] {
        return Err(Failure::input("--cold is for calls that make a plan").help("add `--call plan`"));
    }
    if args.distinct > 1 && !args.cold {
        return Err(Failure::input("`--distinct` needs plans that are not cached").help("add `--cold --call plan`"));
    }
    if args.permuted && args.call.contains(&Kind::Content) {
        return Err(Failure::input("--permuted is for calls that name a network").help("add `--call lookup,plan`"));
    }
    if args.connections > 1 && !args.server.names_one() {
        let refused = Failure::input("--connections is for a server in a process of its own");
        return Err(refused.help("start `canopyd` and add `--server ADDR`"));
    }
    let ways = Connections::new(&args.server)?;
    let mut connections = Vec::new();
    for _ in 0..args.connections {
        connections.push(ways.open().await?);
    }
    let clients: Vec<Client> = connections.iter().map(|connection| connection.shared().clone()).collect();
    let measured = measure(&args, &clients, &request).await;
    drop(clients);
    for connection in connections {
        connection.close().await;
    }
    let calls = measured?;
    let failed = calls
        .iter()
        .find(|(_, measured)| measured.tally.failed > 0)
        .and_then(|(_, measured)| measured.tally.error.clone());
    let calls: Vec<Measurement> = calls.into_iter().map(|(kind, measured)| measurement(kind, &measured)).collect();
    if args.json {
        let BenchArgs { burst, concurrency, connections, distinct, .. } = args;
        print_json("bench", &Benched { burst, concurrency, connections, distinct, calls })?;
    } else {
        print(&table(&calls))?;
    }
    failed.map_or(Ok(()), Err)
}

fn plan_request(args: &BenchArgs) -> Result<PlanSpec, Failure> {
    let kind = args.collective.kind()?;
    let output = match args.profile {
        None => request::json_output(),
        Some(profile) => v1::OutputSpec {
            format: v1::OutputFormat::MscclXml.into(),
            profile: Some(profile.name().to_owned()),
            ..v1::OutputSpec::default()
        },
    };
    let collective = request::collective_spec(kind, args.collective.root);
    Ok(request::plan(request::topology(&args.topology)?, collective, vec![output]))
}

/// Has the plan made, unless the burst shall find the cache cold, and puts the load on the server.
async fn measure(args: &BenchArgs, clients: &[Client], request: &PlanSpec) -> Result<Vec<(Kind, Measured)>, Failure> {
    let in_users_words = |error| Failure::from(request::in_users_words(error, &args.topology));
    let load = |count: u64| Load { count, concurrency: args.concurrency, limit: args.deadline };
    let mut measured = Vec::new();
    if args.cold {
        measured.push((Kind::Plan, load(args.burst.into()).plan(clients, variants(args, request)?).await?));
        return Ok(measured);
    }
    let started = clock::now();
    let first = clients.first().ok_or_else(|| Failure::fault("there is no connection"))?;
    let reply = first.plan_metadata(request.clone().into_plan(), Some(args.deadline)).await.map_err(in_users_words)?;
    say(&format!("plan ready after {} ms", to_thousandths(started.elapsed().as_secs_f64() * 1e3)));
    let supply = supply(args, request)?;
    for &kind in &args.call {
        let burst = load(args.burst.into());
        let came = match kind {
            Kind::Lookup => burst.lookup(clients, supply.clone()).await?,
            Kind::Plan => burst.plan(clients, supply.clone()).await?,
            Kind::Content => {
                let (file, bytes) = file(&reply)?;
                let count_max = (CONTENT_BYTES_MAX / bytes.max(1)).max(1);
                load(u64::from(args.burst).min(count_max)).content(clients, file).await?
            }
        };
        measured.push((kind, came));
    }
    Ok(measured)
}

/// The requests of the calls.
fn supply(args: &BenchArgs, request: &PlanSpec) -> Result<Supply<PlanSpec>, Failure> {
    if !args.permuted {
        return Ok(Supply::of(vec![request.clone()]));
    }
    let (topology, request) = (input::topology(&args.topology)?, request.clone());
    // Other ones each time, so that a server that lives on has not seen them.
    let salt = RequestId::random();
    Ok(Supply::made(move |number| {
        let topology = permuted::permuted(&topology, &(&salt.to_string(), number))?;
        Ok(PlanSpec { topology: Some(topology), ..request.clone() })
    }))
}

/// The requests of a cold burst: the one, and those that differ from it in the latencies of links.
fn variants(args: &BenchArgs, request: &PlanSpec) -> Result<Supply<PlanSpec>, Failure> {
    let mut requests = vec![request.clone()];
    if args.distinct > 1 {
        let topology = input::topology(&args.topology)?;
        for number in 1..args.distinct {
            let topology = Some(permuted::slower(&topology, number.into())?);
            requests.push(PlanSpec { topology, ..request.clone() });
        }
    }
    Ok(Supply::of(requests))
}

/// The one file of the plan, and its size.
fn file(reply: &PlanResponse) -> Result<(FileName, u64), Failure> {
    let plan = reply.plan.as_ref().ok_or_else(|| request::missing("the plan"))?;
    let artifact = plan.artifacts.first().ok_or_else(|| Failure::fault("the server's plan has no file"))?;
    Ok((file_name(&plan.name, artifact), artifact.size_bytes))
}

fn measurement(kind: Kind, measured: &Measured) -> Measurement {
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    let per_second = |count: u64| to_thousandths(count as f64 / measured.elapsed.as_secs_f64().max(1e-9));
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    let millis = |nanos: u64| to_thousandths(nanos as f64 / 1e6);
    let latency = |times: &hdrhistogram::Histogram<u64>| {
        let at = |quantile: f64| millis(times.value_at_quantile(quantile));
        Latency { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: millis(times.max()) }
    };
    let tally = &measured.tally;
    Measurement {
        call: args::name_of(&kind),
        requests: measured.latencies.len(),
        failed: tally.failed,
        seconds: to_thousandths(measured.elapsed.as_secs_f64()),
        requests_per_second: per_second(measured.latencies.len()),
        megabytes_per_second: (kind == Kind::Content).then(|| to_thousandths(per_second(tally.bytes) / 1e6)),
        latency_ms: latency(&measured.latencies),
        server_ms: (!measured.server.is_empty()).then(|| latency(&measured.server)),
        cache: Cache { hit: tally.hits, joined: tally.joined, miss: tally.misses },
        plans: tally.plans.len(),
    }
}

fn table(calls: &[Measurement]) -> String {
    let mut table = Table::new(&[
        "CALL",
        "REQUESTS#",
        "FAILED#",
        "MISS#",
        "PLANS#",
        "PER SECOND#",
        "MB/S#",
        "P50 MS#",
        "P90 MS#",
        "P99 MS#",
        "MAX MS#",
        "SERVER P99 MS#",
    ]);
    for call in calls {
        let Latency { p50, p90, p99, max } = &call.latency_ms;
        table.row([
            call.call.clone(),
            call.requests.to_string(),
            call.failed.to_string(),
            call.cache.miss.to_string(),
            call.plans.to_string(),
            format!("{:.0}", call.requests_per_second),
            call.megabytes_per_second.map_or(String::new(), |rate| format!("{rate:.1}")),
            format!("{p50:.3}"),
            format!("{p90:.3}"),
            format!("{p99:.3}"),
            format!("{max:.3}"),
            call.server_ms.as_ref().map_or(String::new(), |server| format!("{:.3}", server.p99)),
        ]);
    }
    table.text()
}
