//! Values that papers and hand calculations state.

use canopy_optimize::{
    Arc, Digraph, DigraphError, Fraction, Never, OptimumError, Strength, broadcast_optimum, forest_optimum,
    forest_optimum_for, gather_optimum, isolating_cuts, scatter_optimum, strength,
};

/// A graph of links that run both ways.
fn both_ways(node_count: u32, links: &[(u32, u32, u64)]) -> Digraph {
    let arcs =
        links.iter().flat_map(|&(a, b, capacity)| [Arc { from: a, to: b, capacity }, Arc { from: b, to: a, capacity }]);
    Digraph { node_count, arcs: arcs.collect() }
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).expect("no denominator here is zero")
}

/// Boxes of `gpus` ranks with `inner` to a box switch, and `outer` to one switch for all. Ranks come first.
fn boxes(box_count: u32, gpus: u32, inner: u64, outer: u64) -> (Digraph, Vec<u64>) {
    let ranks = box_count * gpus;
    let link = |rank: u32| [(rank, ranks + rank / gpus, inner), (rank, ranks + box_count, outer)];
    let links: Vec<_> = (0..ranks).flat_map(link).collect();
    let weights = (0..=ranks + box_count).map(|node| u64::from(node < ranks)).collect();
    (both_ways(ranks + box_count + 1, &links), weights)
}

#[track_caller]
fn check_forest(graph: &Digraph, weights: &[u64], expected: Fraction) {
    assert_eq!(forest_optimum(graph, weights, &Never).map(|optimum| optimum.inverse_rate), Ok(expected));
}

/// The article's examples with 1/x* by hand: its running example with 2 × 2 and 2 × 4 GPUs (figure 4.5 with b = 1), a
/// star of unequal links, a path, and a ring.
#[test]
fn forest_optima_of_small_examples() {
    let (two_by_two, weights) = boxes(2, 2, 2, 1);
    check_forest(&two_by_two, &weights, fraction(1, 1));
    let (two_by_four, weights) = boxes(2, 4, 10, 1);
    check_forest(&two_by_four, &weights, fraction(1, 1));
    check_forest(&both_ways(4, &[(0, 3, 4), (1, 3, 2), (2, 3, 3)]), &[1, 1, 1, 0], fraction(1, 1));
    check_forest(&both_ways(3, &[(0, 1, 1), (1, 2, 1)]), &[1, 1, 1], fraction(2, 1));
    check_forest(&both_ways(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]), &[1; 4], fraction(3, 2));
}

/// Zhao 2026, table 4.1, and the same families at other sizes: capacities in GB/s.
#[test]
fn forest_optima_of_machines() {
    for (box_count, inner, outer, expected) in [
        (2, 300, 25, fraction(3, 65)),
        (4, 300, 25, fraction(3, 25)),
        (16, 300, 25, fraction(3, 5)),
        (2, 450, 50, fraction(3, 100)),
        (8, 450, 50, fraction(7, 50)),
    ] {
        let (graph, weights) = boxes(box_count, 8, inner, outer);
        check_forest(&graph, &weights, expected);
    }
}

/// The cut of the running example with scarce links between boxes is a box with its switch, the hub left out or in.
#[test]
fn the_tight_cut_is_a_box() {
    let (graph, weights) = boxes(2, 4, 10, 1);
    let cut = forest_optimum(&graph, &weights, &Never).unwrap().cut;
    let ranks: Vec<bool> = cut[..8].to_vec();
    assert!(ranks == [vec![true; 4], vec![false; 4]].concat() || ranks == [vec![false; 4], vec![true; 4]].concat());
}

/// One rank holds all data: the forest is a broadcast. A rank without data still has to receive.
#[test]
fn unequal_weights() {
    let graph = both_ways(3, &[(0, 1, 5), (1, 2, 3)]);
    let all = [true; 3];
    assert_eq!(forest_optimum_for(&graph, &[1, 0, 0], &all, &Never).unwrap().inverse_rate, fraction(1, 3));
    assert_eq!(broadcast_optimum(&graph, &all, 0, &Never).unwrap(), (3, vec![true, true, false]));
    assert_eq!(forest_optimum_for(&graph, &[0, 2, 4], &all, &Never).unwrap().inverse_rate, fraction(4, 3));
    // If rank 0 needs nothing, only what goes to 1 and 2 counts.
    assert_eq!(forest_optimum(&graph, &[0, 2, 4], &Never).unwrap().inverse_rate, fraction(4, 3));
    assert_eq!(forest_optimum(&graph, &[0, 4, 2], &Never).unwrap().inverse_rate, fraction(4, 3));
}

/// A path from the root: the first link carries what all others want.
#[test]
fn scatter_and_gather_on_a_directed_path() {
    let path = Digraph {
        node_count: 3,
        arcs: vec![Arc { from: 0, to: 1, capacity: 10 }, Arc { from: 1, to: 2, capacity: 4 }],
    };
    assert_eq!(scatter_optimum(&path, &[1, 1, 1], 0, &Never).unwrap().0, fraction(1, 4));
    assert_eq!(scatter_optimum(&path, &[9, 3, 1], 0, &Never).unwrap(), (fraction(2, 5), vec![true, false, false]));
    assert_eq!(gather_optimum(&path, &[1, 1, 1], 2, &Never).unwrap(), (fraction(1, 2), vec![false, false, true]));
    let error = gather_optimum(&path, &[1, 1, 1], 0, &Never).unwrap_err();
    assert_eq!(error, OptimumError::Disconnected { cut: vec![true, false, false] });
}

/// Tutte and Nash-Williams: a tree has the strength of its thinnest link, a ring of n unit links n/(n − 1), the
/// complete graph n/2. A star around a switch: half the sum over n − 1, or its thinnest link.
#[test]
fn strengths_of_graphs() {
    let of = |graph: &Digraph, terminals: &[bool]| strength(graph, terminals, &Never).unwrap();
    let path = of(&both_ways(4, &[(0, 1, 5), (1, 2, 3), (2, 3, 4)]), &[true; 4]);
    assert_eq!(path, Strength { rate: fraction(3, 1), parts: vec![vec![0, 1], vec![2, 3]] });
    let ring = of(&both_ways(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]), &[true; 4]);
    assert_eq!(ring, Strength { rate: fraction(4, 3), parts: vec![vec![0], vec![1], vec![2], vec![3]] });
    let complete: Vec<_> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b, 1))).collect();
    assert_eq!(of(&both_ways(5, &complete), &[true; 5]).rate, fraction(5, 2));
    let star = both_ways(4, &[(0, 3, 4), (1, 3, 2), (2, 3, 3)]);
    assert_eq!(of(&star, &[true, true, true, false]).rate, fraction(2, 1));
    let even_star = both_ways(4, &[(0, 3, 4), (1, 3, 3), (2, 3, 4)]);
    assert_eq!(of(&even_star, &[true, true, true, false]).rate, fraction(11, 4));
    let apart = of(&both_ways(3, &[(0, 1, 1)]), &[true; 3]);
    assert_eq!(apart, Strength { rate: Fraction::ZERO, parts: vec![vec![0, 1], vec![2]] });
}

/// A box's set takes its switch, but not the hub.
#[test]
fn isolating_cuts_of_boxes() {
    let (graph, _) = boxes(2, 2, 10, 1);
    let cuts = isolating_cuts(&graph, &[vec![0, 1], vec![2, 3]], &Never).unwrap();
    assert_eq!(cuts, [vec![0, 1, 4], vec![2, 3, 5]]);
}

/// Sums of 2⁶⁴ need 128 bits, and are exact.
#[test]
fn largest_capacities() {
    let most = u64::MAX;
    let graph = both_ways(4, &[(0, 1, most), (1, 2, most - 2), (2, 3, most), (3, 0, most), (0, 1, most), (1, 2, 7)]);
    let least = 2 * u128::from(most);
    check_forest(&graph, &[1; 4], fraction(3, least));
    assert_eq!(broadcast_optimum(&graph, &[true; 4], 2, &Never).unwrap().0, least);
    assert_eq!(scatter_optimum(&graph, &[1; 4], 0, &Never).unwrap().0, fraction(3, 3 * u128::from(most)));
    // Weights near 2⁶⁴ as well: exact if the ratio is that of short numbers, else refused.
    check_forest(&graph, &[most, most - 1, most - 2, 5], fraction(3 * u128::from(most - 1), least));
    let path = both_ways(3, &[(0, 1, most), (1, 2, most - 2)]);
    let heavy = forest_optimum(&path, &[most, most - 1, most - 3], &Never);
    assert_eq!(heavy, Err(OptimumError::TooLarge { weight: 3 * u128::from(most) - 4 }));
}

/// Each capacity fits 63 bits once divided by 4, the greatest of them just so, but their sum does not: what flows into
/// node 2 must not be mistaken for a flow that was stopped at the largest number.
#[test]
fn flows_beyond_each_capacity() {
    let most = u64::MAX;
    let arc = |from, to, capacity| Arc { from, to, capacity };
    let arcs = vec![arc(1, 0, most), arc(1, 0, most - 2), arc(2, 1, most), arc(2, 1, 5), arc(2, 0, most), arc(2, 0, 1)];
    let graph = Digraph { node_count: 3, arcs };
    let cuts = isolating_cuts(&graph, &[vec![0, 1], vec![2]], &Never).unwrap();
    assert_eq!(cuts, [vec![0, 1], vec![2]]);
}

#[test]
fn refusals_say_what_was_found() {
    let graph = both_ways(3, &[(0, 1, 1)]);
    let cut = vec![true, true, false];
    assert_eq!(forest_optimum(&graph, &[1; 3], &Never), Err(OptimumError::Disconnected { cut }));
    assert_eq!(
        broadcast_optimum(&graph, &[true; 3], 2, &Never),
        Err(OptimumError::Disconnected { cut: vec![false, false, true] })
    );
    let short = OptimumError::WrongLength { found: 2, node_count: 3 };
    assert_eq!(forest_optimum(&graph, &[1; 2], &Never), Err(short.clone()));
    assert_eq!(strength(&graph, &[true; 2], &Never), Err(short));
    assert_eq!(scatter_optimum(&graph, &[1; 3], 3, &Never), Err(OptimumError::NoSuchRoot { root: 3, node_count: 3 }));
    assert_eq!(forest_optimum(&graph, &[0, 0, 7], &Never), Err(OptimumError::NothingToMove));
    assert_eq!(strength(&graph, &[true, false, false], &Never), Err(OptimumError::NothingToMove));
    let stray = Digraph { node_count: 2, arcs: vec![Arc { from: 0, to: 2, capacity: 1 }] };
    assert_eq!(
        forest_optimum(&stray, &[1; 2], &Never),
        Err(OptimumError::Graph(DigraphError::NoSuchNode { position: 0, from: 0, to: 2, node_count: 2 }))
    );
}
