//! Links divided between trees that collect and trees that spread, judged set by set.

use canopy_optimize::{Arc, Digraph, Division, Fraction, Never, OptimumError, halved, strength};
use proptest::prelude::*;

/// Sums of closed walks: as much enters each node as leaves it. The first walk visits all nodes.
fn eulerian() -> impl Strategy<Value = Digraph> {
    (2_u32..8).prop_flat_map(|node_count| {
        let walk = (prop::collection::vec(0..node_count, 2..=node_count as usize), capacity());
        let tour = (Just((0..node_count).collect::<Vec<_>>()).prop_shuffle(), capacity());
        (tour, prop::collection::vec(walk, 0..7)).prop_map(move |(tour, mut walks)| {
            walks.push(tour);
            let closed = |(walk, capacity): &(Vec<u32>, u64)| {
                let arc = |(&from, &to)| Arc { from, to, capacity: *capacity };
                walk.iter().zip(walk.iter().cycle().skip(1)).map(arc).collect::<Vec<_>>()
            };
            Digraph { node_count, arcs: walks.iter().flat_map(closed).collect() }
        })
    })
}

fn capacity() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![8 => 1_u64..13, 1 => Just(25_000_000_000), 1 => 1_u64 << 40..1 << 41]
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).expect("denominators are not zero")
}

/// Every statement of the documentation of [`Division`].
fn judge(graph: &Digraph, terminals: &[bool], division: &Division) -> Result<(), TestCaseError> {
    prop_assert_eq!(division.roots.iter().sum::<u128>(), division.tree_count);
    for (node, &roots) in division.roots.iter().enumerate() {
        prop_assert!(terminals[node] || roots == 0);
    }
    for set in 1..1_u32 << graph.node_count {
        let holds = |node: u32| set >> node & 1 == 1;
        let sum = |trees: &[u128], inwards: bool| -> u128 {
            let passes =
                |arc: &Arc| if inwards { !holds(arc.from) && holds(arc.to) } else { holds(arc.from) && !holds(arc.to) };
            graph.arcs.iter().zip(trees).filter(|(arc, _)| passes(arc)).map(|(_, trees)| trees).sum()
        };
        let (entering, leaving) = (sum(&division.spread, true), sum(&division.collect, false));
        if (0..graph.node_count).any(|node| holds(node) && terminals[node as usize]) {
            let inside: u128 =
                (0..graph.node_count).filter(|&node| holds(node)).map(|node| division.roots[node as usize]).sum();
            prop_assert!(
                entering + inside >= division.tree_count && leaving + inside >= division.tree_count,
                "{set:b}"
            );
        } else {
            prop_assert_eq!((entering, leaving), (sum(&division.spread, false), sum(&division.collect, true)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever is found is right and of the rate asked for, and no more than the strength is found.
    #[test]
    fn halves_carry_all_trees(
        graph in eulerian(),
        extra in prop::collection::vec(any::<bool>(), 8),
        part in (1..5_u128, 4..6_u128),
    ) {
        let terminals: Vec<bool> = (0..graph.node_count as usize).map(|node| node < 2 || extra[node]).collect();
        let most = strength(&graph, &terminals, &Never).unwrap().rate;
        prop_assume!(most > Fraction::ZERO);
        for rate in [most, fraction(most.numerator * part.0, most.denominator * part.1)] {
            if let Some(division) = halved(&graph, &terminals, rate, &Never).unwrap() {
                judge(&graph, &terminals, &division)?;
                prop_assert!(division.rate(&graph).unwrap() >= rate);
            }
        }
        let more = fraction(most.numerator * 1001, most.denominator * 1000);
        prop_assert_eq!(halved(&graph, &terminals, more, &Never), Ok(None));
    }

    /// Links alike in both directions need no shift beyond what they have: the strength is always found.
    #[test]
    fn halves_of_two_way_links_reach_the_strength(graph in eulerian(), extra in prop::collection::vec(any::<bool>(), 8)) {
        let terminals: Vec<bool> = (0..graph.node_count as usize).map(|node| node < 2 || extra[node]).collect();
        let back = |&Arc { from, to, capacity }: &Arc| Arc { from: to, to: from, capacity };
        let arcs = graph.arcs.iter().copied().chain(graph.arcs.iter().map(back)).collect();
        let both = Digraph { arcs, ..graph };
        let most = strength(&both, &terminals, &Never).unwrap().rate;
        prop_assume!(most > Fraction::ZERO);
        let division = halved(&both, &terminals, most, &Never).unwrap();
        let division = division.ok_or_else(|| TestCaseError::fail("nothing found"))?;
        judge(&both, &terminals, &division)?;
        prop_assert!(division.rate(&both).unwrap() >= most);
    }
}

/// A ring one way: half of every link for either kind, and roots everywhere.
#[test]
fn a_ring_one_way_is_halved() {
    let arcs = (0..5).map(|from| Arc { from, to: (from + 1) % 5, capacity: 8 }).collect();
    let graph = Digraph { node_count: 5, arcs };
    let division = halved(&graph, &[true; 5], fraction(5, 1), &Never).unwrap().unwrap();
    assert_eq!(division, Division { tree_count: 5, roots: vec![1; 5], spread: vec![4; 5], collect: vec![4; 5] });
}

/// Triangles one way that share a node: parts say 3/4, but roots can not be moved, and three triangles have 3/5.
#[test]
fn a_windmill_is_not_halved_at_its_strength() {
    let blades = (0..3_u32).map(|blade| (2 * blade + 1, 2 * blade + 2));
    let arcs = blades.flat_map(|(out, back)| [(0, out), (out, back), (back, 0)]);
    let arcs: Vec<Arc> = arcs.map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
    let graph = Digraph { node_count: 7, arcs };
    assert_eq!(strength(&graph, &[true; 7], &Never).unwrap().rate, fraction(3, 4));
    assert_eq!(halved(&graph, &[true; 7], fraction(3, 4), &Never), Ok(None));
    let half = halved(&graph, &[true; 7], fraction(7, 12), &Never).unwrap().expect("a reduce-scatter and an allgather");
    assert_eq!(half.rate(&graph), Some(fraction(7, 12)));
}

#[test]
fn what_can_not_be_halved_is_refused() {
    let arcs = vec![Arc { from: 0, to: 1, capacity: 3 }, Arc { from: 1, to: 0, capacity: 2 }];
    let graph = Digraph { node_count: 2, arcs };
    let rate = fraction(1, 1);
    let unbalanced = OptimumError::Unbalanced { node: 0, entering: 2, leaving: 3 };
    assert_eq!(halved(&graph, &[true; 2], rate, &Never), Err(unbalanced));
    assert_eq!(halved(&graph, &[true; 3], rate, &Never), Err(OptimumError::WrongLength { found: 3, node_count: 2 }));
    let balanced = Digraph {
        arcs: graph.arcs[1..].iter().chain([&Arc { from: 0, to: 1, capacity: 2 }]).copied().collect(),
        ..graph
    };
    assert_eq!(halved(&balanced, &[true, false], rate, &Never), Err(OptimumError::NothingToMove));
    assert!(matches!(
        halved(&balanced, &[true; 2], fraction(1, u128::MAX), &Never),
        Err(OptimumError::TooLarge { .. })
    ));
    let stopped = halved(&balanced, &[true; 2], rate, &|| true);
    assert!(matches!(stopped, Err(OptimumError::Stopped(_))));
}
