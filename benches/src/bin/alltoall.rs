//! How fast the bracket of an all-to-all narrows: gap between a flow's rate and the limit that lengths prove, against time.
//!
//! `cargo run --release -p canopy-benches --bin alltoall [-- NETWORK …]`
//!
//! A cell says after how many seconds, by the clock and on all processors together, the gap was first that small, and `-` that it was
//! not within a minute. *Symmetry* is `none`, or *orbits*: one source for each orbit of ranks, one price for each orbit of links; the
//! time to find them is part of the row. *Whole program*: how long an interior-point solver takes for the same linear program, where it is
//! not too large for one.

use std::error::Error;
use std::fs;
use std::time::Duration;

use canopy_benches::{Stopwatch, memory_peak_bytes, print_table};
use canopy_canonical::{Budget, Graph, WORK_STANDARD, analyse, graph_of};
use canopy_optimize::{
    Arc, Commodity, ConcurrentError, ConcurrentProblem, Digraph, SolverOptions, solve, solve_exactly,
};
use canopy_topology::{Topology, TopologyLimits, generate};

const NETWORKS: [(&str, Symmetry); 10] = [
    ("genkautz:n=32,d=4", Symmetry::None),
    ("genkautz:n=64,d=4", Symmetry::None),
    ("genkautz:n=100,d=4", Symmetry::None),
    ("genkautz:n=200,d=4", Symmetry::None),
    ("genkautz:n=500,d=4", Symmetry::None),
    ("genkautz:n=1000,d=4", Symmetry::None),
    ("genkautz:n=1024,d=4", Symmetry::None),
    ("genkautz:n=1024,d=4", Symmetry::Orbits),
    ("torus:10x10", Symmetry::Orbits),
    ("hypercube:10", Symmetry::Orbits),
];
const GAPS: [f64; 5] = [0.1, 0.01, 0.001, 0.0001, 0.000_001];
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_WHOLE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
enum Symmetry {
    None,
    Orbits,
}

/// What is to be solved.
struct Instance {
    graph: Digraph,
    commodities: Vec<Commodity>,
    orbits: Vec<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let mut rows = Vec::new();
    if named.is_empty() {
        for (network, symmetry) in NETWORKS {
            rows.push(row(network, symmetry)?);
        }
    }
    for network in &named {
        for symmetry in [Symmetry::None, Symmetry::Orbits] {
            rows.push(row(network, symmetry)?);
        }
    }
    let heading = [
        "network",
        "symmetry",
        "sources",
        "variables",
        "10 %",
        "1 %",
        "0.1 %",
        "0.01 %",
        "1e-6",
        "whole program",
        "rate",
        "limit",
        "peak MiB",
    ];
    print_table(heading, &rows);
    Ok(())
}

/// One row of the table. The peak of memory is that of all rows so far.
fn row(network: &str, symmetry: Symmetry) -> Result<[String; 13], Box<dyn Error>> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let watch = Stopwatch::start();
    let processor_before = processor_time();
    let Instance { graph, commodities, orbits } = instance(&topology, symmetry)?;
    let problem = ConcurrentProblem::new(&graph, &commodities, &orbits)?;
    let mut reached = [const { None }; GAPS.len()];
    let mut bracket = (0.0, f64::INFINITY);
    let options = SolverOptions { tolerance: GAPS[GAPS.len() - 1], work_max: u64::MAX };
    let coarse = SolverOptions { tolerance: GAPS[2], ..options };
    // Single width where that is all that can be hoped for in a minute.
    let variables = graph.arcs.len() * commodities.len();
    let options = if variables > 500_000 { coarse } else { options };
    let solved = solve(&problem, &options, &|| watch.elapsed() > PATIENCE, &mut |rate, limit| {
        bracket = (rate, limit);
        for (reached, gap) in reached.iter_mut().zip(GAPS) {
            if reached.is_none() && limit - rate <= gap * limit {
                let processor = processor_time().zip(processor_before).map(|(now, before)| now - before);
                *reached = Some((watch.elapsed(), processor));
            }
        }
    });
    let (rate, limit) = solved.map_or(bracket, |optimum| (optimum.rate, optimum.limit));
    let unit = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).max().unwrap_or(1) as f64;
    let cell = |index: usize| match reached[index] {
        None => "-".to_owned(),
        Some((wall, None)) => format!("{:.2}", wall.as_secs_f64()),
        Some((wall, Some(processor))) => format!("{:.2} / {:.2}", wall.as_secs_f64(), processor.as_secs_f64()),
    };
    let how = match symmetry {
        Symmetry::None => "none",
        Symmetry::Orbits => "orbits",
    };
    Ok([
        format!("`{network}`"),
        how.to_owned(),
        commodities.len().to_string(),
        variables.to_string(),
        cell(0),
        cell(1),
        cell(2),
        cell(3),
        cell(4),
        whole(&problem)?,
        format!("{:.10}", rate / unit),
        format!("{:.10}", limit / unit),
        memory_peak_bytes().map_or_else(|| "?".to_owned(), |bytes| (bytes >> 20).to_string()),
    ])
}

/// How long the same program takes as a whole, by the clock, and the gap that is left; `-` where it is too large for that, or
/// takes more than five minutes.
fn whole(problem: &ConcurrentProblem<'_>) -> Result<String, Box<dyn Error>> {
    let watch = Stopwatch::start();
    let optimum = match solve_exactly(problem, &|| watch.elapsed() > PATIENCE_WHOLE) {
        Ok(optimum) => optimum,
        Err(ConcurrentError::Stopped) => None,
        Err(error) => return Err(error.into()),
    };
    let took = watch.elapsed().as_secs_f64();
    Ok(optimum.map_or_else(
        || "-".to_owned(),
        |optimum| format!("{took:.2} (gap {:.0e})", (optimum.limit - optimum.rate).max(0.0) / optimum.limit),
    ))
}

/// One unit from each rank to each other, and the orbits of links.
fn instance(topology: &Topology, symmetry: Symmetry) -> Result<Instance, Box<dyn Error>> {
    let graph = graph_of(topology, &[]).ok_or("a network that is no graph")?;
    let rank_count = topology.rank_count();
    let commodity = |source, copies| Commodity {
        source,
        sinks: (0..rank_count).filter(|&node| node != source).map(|node| (node, 1)).collect(),
        copies,
    };
    let (commodities, orbits) = match symmetry {
        Symmetry::None => ((0..rank_count).map(|rank| commodity(rank, 1)).collect(), Vec::new()),
        Symmetry::Orbits => {
            let analysis = analyse(&graph, Budget { work_max: WORK_STANDARD, stop: &|| false })?;
            let sets = analysis.orbits.to_sets();
            let ranks = sets.iter().filter_map(|set| Some((*set.first()?, set.len() as u64)));
            let ranks = ranks.filter(|&(first, _)| first < rank_count);
            let links = analysis.arc_orbits(&graph);
            let orbits = (0_u32..).take(graph.arcs().len()).map(|arc| links.representative(arc));
            (ranks.map(|(first, size)| commodity(first, size)).collect(), orbits.collect())
        }
    };
    Ok(Instance { graph: digraph(&graph), commodities, orbits })
}

fn digraph(graph: &Graph) -> Digraph {
    let arcs = graph.arcs().iter().map(|arc| Arc { from: arc.from, to: arc.to, capacity: arc.weight[0] });
    Digraph { node_count: u32::try_from(graph.node_count()).expect("nodes are counted in u32"), arcs: arcs.collect() }
}

/// Time that all threads of this process together had a processor, to a hundredth of a second; `None` where the system does not say
/// (Linux does).
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold anything; the 14th and 15th field are ticks of which a second has 100.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}
