//! Trees whose ranks choose their parents.

use canopy_optimize::{FlowUnit, Never};
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::{Topology, TopologyLimits, generate};
use proptest::prelude::*;

use super::packing::{assert_spans, network, planted};
use super::pieces::{depth_max, in_pieces_of};
use crate::forest::condition::Condition;
use crate::forest::parents::{Chosen, chosen_trees};
use crate::forest::trees::{Grower, Remainder};

/// The trees that are chosen, if any, after a look at whether they are what was asked for.
fn checked<C: FlowUnit>(condition: &Condition<'_, C>, ranks: u32) -> Option<Chosen<C>> {
    let (grower, mut left) = (Grower::new(condition, ranks), Remainder::of(condition, ranks));
    let chosen = chosen_trees(&grower, &left, &Never).unwrap()?;
    for tree in &chosen.trees {
        assert_spans(&grower, tree);
        assert!(tree.weight > C::ZERO);
        left.take(tree);
    }
    assert!(left.demands.iter().all(|&demand| demand == C::ZERO), "{:?}", left.demands);
    assert!(left.capacities.iter().all(|&capacity| capacity >= C::ZERO), "{:?}", left.capacities);
    assert!(chosen.trees.is_sorted_by_key(|tree| tree.root));
    Some(chosen)
}

proptest! {
    /// Whatever is found spans, fits the capacities and serves all demands.
    #[test]
    fn chosen_trees_are_trees_within_all_capacities((ranks, planted) in planted(), spare in 0_i64..3) {
        let mut condition = network(ranks, &planted);
        let edges: Vec<_> = (0..condition.edge_count()).collect();
        for edge in edges {
            condition.raise(edge, spare);
        }
        checked(&condition, ranks);
    }
}

/// Two equally near neighbours of the far corner of a square, by edges of one tree each.
#[test]
fn a_tree_is_divided_where_no_edge_has_room_for_all_of_it() {
    let square = |far: i64| [(0, 1, 2), (0, 2, 2), (1, 3, far), (2, 3, far)].into_iter();
    let condition = Condition::new(square(1), vec![2, 0, 0, 0], 4, &Never).unwrap();
    let chosen = checked(&condition, 4).unwrap();
    assert!(chosen.is_nearest);
    assert_eq!(chosen.trees.iter().map(|tree| tree.weight).collect::<Vec<_>>(), [1, 1]);
    let condition = Condition::new(square(2), vec![2, 0, 0, 0], 4, &Never).unwrap();
    assert_eq!(checked(&condition, 4).unwrap().trees.len(), 1);
    let condition = Condition::new(square(2), vec![3, 0, 0, 0], 4, &Never).unwrap();
    assert!(checked(&condition, 4).is_none(), "an edge of two trees is the only one into rank 1");
}

/// Rank 1 is nearest to rank 0 by an edge of one tree: the other comes round by rank 2.
#[test]
fn a_rank_takes_a_tree_from_further_away_where_it_must() {
    let edges = [(0, 1, 1_i64), (0, 2, 2), (2, 1, 1)].into_iter();
    let condition = Condition::new(edges, vec![2, 0, 0], 3, &Never).unwrap();
    let chosen = checked(&condition, 3).unwrap();
    assert!(!chosen.is_nearest);
    assert_eq!(chosen.trees.len(), 2);
}

/// A rank that nothing enters, and a root that does not reach all.
#[test]
fn what_cannot_be_reached_is_not_planned() {
    let condition = Condition::new([(0, 1, 5_i64)].into_iter(), vec![1, 0, 0], 3, &Never).unwrap();
    assert!(checked(&condition, 3).is_none());
    let condition = Condition::new([(0, 1, 5_i64)].into_iter(), vec![1, 1], 2, &Never).unwrap();
    assert!(checked(&condition, 2).is_none());
}

/// Shares of different sizes, at the optimum, and no rank further from a root than in the network itself.
#[test]
fn tori_with_different_shares_have_flat_trees() {
    let generated = |expression: &str| -> Topology { generate(expression, &TopologyLimits::STANDARD).unwrap() };
    for (expression, eccentricity) in [("torus:6x6", 6), ("torus:4x6", 5), ("torus:3x4x5", 5), ("hypercube:5", 5)] {
        let topology = generated(expression);
        let ranks = topology.rank_count();
        for weights in [[1, 2, 1, 2], [1, 3, 2, 4], [0, 3, 1, 2]] {
            let weights: Vec<u64> = weights.into_iter().cycle().take(ranks as usize).collect();
            let (forest, _) = in_pieces_of(&topology, CollectiveKind::Allgather, Shares::Weighted(weights.clone()));
            assert_eq!(depth_max(&forest), eccentricity, "{expression} {weights:?}");
            assert!(forest.phases[0].trees.len() <= 4 * ranks as usize, "{expression} {weights:?}");
        }
    }
}
