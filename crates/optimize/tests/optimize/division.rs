//! Links divided between trees that collect and trees that spread, judged set by set.

use canopy_optimize::{
    Arc, Digraph, Division, Fraction, Never, OptimumError, divided, forest_optimum, halved, strength,
};
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

/// Any arcs on top of a tour, so that all nodes reach each other.
fn connected() -> impl Strategy<Value = Digraph> {
    let arcs = |node_count: u32| prop::collection::vec((0..node_count, 0..node_count, 0_u64..9), 0..16);
    (2_u32..7).prop_flat_map(move |node_count| {
        (arcs(node_count), capacity()).prop_map(move |(arcs, around)| {
            let tour = (0..node_count).map(|from| Arc { from, to: (from + 1) % node_count, capacity: around.min(9) });
            let others = arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity });
            Digraph { node_count, arcs: tour.chain(others).collect() }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the arcs, what is found is right, and no worse than a reduce-scatter followed by an allgather.
    #[test]
    fn any_links_are_divided(graph in connected()) {
        let count = graph.node_count as usize;
        let division = divided(&graph, &vec![true; count], &Never).unwrap().expect("a tour joins all nodes");
        judge(&graph, &vec![true; count], &division)?;
        let rate = |rate: Fraction| rate.numerator as f64 / rate.denominator as f64;
        let time = |graph: &Digraph| rate(forest_optimum(graph, &vec![1; count], &Never).unwrap().inverse_rate);
        let back = |&Arc { from, to, capacity }: &Arc| Arc { from: to, to: from, capacity };
        let turned = Digraph { arcs: graph.arcs.iter().map(back).collect(), ..graph };
        let phases = count as f64 / (time(&graph) + time(&turned));
        let reached = rate(division.rate(&graph).unwrap());
        prop_assert!(reached >= 0.998 * phases, "{reached} of {phases}");
        let weakest = rate(strength(&graph, &vec![true; count], &Never).unwrap().rate);
        prop_assert!(reached <= weakest * (1.0 + 1e-12), "{reached} of {weakest}");
    }

    /// Nodes that are no terminals stay balanced, whatever enters and leaves them; and what halves carry is reached.
    #[test]
    fn links_of_switches_are_divided(
        (any, eulerian) in (connected(), eulerian()),
        extra in prop::collection::vec(any::<bool>(), 8),
    ) {
        for graph in [any, eulerian] {
            let terminals: Vec<bool> = (0..graph.node_count as usize).map(|node| node < 2 || extra[node]).collect();
            let Some(division) = divided(&graph, &terminals, &Never).unwrap() else { continue };
            judge(&graph, &terminals, &division)?;
            let most = strength(&graph, &terminals, &Never).unwrap().rate;
            if let Ok(Some(_)) = halved(&graph, &terminals, most, &Never) {
                let reached = division.rate(&graph).unwrap();
                let ratio = |rate: Fraction| rate.numerator as f64 / rate.denominator as f64;
                prop_assert!(ratio(reached) >= 0.99 * ratio(most), "{reached} of {most}");
            }
        }
    }
}

#[test]
fn what_is_not_joined_is_not_divided() {
    let graph =
        Digraph { node_count: 3, arcs: vec![Arc { from: 0, to: 1, capacity: 4 }, Arc { from: 1, to: 0, capacity: 4 }] };
    assert_eq!(divided(&graph, &[true; 3], &Never), Ok(None));
    assert_eq!(divided(&graph, &[true, false, false], &Never), Err(OptimumError::NothingToMove));
    assert_eq!(divided(&graph, &[true; 2], &Never), Err(OptimumError::WrongLength { found: 2, node_count: 3 }));
    assert!(matches!(divided(&graph, &[true, true, false], &|| true), Err(OptimumError::Stopped(_))));
    // The third one is a switch without links.
    let both = divided(&graph, &[true, true, false], &Never).unwrap().unwrap();
    assert_eq!(both.rate(&graph), Some(fraction(4, 1)));
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

/// Three triangles one way that share a node have 3/5, not the 3/4 that parts allow.
#[test]
fn a_windmill_is_divided_at_its_best() {
    for (blades, best) in [(1, (3, 4)), (2, (2, 3)), (3, (3, 5)), (4, (4, 7))] {
        let arcs =
            (0..blades).flat_map(|blade| [(0, 2 * blade + 1), (2 * blade + 1, 2 * blade + 2), (2 * blade + 2, 0)]);
        let arcs: Vec<Arc> = arcs.map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
        let graph = Digraph { node_count: 2 * blades + 1, arcs };
        let terminals = vec![true; graph.node_count as usize];
        let division = divided(&graph, &terminals, &Never).unwrap().expect("all reach each other");
        assert_eq!(division.rate(&graph), Some(fraction(best.0, best.1)), "{blades} triangles");
        judge(&graph, &terminals, &division).expect("whatever is found is right");
    }
}
