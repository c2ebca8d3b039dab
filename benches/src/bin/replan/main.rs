//! How long after a fault there is a checked plan, and the optimum, from a server over its socket.
//!
//! `cargo run --release -p canopy-benches --bin replan [faults|large|in-time|storm|deadlines|leases|watchers …]`
//!
//! * `faults`: every single link, card and GPU, and 100 random pairs of them, of small networks. Each is asked of a server of
//!   its own that has planned for the sound network, so that none is answered by what was found for another; *again* is the same
//!   request once more. Faults that disconnect are counted apart: each must be refused with its components.
//! * `large`: one card of 1,000 GPUs at half of its rate.
//! * `in-time`: one link of a torus of 256 ranks that was planned for by `tacos`.
//! * `storm`: 10,000 events in 10 s, flapping links among them, while cached plans are asked for.
//! * `deadlines`: answers with deadlines from 50 ms to 5 s at 1,000 GPUs while other plans are made.
//! * `leases`: the start on up to 100,000 leases, and faults that concern one of them and a thousand.
//! * `watchers`: a thousand watches, of which a hundred are never read.

mod deadlines;
mod in_time;
mod leases;
mod storm;
mod watchers;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use canopy_benches::print_table;
use canopy_client::{Client, ClientError, PlanReceiver, ServerAddress};
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    Accepted, AcquireLeaseRequest, Collective, CollectiveSpec, Fault, FaultEvent, LinkTarget, OnMiss, PlanRequest,
    PlanResponse, PlanSpec, Progress, Punctured, ReportFaultsRequest, ReportFaultsResponse, TopologySource, fault,
};
use canopy_server::{EmbeddedServer, Options};
use canopy_topology::{NodeKind, Topology, TopologyLimits, generate};

type Failure = Box<dyn Error>;

const NETWORKS: [(&str, &[Collective]); 3] = [
    ("dgx-a100:boxes=2", &[Collective::Allgather, Collective::Allreduce]),
    ("mi250:boxes=2", &[Collective::Allgather, Collective::Allreduce]),
    ("torus:4x4", &[Collective::Allgather, Collective::Allreduce, Collective::AllToAll]),
];
const LARGE: &str = "dgx-a100:boxes=125";
/// Pairs of faults of each network.
const PAIRS: usize = 100;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if is_asked("faults") {
            faults().await?;
        }
        if is_asked("large") {
            large().await?;
        }
        if is_asked("in-time") {
            in_time::in_time().await?;
        }
        if is_asked("storm") {
            storm::storm().await?;
        }
        if is_asked("deadlines") {
            deadlines::deadlines().await?;
        }
        if is_asked("leases") {
            leases::leases().await?;
        }
        if is_asked("watchers") {
            watchers::watchers().await?;
        }
        Ok(())
    })
}

/// A server with a folder of its own, and a connection to it.
struct Workspace {
    server: EmbeddedServer,
    client: Client,
    folder: tempfile::TempDir,
}

impl Workspace {
    async fn open(change: impl FnOnce(&mut Options)) -> Result<Self, Failure> {
        Self::open_in(tempfile::tempdir()?, |folder| {
            let mut options = Options::embedded(folder.to_owned());
            change(&mut options);
            options
        })
        .await
    }

    async fn open_in(folder: tempfile::TempDir, options: impl FnOnce(&Path) -> Options) -> Result<Self, Failure> {
        let server = EmbeddedServer::start(options(folder.path())).await?;
        Self::of(server, folder).await
    }

    async fn of(server: EmbeddedServer, folder: tempfile::TempDir) -> Result<Self, Failure> {
        let client = Client::connect(&ServerAddress::unix(server.socket_path())).await?;
        Ok(Self { server, client, folder })
    }

    /// Another connection.
    async fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&ServerAddress::unix(self.server.socket_path())).await?)
    }

    /// Ends the server; what it has kept stays.
    async fn close(self) -> Result<tempfile::TempDir, Failure> {
        drop(self.client);
        self.server.stop().await?;
        Ok(self.folder)
    }
}

fn expression(text: &str) -> TopologySource {
    TopologySource { source: Some(Source::Expression(text.to_owned())) }
}

fn request(network: &str, collective: Collective, faults: &[Fault]) -> PlanSpec {
    let sound = expression(network);
    let topology = match faults {
        [] => sound,
        faults => {
            let (base, faults) = (Some(Box::new(sound)), faults.to_vec());
            let punctured = Box::new(Punctured { base, faults });
            TopologySource { source: Some(Source::Punctured(punctured)) }
        }
    };
    PlanSpec {
        topology: Some(topology),
        collective: Some(CollectiveSpec { kind: collective.into(), root: None }),
        ..PlanSpec::default()
    }
}

/// Asks for the best plan that comes in time.
fn best_so_far(spec: PlanSpec) -> PlanRequest {
    PlanRequest { on_miss: OnMiss::BestSoFar.into(), ..spec.into_plan() }
}

/// Notes when plans come.
struct Times {
    begun: Instant,
    first: Option<(Duration, f64)>,
    last: Option<(Duration, f64)>,
    /// The repaired plan.
    repaired: Option<(Duration, f64)>,
}

#[expect(clippy::disallowed_methods, reason = "this program measures")]
fn now() -> Instant {
    Instant::now()
}

impl Times {
    fn new() -> Self {
        Self { begun: now(), first: None, last: None, repaired: None }
    }

    fn note(&mut self, reply: &PlanResponse) {
        let plan = reply.plan.as_ref();
        let reached = plan
            .and_then(|plan| plan.quality.as_ref())
            .map_or(0.0, |quality| quality.optimality.as_ref().map_or(0.0, |optimality| optimality.value));
        let seen = (now().duration_since(self.begun), reached);
        self.first.get_or_insert(seen);
        self.last = Some(seen);
        if plan.and_then(|plan| plan.provenance.as_ref()).is_some_and(|made| !made.repaired_from.is_empty()) {
            self.repaired.get_or_insert(seen);
        }
    }
}

impl PlanReceiver for Times {
    fn accepted(&mut self, _: &Accepted) {}

    fn progress(&mut self, _: &Progress) {}

    fn candidate(&mut self, reply: &PlanResponse) {
        self.note(reply);
    }

    fn plan(&mut self, reply: &PlanResponse) -> std::io::Result<()> {
        self.note(reply);
        Ok(())
    }

    fn content(&mut self, _: usize, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}

/// What was measured of a network.
#[derive(Default)]
struct Sums {
    apart: usize,
    first: Vec<f64>,
    last: Vec<f64>,
    again: Vec<f64>,
    ratios: Vec<f64>,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn quantile(numbers: &[f64], part: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "display")]
    let place = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(0.0)
}

async fn faults() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (network, collectives) in NETWORKS {
        let whole = generate(network, &TopologyLimits::STANDARD)?;
        let singles = singles(&whole);
        let pairs: Vec<Vec<Fault>> = (0..PAIRS).map(|number| pair(&singles, number)).collect();
        for &collective in collectives {
            for (what, cases) in
                [("single", singles.iter().map(|one| vec![one.clone()]).collect()), ("two", pairs.clone())]
            {
                let sums = measured(network, collective, cases).await?;
                rows.push(row(network, collective, what, &sums));
            }
        }
    }
    let heading = [
        "network",
        "collective",
        "faults",
        "cases",
        "apart",
        "first p50 ms",
        "first p99 ms",
        "final p50 ms",
        "final p99 ms",
        "again p99 ms",
        "repaired/final mean",
        "worst",
    ];
    print_table(heading, &rows);
    Ok(())
}

async fn measured(network: &str, collective: Collective, cases: Vec<Vec<Fault>>) -> Result<Sums, Failure> {
    let mut sums = Sums::default();
    for faults in cases {
        let mut workspace = Workspace::open(|_| {}).await?;
        workspace.client.plan(best_so_far(request(network, collective, &[])), None, &mut Times::new()).await?;
        let mut times = Times::new();
        match workspace.client.plan(best_so_far(request(network, collective, &faults)), None, &mut times).await {
            Ok(_) => {
                let (first, last) = (times.first.unwrap_or_default(), times.last.unwrap_or_default());
                sums.first.push(ms(first.0));
                sums.last.push(ms(last.0));
                sums.ratios.extend(times.repaired.map(|(_, repaired)| repaired / last.1));
                let mut times = Times::new();
                workspace.client.plan(best_so_far(request(network, collective, &faults)), None, &mut times).await?;
                sums.again.push(ms(times.last.unwrap_or_default().0));
            }
            Err(ClientError::Refused(refusal)) if refusal.reason.as_deref() == Some("TOPOLOGY_DISCONNECTED") => {
                sums.apart += 1
            }
            Err(error) => return Err(format!("{network} {faults:?}: {error}").into()),
        }
        workspace.close().await?;
    }
    Ok(sums)
}

fn row(network: &str, collective: Collective, what: &str, sums: &Sums) -> [String; 12] {
    let figure = |number: f64| format!("{number:.1}");
    #[expect(clippy::cast_precision_loss, reason = "display")]
    let mean = sums.ratios.iter().sum::<f64>() / sums.ratios.len().max(1) as f64;
    [
        format!("`{network}`"),
        collective.as_str_name().trim_start_matches("COLLECTIVE_").to_ascii_lowercase(),
        what.to_owned(),
        sums.first.len().to_string(),
        sums.apart.to_string(),
        figure(quantile(&sums.first, 0.5)),
        figure(quantile(&sums.first, 0.99)),
        figure(quantile(&sums.last, 0.5)),
        figure(quantile(&sums.last, 0.99)),
        figure(quantile(&sums.again, 0.99)),
        if sums.ratios.is_empty() { "–".to_owned() } else { format!("{mean:.3} ({})", sums.ratios.len()) },
        if sums.ratios.is_empty() { "–".to_owned() } else { format!("{:.3}", quantile(&sums.ratios, 0.0)) },
    ]
}

fn link(from: &str, to: &str, remaining: Option<(u64, u64)>) -> Fault {
    let ends = LinkTarget { from: from.to_owned(), to: to.to_owned(), one_way: false };
    let remaining = remaining.map(|(numerator, denominator)| canopy_wire::fraction_of(numerator, denominator));
    Fault { target: Some(fault::Target::Link(ends)), remaining }
}

/// Every link, which are those of cards, too, and every GPU.
fn singles(whole: &Topology) -> Vec<Fault> {
    let id = |node| whole.node(node).id.as_str();
    let both = whole.links().iter().filter(|link| link.from < link.to);
    let links = both.map(|ends| link(id(ends.from), id(ends.to), None));
    let gpus = whole.nodes().iter().filter(|node| node.kind == NodeKind::Compute);
    let gpus = gpus.map(|node| Fault { target: Some(fault::Target::Node(node.id.clone())), remaining: None });
    links.chain(gpus).collect()
}

/// Two of them, at random but always the same.
fn pair(singles: &[Fault], number: usize) -> Vec<Fault> {
    let (first, second) =
        (number.wrapping_mul(7919) % singles.len(), number.wrapping_mul(104_729).wrapping_add(13) % singles.len());
    let second = if first == second { (second + 1) % singles.len() } else { second };
    [first, second].into_iter().filter_map(|place| singles.get(place).cloned()).collect()
}

#[expect(clippy::print_stdout, reason = "the figures are the result")]
async fn large() -> Result<(), Failure> {
    for collective in [Collective::Allgather, Collective::Allreduce] {
        let mut workspace = Workspace::open(|_| {}).await?;
        workspace.client.plan(best_so_far(request(LARGE, collective, &[])), None, &mut Times::new()).await?;
        let mut times = Times::new();
        let faults = [link("b0g3", "ib", Some((1, 2)))];
        workspace.client.plan(best_so_far(request(LARGE, collective, &faults)), None, &mut times).await?;
        let (first, last) = (times.first.unwrap_or_default(), times.last.unwrap_or_default());
        println!(
            "{LARGE} {}, one card at half of its rate: first plan after {:.0} ms ({:.4} of the bound), final after {:.0} ms ({:.6})",
            collective.as_str_name(),
            ms(first.0),
            first.1,
            ms(last.0),
            last.1
        );
        workspace.close().await?;
    }
    Ok(())
}

/// Has a sound network planned for, and leases it to so many jobs; what they ask for.
async fn leased(workspace: &mut Workspace, network: &str, jobs: usize) -> Result<PlanSpec, Failure> {
    let sound = request(network, Collective::Allgather, &[]);
    workspace.client.plan(sound.clone().into_plan(), None, &mut Times::new()).await?;
    for job in 0..jobs {
        let (job, specs) = (format!("job-{job}"), vec![sound.clone()]);
        let asked = AcquireLeaseRequest { job, specs, ..AcquireLeaseRequest::default() };
        workspace.client.acquire_lease(asked, None).await?;
    }
    Ok(sound)
}

/// Says that something is broken, or whole again.
async fn report(
    client: &Client,
    network: &str,
    number: u64,
    fault: Fault,
    cleared: bool,
) -> Result<ReportFaultsResponse, ClientError> {
    let event = FaultEvent {
        source: "bench".to_owned(),
        event_id: number.to_string(),
        fault: Some(fault),
        cleared,
        ..FaultEvent::default()
    };
    let asked = ReportFaultsRequest { topology: Some(expression(network)), events: vec![event], ..Default::default() };
    client.report_faults(asked, None).await
}

/// Resident memory of this process in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    kib.unwrap_or(0) / 1024
}
