//! Published times, and flows that are flows.

use std::collections::BTreeMap;

use super::*;
use crate::concurrent::Commodity;
use crate::concurrent::samples::{bipartite, both, cube, everyone, generalized_kautz, graph, twisted_cube, uneven};
use crate::digraph::{Arc, Digraph};
use crate::stop::Never;
use proptest::prelude::*;

fn torus(dimensions: u32, side: u32) -> Digraph {
    let node_count = side.pow(dimensions);
    let next = |node: u32, dimension: u32, steps: u32| {
        let unit = side.pow(dimension);
        let digit = node / unit % side;
        node - digit * unit + (digit + steps) % side * unit
    };
    let all = (0..node_count).flat_map(|node| (0..dimensions).map(move |dimension| (node, dimension)));
    graph(node_count, all.flat_map(|(node, dimension)| [1, side - 1].map(|steps| (node, next(node, dimension, steps)))))
}

/// Every chunk goes from arc to arc and from step to step to where it is wanted, resting at all nodes but those of transit,
/// and the steps take as long as they say.
#[track_caller]
fn check_routes(problem: &ConcurrentProblem<'_>, transit: &[bool], found: &SteppedRoutes) {
    let mut loads: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (commodity, sinks) in problem.commodities().iter().zip(&found.routes) {
        assert_eq!(sinks.len(), commodity.sinks.len());
        for (&(sink, demand), trajectories) in commodity.sinks.iter().zip(sinks) {
            let sum: u64 = trajectories.iter().map(|trajectory| trajectory.chunk_count).sum();
            assert_eq!(sum, demand * found.chunks_per_unit);
            for Trajectory { hops, chunk_count } in trajectories {
                let mut at = (commodity.source, None);
                for &(number, step) in hops {
                    let arc = problem.graph().arcs[number as usize];
                    let passes = transit.get(arc.from as usize) == Some(&true);
                    let follows = if passes { at.1 == Some(step) } else { at.1 < Some(step) };
                    assert!(arc.from == at.0 && follows && step < found.step_count, "{hops:?}");
                    at = (arc.to, Some(step));
                    *loads.entry((step, number)).or_default() += chunk_count;
                }
                assert_eq!(at.0, sink);
            }
        }
    }
    let mut times: BTreeMap<u32, Fraction> = BTreeMap::new();
    for (&(step, number), &load) in &loads {
        let capacity = problem.graph().arcs[number as usize].capacity;
        let time = Fraction::new(load.into(), u128::from(capacity) * u128::from(found.chunks_per_unit)).unwrap();
        let most = times.entry(step).or_insert(Fraction::ZERO);
        *most = time.max(*most);
    }
    let sum = times.values().try_fold(Fraction::ZERO, |sum, &time| sum.checked_add(time));
    assert_eq!(found.time, sum);
}

/// Routes for one unit between all of the first nodes of a graph, whose other nodes are passed; that they are routes is
/// asserted, and that divided chunks take so long.
#[track_caller]
fn routed(graph: &Digraph, terminals: u32, (chunks, loss_max): ((u64, u64), f64), time: f64) -> SteppedRoutes {
    let commodities = everyone(terminals);
    let problem = ConcurrentProblem::new(graph, &commodities, &[]).unwrap();
    let transit: Vec<bool> = (0..graph.node_count).map(|node| node >= terminals).collect();
    let options = SteppedOptions { chunks, loss_max, transit: &transit };
    let found = stepped_routes(&problem, &options, &Never).unwrap().unwrap();
    check_routes(&problem, &transit, &found);
    assert!((found.time_divided / time - 1.0).abs() < 1e-6, "{} of {time}", found.time_divided);
    found
}

/// The time of divided chunks, the number of steps, and what whole chunks of at most so many may lose.
#[track_caller]
fn check(graph: &Digraph, step_count: u32, time: f64, chunks_max: u64, loss_max: f64) {
    let found = routed(graph, graph.node_count, ((1, chunks_max), loss_max), time);
    assert_eq!(found.step_count, step_count);
    let whole = found.time.unwrap().to_float();
    assert!(whole <= time * (1.0 + loss_max + 1e-7), "{} chunks: {whole} of {time}", found.chunks_per_unit);
}

/// The digest of Basu 2024 §3.3: as many steps as hops.
#[test]
fn regular_networks_take_no_longer_in_steps() {
    check(&cube(), 3, 4.0, 12, 0.0);
    check(&twisted_cube(), 2, 4.0, 12, 0.0);
    check(&bipartite(), 2, 2.5, 12, 0.0);
    check(&torus(2, 3), 2, 3.0, 12, 0.0);
    check(&torus(2, 4), 4, 8.0, 12, 0.0);
    check(&graph(4, (0..4).map(|node| (node, (node + 1) % 4))), 3, 6.0, 12, 0.0);
}

#[test]
fn a_torus_of_three_dimensions_takes_no_longer_in_steps() {
    check(&torus(3, 3), 3, 9.0, 4, 0.0);
}

/// Without three of its cables, 162/17: the first punctured torus of the digest's §8.3.
#[test]
fn a_torus_without_three_cables_takes_no_longer_in_steps() {
    // Nodes by their digits: 121 and 122, 011 and 211, 210 and 220.
    let gone = both([(16, 17), (4, 22), (21, 24)]);
    let whole = torus(3, 3);
    let left = whole.arcs.iter().map(|arc| (arc.from, arc.to)).filter(|arc| !gone.contains(arc));
    let graph = graph(27, left);
    assert_eq!(graph.arcs.len(), 162 - 6);
    let time = 162.0 / 17.0;
    let found = routed(&graph, 27, ((4, 4), 1.0), time);
    assert!((found.time_unstepped / time - 1.0).abs() < 1e-6, "{} of {time}", found.time_unstepped);
}

/// There, three steps reach what two do not: 3.5 and 33/5.
#[test]
fn expanders_need_a_step_more_than_hops() {
    check(&generalized_kautz(10, 4), 3, 3.5, 4, 0.0);
    check(&generalized_kautz(12, 3), 3, 6.6, 12, 0.02);
}

/// Two steps only: 3.7 and 7.
#[test]
fn as_many_steps_as_hops_take_longer_on_expanders() {
    for (graph, rate, expected) in
        [(generalized_kautz(10, 4), 2.0 / 7.0, 3.7), (generalized_kautz(12, 3), 5.0 / 33.0, 7.0)]
    {
        let commodities = everyone(graph.node_count);
        let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
        let hops = program::Hops::new(&problem, &[]);
        let times = program::step_times(&problem, &[], &hops, 2, rate, &Never).unwrap().unwrap();
        assert!((times.total() / expected - 1.0).abs() < 1e-6, "{}", times.total());
    }
}

/// The steps and the time that commodities between the first nodes take in a graph whose other nodes are passed.
#[track_caller]
fn check_transit(graph: &Digraph, terminals: u32, step_count: u32, time: Fraction) {
    let found = routed(graph, terminals, ((1, 12), 0.0), time.to_float());
    assert!((found.time_unstepped / time.to_float() - 1.0).abs() < 1e-6, "{found:?}");
    assert_eq!((found.step_count, found.time), (step_count, Some(time)));
}

/// The nodes of a graph between two of transit each, one that arcs enter and one that they leave, `host` wide; `past` of
/// what enters can leave without a rest.
fn behind_hosts(graph: &Digraph, host: u64, past: Option<u64>) -> Digraph {
    let count = graph.node_count;
    let links = graph.arcs.iter().map(|arc| Arc { from: 2 * count + arc.from, to: count + arc.to, ..*arc });
    let hosts = (0..count).flat_map(|node| {
        let up_and_down = [(count + node, node), (node, 2 * count + node)];
        up_and_down.map(|(from, to)| Arc { from, to, capacity: host })
    });
    let past = past
        .into_iter()
        .flat_map(|capacity| (0..count).map(move |node| Arc { from: count + node, to: 2 * count + node, capacity }));
    Digraph { node_count: 3 * count, arcs: links.chain(hosts).chain(past).collect() }
}

/// Basu 2024 §3.2.2: a 3 × 3 torus and K4,4 whose nodes send and receive over three links' worth at once: F is 1/4 for 1/3
/// and 3/10 for 2/5. Where cards pass on, only what is a node's own counts, and one step is enough.
#[test]
fn limits_of_nodes_count() {
    check_transit(&behind_hosts(&torus(2, 3), 3, None), 9, 2, Fraction::new(4, 1).unwrap());
    check_transit(&behind_hosts(&torus(2, 3), 2, Some(4)), 9, 1, Fraction::new(4, 1).unwrap());
    check_transit(&behind_hosts(&bipartite(), 3, None), 8, 2, Fraction::new(10, 3).unwrap());
}

/// Through switches, several one after the other: in one step; from one switch to the next through a rank: in two.
#[test]
fn what_is_passed_takes_no_step() {
    let star = graph(5, both((0..4).map(|rank| (rank, 4))));
    check_transit(&star, 4, 1, Fraction::new(3, 1).unwrap());
    let leaves = (0..4).map(|rank| (rank, 4 + rank / 2));
    let spines = (4..6).flat_map(|leaf| (6..8).map(move |spine| (leaf, spine)));
    check_transit(&graph(8, both(leaves.chain(spines))), 4, 1, Fraction::new(3, 1).unwrap());
    check_transit(&graph(5, both([(0, 3), (1, 3), (1, 4), (2, 4)])), 3, 2, Fraction::new(2, 1).unwrap());
}

#[test]
fn what_does_not_fit_is_refused() {
    let ring = graph(3, [(0, 1), (1, 2), (2, 0)]);
    let (copied, single) = ([Commodity { copies: 3, ..everyone(3)[0].clone() }], everyone(3));
    let refused = |commodities: &[Commodity], transit: &[bool]| {
        let problem = ConcurrentProblem::new(&ring, commodities, &[]).unwrap();
        let options = SteppedOptions { chunks: (1, 1), loss_max: 0.0, transit };
        stepped_routes(&problem, &options, &Never).unwrap_err().to_string()
    };
    assert!(refused(&copied, &[]).contains("commodities[0]"));
    assert!(refused(&single, &[true]).contains("1 nodes of"));
    assert!(refused(&single, &[false, false, true]).contains("commodities[0] starts or ends at node 2"));
}

/// No faster than any flow can be, and near that.
#[track_caller]
fn check_near(problem: &ConcurrentProblem<'_>, transit: &[bool], found: &SteppedRoutes) {
    check_routes(problem, transit, found);
    let time = found.time.unwrap().to_float();
    assert!(found.time_divided >= found.time_unstepped * (1.0 - 1e-7));
    assert!(time >= found.time_divided * (1.0 - 1e-6), "{time} of {}", found.time_divided);
    assert!(time <= found.time_divided * 1.5 * (1.0 + 1e-6), "{time} of {}", found.time_divided);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Unequal links and demands: a flow, no faster than any can be, and near that.
    #[test]
    fn unequal_networks_get_flows((graph, all) in uneven(3..7, 1..5, 0..3)) {
        let Ok(problem) = ConcurrentProblem::new(&graph, &all, &[]) else { return Ok(()) };
        let options = SteppedOptions { chunks: (1, 12), loss_max: 0.05, transit: &[] };
        let found = stepped_routes(&problem, &options, &Never).unwrap().unwrap();
        check_near(&problem, &[], &found);
    }

    /// Ranks and switches in any order of links: the same, and nothing rests at a switch.
    #[test]
    fn networks_with_switches_get_flows(
        terminals in 2..5_u32,
        switches in 1..4_u32,
        ends in prop::collection::vec((0..8_u32, 0..8_u32, 1..4_u64), 4..16),
    ) {
        let node_count = terminals + switches;
        let arcs = ends.iter().map(|&(from, to, capacity)| (from % node_count, to % node_count, capacity));
        let arcs = arcs.flat_map(|(from, to, capacity)| [(from, to), (to, from)].map(|(from, to)| Arc { from, to, capacity }));
        let graph = Digraph { node_count, arcs: arcs.filter(|arc| arc.from != arc.to).collect() };
        let commodities = everyone(terminals);
        let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
        let transit: Vec<bool> = (0..node_count).map(|node| node >= terminals).collect();
        let options = SteppedOptions { chunks: (1, 12), loss_max: 0.05, transit: &transit };
        let found = match stepped_routes(&problem, &options, &Never) {
            Err(ConcurrentError::Unreachable { .. }) => return Ok(()),
            found => found.unwrap().unwrap(),
        };
        check_near(&problem, &transit, &found);
    }
}
