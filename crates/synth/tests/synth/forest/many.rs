//! Many small networks of all families at once: the bound is that of the best of all cuts, the plan is certified by both
//! judges, and no fallback is needed.
//!
//! `CANOPY_CASES=10000 cargo test --release -p canopy-synth --test synth forest::many` runs the full number.

use canopy_schedule::CollectiveKind::{self, Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::{Algorithm, BoundError, Never, Silent, SynthesisError, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rank, Rate, Topology};
use proptest::prelude::*;

use crate::forest::families;
use crate::forest::random::some_switch_multiplies;
use crate::forest::validator::plan_of;

/// Networks where no number is asked for.
const CASES: u32 = 1_000;

/// Number of networks.
fn cases() -> u32 {
    let given = std::env::var("CANOPY_CASES").ok();
    given.map_or(CASES, |text| text.parse().expect("CANOPY_CASES is a number"))
}

fn networks() -> impl Strategy<Value = Topology> {
    prop_oneof![
        3 => families::eulerian(),
        3 => families::boxes(),
        2 => families::without_switches(),
        2 => families::balanced_switches(),
        3 => families::unbalanced(),
        3 => families::degraded(),
        2 => families::punctured(),
        2 => families::oversubscribed(),
    ]
}

fn of(topology: &Topology, kind: CollectiveKind, root: u32) -> Collective {
    let root = kind.has_root().then(|| Rank::new(root));
    Collective::new(kind, root, topology.rank_count()).unwrap()
}

/// Where no data can go from one rank to another, neither bound nor plan is found, and both name two ranks.
fn check_refused(topology: &Topology, collective: Collective) -> Result<(), TestCaseError> {
    let (from_rank, to_rank) = match bound(topology, collective, &Shares::Equal, &Never) {
        Err(BoundError::Disconnected { from_rank, to_rank, .. }) => (from_rank, to_rank),
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    };
    let request = SynthesisRequest::new(collective, Algorithm::Auto);
    let is_refused =
        matches!(synthesize(topology, &request, &Never, &Silent), Err(SynthesisError::Disconnected { .. }));
    prop_assert!(is_refused && from_rank != to_rank);
    Ok(())
}

/// 1 / (1/a + 1/b).
fn in_sequence(first: &Rate, second: &Rate) -> Rate {
    let ((a, b), (c, d)) = (first.parts(), second.parts());
    Rate::new(&a * &c, b * c + a * d).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn many_small_networks_are_bounded_and_planned(topology in networks(), root in 0..8_u32) {
        let root = root % topology.rank_count();
        let mut rates = Vec::new();
        for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
            let collective = of(&topology, kind, root);
            let limit = families::best_cut(&topology, kind, root);
            if limit.is_zero() {
                check_refused(&topology, collective)?;
                continue;
            }
            let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
            let certified = certified_bound(&topology, collective, &Shares::Equal, &bound.certificate);
            prop_assert_eq!(certified.as_ref(), Ok(&bound.upper), "{}", kind);
            let reached = plan_of(&topology, collective).algbw;
            prop_assert_eq!(&reached, &bound.upper, "{}: {:?}", kind, bound);
            let is_balanced = !some_switch_multiplies(&topology, kind);
            prop_assert!(reached == limit || !is_balanced && reached < limit, "{}", kind);
            rates.push(reached);
        }
        let collective = of(&topology, Allreduce, root);
        if let [allgather, reduce_scatter, ..] = rates.as_slice()
            && rates.len() == 4
        {
            let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
            let reached = plan_of(&topology, collective).algbw;
            prop_assert!(reached <= bound.upper && reached >= in_sequence(allgather, reduce_scatter));
        } else {
            check_refused(&topology, collective)?;
        }
    }
}
