//! Collectives that use every port at once beside the textbook's, from small to large messages, in simulation.
//!
//! `cargo run --release -p canopy-benches --bin multiport [NETWORK …]`
//!
//! First a Kautz network of 272 ranks beside a grid with fully joined lines of as many (the Dragonfly of the source, whose groups are rows),
//! both with 200 GB/s for each rank in all; then grids of 16, 64 and 256 ranks at 100 Gb/s. Times are in microseconds for blocks of the given
//! sizes, with 1 µs before each message and fair links, without barriers and with one after every step, as the formulas of the source count; the
//! fastest of each size is marked, and how long the plan took to make.
//! *Crossovers* are the sizes from which on another algorithm of the table is the fastest. Source of the comparison: Pham 2026, figures 3.4,
//! 4.9, 4.10 and 4.12.

use std::error::Error;

use canopy_benches::{print_table, timed};
use canopy_schedule::{Collective, CollectiveKind, TransferGraph, check, compile};
use canopy_simulate::{Pieces, Sharing, SimulateOptions, Sync, simulate, step_numbers};
use canopy_synth::{Algorithm, Never, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Latency, Topology, TopologyLimits, generate};

/// Networks, and what is compared on them.
const COMPARED: [(&str, &[Algorithm]); 5] = [
    ("kautz:d=16,n=2,bw=12.5GB/s,lat=0us", &[Algorithm::Kautz, Algorithm::KautzM, Algorithm::Direct]),
    ("dfc2:17x16,bw=6.45GB/s,lat=0us", &[Algorithm::Dfc2Do, Algorithm::Dfc2, Algorithm::Direct]),
    ("dfc2:4x4,bw=12.5GB/s,lat=0us", &ON_GRIDS),
    ("dfc2:8x8,bw=12.5GB/s,lat=0us", &ON_GRIDS),
    ("dfc2:16x16,bw=12.5GB/s,lat=0us", &ON_GRIDS),
];
const ON_GRIDS: [Algorithm; 10] = [
    Algorithm::Dfc2,
    Algorithm::Dfc2Do,
    Algorithm::Multitree,
    Algorithm::Direct,
    Algorithm::Pairwise,
    Algorithm::Bruck,
    Algorithm::Ring,
    Algorithm::RecursiveDoubling,
    Algorithm::DoubleTree,
    canopy_baselines::LOCAL_RING,
];
const COLLECTIVES: [CollectiveKind; 3] =
    [CollectiveKind::AllToAll, CollectiveKind::Allgather, CollectiveKind::Allreduce];
/// Bytes of a block: 1 KiB to 64 MiB.
const BLOCKS: [u64; 9] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26];
/// Most work of a run of the simulator.
const WORK_MAX: u64 = 4_000_000_000;
/// More transfers take minutes to simulate at nine sizes.
const TRANSFERS_MAX: usize = 1 << 20;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    for (network, algorithms) in COMPARED {
        if asked.is_empty() || asked.iter().any(|asked| network.starts_with(asked.as_str())) {
            for kind in COLLECTIVES {
                table(network, kind, algorithms)?;
            }
        }
    }
    Ok(())
}

/// A plan, and how long it took to make.
struct Entry {
    algorithm: Algorithm,
    made_ms: f64,
    /// Without barriers and with them, by size; none where there are too many transfers.
    times: [Vec<Option<u64>>; 2],
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn table(network: &str, kind: CollectiveKind, algorithms: &[Algorithm]) -> Result<(), Failure> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let mut entries = Vec::new();
    for &algorithm in algorithms {
        entries.extend(entry(&topology, kind, algorithm)?);
    }
    println!("\n{kind} on `{network}`, {} ranks", topology.rank_count());
    for (sync, words) in ["without barriers", "with a barrier after every step"].into_iter().enumerate() {
        println!("\n{words}\n");
        print_times(&entries, sync);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn print_times(entries: &[Entry], sync: usize) {
    let best = |place: usize| entries.iter().filter_map(|entry| entry.times[sync][place]).min();
    let rows: Vec<[String; 11]> = entries
        .iter()
        .map(|entry| {
            let cell = |place: usize| match entry.times[sync][place] {
                None => "-".to_owned(),
                Some(time) => {
                    let mark = if Some(time) == best(place) { "*" } else { "" };
                    format!("{}{mark}", micros(time))
                }
            };
            std::array::from_fn(|column| match column {
                0 => entry.algorithm.to_string(),
                1 => format!("{:.0}", entry.made_ms),
                _ => cell(column - 2),
            })
        })
        .collect();
    let head =
        ["algorithm", "made ms", "1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB"];
    print_table(head, &rows);
    let fastest =
        |place: usize| entries.iter().find(|entry| best(place).is_some() && entry.times[sync][place] == best(place));
    let mut last = None;
    let mut turns = Vec::new();
    for (place, bytes) in BLOCKS.iter().enumerate() {
        let now = fastest(place).map(|entry| entry.algorithm);
        if now != last {
            turns.extend(now.map(|now| format!("{now} from {} KiB", bytes >> 10)));
            last = now;
        }
    }
    println!("\nCrossovers: {}", turns.join(", "));
}

/// None where the algorithm does not plan the collective.
fn entry(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Result<Option<Entry>, Failure> {
    let collective = Collective::new(kind, None, topology.rank_count())?;
    let request = SynthesisRequest::new(collective, algorithm);
    let (made, time) = timed(|| synthesize(topology, &request, &Never, &Silent));
    let schedule = match made {
        Ok(schedule) => schedule,
        Err(SynthesisError::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let graph = compile(topology, &schedule)?;
    check(topology, &graph)?;
    let steps = step_numbers(&schedule, &graph);
    let times = |sync: Sync<'_>| -> Result<Vec<Option<u64>>, Failure> {
        let size = |block: u64| block * u64::from(topology.rank_count());
        BLOCKS.iter().map(|&block| simulated(topology, &graph, size(block), sync)).collect()
    };
    let times = [times(Sync::Deps)?, times(Sync::Steps(&steps))?];
    Ok(Some(Entry { algorithm, made_ms: time.as_secs_f64() * 1e3, times }))
}

/// Simulated picoseconds.
fn simulated(
    topology: &Topology,
    graph: &TransferGraph,
    size_bytes: u64,
    sync: Sync<'_>,
) -> Result<Option<u64>, Failure> {
    if graph.transfers.len() > TRANSFERS_MAX {
        return Ok(None);
    }
    let options = SimulateOptions {
        alpha: Latency::from_nanos(1_000),
        pieces: Pieces::Whole,
        sharing: Sharing::Fair,
        sync,
        ..SimulateOptions::usual(size_bytes, WORK_MAX)
    };
    Ok(Some(simulate(topology, graph, &options, &|| false)?.time_ps))
}

fn micros(picoseconds: u64) -> String {
    match picoseconds / 100_000 {
        tenths @ 0..10_000 => format!("{}.{}", tenths / 10, tenths % 10),
        tenths => (tenths / 10).to_string(),
    }
}
