//! Deep trees made less deep by exchange: what every route carries stays as it was.

use std::collections::BTreeMap;

use canopy_optimize::Never;
use canopy_schedule::{RouteIndex, RouteTable};
use canopy_topology::LinkIndex;
use proptest::prelude::*;

use crate::forest::assembly::position;
use crate::forest::lower::lower;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees};

/// Root, multiplicity and edges.
type GivenTree = (u32, u64, Vec<(u32, u32)>);

/// Trees in which every edge between two ranks has a route of its own.
fn routed(rank_count: u32, trees: &[GivenTree]) -> RoutedTrees {
    let mut routes = RouteTable::default();
    let of_link: Vec<RouteIndex> =
        (0..rank_count * rank_count).map(|link| routes.push(&[LinkIndex::new(link)])).collect();
    let (mut hops, mut carriers, mut laid) = (Vec::new(), Vec::new(), Vec::new());
    for (root, multiplicity, edges) in trees {
        let start = position(hops.len()).unwrap();
        for &(from, to) in edges {
            let place = position(carriers.len()).unwrap();
            carriers.push((of_link[(from * rank_count + to) as usize], *multiplicity));
            hops.push(RoutedHop { from, to, carriers: place..place + 1 });
        }
        laid.push(RoutedTree { root: *root, multiplicity: *multiplicity, hops: start..position(hops.len()).unwrap() });
    }
    RoutedTrees { trees_per_root: 1, trees: laid, hops, carriers, routes }
}

/// What each route carries from where to where; also checks that all trees span, in an order in which data can flow.
fn loads(routed: &RoutedTrees, rank_count: u32) -> BTreeMap<(u32, u32, usize), u64> {
    let mut loads = BTreeMap::new();
    for tree in &routed.trees {
        let mut is_reached = vec![false; rank_count as usize];
        is_reached[tree.root as usize] = true;
        for hop in &routed.hops[tree.hops.start as usize..tree.hops.end as usize] {
            assert!(is_reached[hop.from as usize], "data is there before it is sent on");
            assert!(!std::mem::replace(&mut is_reached[hop.to as usize], true), "a rank is reached once");
            let carriers = &routed.carriers[hop.carriers.start as usize..hop.carriers.end as usize];
            assert_eq!(carriers.iter().map(|&(_, count)| count).sum::<u64>(), tree.multiplicity);
            for &(route, count) in carriers {
                *loads.entry((hop.from, hop.to, route.index())).or_insert(0) += count;
            }
        }
        assert!(is_reached.iter().all(|&reached| reached));
    }
    loads
}

/// By tree: root, multiplicity and greatest depth.
fn depths(routed: &RoutedTrees, rank_count: u32) -> Vec<(u32, u64, u32)> {
    let depth = |tree: &RoutedTree| {
        let mut depths = vec![0; rank_count as usize];
        for hop in &routed.hops[tree.hops.start as usize..tree.hops.end as usize] {
            depths[hop.to as usize] = depths[hop.from as usize] + 1;
        }
        depths.into_iter().max().unwrap_or_default()
    };
    routed.trees.iter().map(|tree| (tree.root, tree.multiplicity, depth(tree))).collect()
}

/// A path, and a star from whose root the end of the path can be reached.
fn path_and_star(of_path: u64, of_star: u64) -> RoutedTrees {
    let path = (0..5).map(|rank| (rank, rank + 1)).collect();
    let star = vec![(1, 0), (1, 2), (1, 3), (1, 4), (1, 5)];
    routed(6, &[(0, of_path, path), (1, of_star, star)])
}

/// Ranks that hung on rank 1 in the star hang deeper there, but no deeper than the path ends now.
#[test]
fn a_path_is_shortened_at_the_expense_of_a_star() {
    let mut trees = path_and_star(1, 1);
    let before = loads(&trees, 6);
    lower(&mut trees, 6, &Never).unwrap();
    assert_eq!(loads(&trees, 6), before);
    assert_eq!(depths(&trees, 6), [(0, 1, 3), (1, 1, 3)]);
}

/// Two trees alone may not be divided for it, of eight one may.
#[test]
fn trees_are_divided_only_if_there_are_many() {
    let mut trees = path_and_star(1, 3);
    lower(&mut trees, 6, &Never).unwrap();
    assert_eq!(depths(&trees, 6), [(0, 1, 5), (1, 3, 1)]);

    let path: Vec<_> = (0..5).map(|rank| (rank, rank + 1)).collect();
    let star = |root: u32| (0..6).filter(|&rank| rank != root).map(|rank| (root, rank)).collect::<Vec<_>>();
    let mut many: Vec<_> = (1..6).chain(1..3).map(|root| (root, 3, star(root))).collect();
    many.sort();
    many.insert(0, (0, 1, path));
    let mut trees = routed(6, &many);
    let before = loads(&trees, 6);
    lower(&mut trees, 6, &Never).unwrap();
    assert_eq!(loads(&trees, 6), before);
    assert_eq!(trees.trees.len(), 9);
    assert!(depths(&trees, 6).iter().all(|&(_, _, depth)| depth < 5), "{:?}", depths(&trees, 6));
}

/// Any trees: each rank but the root hangs on one that was chosen among those before it in some order.
fn forests() -> impl Strategy<Value = (u32, RoutedTrees)> {
    (4_u32..10).prop_flat_map(|ranks| {
        let order = Just((0..ranks).collect::<Vec<u32>>()).prop_shuffle();
        let tree = (order, proptest::collection::vec(0_usize..3, ranks as usize - 1), 1_u64..4);
        proptest::collection::vec(tree, 1..20).prop_map(move |trees| {
            let mut trees: Vec<_> = trees
                .into_iter()
                .map(|(order, back, multiplicity)| {
                    let edge = |(place, back): (usize, &usize)| (order[place.saturating_sub(*back)], order[place + 1]);
                    (order[0], multiplicity, back.iter().enumerate().map(edge).collect::<Vec<_>>())
                })
                .collect();
            trees.sort_by_key(|(root, multiplicity, _)| (*root, std::cmp::Reverse(*multiplicity)));
            (ranks, routed(ranks, &trees))
        })
    })
}

proptest! {
    #[test]
    fn exchanges_keep_every_load_and_deepen_nothing((ranks, mut trees) in forests()) {
        let (before, of_before) = (loads(&trees, ranks), depths(&trees, ranks));
        lower(&mut trees, ranks, &Never).unwrap();
        prop_assert_eq!(loads(&trees, ranks), before);
        let after = depths(&trees, ranks);
        let deepest = |depths: &[(u32, u64, u32)]| depths.iter().map(|tree| tree.2).max();
        prop_assert!(deepest(&after) <= deepest(&of_before));
        prop_assert!(after.len() <= of_before.len() + of_before.len() / 8 + 1);
        prop_assert!(after.is_sorted_by_key(|&(root, multiplicity, _)| (root, std::cmp::Reverse(multiplicity))));
        for root in 0..ranks {
            let count = |trees: &[(u32, u64, u32)]| trees.iter().filter(|tree| tree.0 == root).map(|tree| tree.1).sum::<u64>();
            prop_assert_eq!(count(&after), count(&of_before));
        }
    }
}
