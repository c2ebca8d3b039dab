//! Maximum concurrent flows by the whole linear program: against a program without any code of canopy (`tests/oracle`), and
//! against the values of the digest of Basu 2024 §5.4.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use canopy_optimize::{Arc, Commodity, ConcurrentProblem, Digraph, Never, length_bound, path_optimum, solve_exactly};
use canopy_topology::{DocumentFormat, Topology, TopologyLimits, generate, read_document};
use serde_json::Value;

/// Every rank has one block for every other: capacities in bytes per second.
fn everyone(topology: &Topology) -> (Digraph, Vec<Commodity>) {
    let arcs = topology.links().iter().map(|link| {
        let (from, to) = (link.from.number(), link.to.number());
        Arc { from, to, capacity: link.capacity.bytes_per_sec() }
    });
    let ranks = topology.rank_count();
    let sinks = |source: u32| (0..ranks).filter(move |&rank| rank != source).map(|rank| (rank, 1)).collect();
    let commodities = (0..ranks).map(|source| Commodity { source, sinks: sinks(source), copies: 1 });
    let node_count = u32::try_from(topology.nodes().len()).unwrap();
    (Digraph { node_count, arcs: arcs.collect() }, commodities.collect())
}

/// The proven limit and the rate of the flow, each close to `expected`.
#[track_caller]
fn check(name: &str, topology: &Topology, expected: f64) {
    let (graph, commodities) = everyone(topology);
    let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
    let optimum = solve_exactly(&problem, &Never).unwrap().unwrap();
    let limit = length_bound(&problem, &optimum.lengths, &Never).unwrap().unwrap().to_float();
    assert!((limit / expected - 1.0).abs() < 1e-6, "{name}: the limit {limit} for {expected}");
    assert!((optimum.rate / limit - 1.0).abs() < 1e-7, "{name}: the rate {} below {limit}", optimum.rate);
}

#[test]
fn flows_meet_the_oracle() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    assert_eq!(expected.len(), 33);
    for (name, values) in expected {
        let bytes = fs::read(folder.join(&name).with_extension("yaml")).unwrap();
        let document = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap();
        let algbw = values["all-to-all"].as_f64().unwrap();
        check(&name, &document.topology, algbw / f64::from(document.topology.rank_count()));
    }
}

#[test]
fn generalized_kautz_graphs_take_the_times_of_the_table() {
    for (nodes, degree, time) in [(25, 4, 13.5), (27, 8, 260.0 / 47.0), (40, 4, 23.525), (48, 4, 37.1875)] {
        let expression = format!("genkautz:n={nodes},d={degree},bw=1GB/s");
        let topology = generate(&expression, &TopologyLimits::STANDARD).unwrap();
        check(&expression, &topology, 1e9 / time);
    }
}

/// All shortest paths of a 4 × 4 torus carry as much as any paths do; one for each pair need not.
#[test]
fn shortest_paths_suffice_on_a_torus() {
    let topology = generate("torus:4x4,bw=1GB/s", &TopologyLimits::STANDARD).unwrap();
    let (graph, commodities) = everyone(&topology);
    let pairs: Vec<Vec<Vec<u32>>> = commodities
        .iter()
        .flat_map(|commodity| commodity.sinks.iter().map(|&(sink, _)| shortest_paths(&graph, commodity.source, sink)))
        .collect();
    let found = path_optimum(&graph, &pairs, &vec![1; pairs.len()], &Never).unwrap().unwrap();
    assert!((found.rate / 1e9 * 8.0 - 1.0).abs() < 1e-7, "{}", found.rate);
    assert!(found.weights.iter().all(|weights| (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9));
}

/// By depth, all ways of the fewest arcs.
fn shortest_paths(graph: &Digraph, source: u32, sink: u32) -> Vec<Vec<u32>> {
    let mut ways: Vec<(u32, Vec<u32>)> = vec![(source, Vec::new())];
    loop {
        let there: Vec<Vec<u32>> = ways.iter().filter(|(node, _)| *node == sink).map(|(_, way)| way.clone()).collect();
        if !there.is_empty() {
            return there;
        }
        let longer = ways.iter().flat_map(|(node, way)| {
            let leaving = (0_u32..).zip(&graph.arcs).filter(move |(_, arc)| arc.from == *node);
            leaving.map(move |(number, arc)| (arc.to, way.iter().copied().chain([number]).collect()))
        });
        ways = longer.collect();
    }
}
