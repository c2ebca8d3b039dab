//! How long breadth-first broadcasts take to make, to compile and to check, and what they cost.
//!
//! `cargo run --release -p canopy-benches --bin bfb -- [EXPRESSION]…`. Times are those of the wall clock, the best of
//! up to [`RUNS`]: of the schedule with and without a look at symmetries, of its transfer graph, and of the checker, whose word
//! `T_L` and `T_B` are. Published (Zhao 2026, table 3.6): 52.7 s for `hypercube:10`, 61.1 s for `torus:50x50`.

use std::error::Error;
use std::time::Duration;

use canopy_benches::{memory_peak_bytes, print_table, timed};
use canopy_schedule::{Collective, CollectiveKind, check, compile};
use canopy_synth::{Algorithm, Never, Silent, Symmetry, SynthesisRequest, breadth_first};
use canopy_topology::{TopologyLimits, generate};

const DEFAULTS: [&str; 7] = [
    "hypercube:5",
    "hypercube:10",
    "torus:5x5",
    "torus:50x50",
    "genkautz:n=1024,d=4",
    "circulant:n=1024",
    "complete:256",
];

/// Times each schedule is made, as far as [`PATIENCE`] goes.
const RUNS: u32 = 5;

/// Nothing is made again after so long.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let expressions = if given.is_empty() { DEFAULTS.map(str::to_owned).to_vec() } else { given };
    let rows = expressions.iter().map(|expression| row(expression)).collect::<Result<Vec<_>, _>>()?;
    let heading = [
        "topology",
        "ranks",
        "sends",
        "chunks",
        "T_L",
        "T_B",
        "ms",
        "ms, no symmetry",
        "compile ms",
        "check ms",
        "peak MiB",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn row(expression: &str) -> Result<[String; 11], Box<dyn Error>> {
    let topology = generate(expression, &TopologyLimits::STANDARD)?;
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let request = SynthesisRequest::new(collective, Algorithm::Bfb);
    let best = |symmetry| {
        let (mut best, mut all): (Option<(_, Duration)>, _) = (None, Duration::ZERO);
        for _ in 0..RUNS {
            let (schedule, time) = timed(|| breadth_first(&topology, &request, symmetry, &Never, &Silent));
            let schedule = schedule?;
            if best.as_ref().is_none_or(|&(_, least)| time < least) {
                best = Some((schedule, time));
            }
            all += time;
            if all > PATIENCE {
                break;
            }
        }
        best.ok_or_else(|| Box::<dyn Error>::from("there are several runs"))
    };
    let (_, plain) = best(Symmetry::Unused)?;
    let (schedule, time) = best(Symmetry::Used)?;
    let chunks = schedule.shape.chunks_per_share();
    let (graph, compiling) = timed(|| compile(&topology, &schedule));
    let graph = graph?;
    drop(schedule);
    let (verdict, checking) = timed(|| check(&topology, &graph));
    let cost = verdict?.steps.ok_or("the schedule has steps")?;
    let millis = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    Ok([
        expression.to_owned(),
        topology.rank_count().to_string(),
        graph.transfers.len().to_string(),
        chunks.to_string(),
        cost.count.to_string(),
        cost.bandwidth.to_string(),
        millis(time),
        millis(plain),
        millis(compiling),
        millis(checking),
        memory_peak_bytes().map_or_else(|| "unknown".to_owned(), |bytes| (bytes >> 20).to_string()),
    ])
}
