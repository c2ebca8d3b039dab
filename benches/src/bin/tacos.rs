//! How long it takes to decide which chunk passes which link when, and how good it is.
//!
//! `cargo run --release -p canopy-benches --bin tacos [NETWORK …]`
//!
//! First the growth: allgathers of one chunk for each rank. *Least* is what no schedule is faster than, in steps of the slowest link; times are the wall
//! clock's of all of `synthesize` by `tacos`, attempts at the bound included. *Random* is one run of the published method's plain form in the same
//! process: at every moment all open requests in random order (without switches: on the links as they are). It is left out where it would
//! take minutes. Then the published comparison, without latencies: the simulated time of `tacos` against what the models of `ring-xy` and `direct-xy` take with
//! the same chunks, and how many times longer these take on average. The plans of these two leave out what would bring a rank a chunk a second
//! time, so they are better; they are simulated like that of `tacos`, and given in brackets.

use std::error::Error;
use std::num::NonZeroU64;

use canopy_baselines::copy_by_requests;
use canopy_benches::{print_table, timed};
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, check, compile};
use canopy_simulate::{Pieces, Sharing, SimulateOptions, Sync, simulate};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, TreeLimits, synthesize};
use canopy_tacos::{CopyTask, TimedLink, TimedNetwork, lower_bound};
use canopy_topology::{Latency, Rate, Topology, TopologyLimits, construction, generate};

/// Networks whose growth is looked at.
const GROWTH: [&str; 16] = [
    "torus:8x8",
    "torus:16x16",
    "torus:32x32",
    "torus:64x64",
    "torus:4x4x4",
    "torus:8x8x8",
    "mesh:8x8",
    "mesh:16x16",
    "mesh:32x32",
    "hypercube:7",
    "hypercube:10",
    "random-regular:n=1024,d=4,seed=1",
    "dims:ring2+fc4+switch4,bw=200GB/s+100GB/s+50GB/s",
    "dims:ring2+fc4+switch16,bw=200GB/s+100GB/s+50GB/s",
    "dims:ring2+fc4+switch64,bw=200GB/s+100GB/s+50GB/s",
    "dgx-a100:boxes=8",
];
const COMPARED: [&str; 2] = ["dragonfly:4x5", "dims:switch8+switch4,bw=300GB/s+25GB/s"];
/// Requests of the random method that take some seconds.
const REQUESTS_MAX: u64 = 1 << 20;
/// Size of the messages that are simulated: a mebibyte for each of some ranks.
const SIZE_BYTES: NonZeroU64 = NonZeroU64::new(1 << 26).expect("not zero");
/// Most work of a run of the simulator.
const WORK_MAX: u64 = 1_000_000_000;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |network: &str| asked.is_empty() || asked.iter().any(|asked| asked == network);
    let mut rows = Vec::new();
    for network in GROWTH.into_iter().filter(|network| is_asked(network)) {
        rows.push(growth(network)?);
    }
    print_table(["network", "ranks", "least", "tacos", "ms", "random", "ms", "times longer"], &rows);
    let mut rows = Vec::new();
    for network in COMPARED.into_iter().filter(|network| is_asked(network)) {
        for chunks in [1, 4] {
            for (name, sharing) in [("fair", Sharing::Fair), ("fifo", Sharing::Fifo)] {
                rows.push(compared(network, chunks, (name, sharing))?);
            }
        }
    }
    print_table(
        ["network", "chunks", "links", "tacos ms", "ring-xy ms", "direct-xy ms", "mean of both ÷ tacos"],
        &rows,
    );
    Ok(())
}

/// A row of the first table.
fn growth(network: &str) -> Result<[String; 8], Failure> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let ranks = topology.rank_count();
    let request = request(network, &topology, Algorithm::Tacos, NonZeroU64::MIN)?;
    let (schedule, time) = timed(|| synthesize(&topology, &request, &Never, &Silent));
    let schedule = schedule?;
    let ms = time.as_secs_f64() * 1e3;
    let head = [format!("`{network}`"), ranks.to_string()];
    let Some(timed_network) = without_switches(&topology)? else {
        let seconds = steps_seconds(&topology, &schedule)?;
        let [a, b] = head;
        return Ok([a, b, String::new(), seconds, format!("{ms:.1}"), String::new(), String::new(), String::new()]);
    };
    let task = CopyTask::allgather(ranks, 1)?;
    let least = lower_bound(&timed_network, &task).map_or_else(String::new, |least| least.to_string());
    let is_short = u64::from(ranks) * u64::from(ranks) <= REQUESTS_MAX;
    let random = is_short.then(|| timed(|| copy_by_requests(&timed_network, &task, 0, &Never)));
    let random = match random {
        None => [(); 3].map(|()| "-".to_owned()),
        Some((sends, time)) => {
            let random_ms = time.as_secs_f64() * 1e3;
            [sends?.end.to_string(), format!("{random_ms:.1}"), format!("{:.1}", random_ms / ms)]
        }
    };
    let [a, b] = head;
    let [f, g, h] = random;
    Ok([a, b, least, steps_taken(&topology, &schedule)?.to_string(), format!("{ms:.1}"), f, g, h])
}

/// The links of a network without switches, each as many of one tick as its capacity is that of the slowest; none where there are switches.
fn without_switches(topology: &Topology) -> Result<Option<TimedNetwork>, Failure> {
    let mut links = Vec::with_capacity(topology.links().len());
    let slowest = slowest(topology);
    for link in topology.links() {
        let (Some(from), Some(to)) = (topology.rank_of(link.from), topology.rank_of(link.to)) else {
            return Ok(None);
        };
        let alike = TimedLink { from: from.number(), to: to.number(), latency: 1, occupancy: 1 };
        links.extend((0..link.capacity.bytes_per_sec() / slowest).map(|_| alike));
    }
    Ok(Some(TimedNetwork::new(topology.rank_count(), links)?))
}

fn request(
    network: &str,
    topology: &Topology,
    algorithm: Algorithm,
    chunks: NonZeroU64,
) -> Result<SynthesisRequest, Failure> {
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let composition = construction(network, &TopologyLimits::STANDARD)?
        .map(|construction| canopy_synth::Composition { construction, ranks: None });
    let limits = TreeLimits { chunks: Some(chunks), ..TreeLimits::NONE };
    Ok(SynthesisRequest { limits, composition, ..SynthesisRequest::new(collective, algorithm) })
}

/// Capacity of the slowest link, in bytes per second.
fn slowest(topology: &Topology) -> u64 {
    topology.links().iter().map(|link| link.capacity.bytes_per_sec()).min().unwrap_or(1)
}

/// How long a schedule takes, in steps of the slowest link; where links are alike, that is the number of its steps.
fn steps_taken(topology: &Topology, schedule: &Schedule) -> Result<f64, Failure> {
    let slowest = slowest(topology);
    if topology.links().iter().all(|link| link.capacity.bytes_per_sec() == slowest) {
        let Shape::Steps(steps) = &schedule.shape else { return Ok(0.0) };
        return Ok(f64::from(u32::try_from(steps.step_count())?));
    }
    let found = check(topology, &compile(topology, schedule)?)?.algbw;
    let step = Rate::new(u64::from(topology.rank_count()) * slowest, 1_u64).ok_or("no rate of a step")?;
    Ok(step.ratio_to(&found).ok_or("nothing moves")?.to_f64())
}

/// Simulated milliseconds.
fn simulated_ms(topology: &Topology, schedule: &Schedule, sharing: Sharing) -> Result<f64, Failure> {
    let graph = compile(topology, schedule)?;
    check(topology, &graph)?;
    let options = SimulateOptions {
        alpha: Latency::from_nanos(0),
        pieces: Pieces::Whole,
        sharing,
        sync: Sync::Deps,
        ..SimulateOptions::usual(SIZE_BYTES.get(), WORK_MAX)
    };
    #[expect(clippy::cast_precision_loss, reason = "a time for display")]
    let picoseconds = simulate(topology, &graph, &options, &|| false)?.time_ps as f64;
    Ok(picoseconds / 1e9)
}

/// Of a network with switches: the simulated time.
fn steps_seconds(topology: &Topology, schedule: &Schedule) -> Result<String, Failure> {
    Ok(format!("{:.3} ms", simulated_ms(topology, schedule, Sharing::Fifo)?))
}

/// A row of the second table.
fn compared(network: &str, chunks: u64, (name, sharing): (&str, Sharing)) -> Result<[String; 7], Failure> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let chunks = NonZeroU64::new(chunks).unwrap_or(NonZeroU64::MIN);
    let tacos = simulated_ms(
        &topology,
        &synthesize(&topology, &request(network, &topology, Algorithm::Tacos, chunks)?, &Never, &Silent)?,
        sharing,
    )?;
    let mut times = Vec::new();
    for algorithm in [canopy_baselines::RING_XY, canopy_baselines::DIRECT_XY] {
        let request = request(network, &topology, algorithm, chunks)?;
        #[expect(clippy::cast_precision_loss, reason = "a time for display")]
        let model = canopy_baselines::queued_time_ps(&topology, &request, 0, SIZE_BYTES, &Never)? as f64 / 1e9;
        let plan = simulated_ms(&topology, &synthesize(&topology, &request, &Never, &Silent)?, sharing)?;
        times.push((model, plan));
    }
    let text = |&(model, plan): &(f64, f64)| format!("{model:.3} ({plan:.3})");
    let [ring, direct] = [0, 1].map(|place| times.get(place).map_or_else(String::new, text));
    let mean = times.iter().map(|(model, _)| model).sum::<f64>() / 2.0;
    Ok([
        format!("`{network}`"),
        chunks.to_string(),
        name.to_owned(),
        format!("{tacos:.3}"),
        ring,
        direct,
        format!("{:.2}", mean / tacos),
    ])
}
