//! k, U and capacities in trees.

use canopy_optimize::Never;
use canopy_schedule::{Action, Shares};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

use super::{both_ways, one_way, two_boxes};
use crate::forest::instance::{Instance, Roots, links_behind_transposed, require_plannable};

fn instance(topology: &Topology, roots: Roots<'_>) -> Instance {
    require_plannable(topology, roots, Action::Copy).unwrap();
    Instance::new(topology, roots, None, &Never).unwrap()
}

/// Zhao 2026: two A100 boxes have U = 3/5 per GB/s and k = 13, so 300 and 25 GB/s carry 180 and 15 trees.
#[test]
fn capacities_of_two_a100_boxes() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let instance = instance(&topology, Roots::All(&Shares::Equal));
    assert_eq!(instance.trees_per_root, 13);
    for (link, capacity) in topology.links().iter().zip(&instance.capacities) {
        let gigabytes = u128::from(link.capacity.bytes_per_sec()) / 1_000_000_000;
        assert_eq!(*capacity, gigabytes * 3 / 5);
    }
    assert_eq!(instance.demands.iter().sum::<u64>(), 16 * 13);
}

/// 1/x* is 1 for all roots, and 1/2 for one: a0 can send 3, but only 2 enter the other box.
#[test]
fn a_single_root_has_trees_of_its_own() {
    assert_eq!(instance(&two_boxes(), Roots::All(&Shares::Equal)).trees_per_root, 1);
    let single = instance(&two_boxes(), Roots::One(Rank::new(0)));
    assert_eq!((single.trees_per_root, single.demands), (2, vec![2, 0, 0, 0, 0, 0, 0]));
}

/// A common factor of bandwidths and cut divides k, and what no route can cross is left out of it.
#[test]
fn dead_ends_do_not_make_more_trees() {
    let plain = both_ways("a b c", &[("a", "b", 60), ("b", "c", 60)]);
    let dead = both_ways("a b c s0 s1", &[("a", "b", 60), ("b", "c", 60), ("c", "s0", 7), ("s0", "s1", 5)]);
    assert_eq!(instance(&plain, Roots::All(&Shares::Equal)).trees_per_root, 1);
    let pruned = instance(&dead, Roots::All(&Shares::Equal));
    assert_eq!(pruned.trees_per_root, 1);
    assert_eq!(pruned.capacities, [2, 2, 2, 2, 0, 0, 0, 0]);
}

/// A chain of switches falls off link by link, in whatever order its switches are looked at; a loop of switches with
/// two ways in stays.
#[test]
fn dead_ends_behind_dead_ends_are_left_out() {
    let links = [
        ("a", "b", 60),
        ("a", "s0", 7),
        ("s0", "s1", 7),
        ("s1", "s2", 7),
        ("s2", "s3", 7),
        ("s0", "s4", 5),
        ("b", "s5", 60),
        ("s5", "s6", 60),
        ("s6", "a", 60),
    ];
    let pruned = instance(&both_ways("a b s0 s1 s2 s3 s4 s5 s6", &links), Roots::All(&Shares::Equal));
    assert_eq!(pruned.capacities.iter().filter(|&&capacity| capacity == 0).count(), 10);
    assert_eq!(pruned.trees_per_root, 2);
}

#[test]
fn a_transposed_link_is_traced_to_the_one_it_turns_around() {
    let topology = one_way("a b c", &[("a", "b", 1), ("b", "c", 2), ("c", "a", 3), ("b", "a", 4), ("a", "c", 5)]);
    let transposed = topology.transposed();
    let behind = links_behind_transposed(&topology);
    for (link, behind) in transposed.links().iter().zip(behind) {
        let original = topology.link(behind);
        assert_eq!((link.from, link.to, link.capacity), (original.to, original.from, original.capacity));
    }
}
