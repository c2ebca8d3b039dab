//! Shares of different sizes with every algorithm: right, no better than the bound, and where an algorithm is optimal,
//! just as good.

use canopy_schedule::CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, ReduceScatter, Scatter};
use canopy_schedule::{CollectiveKind, Shares, SharesError};
use canopy_synth::{Algorithm, Never, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Rate, Topology};
use proptest::prelude::*;

use crate::named::judge::{collective, plan_shares, topology};

const WEIGHED: [CollectiveKind; 5] = [Allgather, ReduceScatter, Allreduce, Gather, Scatter];

fn refusal(topology: &Topology, algorithm: Algorithm, kind: CollectiveKind, weights: &[u64]) -> SynthesisError {
    let shares = Shares::Weighted(weights.to_vec());
    let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective(topology, kind, 0), algorithm) };
    synthesize(topology, &request, &Never, &Silent).unwrap_err()
}

fn networks() -> impl Strategy<Value = Topology> {
    let expressions = [
        "ring:5",
        "mesh:2x3",
        "torus:3x3",
        "complete:4",
        "hypercube:3",
        "ring:6,dir=uni",
        "dgx-a100:boxes=2,gpus=3",
        "random-euler:n=6,switches=3,seed=5",
    ];
    prop::sample::select(expressions.to_vec()).prop_map(topology)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_algorithm_weighs_shares(
        network in networks(),
        weights in prop::collection::vec(prop_oneof![Just(0), 1..9_u64, 1..1_u64 << 40], 9),
        root in 0..9_u32,
        source in 0..9_u32,
    ) {
        let (ranks, root) = (network.rank_count(), root % network.rank_count());
        let mut weights = weights[..ranks as usize].to_vec();
        let source = if source % ranks == root { (source + 1) % ranks } else { source % ranks };
        weights[source as usize] += 1;
        for kind in WEIGHED {
            for algorithm in [Algorithm::Auto, Algorithm::Direct, Algorithm::Ring] {
                let judged = plan_shares(&network, algorithm, kind, root, Shares::Weighted(weights.clone()));
                prop_assert!(!judged.algbw.is_zero());
                if algorithm == Algorithm::Auto && kind != Allreduce {
                    prop_assert_eq!(judged.algbw, judged.bound, "{} of root {}", kind, root);
                }
            }
        }
    }

    /// Weights that are all the same are no weights.
    #[test]
    fn equal_weights_change_nothing(network in networks(), weight in 1..9_u64) {
        let equal = vec![weight; network.rank_count() as usize];
        for kind in WEIGHED {
            for algorithm in [Algorithm::Auto, Algorithm::Direct, Algorithm::Ring] {
                let weighed = plan_shares(&network, algorithm, kind, 1, Shares::Weighted(equal.clone()));
                let plain = plan_shares(&network, algorithm, kind, 1, Shares::Equal);
                prop_assert_eq!(weighed.algbw, plain.algbw, "{}, {}", kind, algorithm);
            }
        }
    }
}

/// On a ring of four with 25 GB/s links, rank 0 has half of all: its half must leave by two links.
#[test]
fn a_heavy_share_costs_what_its_links_take() {
    let judged = plan_shares(&topology("ring:4"), Algorithm::Auto, Allgather, 0, Shares::Weighted(vec![9, 3, 3, 3]));
    assert_eq!(judged.algbw, judged.bound);
    // 9 of 18 units leave rank 0 over 50 GB/s, and 15 of 18 enter each other rank over as much.
    assert_eq!(judged.bound, Rate::new(18 * 50_000_000_000_u64, 15_u64).unwrap());
}

/// Weights in bytes, of different sizes and without a common factor: exact all the same.
#[test]
fn large_weights_are_exact() {
    let network = topology("dgx-a100:boxes=2");
    let bytes: Vec<u64> = (0..16).map(|rank| 1_073_741_827 + rank * 7_919).collect();
    for kind in [Allgather, ReduceScatter, Gather, Scatter] {
        let judged = plan_shares(&network, Algorithm::Auto, kind, 3, Shares::Weighted(bytes.clone()));
        assert_eq!(judged.algbw, judged.bound, "{kind}");
    }
}

#[test]
fn weights_beyond_all_numbers_are_refused() {
    let network = topology("dgx-a100:boxes=2");
    let huge: Vec<u64> = (0..16).map(|rank| (1 << 59) - 3 * rank).collect();
    for (algorithm, kind) in [(Algorithm::Auto, Allgather), (Algorithm::Auto, Scatter), (Algorithm::Forest, Allreduce)]
    {
        let found = refusal(&network, algorithm, kind, &huge);
        assert!(matches!(found, SynthesisError::TooManyTrees { .. }), "{kind}: {found}");
    }
    let beyond = vec![u64::MAX / 8; 16];
    let too_many = |chunks_per_share| SharesError::TooManyChunks { chunks_per_share, rank_count: 16 };
    assert_eq!(refusal(&network, Algorithm::Direct, Allgather, &beyond), too_many(1).into());
    let half = vec![u64::MAX / 20; 16];
    assert_eq!(refusal(&network, Algorithm::Ring, Allgather, &half), too_many(2).into());
}

#[test]
fn weights_that_mean_nothing_are_refused() {
    let ring = topology("ring:4");
    for algorithm in [Algorithm::Auto, Algorithm::Forest, Algorithm::Flow, Algorithm::Direct, Algorithm::Ring] {
        let found = refusal(&ring, algorithm, Gather, &[1, 2]);
        assert_eq!(found, SharesError::Count { found: 2, rank_count: 4 }.into(), "{algorithm}");
        let found = refusal(&ring, algorithm, Scatter, &[0; 4]);
        assert_eq!(found, SharesError::Nothing.into(), "{algorithm}");
    }
    for kind in [Broadcast, AllToAll] {
        assert_eq!(
            refusal(&ring, Algorithm::Auto, kind, &[1, 2, 3, 4]),
            SharesError::NotApplicable { collective: kind }.into()
        );
    }
    for algorithm in [Algorithm::Auto, Algorithm::Direct, Algorithm::Ring] {
        assert_eq!(refusal(&ring, algorithm, Gather, &[4, 0, 0, 0]), SynthesisError::NothingToMove { root: 0 });
    }
}
