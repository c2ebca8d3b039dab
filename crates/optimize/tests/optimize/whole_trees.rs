//! Forests of a given number of trees: against every breakpoint and every cut, and against published values.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::num::NonZeroU64;

use canopy_optimize::{Arc, Digraph, Fraction, Never, OptimumError, WholeForest, WholeTrees};
use proptest::prelude::*;

use crate::support::brute_force;

fn trees(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).expect("tests ask for at least one tree")
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).expect("no denominator here is zero")
}

fn both_ways(node_count: u32, links: &[(u32, u32, u64)]) -> Digraph {
    let arcs =
        links.iter().flat_map(|&(a, b, capacity)| [Arc { from: a, to: b, capacity }, Arc { from: b, to: a, capacity }]);
    Digraph { node_count, arcs: arcs.collect() }
}

/// Whether every set with a terminal is entered by as many trees as are rooted outside.
fn is_admitted(graph: &Digraph, trees: &WholeTrees, demands: &[u64], terminals: &[bool]) -> bool {
    let capacities = trees.capacities.iter().map(|&capacity| u64::try_from(capacity).unwrap());
    let arcs = graph.arcs.iter().zip(capacities).map(|(arc, capacity)| Arc { capacity, ..*arc });
    let graph = Digraph { node_count: graph.node_count, arcs: arcs.collect() };
    let open = |&outside: &u32| brute_force::mask(terminals) & !outside != 0;
    let mut sets = (0..1_u32 << graph.node_count).filter(open);
    sets.all(|outside| brute_force::leaving(&graph, outside) >= brute_force::weight(demands, outside))
}

fn floors(graph: &Digraph, scale: Fraction) -> WholeTrees {
    let floor = |arc: &Arc| match arc.from == arc.to {
        true => 0,
        false => scale.numerator * u128::from(arc.capacity) / scale.denominator,
    };
    WholeTrees { scale, capacities: graph.arcs.iter().map(floor).collect() }
}

/// The least U by trying all of them.
fn least_scale(graph: &Digraph, demands: &[u64], terminals: &[bool]) -> Fraction {
    let widest = graph.arcs.iter().map(|arc| arc.capacity).max().unwrap();
    let total: u64 = demands.iter().sum();
    let multiples = |capacity: u64| (1..=total * widest).map(move |trees| fraction(trees.into(), capacity.into()));
    let mut scales: Vec<Fraction> =
        graph.arcs.iter().filter(|arc| arc.capacity > 0).flat_map(|arc| multiples(arc.capacity)).collect();
    scales.sort_unstable();
    scales.dedup();
    let first = scales.partition_point(|&scale| !is_admitted(graph, &floors(graph, scale), demands, terminals));
    scales[first]
}

/// Links both ways, the first two nodes terminals with data, other nodes anything.
fn instances(node_max: u32) -> impl Strategy<Value = (Digraph, Vec<u64>, Vec<bool>)> {
    (2..=node_max).prop_flat_map(|node_count| {
        let link = (0..node_count, 0..node_count, 0..7_u64);
        let chain = prop::collection::vec(1..7_u64, node_count as usize - 1);
        let nodes = prop::collection::vec((0..3_u64, any::<bool>()), node_count as usize);
        (chain, prop::collection::vec(link, 0..6), nodes).prop_map(move |(chain, mut links, nodes)| {
            links.extend((1..).zip(chain).map(|(node, capacity)| (node - 1, node, capacity)));
            let weight = |(node, &(weight, _)): (usize, &(u64, bool))| if node < 2 { weight.max(1) } else { weight };
            let weights = nodes.iter().enumerate().map(weight).collect();
            let terminals = nodes.iter().enumerate().map(|(node, &(_, terminal))| node < 2 || terminal).collect();
            (both_ways(node_count, &links), weights, terminals)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Capacities of a time that is enough are its floors, and there are none of a time that is not.
    #[test]
    fn trees_fit_within_a_time_or_not((graph, weights, terminals) in instances(5), k in 1..=4_u64, parts in 4..9_u128) {
        let mut forest = WholeForest::new(&graph, &weights, &terminals, &Never).unwrap();
        let optimum = forest.optimum();
        prop_assume!(optimum.numerator > 0);
        let time = fraction(optimum.numerator * parts, optimum.denominator * 4);
        let least = forest.pack(trees(k), None, &Never).unwrap().unwrap();
        let found = forest.pack_within(trees(k), time, &Never).unwrap();
        prop_assert_eq!(found.is_some(), time >= least.inverse_rate(trees(k)).unwrap());
        if let Some(found) = found {
            prop_assert_eq!(found.inverse_rate(trees(k)).unwrap(), time);
            prop_assert_eq!(&found.capacities, &floors(&graph, found.scale).capacities);
        }
    }

    /// The least time is that of enumeration, its capacities are the floors, and knowing a time to beat changes nothing.
    #[test]
    fn the_least_time_is_that_of_enumeration((graph, weights, terminals) in instances(5), k in 1..=6_u64) {
        let mut forest = WholeForest::new(&graph, &weights, &terminals, &Never).unwrap();
        prop_assert!(forest.is_exact());
        let found = forest.pack(trees(k), None, &Never).unwrap().expect("nothing was to be beaten");
        let demands: Vec<u64> = weights.iter().map(|weight| weight * k).collect();
        prop_assert_eq!(found.scale, least_scale(&graph, &demands, &terminals));
        prop_assert_eq!(&found, &floors(&graph, found.scale));

        let rate = found.inverse_rate(trees(k)).unwrap();
        prop_assert!(rate >= forest.optimum());
        prop_assert_eq!(forest.pack(trees(k), Some(rate), &Never), Ok(None));
        let slower = fraction(rate.numerator * 1001, rate.denominator * 1000);
        prop_assert_eq!(forest.pack(trees(k), Some(slower), &Never), Ok(Some(found)));
    }

    /// Theorem 35: `U/k ≤ 1/x* + 1/(k·min b)`; more trees, less loss.
    #[test]
    fn the_loss_is_less_than_a_tree_of_the_thinnest_link((graph, weights, terminals) in instances(6), k in 1..=40_u64) {
        let mut forest = WholeForest::new(&graph, &weights, &terminals, &Never).unwrap();
        let rate = forest.pack(trees(k), None, &Never).unwrap().unwrap().inverse_rate(trees(k)).unwrap();
        let thinnest = graph.arcs.iter().filter(|arc| arc.capacity > 0 && arc.from != arc.to).map(|arc| arc.capacity).min();
        let Fraction { numerator: p, denominator: q } = forest.optimum();
        let loss = u128::from(k * thinnest.unwrap());
        prop_assert!(rate <= fraction(p * loss + q, q * loss));
    }

    /// Any Eulerian graph, its floors in balance or not: what comes out is balanced, fits, and admits the trees.
    #[test]
    fn what_is_not_balanced_is_repaired(
        cycles in prop::collection::vec((prop::collection::vec(0..6_u32, 2..6), 1..9_u64), 0..5),
        widths in (1..9_u64, 1..9_u64),
        k in 1..=6_u64,
    ) {
        // Two cycles through all nodes connect them.
        let mut arcs = Vec::new();
        let whole = [(vec![0, 1, 2, 3, 4, 5], widths.0), (vec![5, 3, 1, 4, 2, 0], widths.1)];
        for (cycle, capacity) in cycles.into_iter().chain(whole) {
            let next = cycle.iter().cycle().skip(1);
            arcs.extend(cycle.iter().zip(next).map(|(&from, &to)| Arc { from, to, capacity }));
        }
        let graph = Digraph { node_count: 6, arcs };
        let (weights, terminals) = ([1, 1, 1, 0, 0, 0], [true, true, true, false, false, false]);
        let mut forest = WholeForest::new(&graph, &weights, &terminals, &Never).unwrap();
        let found = forest.pack(trees(k), None, &Never).unwrap().unwrap();
        prop_assert!(found.inverse_rate(trees(k)).unwrap() >= forest.optimum());
        let fits = found.capacities.iter().zip(floors(&graph, found.scale).capacities).all(|(&own, floor)| own <= floor);
        prop_assert!(fits);
        for node in 3..6 {
            let sum = |end: fn(&Arc) -> u32| -> u128 {
                let arcs = graph.arcs.iter().zip(&found.capacities).filter(|(arc, _)| arc.from != arc.to);
                arcs.filter(|(arc, _)| end(arc) == node).map(|(_, &capacity)| capacity).sum()
            };
            prop_assert_eq!(sum(|arc| arc.from), sum(|arc| arc.to));
        }
        let demands = weights.map(|weight| weight * k);
        prop_assert!(is_admitted(&graph, &found, &demands, &terminals));
        if forest.is_exact() {
            prop_assert_eq!(found.scale, least_scale(&graph, &demands, &terminals));
        }
    }
}

/// Two A100 boxes: U = 7k/150 for one to four trees per rank, and 3/65 of the time per tree at 13.
#[test]
fn two_boxes_of_a100() {
    let ranks = 16;
    let links: Vec<_> = (0..ranks).flat_map(|rank| [(rank, ranks + rank / 8, 300), (rank, ranks + 2, 25)]).collect();
    let graph = both_ways(ranks + 3, &links);
    let weights: Vec<u64> = (0..ranks + 3).map(|node| u64::from(node < ranks)).collect();
    let terminals: Vec<bool> = weights.iter().map(|&weight| weight > 0).collect();
    let mut forest = WholeForest::new(&graph, &weights, &terminals, &Never).unwrap();
    for k in 1..=4_u64 {
        let found = forest.pack(trees(k), None, &Never).unwrap().unwrap();
        assert_eq!(found.scale, fraction(7 * u128::from(k), 150));
    }
    let optimal = forest.pack(trees(13), None, &Never).unwrap().unwrap();
    assert_eq!(optimal.inverse_rate(trees(13)), Some(fraction(3, 65)));
}

#[test]
fn an_unbalanced_switch_is_refused() {
    let arcs = vec![
        Arc { from: 0, to: 2, capacity: 3 },
        Arc { from: 2, to: 1, capacity: 2 },
        Arc { from: 1, to: 0, capacity: 2 },
    ];
    let graph = Digraph { node_count: 3, arcs };
    let error = WholeForest::new(&graph, &[1, 1, 0], &[true, true, false], &Never).unwrap_err();
    assert_eq!(error, OptimumError::Unbalanced { node: 2, entering: 3, leaving: 2 });
}

/// Capacities without a common divisor near 2⁶⁴ stay exact, or are refused.
#[test]
fn large_capacities_are_exact_or_refused() {
    let most = u64::MAX;
    let graph = both_ways(3, &[(0, 1, most), (1, 2, most - 2)]);
    let mut forest = WholeForest::new(&graph, &[1; 3], &[true; 3], &Never).unwrap();
    let found = forest.pack(trees(1), None, &Never).unwrap().unwrap();
    // Two trees enter node 2, each whole.
    assert_eq!(found.scale, fraction(2, u128::from(most - 2)));
    let many = forest.pack(trees(most), None, &Never);
    assert!(matches!(many, Ok(Some(_)) | Err(OptimumError::TooLarge { .. })), "{many:?}");
}

#[test]
fn a_request_to_stop_is_heeded() {
    let graph = both_ways(3, &[(0, 1, 5), (1, 2, 3)]);
    assert!(matches!(WholeForest::new(&graph, &[1; 3], &[true; 3], &|| true), Err(OptimumError::Stopped(_))));
    let mut forest = WholeForest::new(&graph, &[1; 3], &[true; 3], &Never).unwrap();
    assert!(matches!(forest.pack(trees(2), None, &|| true), Err(OptimumError::Stopped(_))));
}
