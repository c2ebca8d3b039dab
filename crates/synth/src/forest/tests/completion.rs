//! Trees that are completed: within all capacities, and divided as little as possible.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, check, compile};
use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};
use proptest::prelude::*;

use super::packing::{assert_spans, network, planted};
use crate::bound::bound;
use crate::forest::completion::completed;
use crate::forest::condition::Condition;
use crate::forest::plan_from;
use crate::forest::trees::{EdgePreference, Grower, PackedTree, Remainder, Residual};
use crate::limits::TreeLimits;
use crate::progress::Silent;

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

/// Boxes of six ranks in a ring with `inner` between neighbours and `outer` to a rail each, or all to one switch.
fn rings(boxes: usize, inner: u64, outer: u64, rails: usize) -> Topology {
    let mut draft = TopologyDraft::default();
    let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
    let id = |host: usize, rank: usize| format!("r{host:02}.{rank}");
    (0..rails).for_each(|rail| draft.add_switch(format!("s{rail}")));
    for (host, rank) in (0..boxes).flat_map(|host| (0..6).map(move |rank| (host, rank))) {
        draft.add_compute(id(host, rank));
        draft.add_both(&id(host, rank), &format!("s{}", rank % rails), capacity(outer), Latency::from_nanos(0));
    }
    for (host, rank) in (0..boxes).flat_map(|host| (0..6).map(move |rank| (host, rank))) {
        draft.add_both(&id(host, rank), &id(host, (rank + 1) % 6), capacity(inner), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// NICs nearly as fast as the rings of boxes: ranks need all of their links, so that nothing can be taken apart.
#[test]
fn boxes_that_can_not_be_taken_apart_are_as_fast_as_can_be() {
    for (topology, trees_per_rank) in [(rings(9, 50, 29, 1), 8), (rings(10, 35, 30, 6), 4), (rings(9, 70, 31, 2), 7)] {
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
        let forest =
            plan_from(&topology, collective, &Shares::Equal, TreeLimits::NONE, u32::MAX, &Never, &Silent).unwrap();
        let (ranks, trees) = (topology.rank_count(), forest.phases[0].trees.len());
        let (algorithm, shape) = ("forest".to_owned(), Shape::Forest(forest));
        let schedule = Schedule { collective, algorithm, shares: Shares::Equal, shape };
        let algbw = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap().algbw;
        assert_eq!(algbw, bound(&topology, collective, &Shares::Equal, &Never).unwrap().upper);
        assert!(trees <= trees_per_rank * ranks as usize, "{ranks} ranks: {trees} trees");
    }
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
