//! Random networks: the rate of every forest equals the bound of the best of all cuts, found by trying each.

use canopy_schedule::CollectiveKind::{self, Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
use canopy_schedule::{Shares, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::Topology;
use proptest::prelude::*;

use crate::forest::families::{
    balanced_switches, best_cut, best_cut_of, boxes, degraded, eulerian, unbalanced, with_capable_switches,
    without_switches,
};
use crate::forest::validator::{plan, plan_shares};

/// Whether more leaves some switch than enters it, in the direction of the data. Dead ends do not count.
pub(crate) fn some_switch_multiplies(topology: &Topology, kind: CollectiveKind) -> bool {
    let switches = topology.rank_count() as usize..topology.nodes().len();
    switches.into_iter().any(|switch| {
        let sum = |is_out: bool| -> u64 {
            let ends = |link: &&canopy_topology::Link| if is_out { link.from } else { link.to }.index() == switch;
            topology.links().iter().filter(ends).map(|link| link.capacity.bytes_per_sec()).sum()
        };
        if matches!(kind, Allgather | Broadcast) { sum(true) > sum(false) } else { sum(false) > sum(true) }
    })
}

/// Every network with a path between all ranks has a plan that reaches the bound: that of the best cut where no switch would have
/// to copy or to add up, else no more.
fn check_planned(topology: &Topology) -> Result<(), TestCaseError> {
    for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
        let collective = canopy_schedule::Collective::new(kind, None, topology.rank_count()).unwrap();
        let bound = bound(topology, collective, &Shares::Equal, &Never).unwrap();
        let (reached, limit) = (plan(topology, kind).algbw, best_cut(topology, kind, 0));
        prop_assert_eq!(&reached, &bound.upper, "{}: {:?}", kind, bound);
        let is_balanced = !some_switch_multiplies(topology, kind);
        prop_assert!(reached == limit || !is_balanced && reached < limit, "{}", kind);
    }
    plan(topology, Allreduce);
    Ok(())
}

/// Each collective with a bound of its own reaches it.
fn check_optimal(topology: &Topology) -> Result<(), TestCaseError> {
    for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
        prop_assert_eq!(plan(topology, kind).algbw, best_cut(topology, kind, 0), "{}", kind);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn eulerian_networks_are_planned_optimally(topology in eulerian()) {
        check_optimal(&topology)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn boxes_are_planned_optimally(topology in boxes()) {
        check_optimal(&topology)?;
    }

    #[test]
    fn any_network_without_switches_is_planned_optimally(topology in without_switches()) {
        check_optimal(&topology)?;
    }

    /// Shares of different sizes, some of size 0, are spread as fast as any cut allows.
    #[test]
    fn weighted_shares_are_planned_optimally(
        topology in prop_oneof![eulerian(), boxes(), balanced_switches()],
        weights in proptest::collection::vec(prop_oneof![Just(0), Just(1), 1..20_u64, 1..1_000_000_u64], 12),
        source in 0..12_usize,
    ) {
        let mut weights = weights[..topology.rank_count() as usize].to_vec();
        let source = source % weights.len();
        weights[source] += 1;
        let shares = Shares::Weighted(weights);
        for kind in [Allgather, ReduceScatter] {
            let planned = plan_shares(&topology, kind, shares.clone());
            prop_assert_eq!(planned.algbw, best_cut_of(&topology, kind, 0, &shares), "{}", kind);
        }
    }

    #[test]
    fn unbalanced_switches_are_planned_as_well_as_the_bound_says(topology in unbalanced()) {
        check_planned(&topology)?;
    }

    #[test]
    fn links_slower_one_way_are_planned_as_well_as_the_bound_says(topology in degraded()) {
        check_planned(&topology)?;
    }

    #[test]
    fn balanced_switches_suffice(topology in balanced_switches()) {
        check_optimal(&topology)?;
    }

    /// Both phases run at their own best rate, so together no slower than one after the other.
    #[test]
    fn allreduce_is_as_fast_as_its_phases(topology in balanced_switches()) {
        let time = |kind| 1.0 / best_cut(&topology, kind, 0).gigabytes_per_sec();
        let together = 1.0 / plan(&topology, Allreduce).algbw.gigabytes_per_sec();
        prop_assert!(together <= (time(Allgather) + time(ReduceScatter)) * (1.0 + 1e-12));
    }

    /// However much switches save, no cut lets more through: what it counts once for each chunk must pass it.
    #[test]
    fn no_saving_of_switches_beats_a_cut(topology in prop_oneof![boxes(), eulerian(), unbalanced()]) {
        let able = with_capable_switches(&topology);
        prop_assume!(able.has_capable_switch());
        for kind in [Allgather, ReduceScatter, Broadcast, Reduce, Allreduce] {
            let collective = canopy_schedule::Collective::new(kind, None, able.rank_count()).unwrap();
            let request = SynthesisRequest::new(collective, Algorithm::Auto);
            let schedule = synthesize(&able, &request, &Never, &Silent).unwrap();
            let verdict = check(&able, &compile(&able, &schedule).unwrap()).unwrap();
            let saved = verdict.in_network.unwrap();
            let limit = bound(&able, collective, &Shares::Equal, &Never).unwrap().upper;
            prop_assert!(verdict.algbw <= saved.algbw && saved.algbw <= limit, "{}: {} of {}", kind, saved.algbw, limit);
            prop_assert!(saved.traffic <= saved.traffic_without, "{}", kind);
        }
    }

    /// Whatever the directions, the bound is not exceeded, and what goes both ways is made use of.
    #[test]
    fn one_way_networks_are_planned_within_their_bounds(topology in prop_oneof![eulerian(), balanced_switches()]) {
        let collective = canopy_schedule::Collective::new(Allreduce, None, topology.rank_count()).unwrap();
        let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
        let algbw = plan(&topology, Allreduce).algbw;
        prop_assert!(algbw >= bound.lower && algbw <= bound.upper, "{algbw} is not between {} and {}", bound.lower, bound.upper);
    }

    #[test]
    fn equal_requests_give_equal_schedules(topology in eulerian()) {
        let collective = canopy_schedule::Collective::new(Allgather, None, topology.rank_count()).unwrap();
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let once = synthesize(&topology, &request, &Never, &Silent);
        prop_assert_eq!(once, synthesize(&topology, &request, &Never, &Silent));
    }
}
