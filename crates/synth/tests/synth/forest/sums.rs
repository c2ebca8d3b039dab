//! The form of an allreduce, why it has it, and where its sums are made.

use canopy_schedule::CollectiveKind::Allreduce;
use canopy_schedule::{AllreduceForm, Collective, FormChoice, FormReason, Shares, certified_bound};
use canopy_synth::{
    Algorithm, Never, RootPolicy, Silent, SumOptions, SynthesisError, SynthesisRequest, TreeLimits, bound, synthesize,
    synthesize_explained,
};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use crate::forest::allreduce::both_ways;
use crate::forest::validator::{Judged, plan_request};

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn request(topology: &Topology, shares: Shares, sums: SumOptions) -> SynthesisRequest {
    let collective = Collective::new(Allreduce, None, topology.rank_count()).unwrap();
    SynthesisRequest { shares, sums, ..SynthesisRequest::new(collective, Algorithm::Auto) }
}

/// A plan and what is said of its form.
#[track_caller]
fn planned(topology: &Topology, shares: Shares, sums: SumOptions) -> (Judged, FormChoice) {
    let request = request(topology, shares, sums);
    let explained = synthesize_explained(topology, &request, None, &Never, &Silent).unwrap();
    assert_eq!(synthesize(topology, &request, &Never, &Silent), Ok(explained.schedule));
    (plan_request(topology, &request), explained.form.unwrap())
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

const SPREAD: SumOptions = SumOptions { roots: RootPolicy::Spread, ..SumOptions::AUTO };
const TREES: SumOptions = SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO };
const TWO_PHASES: SumOptions = SumOptions { form: Some(AllreduceForm::TwoPhases), ..SumOptions::AUTO };

#[test]
fn the_faster_form_is_taken_and_the_reason_told() {
    let mesh = generated("mesh:4x4");
    let (judged, choice) = planned(&mesh, Shares::Equal, SumOptions::AUTO);
    assert_eq!(judged.algbw, rate("40000000000"));
    let two_phases = Some(rate("80000000000/3"));
    assert_eq!(choice, FormChoice { form: AllreduceForm::Trees, reason: FormReason::Faster, two_phases });
    let (_, choice) = planned(&generated("torus:4x4"), Shares::Equal, SumOptions::AUTO);
    assert_eq!((choice.form, choice.reason), (AllreduceForm::TwoPhases, FormReason::AsFast));
}

#[test]
fn the_form_that_is_asked_for_is_had() {
    let mesh = generated("mesh:4x4");
    let (judged, choice) = planned(&mesh, Shares::Equal, TWO_PHASES);
    // One after the other they would take the time of both; side by side they share links a little better.
    assert!((rate("80000000000/3")..rate("40000000000")).contains(&judged.algbw));
    assert_eq!(judged.shares, Shares::Equal);
    assert_eq!((choice.form, choice.reason), (AllreduceForm::TwoPhases, FormReason::Asked));
    for (expression, algbw) in [("torus:4x4", "160000000000/3"), ("dgx-a100:boxes=2", "520000000000/3")] {
        let (judged, choice) = planned(&generated(expression), Shares::Equal, TREES);
        assert_eq!(judged.algbw, rate(algbw), "{expression}: trees are as fast");
        assert_eq!((choice.form, choice.reason), (AllreduceForm::Trees, FormReason::Asked));
        assert_eq!(choice.two_phases, Some(rate(algbw)));
    }
    let limits = TreeLimits { max_chunks: std::num::NonZeroU64::new(2), ..TreeLimits::NONE };
    let limited = SynthesisRequest { limits, ..request(&mesh, Shares::Equal, SumOptions::AUTO) };
    let choice = synthesize_explained(&mesh, &limited, None, &Never, &Silent).unwrap().form.unwrap();
    assert_eq!((choice.form, choice.reason), (AllreduceForm::TwoPhases, FormReason::Limited));
}

#[test]
fn rings_that_lead_one_way_have_no_trees() {
    let mut draft = TopologyDraft::default();
    for id in ["a", "b", "c"] {
        draft.add_compute(id);
    }
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(6).unwrap(), Latency::from_nanos(0));
    }
    let ring = draft.build(&TopologyLimits::STANDARD).unwrap();
    let (_, choice) = planned(&ring, Shares::Equal, SumOptions::AUTO);
    assert_eq!((choice.form, choice.reason), (AllreduceForm::TwoPhases, FormReason::OneWay));
    let asked = request(&ring, Shares::Equal, TREES);
    assert_eq!(synthesize(&ring, &asked, &Never, &Silent), Err(SynthesisError::NoTrees));
}

#[test]
fn options_of_sums_are_refused_where_there_are_none() {
    let ring = generated("ring:4");
    let wrong = SynthesisRequest { algorithm: Algorithm::Ring, ..request(&ring, Shares::Equal, TREES) };
    let refused = synthesize(&ring, &wrong, &Never, &Silent).unwrap_err().to_string();
    assert_eq!(
        refused,
        "`form` applies to the trees of an allreduce, and ring builds none for allreduce; leave it out, or plan \
         allreduce with forest"
    );
}

/// At the same rate, every rank adds up an equal part.
#[test]
fn roots_are_spread_where_that_is_asked_for() {
    for expression in ["mesh:4x4", "torus:4x4,down=00-01", "dgx-a100:boxes=4,nodes-down=b0g5", "mesh:1x3"] {
        let topology = generated(expression);
        let (centre, _) = planned(&topology, Shares::Equal, SumOptions::AUTO);
        let (spread, choice) = planned(&topology, Shares::Equal, SPREAD);
        assert_eq!(centre.algbw, spread.algbw, "{expression}");
        assert_eq!((spread.shares, choice.form), (Shares::Equal, AllreduceForm::Trees), "{expression}");
        assert_ne!(centre.shares, Shares::Equal, "{expression}");
    }
}

/// Shares say where the sums are made, and cost nothing.
#[test]
fn shares_of_any_sizes_reach_the_optimum() {
    let mesh = generated("mesh:4x4");
    for weights in [vec![0; 15], vec![1; 15], (1..16).collect()] {
        let shares = Shares::Weighted([weights, vec![7]].concat());
        let collective = Collective::new(Allreduce, None, 16).unwrap();
        let Shares::Weighted(weights) = shares else { unreachable!("given above") };
        let shares = Shares::in_proportion(collective, 16, weights).unwrap();
        let (judged, _) = planned(&mesh, shares.clone(), SumOptions::AUTO);
        assert_eq!((judged.algbw, judged.shares), (rate("40000000000"), shares));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Wherever the sums are made, the plan reaches the bound.
    #[test]
    fn roots_can_be_anywhere(network in both_ways(), mut weights in proptest::collection::vec(0_u64..9, 8), form in 0..2) {
        let topology = network.topology();
        weights.truncate(topology.rank_count() as usize);
        weights[0] += 1;
        let collective = Collective::new(Allreduce, None, topology.rank_count()).unwrap();
        let shares = Shares::in_proportion(collective, topology.rank_count(), weights).unwrap();
        let sums = if form == 0 { SumOptions::AUTO } else { SumOptions { roots: RootPolicy::Spread, ..TREES } };
        let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
        let proven = certified_bound(&topology, collective, &Shares::Equal, &bound.certificate);
        prop_assert_eq!(proven.as_ref(), Ok(&bound.upper));
        let (judged, choice) = planned(&topology, shares.clone(), sums);
        prop_assert_eq!(judged.algbw, bound.upper);
        if shares != Shares::Equal || form == 1 {
            prop_assert_eq!(judged.shares, shares);
        }
        prop_assert!(form == 0 || choice.form == AllreduceForm::Trees);
    }
}
