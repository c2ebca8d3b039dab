//! Networks whose clusters are joined with each other directly: groups of routers, without any switch between them.

use canopy_schedule::CollectiveKind;
use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use crate::forest::tests::both_ways;
use crate::forest::tests::pieces::{depth_max, in_pieces, tight_clusters};

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Routers with their ranks, then groups of routers, which nothing but their links tells.
#[test]
fn groups_of_a_dragonfly_are_found() {
    for (expression, routers, groups) in [
        ("dragonfly-router:p=2,a=4,h=2", vec![2; 36], vec![8; 9]),
        ("dragonfly-router:p=3,a=6,h=1,local=40GB/s", vec![3; 42], vec![18; 7]),
        // Two links that lost most: what their groups miss must come in by others, which count for two groups each.
        ("dragonfly-router:p=2,a=4,h=2,degrade=g0r0-g1r0*1/100+g3r1-g4r1*1/100", vec![2; 36], vec![8; 9]),
    ] {
        let sizes: Vec<usize> = tight_clusters(&generated(expression)).iter().map(Vec::len).collect();
        assert_eq!(sizes, [routers, groups].concat(), "{expression}");
    }
}

/// A grid has no such groups, nor has a network that is joined all with all, nor one joined at random.
#[test]
fn networks_without_groups_stay_whole() {
    for expression in ["torus:8x8", "hypercube:6", "complete:12", "random-regular:n=64,d=4,seed=1"] {
        assert_eq!(tight_clusters(&generated(expression)), [] as [Vec<u32>; 0], "{expression}");
    }
}

/// Three switches joined with each other, behind one rank of three: a cluster without ranks has no trees of its own.
#[test]
fn switches_alone_are_no_group() {
    let links = [("r0", "r1", 1), ("r0", "r2", 1), ("r1", "r2", 1), ("r0", "s0", 4), ("s0", "s1", 2), ("s0", "s2", 2)];
    let behind = [("s1", "s2", 2), ("s0", "s3", 4)];
    let topology = both_ways("r0 r1 r2 s0 s1 s2 s3", &[links.as_slice(), &behind].concat());
    assert_eq!(tight_clusters(&topology), [] as [Vec<u32>; 0]);
    in_pieces(&topology, CollectiveKind::Allgather);
}

/// Router, group, group, router: what a message must pass, with two hops inside each group at most.
#[test]
fn trees_of_dragonflies_are_flat() {
    let (forest, _) = in_pieces(&generated("dragonfly-router:p=3,a=6,h=3"), CollectiveKind::Allgather);
    assert!(depth_max(&forest) <= 5, "{} hops", depth_max(&forest));
    assert_eq!(forest.phases[0].trees.len(), 342);
}

/// Groups of routers joined all with all, each pair of groups by one link, with any capacities.
fn dragonflies() -> impl Strategy<Value = Topology> {
    let capacities = proptest::collection::vec(prop_oneof![Just(6_u64), 1_u64..9], 300);
    (2_usize..6, 2_usize..5, 1_usize..3, capacities).prop_map(|(groups, routers, hosts, capacities)| {
        let mut draft = TopologyDraft::default();
        let mut next = capacities.into_iter();
        let mut join = |draft: &mut TopologyDraft, one: &str, other: &str, factor: u64| {
            let capacity = Capacity::from_bytes_per_sec(factor * next.next().unwrap_or(5)).unwrap();
            draft.add_both(one, other, capacity, Latency::from_nanos(0));
        };
        for group in 0..groups {
            (0..routers).for_each(|router| draft.add_switch(format!("g{group}r{router}")));
            for router in 0..routers {
                let here = format!("g{group}r{router}");
                for host in 0..hosts {
                    let host = format!("h{group}{router}{host}");
                    draft.add_compute(host.as_str());
                    join(&mut draft, &host, &here, 9);
                }
                (0..router).for_each(|other| join(&mut draft, &here, &format!("g{group}r{other}"), 3));
            }
            for other in 0..group {
                let (here, there) = (format!("g{group}r{}", other % routers), format!("g{other}r{}", group % routers));
                join(&mut draft, &here, &there, 1);
            }
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn dragonflies_in_pieces_reach_the_bound(topology in dragonflies()) {
        in_pieces(&topology, CollectiveKind::Allgather);
        in_pieces(&topology, CollectiveKind::Broadcast);
    }
}
