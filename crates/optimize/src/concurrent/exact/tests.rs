//! Known optima, and both sides of the bracket on random networks.

use super::*;
use crate::concurrent::Commodity;
use crate::digraph::{Arc, Digraph};
use crate::fraction::Fraction;
use crate::stop::Never;
use proptest::prelude::*;

/// Everyone sends one unit to everyone of the first `terminals` nodes.
fn everyone(terminals: u32) -> Vec<Commodity> {
    let others = |source: u32| (0..terminals).filter(|&node| node != source).map(|node| (node, 1)).collect();
    (0..terminals).map(|source| Commodity { source, sinks: others(source), copies: 1 }).collect()
}

fn graph(node_count: u32, arcs: impl IntoIterator<Item = (u32, u32)>) -> Digraph {
    let arc = |(from, to)| Arc { from, to, capacity: 1 };
    Digraph { node_count, arcs: arcs.into_iter().map(arc).collect() }
}

/// `u → (−d·u − a) mod N`, without loops.
fn generalized_kautz(node_count: u32, degree: u32) -> Digraph {
    let to = |from: u32, a: u32| (degree * (node_count - from) + node_count - a) % node_count;
    let all = (0..node_count).flat_map(|from| (1..=degree).map(move |a| (from, to(from, a))));
    graph(node_count, all.filter(|(from, to)| from != to))
}

/// A torus of three dimensions of three, without some cables and nodes, both written as digits.
fn punctured(cables: &[(u32, u32)], nodes: &[u32]) -> Digraph {
    let digits = |node: u32| [node / 9, node / 3 % 3, node % 3];
    let spoken = |node: u32| digits(node).iter().fold(0, |number, digit| number * 10 + digit);
    let left: Vec<u32> = (0..27).filter(|&node| !nodes.contains(&spoken(node))).collect();
    let mut arcs = Vec::new();
    for (from, &first) in (0_u32..).zip(&left) {
        for (to, &second) in (0_u32..).zip(&left) {
            let differing = digits(first).iter().zip(digits(second)).filter(|(one, other)| **one != *other).count();
            let cable = (spoken(first), spoken(second));
            let is_cut = cables.iter().any(|&(one, other)| cable == (one, other) || cable == (other, one));
            if differing == 1 && !is_cut {
                arcs.push((from, to));
            }
        }
    }
    graph(u32::try_from(left.len()).unwrap(), arcs)
}

/// The flow is one, its rate meets the limit, and the lengths prove the fraction.
#[track_caller]
fn check(graph: &Digraph, terminals: u32, numerator: u128, denominator: u128) {
    let commodities = everyone(terminals);
    let problem = ConcurrentProblem::new(graph, &commodities, &[]).unwrap();
    let optimum = solve_exactly(&problem, &Never).unwrap().unwrap();
    let expected = Fraction::new(numerator, denominator).unwrap();
    assert_eq!(length_bound(&problem, &optimum.lengths, &Never), Ok(Some(expected)), "{:?}", optimum.lengths);
    assert!((optimum.rate / expected.to_float() - 1.0).abs() < 1e-7, "{} for {expected}", optimum.rate);
    check_flow(&problem, &optimum);
}

#[track_caller]
fn check_flow(problem: &ConcurrentProblem<'_>, optimum: &ConcurrentOptimum) {
    for (commodity, amounts) in problem.commodities().iter().zip(&optimum.flow.amounts) {
        let mut net = vec![0.0; problem.graph().node_count as usize];
        for &(arc, amount) in amounts {
            assert!(amount > 0.0);
            let Arc { from, to, .. } = problem.graph().arcs[arc as usize];
            net[from as usize] -= amount;
            net[to as usize] += amount;
        }
        net[commodity.source as usize] = 0.0;
        for &(node, demand) in &commodity.sinks {
            net[node as usize] -= as_float(demand);
        }
        let most = net.iter().fold(0.0, |most: f64, left| most.max(left.abs()));
        assert!(most < 1e-9, "{most} is left somewhere for the source {}", commodity.source);
    }
}

/// Basu 2024 §5.2, and networks that look the same from everywhere.
#[test]
fn regular_networks_have_simple_fractions() {
    check(&punctured(&[], &[]), 27, 1, 9);
    let cube = |cables: &[(u32, u32)]| graph(8, cables.iter().flat_map(|&(one, other)| [(one, other), (other, one)]));
    let cables: Vec<(u32, u32)> = (0..8).flat_map(|node| [1, 2, 4].map(|bit| (node, node ^ bit))).collect();
    let cables: Vec<(u32, u32)> = cables.into_iter().filter(|(from, to)| from < to).collect();
    check(&cube(&cables), 8, 1, 4);
    // Two cables crossed; the bound by distances is 3/11.
    let kept = cables.iter().filter(|&&cable| cable != (0, 1) && cable != (2, 3)).copied();
    let twisted: Vec<(u32, u32)> = kept.chain([(0, 3), (1, 2)]).collect();
    check(&cube(&twisted), 8, 1, 4);
    let bipartite = (0..4).flat_map(|left| (4..8).flat_map(move |right| [(left, right), (right, left)]));
    check(&graph(8, bipartite), 8, 2, 5);
}

/// The digest of Basu 2024 §5.4: generalized Kautz graphs, loops left out.
#[test]
fn generalized_kautz_graphs_have_their_fractions() {
    check(&generalized_kautz(5, 4), 5, 1, 1);
    check(&generalized_kautz(8, 3), 8, 1, 4);
    check(&generalized_kautz(10, 4), 10, 2, 7);
    check(&generalized_kautz(12, 2), 12, 3, 43);
    check(&generalized_kautz(12, 3), 12, 5, 33);
    check(&generalized_kautz(15, 4), 15, 11, 71);
    check(&generalized_kautz(20, 4), 20, 7, 61);
    check(&generalized_kautz(30, 4), 30, 48, 803);
}

/// A torus without three cables, or without three nodes.
#[test]
fn punctured_tori_have_their_fractions() {
    check(&punctured(&[(121, 122), (11, 211), (210, 220)], &[]), 27, 17, 162);
    check(&punctured(&[(21, 221), (201, 211), (21, 22)], &[]), 27, 17, 162);
    check(&punctured(&[(200, 201), (102, 112), (111, 121)], &[]), 27, 8, 81);
    check(&punctured(&[], &[100, 122, 211]), 24, 41, 377);
    check(&punctured(&[], &[101, 121, 2]), 24, 13, 119);
    check(&punctured(&[], &[211, 220, 212]), 24, 13, 119);
}

/// Hosts behind a switch, links of very different capacity: one host has a billionth of the others' link.
#[test]
fn capacities_may_be_very_uneven() {
    let capacities = [300_000_000_000, 300_000_000_000, 16_000_000_000, 300];
    let both = |(host, capacity)| [Arc { from: host, to: 4, capacity }, Arc { from: 4, to: host, capacity }];
    let star = Digraph { node_count: 5, arcs: (0..).zip(capacities).flat_map(both).collect() };
    // Three blocks leave the slowest host.
    check(&star, 4, 100, 1);
    // Two fast cliques joined by one slow cable: 4 pairs each way.
    let mut arcs: Vec<Arc> = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        arcs.push(Arc { from, to, capacity: 300_000_000_000 });
    }
    arcs.extend([(0, 2), (2, 0)].map(|(from, to)| Arc { from, to, capacity: 1 }));
    check(&Digraph { node_count: 4, arcs }, 4, 1, 4);
}

/// One source for all, loads by orbits, gives what the whole gives.
#[test]
fn symmetry_gives_what_the_whole_gives() {
    let ring = graph(6, (0..6).flat_map(|node| [(node, (node + 1) % 6), (node, (node + 2) % 6)]));
    let whole = everyone(6);
    let problem = ConcurrentProblem::new(&ring, &whole, &[]).unwrap();
    let expected = solve_exactly(&problem, &Never).unwrap().unwrap();
    let one = [Commodity { copies: 6, ..whole[0].clone() }];
    let orbits: Vec<u32> = (0..12).map(|arc| arc % 2).collect();
    let folded = ConcurrentProblem::new(&ring, &one, &orbits).unwrap();
    let found = solve_exactly(&folded, &Never).unwrap().unwrap();
    assert_eq!(length_bound(&folded, &found.lengths, &Never), length_bound(&problem, &expected.lengths, &Never));
    assert!((found.rate - expected.rate).abs() < 1e-8);
}

#[test]
fn what_has_no_answer_is_refused() {
    let path = graph(3, [(0, 1), (1, 2)]);
    let commodities = everyone(3);
    let problem = ConcurrentProblem::new(&path, &commodities, &[]).unwrap();
    assert_eq!(solve_exactly(&problem, &Never).unwrap_err(), ConcurrentError::Unreachable { from: 1, to: 0 });
    let ring = graph(3, [(0, 1), (1, 2), (2, 0)]);
    let problem = ConcurrentProblem::new(&ring, &commodities, &[]).unwrap();
    assert_eq!(solve_exactly(&problem, &|| true).unwrap_err(), ConcurrentError::Stopped);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Random demands and capacities: the flow is one, and what it reaches is what the lengths allow.
    #[test]
    fn the_bracket_closes(
        node_count in 3..9_u32,
        stride in 1..4_u32,
        capacities in prop::collection::vec(1..1000_u64, 7),
        demands in prop::collection::vec(0..20_u64, 5),
    ) {
        let pairs = (0..node_count).flat_map(|node| [(node, 1), (node, stride), (node, node_count - 1)]);
        let arcs = pairs.zip(capacities.iter().cycle());
        let arcs = arcs.map(|((from, step), &capacity)| Arc { from, to: (from + step) % node_count, capacity });
        let graph = Digraph { node_count, arcs: arcs.collect() };
        let demand = &|source: u32, node: u32| demands[((source * 3 + node * 7) % 5) as usize];
        let sinks = |source| {
            let all = (0..node_count).filter(move |&node| node != source);
            all.map(move |node| (node, demand(source, node))).filter(|(_, wanted)| *wanted > 0)
        };
        let all = (0..node_count).map(|source| Commodity { source, sinks: sinks(source).collect(), copies: 1 });
        let all: Vec<Commodity> = all.collect();
        let Ok(problem) = ConcurrentProblem::new(&graph, &all, &[]) else { return Ok(()) };
        let optimum = solve_exactly(&problem, &Never).unwrap().unwrap();
        prop_assert!(optimum.rate <= optimum.limit * (1.0 + 1e-12), "{} above {}", optimum.rate, optimum.limit);
        prop_assert!(optimum.rate >= optimum.limit * (1.0 - 1e-7), "{} below {}", optimum.rate, optimum.limit);
        check_flow(&problem, &optimum);
    }
}
