//! Plans that may lack a part of the best rate: how much they lack, and that they are right.

use std::num::NonZeroU64;

use canopy_schedule::CollectiveKind::{self, Allgather, Allreduce, Broadcast, Gather, ReduceScatter};
use canopy_schedule::{Collective, Shares};
use canopy_synth::{Algorithm, LimitsError, Never, Silent, SynthesisError, SynthesisRequest, Tolerance, TreeLimits};
use canopy_topology::{Ratio, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use crate::forest::limits::networks;
use crate::forest::validator::{Judged, plan, plan_within};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn within(numerator: u32, denominator: u32) -> TreeLimits {
    TreeLimits { tolerance: Some(Tolerance::new(numerator, denominator).unwrap()), ..TreeLimits::NONE }
}

/// What a plan reaches of the rate of another.
fn ratio(judged: &Judged, best: &Judged) -> Ratio {
    judged.algbw.ratio_to(&best.algbw).unwrap()
}

fn least((numerator, denominator): (u32, u32)) -> Ratio {
    Ratio::new(denominator - numerator, denominator).unwrap()
}

/// Plans of a collective of the given tolerance and of none; what the first reaches of the second is in range.
#[track_caller]
fn check(network: &Topology, kind: CollectiveKind, part: (u32, u32), limits: TreeLimits) -> Judged {
    let near = plan_within(network, kind, TreeLimits { tolerance: within(part.0, part.1).tolerance, ..limits });
    let best = plan_within(network, kind, limits);
    let reached = ratio(&near, &best);
    assert!(least(part) <= reached && reached <= Ratio::new(1_u8, 1_u8).unwrap(), "{reached} of {part:?}");
    near
}

/// Tori, boxes, switches whose links are not alike, and boxes that need all of their links and lack one.
#[test]
fn no_more_is_given_up_than_was_allowed() {
    for expression in [
        "torus:4x4",
        "dgx-a100:boxes=2",
        "mi250:boxes=2",
        "random-euler:n=24,switches=8,seed=1",
        "rail:boxes=9,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1",
    ] {
        let network = topology(expression);
        for part in [(1, 64), (1, 16), (1, 4)] {
            for kind in [Allgather, ReduceScatter, Broadcast] {
                check(&network, kind, part, TreeLimits::NONE);
            }
        }
    }
}

/// 11 trees per rank at the optimum; one is enough for 15/16 of it.
#[test]
fn fewer_trees_come_with_a_tolerance() {
    let network = topology("rail:boxes=16,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1");
    assert_eq!(plan(&network, Allgather).chunks_per_share(), 11);
    assert_eq!(plan_within(&network, Allgather, within(1, 16)).chunks_per_share(), 1);
}

/// Numbers of trees that are stated hold, and what is given up is a part of the rate that they allow.
#[test]
fn a_tolerance_goes_with_numbers_of_trees() {
    let network = topology("mi250:boxes=2");
    for trees in [1, 5] {
        let exactly = TreeLimits { trees_per_root: NonZeroU64::new(trees), ..TreeLimits::NONE };
        assert_eq!(check(&network, Allgather, (1, 8), exactly).chunks_per_share(), trees);
        let at_most = TreeLimits { max_chunks: NonZeroU64::new(trees), ..TreeLimits::NONE };
        assert!(check(&network, Allgather, (1, 8), at_most).chunks_per_share() <= trees);
    }
}

/// Where sums are made anywhere, an allreduce is not held up by what its two phases may lack.
#[test]
fn an_allreduce_lacks_no_more_than_its_phases_may() {
    for expression in ["dgx-a100:boxes=2", "mesh:3x3", "ring:6"] {
        let network = topology(expression);
        let near = plan_within(&network, Allreduce, within(1, 8));
        assert!(ratio(&near, &plan(&network, Allreduce)) >= least((1, 8)), "{expression}");
    }
}

#[test]
fn plans_without_trees_have_no_tolerance() {
    let network = topology("ring:4");
    let collective = Collective::new(Gather, Some(canopy_topology::Rank::new(0)), 4).unwrap();
    let request = SynthesisRequest { limits: within(1, 2), ..SynthesisRequest::new(collective, Algorithm::Auto) };
    let error = canopy_synth::synthesize(&network, &request, &Never, &Silent).unwrap_err();
    let expected =
        LimitsError::NotApplicable { algorithm: Algorithm::Flow.name(), collective: Gather, limit: "tolerance" };
    assert_eq!(error, SynthesisError::Limits(expected));
}

/// Weights that are far apart need more trees than are tried: the optimum is within every tolerance.
#[test]
fn where_nothing_is_near_the_optimum_is_planned() {
    let network = topology("ring:4");
    let shares = Shares::Weighted(vec![1, 1 << 40, 3, 5]);
    let collective = Collective::new(Allgather, None, 4).unwrap();
    let request =
        SynthesisRequest { shares, limits: within(1, 1000), ..SynthesisRequest::new(collective, Algorithm::Forest) };
    let schedule = canopy_synth::synthesize(&network, &request, &Never, &Silent).unwrap();
    let graph = canopy_schedule::compile(&network, &schedule).unwrap();
    let reached = canopy_schedule::check(&network, &graph).unwrap().algbw;
    let best = canopy_synth::bound(&network, collective, &request.shares, &Never).unwrap().upper;
    assert!(reached.ratio_to(&best).unwrap() >= least((1, 1000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn on_small_networks_no_more_is_given_up_than_was_allowed(
        network in networks(),
        (numerator, denominator) in (1..9_u32).prop_flat_map(|numerator| (Just(numerator), numerator + 1..100)),
    ) {
        let near = plan_within(&network, Allgather, within(numerator, denominator));
        let best = plan(&network, Allgather);
        let reached = ratio(&near, &best);
        prop_assert!(least((numerator, denominator)) <= reached, "{} of {}/{}", reached, numerator, denominator);
        prop_assert!(near.algbw <= best.algbw);
    }

    #[test]
    fn and_on_directed_ones(seed in 0..60_u64, denominator in 2..40_u32) {
        let network = topology(&format!("random-euler:n=7,switches=3,seed={seed}"));
        for kind in [Allgather, ReduceScatter] {
            let near = plan_within(&network, kind, within(1, denominator));
            prop_assert!(ratio(&near, &plan(&network, kind)) >= least((1, denominator)));
        }
    }
}
