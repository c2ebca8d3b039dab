//! Bounds that papers and hand calculations state.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use canopy_schedule::{Bound, Certificate, Collective, CollectiveKind, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

#[track_caller]
fn bound_of(expression: &str, kind: CollectiveKind) -> Bound {
    let topology = topology(expression);
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
    assert_eq!(certified_bound(&topology, collective, &Shares::Equal, &bound.certificate), Ok(bound.upper.clone()));
    bound
}

/// The bound is tight and this fraction of bytes per second.
#[track_caller]
fn check(expression: &str, kind: CollectiveKind, expected: &str) {
    let bound = bound_of(expression, kind);
    assert_eq!(bound.upper.to_string(), expected, "{expression}");
    assert!(bound.is_tight(), "{expression}: only {} is known to be reachable", bound.lower);
}

/// Zhao 2026, table 4.1 and §5.3 of the preprint: DGX A100 346.67, MI250 354.13 and 208 GB/s for two boxes.
#[test]
fn allgather_of_the_article() {
    check("mi250:boxes=2", CollectiveKind::Allgather, "1062400000000/3");
    check("mi250:boxes=2,gpus=8", CollectiveKind::Allgather, "208000000000");
    check("dgx-a100:boxes=2", CollectiveKind::Allgather, "1040000000000/3");
    check("dgx-h100:boxes=2", CollectiveKind::Allgather, "1600000000000/3");
}

/// The same families at other sizes; 1/x* by hand, such as 3/25 for four boxes: 24 shares leave a box set by 200 GB/s.
#[test]
fn allgather_of_one_to_sixteen_boxes() {
    check("mi250:boxes=1", CollectiveKind::Allgather, "2400000000000/7");
    check("mi250:boxes=4", CollectiveKind::Allgather, "1024000000000/3");
    check("dgx-a100:boxes=4", CollectiveKind::Allgather, "800000000000/3");
    check("dgx-a100:boxes=16", CollectiveKind::Allgather, "640000000000/3");
    check("dgx-h100:boxes=1", CollectiveKind::Allgather, "3600000000000/7");
    check("dgx-h100:boxes=8", CollectiveKind::Allgather, "3200000000000/7");
}

/// HammingMesh, Hoefler et al., SC 2022: sums at the rate of a rank's four links; and an all-to-all at that of links from ranks to
/// switches of rows, one of each rank on boards of 2×2 and of every second one on boards of 4×4, which 8 of 16 and 16 of
/// 32 blocks of a rank pass: parts 1/2a of what ranks can send, for boards of a×a in a large network.
#[test]
fn hamming_meshes_sum_up_at_full_rate_and_exchange_a_part() {
    check("hamming-mesh:2x2", CollectiveKind::Allgather, "640000000000/3");
    check("hamming-mesh:2x2", CollectiveKind::Allreduce, "320000000000/3");
    check("hamming-mesh:2x2", CollectiveKind::AllToAll, "100000000000");
    check("hamming-mesh:1x2,board=4x4", CollectiveKind::AllToAll, "50000000000");
}

/// Vertex-transitive networks reach the bound of one rank's ingress, N/(N−1)·in(v), at 25 GB/s per link.
#[test]
fn allgather_of_symmetric_networks() {
    check("ring:8", CollectiveKind::Allgather, "400000000000/7");
    check("ring:8,dir=uni", CollectiveKind::Allgather, "200000000000/7");
    check("torus:4x4", CollectiveKind::Allgather, "320000000000/3");
    check("hypercube:4", CollectiveKind::Allgather, "320000000000/3");
    check("ring:8", CollectiveKind::ReduceScatter, "400000000000/7");
    check("ring:8,dir=uni", CollectiveKind::ReduceScatter, "200000000000/7");
}

/// Half the allgather rate where all boxes are alike (Zhao 2026 §4.6, measured against the linear program there).
#[test]
fn allreduce_of_the_article() {
    check("dgx-a100:boxes=2", CollectiveKind::Allreduce, "520000000000/3");
    check("dgx-h100:boxes=2", CollectiveKind::Allreduce, "800000000000/3");
    check("ring:8", CollectiveKind::Allreduce, "200000000000/7");
    check("ring:8,dir=uni", CollectiveKind::Allreduce, "100000000000/7");
    check("torus:4x4", CollectiveKind::Allreduce, "160000000000/3");
    check("mi250:boxes=2", CollectiveKind::Allreduce, "531200000000/3");
}

/// A mesh has weak corners, which stop an allgather but not an allreduce, whose roots can be anywhere: the strength of
/// the n×n mesh is 2n/(n+1) links.
#[test]
fn allreduce_of_meshes_beats_its_two_halves() {
    check("mesh:4x4", CollectiveKind::Allreduce, "40000000000");
    check("mesh:4x4", CollectiveKind::Allgather, "160000000000/3");
    check("mesh:10x10", CollectiveKind::Allreduce, "500000000000/11");
}

/// One tree per root crosses each box's boundary once: the certificate of two A100 boxes is one set per rank or box.
#[test]
fn allreduce_certificates_are_partitions() {
    let Certificate::Partition { sets } = bound_of("dgx-a100:boxes=4", CollectiveKind::Allreduce).certificate else {
        panic!("without capable switches an allreduce bound is proved by a partition");
    };
    assert_eq!(sets.len(), 4, "the four boxes");
    let cut = bound_of("mi250:boxes=2", CollectiveKind::Allgather).certificate;
    let Certificate::Cut { nodes, .. } = cut else { panic!("an allgather bound is proved by a cut") };
    assert_eq!(nodes.len(), 31, "all but one GPU pair");
}

#[test]
fn rooted_collectives_of_two_boxes() {
    check("dgx-a100:boxes=2", CollectiveKind::Broadcast, "200000000000");
    check("dgx-a100:boxes=2", CollectiveKind::Reduce, "200000000000");
    check("dgx-a100:boxes=2", CollectiveKind::Scatter, "1040000000000/3");
    check("dgx-a100:boxes=2", CollectiveKind::Gather, "1040000000000/3");
}

/// The figures in documents are these fractions in another unit.
#[test]
fn rates_print_as_fractions() {
    let rate = bound_of("mi250:boxes=2", CollectiveKind::Allgather).upper;
    assert_eq!("1062400000000/3".parse::<Rate>(), Ok(rate));
}
