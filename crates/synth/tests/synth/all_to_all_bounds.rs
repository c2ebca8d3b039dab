//! Bounds on all-to-all: by hand on regular networks, proved by their own certificates on random ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use canopy_schedule::{Bound, Certificate, Collective, CollectiveKind, Shares, certified_bound};
use canopy_synth::{BoundError, Never, bound, quick_bound};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

/// The bound, which its certificate proves.
#[track_caller]
fn proved(topology: &Topology) -> Bound {
    let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
    let bound = bound(topology, collective, &Shares::Equal, &Never).unwrap();
    let certified = certified_bound(topology, collective, &Shares::Equal, &bound.certificate);
    assert_eq!(certified, Ok(bound.upper.clone()));
    assert!(bound.lower <= bound.upper);
    bound
}

#[track_caller]
fn check(expression: &str, gigabytes_per_sec: f64) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let found = proved(&topology).upper.gigabytes_per_sec();
    assert!((found - gigabytes_per_sec).abs() < 1e-9, "{expression}: {found}");
}

/// `N·L·c / Σ dist`, which shortest paths reach where they can use all links evenly.
#[test]
fn regular_networks_are_bounded_by_total_distance() {
    // 16 links; from each of 8 ranks distances 1, 1, 2, 2, 3, 3, 4.
    check("ring:8,bw=1GB/s", 1.0);
    // 7 links between one rank and the others: a buffer of 8 blocks, of which 7 leave.
    check("complete:8,bw=1GB/s", 8.0);
    // 4 links each; distances 1 × 4, 2 × 4: 9 · 36 / (9 · 12).
    check("torus:3x3,bw=1GB/s", 3.0);
    // 4 links each; 4·1 + 6·2 + 4·3 + 1·4 = 32.
    check("hypercube:4,bw=1GB/s", 2.0);
}

/// Where boxes are joined by little, the cut between them binds: 16·200 / (8·8).
#[test]
fn boxes_are_bounded_by_the_cut_between_them() {
    check("dgx-a100:boxes=2", 50.0);
    // Of four boxes the narrowest cut has two on each side: 32·400 / (16·16); one box gives 32·200 / (8·24).
    check("dgx-a100:boxes=4", 100.0 / 3.0);
}

/// Capacities without a small common multiple are rounded, and the certificate is still exact.
#[test]
fn odd_capacities_are_rounded_safely() {
    let mut draft = TopologyDraft::default();
    let capacities = [u64::MAX, u64::MAX - 1, 1_000_000_007, 999_999_937, 3, (1 << 61) - 1];
    (0..6).for_each(|rank| draft.add_compute(format!("r{rank}")));
    for (rank, capacity) in (0..).zip(capacities) {
        let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_both(&format!("r{rank}"), &format!("r{}", (rank + 1) % 6), capacity, Latency::default());
    }
    let bound = proved(&draft.build(&TopologyLimits::STANDARD).unwrap());
    assert!(matches!(&bound.certificate, Certificate::LpDual { lengths } if lengths.len() == 12));
}

#[test]
fn ranks_apart_are_named() {
    let mut draft = TopologyDraft::default();
    ["a", "b", "c"].into_iter().for_each(|id| draft.add_compute(id));
    let capacity = Capacity::from_bytes_per_sec(1).unwrap();
    draft.add_both("a", "b", capacity, Latency::default());
    draft.add_link("c", "a", capacity, Latency::default());
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(CollectiveKind::AllToAll, None, 3).unwrap();
    let (from, to) = ("a".to_owned(), "c".to_owned());
    let expected = BoundError::Disconnected { from, from_rank: 0, to, to_rank: 2 };
    assert_eq!(bound(&topology, collective, &Shares::Equal, &Never), Err(expected.clone()));
    assert_eq!(quick_bound(&topology, &Shares::Equal, &Never), Err(expected));
}

/// Quick bounds are proved, too, and never say less than the best; where links are alike or one cut decides, they say as much,
/// and on large networks with few kinds of links.
#[test]
fn quick_bounds_are_proved_and_mostly_as_good() {
    let check = |expression: &str, is_best: bool| {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let quick = quick_bound(&topology, &Shares::Equal, &Never).unwrap();
        let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
        let certified = certified_bound(&topology, collective, &Shares::Equal, &quick.certificate);
        assert_eq!(certified, Ok(quick.upper.clone()), "{expression}");
        let best = proved(&topology).upper;
        assert!(quick.upper >= best && (quick.upper == best) == is_best, "{expression}");
    };
    for expression in ["torus:4x4x4", "hypercube:4", "fat-tree:k=4", "dgx-a100:boxes=3", "torus:4x9x16"] {
        check(expression, true);
    }
    for expression in ["torus:3x4x5", "genkautz:n=30,d=3", "torus:4x4,faults=links:3@1/2+seed:1"] {
        check(expression, false);
    }
    let topology = generate("torus:3x4x5", &TopologyLimits::STANDARD).unwrap();
    assert_eq!(quick_bound(&topology, &Shares::Equal, &|| true), Err(BoundError::Stopped));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Rings with random chords and capacities: proved, and no better than what one rank can send.
    #[test]
    fn bounds_are_proved(ranks in 3..9_u32, stride in 1..4_u32, capacities in prop::collection::vec(1..1000_u64, 5)) {
        let mut draft = TopologyDraft::default();
        (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank}")));
        for (position, (rank, step)) in (0..ranks).flat_map(|rank| [(rank, 1), (rank, stride)]).enumerate() {
            let capacity = Capacity::from_bytes_per_sec(capacities[position % 5]).unwrap();
            let to = (rank + step) % ranks;
            if to != rank {
                draft.add_link(format!("r{rank}"), format!("r{to}"), capacity, Latency::default());
            }
        }
        let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
        let upper = proved(&topology).upper;
        let mut leaving = vec![0_u64; ranks as usize];
        topology.links().iter().for_each(|link| leaving[link.from.index()] += link.capacity.bytes_per_sec());
        for out in leaving {
            prop_assert!(upper <= Rate::new(out * u64::from(ranks), ranks - 1).unwrap());
        }
    }
}
