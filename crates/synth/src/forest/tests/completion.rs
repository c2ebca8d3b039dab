//! Trees that are completed: within all capacities, and divided as little as possible.

use canopy_optimize::Never;
use proptest::prelude::*;

use super::packing::{assert_spans, network, planted};
use crate::forest::completion::completed;
use crate::forest::condition::Condition;
use crate::forest::trees::{EdgePreference, Grower, PackedTree, Remainder, Residual};

/// Spanning trees for all demands, within all capacities.
fn assert_complete(grower: &Grower<i64>, all: &Remainder<i64>, trees: &[PackedTree<i64>]) {
    let mut left = all.clone();
    for tree in trees {
        assert_spans(grower, tree);
        assert!(tree.weight > 0);
        left.take(tree);
    }
    assert!(left.demands.iter().all(|&demand| demand == 0));
    assert!(left.capacities.iter().all(|&capacity| capacity >= 0));
}

/// Twelve ranks, all joined, 1000 trees each, on edges of odd capacities that are just enough.
#[test]
fn odd_capacities_need_little_change() {
    let ranks = 12_u32;
    let odd = [13, -13, 29, -29, 53, -53, 101, -101, 151, -151, 0];
    let edges = (0..ranks).flat_map(|to| {
        let others = (0..ranks).filter(move |&from| from != to);
        others.zip(odd).map(move |(from, more)| (from, to, 1000 + more))
    });
    let condition = Condition::new(edges, vec![1000_i64; ranks as usize], ranks, &Never).unwrap();
    let grower = Grower::new(&condition, ranks);
    let all = Remainder::of(&condition, ranks);
    let trees = completed(&grower, &all.capacities, Vec::new(), all.clone(), &Never).unwrap().unwrap();
    assert_complete(&grower, &all, &trees);
    // Nine powers of two and a rest for each of eleven roots, and one whole; beyond that, half as many as there would be if
    // each rank had to divide a tree for each of its edges.
    let divided = trees.len() - (11 * 10 + 1);
    assert!(divided < 12 * 11 / 2, "{divided} more trees");
}

/// One rank with a single edge: nothing can come in over another one.
#[test]
fn what_does_not_fit_is_not_completed() {
    let edges = [(0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 1, 1)].into_iter();
    let condition = Condition::new(edges, vec![2_i64, 0, 0], 3, &Never).unwrap();
    let grower = Grower::new(&condition, 3);
    let all = Remainder::of(&condition, 3);
    assert_eq!(completed(&grower, &all.capacities, Vec::new(), all.clone(), &Never).unwrap(), None);
}

proptest! {
    /// Whatever trees come first, those that complete them stay within the capacities.
    #[test]
    fn completed_trees_fit((ranks, planted) in planted(), first in 0_u32..8) {
        let condition = network(ranks, &planted);
        let grower = Grower::new(&condition, ranks);
        let all = Remainder::of(&condition, ranks);
        let (mut left, mut trees) = (all.clone(), Vec::new());
        let preference = EdgePreference { fullness: 9, flatness: 1, residual: Residual::Capacity };
        for root in (0..ranks).take(first as usize).filter(|&root| all.demands[root as usize] > 0) {
            if let Some(tree) = grower.grow(&left, root, i64::MAX, preference, &Never).unwrap() {
                left.take(&tree);
                trees.push(tree);
            }
        }
        if let Some(trees) = completed(&grower, &all.capacities, trees, left, &Never).unwrap() {
            assert_complete(&grower, &all, &trees);
        }
    }
}
