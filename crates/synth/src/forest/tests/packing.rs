//! Exact trees alone, and making trees flat.

use canopy_optimize::{FlowUnit, Never};
use proptest::prelude::*;

use crate::forest::condition::{Condition, Step};
use crate::forest::exact::exact_tree;
use crate::forest::rehang::rehang;
use crate::forest::trees::{EdgePreference, Grower, PackedTree, Remainder, Residual};

/// Spanning, parents first.
pub(super) fn assert_spans<C: FlowUnit>(grower: &Grower<C>, tree: &PackedTree<C>) {
    let mut reached = vec![false; grower.rank_count()];
    reached[tree.root as usize] = true;
    for &edge in &tree.edges {
        let (from, to) = grower.ends(edge);
        assert!(reached[from as usize] && !reached[to as usize]);
        reached[to as usize] = true;
    }
    assert!(reached.into_iter().all(|reached| reached));
}

/// Networks made of trees, so that it is known what fits: `(ranks, trees as (root, weight, parents))`, where each rank
/// but the root has a parent among the ranks before it in a rotated order.
pub(super) fn planted() -> impl Strategy<Value = (u32, Vec<(u32, i64, Vec<u32>)>)> {
    (2_u32..8).prop_flat_map(|ranks| {
        let parents: Vec<_> = (1..ranks).map(|rank| 0..rank).collect();
        let tree = (0..ranks, 1_i64..6, parents);
        (Just(ranks), proptest::collection::vec(tree, 1..8))
    })
}

/// Capacities that hold just the planted trees, with their demands.
pub(super) fn network(ranks: u32, trees: &[(u32, i64, Vec<u32>)]) -> Condition<'static, i64> {
    let mut demands = vec![0; ranks as usize];
    let mut edges = Vec::new();
    for (root, weight, parents) in trees {
        demands[*root as usize] += weight;
        for (child, parent) in (1..).zip(parents) {
            edges.push(((root + parent) % ranks, (root + child) % ranks, *weight));
        }
    }
    Condition::new(edges.into_iter(), demands, ranks, &Never).unwrap()
}

proptest! {
    /// Where trees exist, growing them with exact tests finds as many, whatever the order of roots: nothing is left.
    #[test]
    fn exact_trees_serve_all_demands((ranks, planted) in planted()) {
        let mut condition = network(ranks, &planted);
        let grower = Grower::new(&condition, ranks);
        for root in (0..ranks).rev() {
            while condition.demand(root) > 0 {
                let tree = exact_tree(&mut condition, &grower, root, i64::MAX).unwrap();
                assert_spans(&grower, &tree);
                prop_assert!(tree.weight > 0);
                prop_assert!(condition.violation().unwrap().is_none());
            }
        }
    }

    /// Of a tree that is too heavy, just as much stays as fits: one more breaks the condition.
    #[test]
    fn a_step_goes_as_far_as_it_may((ranks, planted) in planted()) {
        let mut condition = network(ranks, &planted);
        let grower = Grower::new(&condition, ranks);
        let left = Remainder::of(&condition, ranks);
        let root = planted[0].0;
        let Some(tree) = grower.grow(&left, root, i64::MAX, EdgePreference { fullness: 1, flatness: 9, residual: Residual::Capacity }, &Never).unwrap() else {
            return Ok(());
        };
        let (whole, part) = condition.apply_longest_prefix(std::slice::from_ref(&tree)).unwrap();
        prop_assert!(condition.violation().unwrap().is_none());
        if whole == 0 {
            prop_assert!(part < tree.weight);
            tree.apply(&mut condition, 1);
            prop_assert!(condition.violation().unwrap().is_some());
        }
    }

    /// Trees stay trees within the capacities, and no deeper in sum.
    #[test]
    fn hanging_trees_lower_keeps_them_valid((ranks, planted) in planted(), spare in 0_i64..4) {
        let mut condition = network(ranks, &planted);
        let edges: Vec<_> = (0..condition.edge_count()).collect();
        for edge in edges {
            condition.raise(edge, spare);
        }
        let grower = Grower::new(&condition, ranks);
        let mut trees: Vec<PackedTree<i64>> = planted
            .iter()
            .map(|(root, weight, parents)| {
                let edge = |(child, parent): (u32, &u32)| {
                    condition.edge_or_new((root + parent) % ranks, (root + child) % ranks)
                };
                PackedTree { root: *root, weight: *weight, edges: (1..).zip(parents).map(edge).collect() }
            })
            .collect();
        let squares = |trees: &[PackedTree<i64>]| -> u32 {
            trees.iter().flat_map(|tree| grower.depths(tree)).map(|depth| depth * depth).sum()
        };
        let mut left = Remainder::of(&condition, ranks);
        trees.iter().for_each(|tree| left.take(tree));
        let before = squares(&trees);
        rehang(&grower, &mut left, &mut trees, &Never).unwrap();
        trees.iter().for_each(|tree| assert_spans(&grower, tree));
        prop_assert!(squares(&trees) <= before);
        let mut again = Remainder::of(&condition, ranks);
        trees.iter().for_each(|tree| again.take(tree));
        prop_assert!(again.capacities.iter().all(|&capacity| capacity >= 0));
        prop_assert_eq!(again.capacities, left.capacities);
    }
}

/// Two paths around a ring of four, each the wrong way for one rank: exchanging the edges into it makes both flat.
#[test]
fn trees_exchange_edges_into_a_rank() {
    let mut condition = Condition::new(
        [(0, 1, 1), (1, 2, 2), (2, 3, 1), (0, 3, 1), (1, 0, 1), (2, 0, 1)].into_iter(),
        vec![1_i64, 1, 0, 0],
        4,
        &Never,
    )
    .unwrap();
    let edge = |condition: &mut Condition<'_, i64>, from, to| condition.edge_or_new(from, to);
    // From 0: 0 → 1 → 2 → 3 by (2, 3); from 1: 1 → 0 → 3 by (0, 3) and 1 → 2.
    let deep = PackedTree {
        root: 0,
        weight: 1,
        edges: vec![edge(&mut condition, 0, 1), edge(&mut condition, 1, 2), edge(&mut condition, 2, 3)],
    };
    let flat = PackedTree {
        root: 1,
        weight: 1,
        edges: vec![edge(&mut condition, 1, 0), edge(&mut condition, 0, 3), edge(&mut condition, 1, 2)],
    };
    let grower = Grower::new(&condition, 4);
    let mut trees = vec![deep, flat];
    let mut left = Remainder::of(&condition, 4);
    trees.iter().for_each(|tree| left.take(tree));
    rehang(&grower, &mut left, &mut trees, &Never).unwrap();
    assert_eq!(grower.depths(&trees[0]), [0, 1, 2, 1]);
    assert_eq!(grower.depths(&trees[1]), [1, 0, 1, 2]);
}
