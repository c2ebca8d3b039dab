//! Known optima, and both sides of the bracket on random networks.

use super::*;
use crate::concurrent::Commodity;
use crate::concurrent::samples::{bipartite, cube, everyone, generalized_kautz, graph, twisted_cube, uneven};
use crate::digraph::{Arc, Digraph};
use crate::fraction::Fraction;
use crate::stop::Never;
use proptest::prelude::*;

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
    check(&cube(), 8, 1, 4);
    // The bound by distances is 3/11.
    check(&twisted_cube(), 8, 1, 4);
    check(&bipartite(), 8, 2, 5);
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
    fn the_bracket_closes((graph, all) in uneven(3..9, 1..1000, 0..20)) {
        let Ok(problem) = ConcurrentProblem::new(&graph, &all, &[]) else { return Ok(()) };
        let optimum = solve_exactly(&problem, &Never).unwrap().unwrap();
        prop_assert!(optimum.rate <= optimum.limit * (1.0 + 1e-12), "{} above {}", optimum.rate, optimum.limit);
        prop_assert!(optimum.rate >= optimum.limit * (1.0 - 1e-7), "{} below {}", optimum.rate, optimum.limit);
        check_flow(&problem, &optimum);
    }
}
