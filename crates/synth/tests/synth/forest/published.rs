//! Rates and numbers of trees that papers and hand calculations state, and how flat and few the trees are.

use canopy_schedule::CollectiveKind::{Allgather, Allreduce, ReduceScatter};
use canopy_schedule::{Action, CollectiveKind};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits, generate};

use crate::forest::validator::{Judged, plan};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Rate in bytes per second and k.
#[track_caller]
fn check(expression: &str, kind: CollectiveKind, algbw: &str, chunks_per_share: u64) -> Judged {
    let judged = plan(&topology(expression), kind);
    assert_eq!(
        (judged.algbw.to_string().as_str(), judged.chunks_per_share()),
        (algbw, chunks_per_share),
        "{expression}"
    );
    judged
}

/// A network of links of these capacities in both directions; ids that start with `s` are switches.
fn both_ways(nodes: &str, links: &[(&str, &str, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    for id in nodes.split(' ') {
        if id.starts_with('s') { draft.add_switch(id) } else { draft.add_compute(id) }
    }
    for (a, b, capacity) in links {
        draft.add_both(a, b, Capacity::from_bytes_per_sec(*capacity).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Zhao 2026, table 4.1 and §5.3 of the preprint: 346.67 GB/s with k = 13; 354.13 with k = 83; 208 with k = 13.
#[test]
fn allgather_of_the_article() {
    check("dgx-a100:boxes=2", Allgather, "1040000000000/3", 13);
    check("mi250:boxes=2", Allgather, "1062400000000/3", 83);
    check("mi250:boxes=2,gpus=8", Allgather, "208000000000", 13);
}

/// 64 boxes of MI250 need no more than one tree per rank, although only eight make all capacities whole.
///
/// 1/x* by hand: for instance 3/100 per GB/s with U = 3/50 for two H100 boxes, where a GPU receives 500 GB/s.
#[test]
fn allgather_of_the_same_families() {
    check("dgx-h100:boxes=1", Allgather, "3600000000000/7", 1);
    check("dgx-h100:boxes=2", Allgather, "1600000000000/3", 2);
    check("dgx-h100:boxes=8", Allgather, "3200000000000/7", 1);
    check("dgx-a100:boxes=4", Allgather, "800000000000/3", 1);
    check("dgx-a100:boxes=16", Allgather, "640000000000/3", 1);
    check("mi250:boxes=1", Allgather, "2400000000000/7", 3);
    check("mi250:boxes=4", Allgather, "1024000000000/3", 3);
    check("mi250:boxes=64", Allgather, "16384000000000/63", 1);
    check("ring:4,bw=1GB/s", Allgather, "8000000000/3", 2);
}

/// On networks alike in both directions, reducing is the mirror image and the two phases together take twice as long.
#[test]
fn both_phases_of_a_mirror_network_are_alike() {
    check("mi250:boxes=2", ReduceScatter, "1062400000000/3", 83);
    let judged = check("mi250:boxes=2", Allreduce, "531200000000/3", 83);
    let [reduce, copy] = judged.forest.phases.as_slice() else { panic!("two phases") };
    assert_eq!((reduce.action, copy.action), (Action::Reduce, Action::Copy));
    for (up, down) in reduce.trees.iter().zip(&copy.trees) {
        assert_eq!((up.root, up.multiplicity), (down.root, down.multiplicity));
        let mirrored: Vec<_> = judged.forest.hops_of(up).iter().rev().map(|hop| (hop.to, hop.from)).collect();
        let hops: Vec<_> = judged.forest.hops_of(down).iter().map(|hop| (hop.from, hop.to)).collect();
        assert_eq!(mirrored, hops);
    }
}

/// Zhao 2026, figures 4.5 and B.1: two boxes of four, ten times as fast inside: 1/x* = 1/b, k = 1, algbw = 8b.
#[test]
fn the_running_example() {
    let mut links = Vec::new();
    for node in ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"] {
        links.extend([(node, if node.starts_with('a') { "sa" } else { "sb" }, 10), (node, "sx", 1)]);
    }
    let judged = plan(&both_ways("a0 a1 a2 a3 b0 b1 b2 b3 sa sb sx", &links), Allgather);
    assert_eq!((judged.algbw.clone(), judged.chunks_per_share()), (Rate::new(8_u32, 1_u32).unwrap(), 1));
}

/// Small networks by hand: two boxes of two (1/x* = 1, one tree each, all links full); a star of unequal links, where
/// one unit of a–c's surplus can go nowhere; a path, which takes 2/3 of the time of all shares on one link.
#[test]
fn networks_small_enough_for_paper() {
    let boxes = [
        ("a0", "sa", 2),
        ("a1", "sa", 2),
        ("b0", "sb", 2),
        ("b1", "sb", 2),
        ("a0", "sx", 1),
        ("a1", "sx", 1),
        ("b0", "sx", 1),
        ("b1", "sx", 1),
    ];
    for (nodes, links, algbw, trees) in [
        ("a0 a1 b0 b1 sa sb sx", boxes.as_slice(), (4_u32, 1_u32), 1),
        ("a b c s", &[("a", "s", 4), ("b", "s", 2), ("c", "s", 3)], (3, 1), 1),
        ("a b c", &[("a", "b", 1), ("b", "c", 1)], (3, 2), 1),
    ] {
        let judged = plan(&both_ways(nodes, links), Allgather);
        assert_eq!(
            (judged.algbw.clone(), judged.chunks_per_share()),
            (Rate::new(algbw.0, algbw.1).unwrap(), trees),
            "{nodes}"
        );
    }
}

/// What no theorem promises but every use wants: hardware that runs plans has room for some hundreds of different
/// trees, and every level of depth costs latency.
#[test]
fn trees_are_few_and_flat() {
    for (expression, batches_max, depth_max) in [
        ("dgx-a100:boxes=2", 80, 2),
        ("dgx-h100:boxes=2", 32, 2),
        ("dgx-a100:boxes=4", 32, 2),
        ("dgx-a100:boxes=16", 128, 2),
        ("mi250:boxes=2", 100, 22),
        ("mi250:boxes=2,gpus=8", 64, 6),
        ("torus:4x4", 64, 5),
        ("ring:8", 16, 4),
        ("hypercube:5", 96, 5),
        ("fat-tree:k=4,oversub=1", 16, 5),
    ] {
        let judged = plan(&topology(expression), Allgather);
        assert!(judged.batches() <= batches_max, "{expression}: {} different trees", judged.batches());
        assert!(judged.depth_max() <= depth_max, "{expression}: depth {}", judged.depth_max());
    }
}
