//! Trees that must not be deeper than asked for.

#[path = "../../../../schedule/tests/schedule/depth_bound.rs"]
mod depth_bound;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering};

use canopy_schedule::CollectiveKind::{self, Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
use canopy_schedule::{Collective, Shares};
use canopy_synth::{
    Algorithm, LimitsError, Never, Silent, SynthesisError, SynthesisRequest, TreeLimits, bound, synthesize,
};
use canopy_topology::{
    Attributes, Capacity, DraftLink, DraftNode, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits, generate,
};
use proptest::prelude::*;

use crate::forest::limits::networks;
use crate::forest::validator::{plan, plan_with, plan_within};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn no_deeper(hops: u32) -> TreeLimits {
    TreeLimits { max_depth: NonZeroU32::new(hops), ..TreeLimits::NONE }
}

/// Depth reached and what part of the bound.
#[track_caller]
fn flat(expression: &str, hops: u32) -> (usize, f64) {
    let network = topology(expression);
    let judged = plan_within(&network, Allgather, no_deeper(hops));
    assert!(judged.depth_max() <= hops as usize, "{expression}: {} hops", judged.depth_max());
    let collective = Collective::new(Allgather, None, network.rank_count()).unwrap();
    let limit = bound(&network, collective, &Shares::Equal, &Never).unwrap().upper;
    assert!(judged.algbw <= limit);
    (judged.depth_max(), judged.algbw.ratio_to(&limit).unwrap().to_f64())
}

/// Where flat trees reach the optimum as well, they do: a torus, a full fat tree, and machines that need no limit.
#[test]
fn flat_trees_that_cost_nothing() {
    for (expression, hops) in [
        ("torus:4x4", 4),
        ("fat-tree:k=4,oversub=1", 1),
        ("dgx-a100:boxes=2", 2),
        ("dgx-h100:boxes=8", 2),
        ("ring:8", 4),
        ("leaf-spine:leaves=4,hosts=4,spines=2,oversub=2", 2),
        ("leaf-spine:leaves=16,hosts=8,spines=4,oversub=2", 2),
        ("fat-tree:k=8,oversub=2", 4),
    ] {
        assert_eq!(flat(expression, hops), (hops as usize, 1.0), "{expression}");
    }
}

/// A ring of four, where only two ranks have anything to tell, one of them three times as much: they have as many trees.
#[test]
fn shares_of_different_sizes_are_kept() {
    for kind in [Allgather, ReduceScatter, Allreduce] {
        let judged = plan_with(&topology("mesh:1x6"), kind, Shares::Weighted(vec![3, 0, 1, 0, 0, 0]), no_deeper(5));
        assert!(judged.depth_max() <= 10 && !judged.algbw.is_zero(), "{kind}");
        let ring = plan_with(&topology("ring:4"), kind, Shares::Weighted(vec![3, 0, 1, 0]), no_deeper(2));
        assert!(ring.depth_max() <= if kind == Allreduce { 4 } else { 2 }, "{kind}");
    }
}

/// Six ranks, each link of each direction with a rate of 44 bits: the two phases need so many trees that nothing counts
/// the chunks which suit both. They are planned in fewer, and lose next to nothing.
#[test]
fn phases_whose_chunks_cannot_be_counted_together_are_planned() {
    let mut chance = 1_u64;
    let mut uncounted = 0;
    for _ in 0..3 {
        let mut draft = TopologyDraft::default();
        for rank in 0..6 {
            let (id, kind, attributes) = (format!("r{rank}"), NodeKind::Compute, Attributes::default());
            draft.nodes.push(DraftNode { id, kind, rank: Some(rank), attributes });
        }
        for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let capacity = Capacity::from_bytes_per_sec((1 << 43) + (chance >> 21)).unwrap();
            let (from, to) = (format!("r{from}"), format!("r{to}"));
            draft.links.push(DraftLink { from, to, capacity, latency: Latency::from_nanos(0), count: 1 });
        }
        let network = draft.build(&TopologyLimits::STANDARD).unwrap();
        let rate = |kind| {
            let collective = Collective::new(kind, None, 6).unwrap();
            bound(&network, collective, &Shares::Equal, &Never).unwrap().upper.gigabytes_per_sec()
        };
        let limit = 1.0 / (1.0 / rate(Allgather) + 1.0 / rate(ReduceScatter));
        let judged = plan_within(&network, Allreduce, no_deeper(5));
        let reached = judged.algbw.gigabytes_per_sec() / limit;
        assert!((reached - 1.0).abs() < 1e-5, "{reached}");
        uncounted += u32::from(judged.chunks_per_share() == 1 << 20);
    }
    assert!(uncounted > 0, "all of them could be counted");
}

/// What no theorem promises: two boxes of MI250 have a third of the depth for a fortieth of the rate, and lose little more with a
/// quarter; a box with half a NIC, or without one, shares the others. A single hop over one NIC per pair is slow, and still a plan.
#[test]
fn depth_is_traded_against_rate() {
    for (expression, hops, least) in [
        ("mi250:boxes=2", 7, 0.96),
        ("mi250:boxes=2", 5, 0.9),
        ("mi250:boxes=8,nodes-down=b1g3", 7, 0.99),
        ("dgx-a100:boxes=16,degrade=b0g3-ib*1/2", 2, 0.95),
        ("dgx-a100:boxes=16,down=b0g3-ib", 2, 0.7),
        ("rail:boxes=4", 2, 0.95),
        ("random-regular:n=32,d=4,seed=1", 5, 0.9),
        ("dgx-a100:boxes=2", 1, 0.1),
    ] {
        let (depth, optimality) = flat(expression, hops);
        assert!(optimality >= least, "{expression}: {optimality} at {depth} hops");
    }
}

#[test]
fn a_limit_that_the_best_trees_keep_changes_nothing() {
    let network = topology("mi250:boxes=2,gpus=8");
    let best = plan(&network, Allgather);
    let depth = u32::try_from(best.depth_max()).unwrap();
    assert_eq!(plan_within(&network, Allgather, no_deeper(depth)).forest, best.forest);
    assert_ne!(plan_within(&network, Allgather, no_deeper(depth - 1)).forest, best.forest);
}

/// Limits hold together, each phase of an allreduce for itself, and numbers of trees larger than what differs among them.
#[test]
fn depth_and_number_of_trees_are_limited_together() {
    let network = topology("mi250:boxes=2,gpus=8");
    for (trees, kind) in [(1, Allgather), (3, ReduceScatter), (29, Allgather), (5, Allreduce), (1000, Broadcast)] {
        let limits = TreeLimits { trees_per_root: NonZeroU64::new(trees), ..no_deeper(3) };
        let judged = plan_within(&network, kind, limits);
        assert_eq!(judged.chunks_per_share(), trees, "{kind}");
        assert!(judged.depth_max() <= 3, "{kind}");
    }
    let uneven = topology("random-euler:n=6,switches=2,seed=3");
    for kind in [Allreduce, Reduce, ReduceScatter] {
        for most in [1, 3, 6] {
            let limits = TreeLimits { max_chunks: NonZeroU64::new(most), ..no_deeper(2) };
            let judged = plan_within(&uneven, kind, limits);
            assert!(judged.chunks_per_share() <= most && judged.depth_max() <= 2, "{kind}, at most {most}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Every depth that distances allow has a plan, and no other.
    #[test]
    fn every_depth_that_distances_allow_has_a_plan(
        network in networks(),
        hops in 1..4_u32,
        kind in prop::sample::select(vec![Allgather, ReduceScatter, Allreduce, Broadcast, Reduce]),
    ) {
        let root = kind.has_root().then(|| canopy_topology::Rank::new(0));
        let collective = Collective::new(kind, root, network.rank_count()).unwrap();
        let least = depth_bound::depth_bound(&network, collective, &Shares::Equal).unwrap();
        if least <= hops {
            let judged = plan_within(&network, kind, no_deeper(hops));
            prop_assert!(judged.depth_max() <= hops as usize);
        } else {
            let request = SynthesisRequest { limits: no_deeper(hops), ..SynthesisRequest::new(collective, Algorithm::Forest) };
            match synthesize(&network, &request, &Never, &Silent) {
                Err(SynthesisError::TooShallow { max_depth, least: found, .. }) => {
                    prop_assert_eq!((max_depth, found), (hops, least));
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        }
    }
}

#[track_caller]
fn refusal(kind: CollectiveKind, algorithm: Algorithm, hops: u32) -> SynthesisError {
    let network = topology("ring:8");
    let collective = Collective::new(kind, None, 8).unwrap();
    let request = SynthesisRequest { limits: no_deeper(hops), ..SynthesisRequest::new(collective, algorithm) };
    synthesize(&network, &request, &Never, &Silent).unwrap_err()
}

#[test]
fn depths_that_no_plan_keeps_are_refused() {
    let error = refusal(Allgather, Algorithm::Auto, 3);
    assert_eq!(error, SynthesisError::TooShallow { max_depth: 3, least: 4, from_rank: 0, to_rank: 4 });
    assert_eq!(
        error.to_string(),
        "`max_depth` is 3, but the path from rank 0 to rank 4 takes at least 4 hops between ranks; allow at least 4"
    );
    let (algorithm, collective) = (Algorithm::Ring, Broadcast);
    let expected = LimitsError::NotApplicable { algorithm: algorithm.name(), collective, limit: "max_depth" };
    assert_eq!(refusal(collective, algorithm, 7), SynthesisError::Limits(expected));
}

/// Eight ranks whose trees cross a link on the way to each rank: 64 times as many must fit 64 bits.
#[test]
fn loads_beyond_64_bits_are_refused() {
    let network = topology("dgx-a100:boxes=2,gpus=4");
    let made = |trees| {
        let collective = Collective::new(Allgather, None, 8).unwrap();
        let limits = TreeLimits { trees_per_root: NonZeroU64::new(trees), ..no_deeper(1) };
        synthesize(
            &network,
            &SynthesisRequest { limits, ..SynthesisRequest::new(collective, Algorithm::Forest) },
            &Never,
            &Silent,
        )
    };
    assert!(made(1 << 57).is_ok());
    let expected = SynthesisError::TooManyTrees { trees_per_rank: 1 << 58, rank_count: 8 };
    assert_eq!(made(1 << 58), Err(expected));
}

#[test]
fn flat_trees_heed_a_request_to_stop() {
    let network = topology("mi250:boxes=2,gpus=8");
    let collective = Collective::new(Allgather, None, network.rank_count()).unwrap();
    let request = SynthesisRequest { limits: no_deeper(2), ..SynthesisRequest::new(collective, Algorithm::Forest) };
    let mut patience = 0;
    loop {
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= patience;
        match synthesize(&network, &request, &stop, &Silent) {
            Err(error) => assert_eq!(error, SynthesisError::Stopped),
            Ok(_) => break,
        }
        patience = patience * 2 + 1;
    }
    assert!(patience > 1000, "asked {patience} times at most");
}
