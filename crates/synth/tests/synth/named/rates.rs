//! Rates that can be worked out by hand, at 25 GB/s per link where a family leaves it open.

use canopy_schedule::CollectiveKind::{
    self, AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use canopy_synth::Algorithm;

use crate::named::judge::{plan, topology};

/// The rate in bytes per second, as a fraction.
#[track_caller]
fn check(expression: &str, algorithm: Algorithm, kind: CollectiveKind, algbw: &str) {
    let judged = plan(&topology(expression), algorithm, kind, 1);
    assert_eq!(judged.algbw.to_string(), algbw, "{expression}, {kind}");
    assert_eq!(judged.schedule.algorithm, algorithm.name());
}

/// As `check`, and nothing is faster.
#[track_caller]
fn check_optimal(expression: &str, algorithm: Algorithm, kind: CollectiveKind, algbw: &str) {
    check(expression, algorithm, kind, algbw);
    let bound = plan(&topology(expression), algorithm, kind, 1).bound;
    assert_eq!(bound.to_string(), algbw, "{expression}, {kind}: not optimal");
}

/// Each share goes half one way and half the other: 7/2 of a share over each link, and N shares in that time.
#[test]
fn rings_on_a_ring_are_optimal() {
    check_optimal("ring:8", Algorithm::Ring, Allgather, "400000000000/7");
    check_optimal("ring:8", Algorithm::Ring, ReduceScatter, "400000000000/7");
    check_optimal("ring:8", Algorithm::Ring, Allreduce, "200000000000/7");
    check_optimal("ring:8", Algorithm::Ring, Broadcast, "50000000000");
    check_optimal("ring:8", Algorithm::Ring, Reduce, "50000000000");
    check_optimal("ring:8", Algorithm::Ring, Gather, "400000000000/7");
    check_optimal("ring:8", Algorithm::Ring, Scatter, "400000000000/7");
    // Blocks travel 1+2+3+4+3+2+1 links from each of 8 ranks, over 16 links: 8 blocks of the 8 per rank over each.
    check("ring:8", Algorithm::Ring, AllToAll, "25000000000");
    check_optimal("ring:5", Algorithm::Ring, Allgather, "62500000000");
    // 1+2+2+1 links from each of 5 ranks, over 10 links: 3 blocks over each.
    check("ring:5", Algorithm::Ring, AllToAll, "125000000000/3");
}

/// One-way links: one chunk, one way around; blocks travel 1 + … + 7 = 28 links over one link per rank.
#[test]
fn rings_on_a_one_way_ring_are_optimal() {
    check_optimal("ring:8,dir=uni", Algorithm::Ring, Allgather, "200000000000/7");
    check_optimal("ring:8,dir=uni", Algorithm::Ring, Allreduce, "100000000000/7");
    check_optimal("ring:8,dir=uni", Algorithm::Ring, Broadcast, "25000000000");
    check("ring:8,dir=uni", Algorithm::Ring, AllToAll, "50000000000/7");
    let one_way = plan(&topology("ring:8,dir=uni"), Algorithm::Ring, Allgather, 0).schedule;
    assert_eq!(one_way.shape.chunks_per_share(), 1);
    let both_ways = plan(&topology("ring:8"), Algorithm::Ring, Allgather, 0).schedule;
    assert_eq!(both_ways.shape.chunks_per_share(), 2);
}

/// A ring uses two of the four ports of a torus or hypercube: half the bound. That takes a cycle through all ranks.
#[test]
fn rings_use_two_ports_of_every_rank() {
    for expression in ["torus:3x3", "torus:4x4", "torus:5x5", "torus:8x8", "hypercube:4", "torus:4x3x3", "complete:5"] {
        let topology = topology(expression);
        let ports = topology.links_from(topology.ranks().next().unwrap().node()).len() as u128;
        let judged = plan(&topology, Algorithm::Ring, Allgather, 0);
        let (numerator, denominator) = judged.bound.parts();
        let share = canopy_topology::Rate::new(numerator * 2_u32, denominator * ports).unwrap();
        assert_eq!(judged.algbw, share, "{expression}");
    }
}

/// Boxes stay together: two network links per direction are all that a ring over two boxes uses, and each carries half
/// of what N−1 shares are.
#[test]
fn rings_cross_between_boxes_once() {
    check("dgx-a100:boxes=2", Algorithm::Ring, Allgather, "160000000000/3");
    check("dgx-a100:boxes=4", Algorithm::Ring, Allgather, "1600000000000/31");
    check("mi250:boxes=2", Algorithm::Ring, Allgather, "1024000000000/31");
    check_optimal("fat-tree:k=4", Algorithm::Ring, Broadcast, "25000000000");
}

/// An odd grid has no cycle: the walk goes back over ranks it has passed, and these receive nothing for a second time.
#[test]
fn rings_without_a_cycle_go_back_over_ranks() {
    for kind in CollectiveKind::ALL {
        let judged = plan(&topology("mesh:3x3"), Algorithm::Ring, kind, 4);
        assert!(!judged.algbw.is_zero(), "{kind}");
    }
    check("mesh:1x4", Algorithm::Ring, Broadcast, "25000000000");
}

/// Every pair has a link or a switch of its own, or no more than one way to go.
#[test]
fn direct_is_optimal_where_shortest_routes_do_not_meet() {
    check_optimal("complete:6", Algorithm::Direct, Allgather, "150000000000");
    check_optimal("complete:6", Algorithm::Direct, ReduceScatter, "150000000000");
    check_optimal("complete:6", Algorithm::Direct, Allreduce, "75000000000");
    check_optimal("complete:6", Algorithm::Direct, Gather, "150000000000");
    check("complete:6", Algorithm::Direct, AllToAll, "150000000000");
    check_optimal("dgx-h100:boxes=1", Algorithm::Direct, Allgather, "3600000000000/7");
    check_optimal("dgx-h100:boxes=1", Algorithm::Direct, Scatter, "3600000000000/7");
    check_optimal("fat-tree:k=4", Algorithm::Direct, Allgather, "80000000000/3");
    check_optimal("fat-tree:k=4", Algorithm::Direct, ReduceScatter, "80000000000/3");
    check_optimal("ring:5", Algorithm::Direct, Allgather, "62500000000");
    check_optimal("ring:8,dir=uni", Algorithm::Direct, Allgather, "200000000000/7");
    check_optimal("mesh:3x3", Algorithm::Direct, Allgather, "56250000000");
}

/// A star or a fat tree has one block to send to each rank over each port, two boxes 8·8 blocks over 8 ports of 25 GB/s.
#[test]
fn direct_all_to_all_on_switches_is_optimal() {
    check("dgx-h100:boxes=1", Algorithm::Direct, AllToAll, "3600000000000/7");
    check("fat-tree:k=4", Algorithm::Direct, AllToAll, "80000000000/3");
    check("dgx-a100:boxes=2", Algorithm::Direct, AllToAll, "50000000000");
}

/// Beyond 512 ranks a tree per source is chosen: of 528 ranks, each has 520 blocks for other boxes and one port.
#[test]
fn direct_all_to_all_on_many_ranks_is_optimal_on_boxes() {
    check("dgx-a100:boxes=66", Algorithm::Direct, AllToAll, "330000000000/13");
}

/// Of an edge switch's 8 · 1,016 blocks for other ones, 1,016 take each of 8 links up, fewer than the 1,023 of a host.
#[test]
fn direct_all_to_all_on_many_ranks_is_optimal_on_fat_trees() {
    check("fat-tree:k=16", Algorithm::Direct, AllToAll, "25600000000000/1023");
}

/// 7.5 links on average for each of 999 blocks over 6 links: 1,250 at least, and 1,258 over the worst.
#[test]
fn direct_all_to_all_on_a_large_torus_is_nearly_optimal() {
    check("torus:10x10x10", Algorithm::Direct, AllToAll, "12500000000000/629");
}

/// Each of 15 shares enters a rank over one of four links: ⌈15/4⌉ over the busiest if they are spread evenly.
#[test]
fn direct_spreads_over_equal_routes() {
    check("torus:4x4", Algorithm::Direct, Allgather, "100000000000");
    check("torus:4x4", Algorithm::Direct, ReduceScatter, "100000000000");
    check("hypercube:4", Algorithm::Direct, Allgather, "100000000000");
    check_optimal("torus:3x3", Algorithm::Direct, Allgather, "112500000000");
    check("torus:4x4x4", Algorithm::Direct, Allgather, "1600000000000/11");
    check_optimal("torus:3x3", Algorithm::Direct, Gather, "112500000000");
    // Eight blocks over the busiest link, as flows reach as well (1/F of a 4×4 torus in Basu 2024). On tori of odd sides
    // every link could carry as much as any other: 3 blocks of 9, and 15 of 25, where 16 are found.
    check("torus:4x4", Algorithm::Direct, AllToAll, "50000000000");
    check("ring:8", Algorithm::Direct, AllToAll, "25000000000");
    check_optimal("torus:3x3", Algorithm::Direct, AllToAll, "75000000000");
    check("torus:5x5", Algorithm::Direct, AllToAll, "39062500000");
}

/// Forest and flow where they plan the collective; else the better of the two.
#[test]
fn auto_takes_the_better_one() {
    for (expression, kind, expected) in [
        ("ring:8", Allgather, "forest"),
        ("ring:8", Gather, "flow"),
        ("ring:8", AllToAll, "flow"),
        ("torus:4x4", AllToAll, "flow"),
        ("dgx-a100:boxes=2", Scatter, "flow"),
    ] {
        let topology = topology(expression);
        let auto = plan(&topology, Algorithm::Auto, kind, 1);
        assert_eq!(auto.schedule.algorithm, expected, "{expression}, {kind}");
        for algorithm in [Algorithm::Direct, Algorithm::Ring] {
            assert!(
                plan(&topology, algorithm, kind, 1).algbw <= auto.algbw,
                "{expression}, {kind}: {algorithm} is better"
            );
        }
    }
}
