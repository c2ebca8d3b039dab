//! Pieces, stars and centres one by one. What they make together is tested from outside, in `tests/forest`.

use canopy_optimize::{Fraction, Never};
use canopy_topology::{Topology, TopologyLimits, generate};

use super::glue::{FreeHop, FreeTree};
use super::hung::Hung;
use super::lanes::Lanes;
use super::lowering::lowered;
use super::piece::Piece;
use super::pieces::take_apart;
use super::{flat, star};
use crate::forest::RoutedTrees;
use crate::forest::tests::{both_ways, one_way};

fn apart(topology: &Topology) -> (Fraction, Vec<Piece<'_>>) {
    let lanes = Lanes::of(topology);
    let strength = lanes.strength(&Never).unwrap();
    (strength.rate, take_apart(&lanes, strength.rate, &strength.parts, &Never).unwrap())
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Terminals and lanes of each piece.
fn sizes(pieces: &[Piece<'_>]) -> Vec<(u32, usize)> {
    pieces.iter().map(|piece| (piece.shape.terminal_count, piece.shape.lanes.len())).collect()
}

#[test]
fn boxes_with_enough_inside_are_pieces() {
    let slow = generated("dgx-a100:boxes=3,degrade=b0g3-ib*1/2");
    let (rate, pieces) = apart(&slow);
    // NICs of 200 + 200 + 187.5 GB/s, and two passages of each tree.
    assert_eq!(rate, Fraction { numerator: 146_875_000_000, denominator: 1 });
    assert_eq!(sizes(&pieces), [(8, 8), (8, 8), (8, 8), (3, 24)]);
    assert!(pieces[0].shape == pieces[1].shape && pieces[1].shape == pieces[2].shape, "one solution for all");
    // Two boxes have more between them than the switch inside carries.
    assert_eq!(sizes(&apart(&generated("dgx-a100:boxes=2,degrade=b0g3-ib*1/2")).1), [(16, 32)]);
}

#[test]
fn racks_in_pods_are_pieces_in_pieces() {
    // A rack is all that a switch joins, once it has no link up but from its ranks.
    let rack = |name: char| [(name, '0'), (name, '1')].map(|(rack, number)| format!("{rack}{number}"));
    let mut links = Vec::new();
    let names: Vec<String> = ['a', 'b', 'c', 'd'].into_iter().flat_map(rack).collect();
    for (position, name) in names.iter().enumerate() {
        links.push((name.as_str(), ["sa", "sb", "sc", "sd"][position / 2], 9));
    }
    for (position, name) in names.iter().enumerate().filter(|(position, _)| position % 2 == 0) {
        links.push((name.as_str(), ["sx", "sy"][position / 4], 5));
    }
    links.extend([("a1", "c1", 2), ("b1", "d1", 1)]);
    let topology = both_ways(&format!("{} sa sb sc sd sx sy", names.join(" ")), &links);
    let (rate, pieces) = apart(&topology);
    assert_eq!(rate, Fraction { numerator: 3, denominator: 1 });
    assert_eq!(sizes(&pieces), [(2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2)]);
}

#[test]
fn stars_take_all_that_the_lanes_have() {
    // 3 + 3 + 2 is twice 2·2: every lane is full, whatever the centres.
    let topology = both_ways("a b c s", &[("a", "s", 3), ("b", "s", 3), ("c", "s", 2)]);
    let (rate, pieces) = apart(&topology);
    assert_eq!((rate, pieces.len()), (Fraction { numerator: 2, denominator: 1 }, 1));
    let found = star::solve(&pieces[0].shape, rate, 1).unwrap().unwrap();
    assert_eq!(centres(&found), (2, vec![(0, 1), (1, 1)]));
    let many = star::solve(&pieces[0].shape, rate, 14).unwrap().unwrap();
    assert_eq!(centres(&many), (14, vec![(0, 7), (1, 7)]), "as many as others have");
    // Where centres do not come whole there are p − 2 times as many.
    let tight = both_ways("a b c d s", &[("a", "s", 3), ("b", "s", 3), ("c", "s", 3), ("d", "s", 3)]);
    let (rate, pieces) = apart(&tight);
    assert_eq!(rate, Fraction { numerator: 2, denominator: 1 });
    assert_eq!(
        centres(&star::solve(&pieces[0].shape, rate, 1).unwrap().unwrap()),
        (4, (0..4).map(|at| (at, 1)).collect())
    );
    assert_eq!(star::solve(&apart(&generated("mesh:2x2")).1[0].shape, rate, 1), Ok(None), "no switch, no star");
}

/// How many trees there are, and how many of them have which root.
fn centres(found: &RoutedTrees) -> (u64, Vec<(u32, u64)>) {
    (found.trees_per_root, found.trees.iter().map(|tree| (tree.root, tree.multiplicity)).collect())
}

#[test]
fn lanes_are_what_goes_both_ways() {
    let topology = one_way("a b c s", &[("a", "b", 5), ("b", "a", 3), ("b", "c", 4), ("c", "s", 2), ("s", "c", 2)]);
    let lanes = Lanes::of(&topology);
    let found: Vec<_> = lanes.list.iter().map(|lane| (lane.low, lane.high, lane.capacity)).collect();
    assert_eq!(found, [(0, 1, 3), (2, 3, 2)]);
    for lane in &lanes.list {
        assert_eq!(lanes.ends_of(lane.links[0], lane.links[1]), [lane.low, lane.low]);
    }
}

#[test]
fn trees_are_hung_up_at_their_centres() {
    let tree = |ends: &[[u32; 2]]| {
        let hops = ends.iter().map(|&ends| FreeHop { ends, carriers: vec![(0, 1)] }).collect();
        FreeTree { weight: 1, hops }
    };
    let path = tree(&[[1, 0], [1, 2], [3, 2], [3, 4]]);
    let hung = Hung::at_centre(&path, (5, 5)).unwrap();
    assert_eq!((hung.root, hung.order), (2, vec![(1, true), (2, true), (0, false), (3, false)]));
    assert_eq!(Hung::at_centre(&tree(&[[3, 1], [1, 0], [2, 3]]), (4, 4)).unwrap().root, 1, "the lower one of two");
    for wrong in
        [&[[0, 1], [1, 0], [2, 3]][..], &[[0, 1], [1, 2], [2, 0]], &[[0, 1], [1, 2]], &[[0, 1], [1, 2], [2, 4]]]
    {
        assert!(Hung::at_centre(&tree(wrong), (4, 4)).is_none(), "{wrong:?}");
    }
}

/// A path of six hangs three deep; with two hops of a fork it is one less, and the fork no deeper than that.
#[test]
fn deep_trees_exchange_hops_with_others() {
    let tree = |weight, hops: &[[u32; 2]]| {
        let hops = hops.iter().map(|&ends| {
            // Routes are named by their ends, there and back.
            let (ends, route) = if ends[0] < ends[1] {
                (ends, ends[0] * 10 + ends[1])
            } else {
                ([ends[1], ends[0]], ends[1] * 10 + ends[0])
            };
            FreeHop { ends, carriers: vec![(route as usize, weight)] }
        });
        FreeTree { weight, hops: hops.collect() }
    };
    let deep = tree(1, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8]]);
    let flat = tree(1, &[[4, 0], [4, 1], [4, 2], [4, 3], [4, 5], [4, 6], [4, 7], [4, 8]]);
    let hung = [deep, flat].map(|tree| (Hung::at_centre(&tree, (9, 9)).unwrap(), tree)).into_iter().collect();
    let (trees, roots) = lowered(hung, 9, &Never).unwrap();
    assert_eq!(roots, [4, 4]);
    let mut used = Vec::new();
    for (tree, &root) in trees.iter().zip(&roots) {
        let hung = Hung::at(tree, 9, root).unwrap();
        assert!(hung.depth(tree) <= 3, "{:?}", hung.order);
        for hop in &tree.hops {
            let [(route, 1)] = hop.carriers.as_slice() else { panic!("{:?}", hop.carriers) };
            assert_eq!(
                u32::try_from(*route),
                Ok(hop.ends[0] * 10 + hop.ends[1]),
                "routes lead from the first end to the second"
            );
            used.push(*route);
        }
    }
    used.sort_unstable();
    let mut before: Vec<usize> = (0..8).map(|low| low * 11 + 1).chain([4, 14, 24, 34, 45, 46, 47, 48]).collect();
    before.sort_unstable();
    assert_eq!(used, before, "every link is as loaded as it was");
}

#[test]
fn the_middle_is_nearest_to_what_is_farthest() {
    for (expression, middles) in [("mesh:1x7", &[3][..]), ("mesh:5x5", &[12]), ("mesh:4x4", &[5, 6, 9, 10])] {
        let topology = generated(expression);
        let middle = flat::middle(&apart(&topology).1[0].shape);
        assert!(middles.contains(&middle), "{expression}: {middle}");
    }
}
