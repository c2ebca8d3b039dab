//! How long the canonical form of a network takes, and what symmetry it finds.
//!
//! `cargo run --release -p canopy-benches --bin canonical`
//!
//! *Time* is processor time from the topology to the hash of its form, the mean of ten runs; *rank orbits* counts ranks that differ,
//! *generators* the verified automorphisms that make all others. The last rows are graphs made to be hard: those of Cai, Fürer
//! and Immerman, and points and lines of a projective plane. Where the budget of work ends the search before there is a form,
//! the time is that until then, of one run, and the form is *spent*.

use std::error::Error;

use canopy_benches::{print_table, timed_on_processors};
use canopy_canonical::{Analysis, Arc, Budget, Graph, WORK_STANDARD, analyse, form_hash, graph_of};
use canopy_topology::{TopologyLimits, generate};

const NETWORKS: [&str; 16] = [
    "dgx-a100:boxes=16",
    "dgx-a100:boxes=128",
    "dgx-a100:boxes=512",
    "dgx-h100:boxes=128",
    "mi250:boxes=64",
    "mi250:boxes=256",
    "rail:boxes=128",
    "torus:32x32",
    "torus:8x8x16",
    "hypercube:10",
    "ring:1024",
    "fat-tree:k=16,oversub=2",
    "leaf-spine:leaves=32,hosts=32,spines=16,oversub=2",
    "dragonfly-router:p=4,a=8,h=4",
    "random-regular:n=1024,d=4,seed=1",
    "complete:256",
];
const RUNS: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for network in NETWORKS {
        let topology = generate(network, &TopologyLimits::STANDARD)?;
        let make = || graph_of(&topology, &[]);
        rows.push(row(network, topology.rank_count(), make)?);
    }
    for pairs in [10, 25, 50] {
        let base = ladder(pairs);
        let name = format!("Cai-Fürer-Immerman on {} nodes", 2 * pairs);
        rows.push(row(&name, 20 * pairs, || hard(&base))?);
    }
    rows.push(row("projective plane of order 13", 366, || plane(13))?);
    print_table(["network", "nodes", "links", "cells", "rank orbits", "generators", "time (ms)", "form"], &rows);
    Ok(())
}

/// One row of the table. The first nodes, so many, are ranks.
fn row(name: &str, rank_count: u32, make: impl Fn() -> Option<Graph>) -> Result<[String; 8], Box<dyn Error>> {
    let run = || -> Option<(Graph, Analysis, Option<String>)> {
        let graph = make()?;
        let analysis = analyse(&graph, Budget { work_max: WORK_STANDARD, stop: &|| false }).ok()?;
        let hash = analysis.solution().map(|solution| form_hash(&solution.form(&graph)).to_string());
        Some((graph, analysis, hash))
    };
    let (first, mut time) = timed_on_processors(run);
    let (graph, analysis, hash) = first.ok_or("a network that is no graph")?;
    if hash.is_some() {
        time = timed_on_processors(|| (0..RUNS).for_each(|_| drop(run()))).1 / RUNS;
    }
    let is_rank = |set: &&Vec<u32>| set.first().is_some_and(|&node| node < rank_count);
    let form = hash.map_or_else(|| "spent".to_owned(), |hash| hash.chars().take(12).collect());
    Ok([
        format!("`{name}`"),
        graph.node_count().to_string(),
        graph.arcs().len().to_string(),
        analysis.cell_count().to_string(),
        analysis.orbits.to_sets().iter().filter(is_rank).count().to_string(),
        analysis.generators.len().to_string(),
        format!("{:.1}", time.as_secs_f64() * 1e3),
        form,
    ])
}

/// Two rings of so many nodes, the counterparts of which are joined crosswise: a cubic graph that is hard to take apart.
fn ladder(pairs: u32) -> Vec<(u32, u32)> {
    (0..pairs).flat_map(|i| [(i, (i + 1) % pairs), (i, i + pairs), (i + pairs, (i + 7) % pairs + pairs)]).collect()
}

/// The graph that Cai, Fürer and Immerman (1992) make of a cubic one: of every node, one for each even set of its edges, and
/// two for each of its edges.
fn hard(cubic: &[(u32, u32)]) -> Option<Graph> {
    let node_count = u32::try_from(2 * cubic.len() / 3).ok()?;
    let mut edges = Vec::new();
    let mut places = vec![0; node_count as usize];
    for node in 0..node_count {
        for (set, place) in (0..4_u32).flat_map(|set| (0..3).map(move |place| (set, place))) {
            let is_in = if place == 2 { set.count_ones() % 2 } else { set >> place & 1 };
            edges.push((10 * node + 6 + set, 10 * node + 2 * place + is_in));
        }
    }
    for &(a, b) in cubic {
        for bit in 0..2 {
            edges.push((10 * a + 2 * places[a as usize] + bit, 10 * b + 2 * places[b as usize] + bit));
        }
        places[a as usize] += 1;
        places[b as usize] += 1;
    }
    plain(10 * node_count as usize, edges)
}

/// Points and lines of the projective plane over the integers modulo a prime, each joined with those it meets.
fn plane(prime: u32) -> Option<Graph> {
    let pairs = (0..prime).flat_map(|a| (0..prime).map(move |b| [1, a, b]));
    let points: Vec<[u32; 3]> = pairs.chain((0..prime).map(|a| [0, 1, a])).chain([[0, 0, 1]]).collect();
    let count = u32::try_from(points.len()).ok()?;
    let mut edges = Vec::new();
    for (point, a) in (0..count).zip(&points) {
        let meets = |b: &[u32; 3]| (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]).is_multiple_of(prime);
        edges.extend((count..).zip(&points).filter(|(_, line)| meets(line)).map(|(line, _)| (point, line)));
    }
    plain(2 * points.len(), edges)
}

/// A graph of edges that are all alike.
fn plain(node_count: usize, edges: Vec<(u32, u32)>) -> Option<Graph> {
    let both = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let arcs = both.map(|(from, to)| Arc { from, to, weight: [1, 0] }).collect();
    Graph::new(vec![0; node_count], arcs).ok()
}
