//! Textbook schedules: accepted, in as many steps and at the rate that the textbook gives them.

use std::collections::BTreeSet;

use canopy_baselines::{SWING, bine, local_ring};
use canopy_schedule::CollectiveKind::{
    self, AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use canopy_schedule::{Collective, Schedule, Shape, Shares};
use canopy_synth::{
    Algorithm, Composition, Never, Silent, SteppedError, Stop, SynthesisRequest, binomial, bruck, double_tree,
    pairwise, recursive_doubling, synthesize, with_shares,
};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits};

use crate::named::judge::{collective, judge, plan, plan_shares, topology};

type Builder = fn(&Topology, Collective, &dyn Stop) -> Result<Schedule, SteppedError>;

/// Ranks around one switch, with links of 1 byte per second.
fn star(ranks: u32) -> Topology {
    let mut draft = TopologyDraft::default();
    draft.add_switch("s");
    for rank in 0..ranks {
        draft.add_compute(format!("r{rank:02}"));
        let capacity = Capacity::from_bytes_per_sec(1).unwrap();
        draft.add_both(&format!("r{rank:02}"), "s", capacity, Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Accepted; the number of steps and the rate as a multiple of a link's.
#[track_caller]
fn built(topology: &Topology, builder: Builder, kind: CollectiveKind, root: u32) -> (u32, Rate) {
    let schedule = builder(topology, collective(topology, kind, root), &Never).unwrap();
    let Shape::Steps(steps) = &schedule.shape else { panic!("steps expected") };
    let step_count = steps.sends.last().unwrap().step + 1;
    assert!(steps.sends.is_sorted_by_key(|send| send.step));
    (step_count, judge(topology, schedule).algbw)
}

/// On a star of N ranks: so many steps, and a rate of `numerator / denominator` links.
#[track_caller]
fn check(ranks: u32, builder: Builder, kind: CollectiveKind, steps: u32, (numerator, denominator): (u32, u32)) {
    let rate = Rate::new(numerator, denominator).unwrap();
    for root in 0..if kind.has_root() { ranks } else { 1 } {
        assert_eq!(built(&star(ranks), builder, kind, root), (steps, rate.clone()), "{kind} on {ranks}, root {root}");
    }
}

/// N−1 shares over each port: as fast as a star allows, in log₂ N steps.
#[test]
fn recursive_doubling_is_optimal_on_a_star() {
    for (ranks, steps) in [(2, 1), (4, 2), (8, 3), (16, 4)] {
        check(ranks, recursive_doubling, Allgather, steps, (ranks, ranks - 1));
        check(ranks, recursive_doubling, ReduceScatter, steps, (ranks, ranks - 1));
        check(ranks, recursive_doubling, Allreduce, 2 * steps, (ranks, 2 * (ranks - 1)));
    }
}

/// Ranks beyond a power of two cost a step before and one after; rank 0, which stands for two, is the busiest. Of 6 ranks
/// it takes 1 share, sends 2, then 4 and then 5 to gather; it takes 6, then 4 and then 2 and sends 1 to add; the one after the
/// other for allreduce, with 6 handed on at the end.
#[test]
fn recursive_doubling_folds_what_is_over_a_power_of_two() {
    check(6, recursive_doubling, Allgather, 4, (6, 12));
    check(6, recursive_doubling, ReduceScatter, 4, (6, 13));
    check(6, recursive_doubling, Allreduce, 6, (6, 24));
    check(3, recursive_doubling, Allgather, 3, (3, 5));
    check(3, recursive_doubling, ReduceScatter, 3, (3, 6));
    check(3, recursive_doubling, Allreduce, 4, (3, 10));
    for ranks in [5, 7, 9, 13] {
        for kind in [Allgather, ReduceScatter, Allreduce] {
            built(&star(ranks), recursive_doubling, kind, 0);
        }
    }
}

/// Any N in ⌈log₂ N⌉ steps. All-to-all: a block of distance o is sent popcount(o) times.
#[test]
fn bruck_takes_the_logarithm_in_steps() {
    for (ranks, steps) in [(2_u32, 1), (3, 2), (5, 3), (6, 3), (8, 3), (11, 4)] {
        check(ranks, bruck, Allgather, steps, (ranks, ranks - 1));
        let sent = (1..ranks).map(u32::count_ones).sum();
        check(ranks, bruck, AllToAll, steps, (ranks, sent));
    }
}

/// The root of a broadcast sends the message ⌈log₂ N⌉ times; that of a scatter or gather every other share once.
#[test]
fn binomial_trees_take_the_logarithm_in_steps() {
    for (ranks, steps) in [(2, 1), (3, 2), (5, 3), (8, 3)] {
        check(ranks, binomial, Broadcast, steps, (1, steps));
        check(ranks, binomial, Reduce, steps, (1, steps));
        check(ranks, binomial, Gather, steps, (ranks, ranks - 1));
        check(ranks, binomial, Scatter, steps, (ranks, ranks - 1));
    }
}

/// De Sensi 2025: as many steps as binomial trees and doubling, and as fast where distances do not count.
#[test]
fn bine_trees_take_the_logarithm_in_steps() {
    for (ranks, steps) in [(2, 1), (4, 2), (8, 3), (16, 4)] {
        check(ranks, bine, Allgather, steps, (ranks, ranks - 1));
        check(ranks, bine, ReduceScatter, steps, (ranks, ranks - 1));
        check(ranks, bine, Allreduce, 2 * steps, (ranks, 2 * (ranks - 1)));
        check(ranks, bine, Broadcast, steps, (1, steps));
        check(ranks, bine, Reduce, steps, (1, steps));
        check(ranks, bine, Gather, steps, (ranks, ranks - 1));
        check(ranks, bine, Scatter, steps, (ranks, ranks - 1));
    }
}

/// Along a ring messages go by 1, 1, 3 and 5, where doubling has 1, 2, 4 and 8: less traffic, in fewer steps from hop to hop.
#[test]
fn bine_trees_go_less_far_than_binomial_ones() {
    let hops = |builder: Builder, kind: CollectiveKind, ranks: u32| {
        let ring = topology(&format!("ring:{ranks}"));
        let schedule = builder(&ring, collective(&ring, kind, 0), &Never).unwrap();
        let Shape::Steps(steps) = &schedule.shape else { panic!("steps expected") };
        let count = steps.sends.len();
        judge(&ring, schedule);
        count
    };
    for ranks in [16, 32, 64] {
        // A share is copied to every rank once, whatever way it goes; its messages end sooner.
        assert_eq!(hops(bine, Allgather, ranks), hops(recursive_doubling, Allgather, ranks));
        let ring = topology(&format!("ring:{ranks}"));
        for (bine_kind, other, kind) in
            [(bine as Builder, recursive_doubling as Builder, Allgather), (bine, binomial, Broadcast)]
        {
            let (own, others) = (built(&ring, bine_kind, kind, 0).0, built(&ring, other, kind, 0).0);
            assert!(own <= others, "{kind} on {ranks}: {own} steps against {others}");
        }
    }
}

/// De Sensi 2024: all links of a torus are used at once, so no other exchange by numbers is as fast.
#[test]
fn swing_uses_all_dimensions_of_a_torus() {
    for (expression, levels) in [("ring:8", 3_u32), ("torus:4x4", 4), ("torus:2x8", 4), ("torus:4x4x4", 6)] {
        let torus = topology(expression);
        for kind in [Allgather, ReduceScatter, Allreduce] {
            let swing = plan_along(&torus, expression, SWING, kind);
            let Shape::Steps(steps) = &swing.shape else { panic!("steps expected") };
            let phases = if kind == Allreduce { 2 } else { 1 };
            assert!(steps.step_count() >= u64::from(phases * levels), "{kind} on {expression}");
            let rate = judge(&torus, swing).algbw;
            for (other, builder) in [("bine", bine as Builder), ("recursive-doubling", recursive_doubling)] {
                let others = built(&torus, builder, kind, 0).1;
                assert!(rate > others, "{kind} on {expression}: {rate} against {others} of {other}");
            }
        }
    }
}

/// A schedule along the dimensions that an expression names.
fn plan_along(topology: &Topology, expression: &str, algorithm: Algorithm, kind: CollectiveKind) -> Schedule {
    let construction = canopy_topology::construction(expression, &TopologyLimits::STANDARD).unwrap().unwrap();
    let composition = Some(Composition { construction, ranks: None });
    let request = SynthesisRequest::new(collective(topology, kind, 0), algorithm);
    synthesize(topology, &SynthesisRequest { composition, ..request }, &Never, &Silent).unwrap()
}

#[test]
fn pairwise_exchange_is_optimal_on_a_star() {
    for ranks in [2, 3, 4, 7, 8] {
        check(ranks, pairwise, AllToAll, ranks - 1, (ranks, ranks - 1));
        check(ranks, pairwise, ReduceScatter, ranks - 1, (ranks, ranks - 1));
        check(ranks, pairwise, Allgather, ranks - 1, (ranks, ranks - 1));
    }
}

/// Shares of 1, 2, 3 and 4: by doubling, rank 3 sends its 4 and then the 7 of its group; the root of a gather takes in all but
/// its own, in two steps; a share of nothing is not sent.
#[test]
fn shares_of_other_sizes_take_the_same_ways() {
    let weighed = |builder: Builder, kind: CollectiveKind, weights: &[u64]| {
        let network = star(u32::try_from(weights.len()).unwrap());
        let schedule = builder(&network, collective(&network, kind, 0), &Never).unwrap();
        let schedule = with_shares(schedule, Shares::Weighted(weights.to_vec())).unwrap();
        let Shape::Steps(steps) = &schedule.shape else { panic!("steps expected") };
        let sends = steps.sends.len();
        let numbers: BTreeSet<u32> = steps.sends.iter().map(|send| send.step).collect();
        assert!(numbers.into_iter().eq(0..=steps.sends.last().unwrap().step), "no step is empty");
        (sends, judge(&network, schedule).algbw)
    };
    let rate = |numerator: u32, denominator: u32| Rate::new(numerator, denominator).unwrap();
    assert_eq!(weighed(recursive_doubling, Allgather, &[1, 2, 3, 4]), (12, rate(10, 11)));
    // Halving: rank 0 sends the other half of the sums, 7, and then its partner's 2; rank 3 sends 3 and 3, and takes in 7 and 4.
    assert_eq!(weighed(recursive_doubling, ReduceScatter, &[1, 2, 3, 4]), (12, rate(10, 11)));
    assert_eq!(weighed(binomial, Gather, &[1, 2, 3, 4]), (4, rate(10, 11)));
    assert_eq!(weighed(binomial, Scatter, &[1, 2, 3, 4]), (4, rate(10, 11)));
    // First 0 and 3, and 1 and 2 exchange theirs, then all exchange 5.
    assert_eq!(weighed(bine, Allgather, &[1, 2, 3, 4]), (12, rate(10, 9)));
    assert_eq!(weighed(bruck, Allgather, &[0, 5]), (1, rate(1, 1)));
    // Rank 3 sends its own share to rank 2, and then both that there are to rank 1.
    assert_eq!(weighed(bruck, Allgather, &[1, 0, 0, 1]), (6, rate(2, 3)));
    // Rank 2 has nothing to hand to rank 0 before, and gets both shares after.
    assert_eq!(weighed(recursive_doubling, Allgather, &[1, 1, 0]), (4, rate(2, 3)));
    let network = star(4);
    for (builder, kind) in [(binomial as Builder, Broadcast), (bruck, AllToAll)] {
        let schedule = builder(&network, collective(&network, kind, 0), &Never).unwrap();
        let refused = with_shares(schedule, Shares::Weighted(vec![1, 2, 3, 4]));
        assert!(matches!(refused, Err(SteppedError::NotWeighed { .. })), "{kind}");
    }
    let schedule = binomial(&network, collective(&network, Gather, 0), &Never).unwrap();
    let huge = with_shares(schedule.clone(), Shares::Weighted(vec![u64::MAX, 1, 1, 1]));
    assert!(matches!(huge, Err(SteppedError::NotWeighed { .. })));
    let short = with_shares(schedule, Shares::Weighted(vec![1, 2, 3]));
    assert!(matches!(short, Err(SteppedError::NotWeighed { .. })));
}

/// Real machines: two routes between ranks of one box, one between boxes; and a hypercube, whose links are the partners.
#[test]
fn builders_run_on_machines() {
    let boxes = topology("dgx-a100:boxes=2");
    for kind in [Allgather, ReduceScatter, Allreduce] {
        built(&boxes, recursive_doubling, kind, 0);
    }
    for (builder, kind) in [(bruck as Builder, Allgather), (bruck, AllToAll), (pairwise, AllToAll), (binomial, Gather)]
    {
        built(&boxes, builder, kind, 3);
        built(&topology("fat-tree:k=4"), builder, kind, 3);
        built(&topology("complete:5"), builder, kind, 3);
    }
    let cube = topology("hypercube:3");
    assert_eq!(built(&cube, recursive_doubling, Allgather, 0).0, 3);
    // 1, 2 and 4 of 8 shares cross a dimension each, step by step, over links of 25 GB/s.
    assert_eq!(built(&cube, recursive_doubling, Allgather, 0).1.to_string(), "200000000000/7");
}

/// Along four ranks in a row, 0 and 1, and 2 and 3, exchange their shares; then 1 hands both to 2, and 2 to 3, in a step each, and the
/// same back: nobody is sent again what passed it.
#[test]
fn ranks_on_the_way_store_and_forward() {
    let rate = |numerator: u64, denominator: u32| Rate::new(numerator, denominator).unwrap();
    let row = topology("mesh:4,bw=1B/s");
    for (kind, steps, rate) in [(Allgather, 3, rate(4, 5)), (ReduceScatter, 3, rate(4, 5)), (Allreduce, 6, rate(4, 10))]
    {
        assert_eq!(built(&row, recursive_doubling, kind, 0), (steps, rate), "{kind}");
    }
    let builders: [(Builder, &[CollectiveKind]); 6] = [
        (recursive_doubling, &[Allgather, ReduceScatter, Allreduce]),
        (bruck, &[Allgather, AllToAll]),
        (binomial, &[Broadcast, Reduce, Gather, Scatter]),
        (double_tree, &[Broadcast, Reduce, Allreduce]),
        (local_ring, &[Allgather, ReduceScatter, Allreduce]),
        (pairwise, &[AllToAll, ReduceScatter, Allgather]),
    ];
    let powers: [(Builder, &[CollectiveKind]); 1] =
        [(bine, &[Allgather, ReduceScatter, Allreduce, Broadcast, Reduce, Gather, Scatter])];
    // With links one way, dead links, odd numbers of ranks, and ranks behind switches beside others.
    for expression in [
        "ring:5",
        "mesh:3x3",
        "torus:3x3,down=00-01",
        "genkautz:n=11,d=4",
        "kautz:d=2,n=2",
        "dfc2:3x4",
        "hypercube:4",
        "dgx-a100:boxes=2",
        "fat-tree:k=4",
        "complete:2",
    ] {
        let network = topology(expression);
        let powers = powers.iter().filter(|_| network.rank_count().is_power_of_two());
        for &(builder, kinds) in builders.iter().chain(powers) {
            for &kind in kinds {
                built(&network, builder, kind, network.rank_count() - 1);
            }
        }
    }
}

/// Both trees of seven ranks around a switch, by hand: half of the message reaches rank 6 at last over root, top and one more.
#[test]
fn two_trees_share_the_message() {
    let rate = |numerator: u64, denominator: u32| Rate::new(numerator, denominator).unwrap();
    for root in 0..8 {
        let (steps, algbw) = built(&star(8), double_tree, Broadcast, root);
        assert!(steps <= 5, "{steps} steps");
        assert!(algbw >= rate(1, 5), "{algbw}");
        assert_eq!(built(&star(8), double_tree, Reduce, root), (steps, algbw));
    }
}

/// Three boxes of two, and six without boxes, which are taken for two groups of three.
#[test]
fn rings_of_groups_send_the_least_data_far() {
    let rate = |numerator: u64, denominator: u32| Rate::new(numerator, denominator).unwrap();
    assert_eq!(built(&star(6), local_ring, Allgather, 0), (1 + 2, rate(6, 1 + 2 * 2)));
    let boxes = topology("dgx-a100:boxes=3");
    assert_eq!(built(&boxes, local_ring, Allgather, 0).0, 2 + 7);
    assert_eq!(built(&boxes, local_ring, Allreduce, 0).0, 2 * (2 + 7));
}

/// Without switches ranks pass blocks on: an exchange takes as many steps as its longest route. In a ring of five, routes of 1, 2, 2
/// and 1 links, with one block on every link that a step uses; in a cube as many as there are bits in which partners differ.
#[test]
fn exchanges_pass_ranks_where_there_are_no_switches() {
    let rate = |numerator: u64, denominator: u32| Rate::new(numerator, denominator).unwrap();
    let five = topology("ring:5,bw=1B/s");
    assert_eq!(built(&five, pairwise, AllToAll, 0), (6, rate(5, 6)));
    let cube = topology("hypercube:3,bw=1B/s");
    assert_eq!(built(&cube, pairwise, AllToAll, 0).0, 3 + 3 * 2 + 3);
    for expression in ["torus:3x3x3", "genkautz:n=11,d=4", "torus:3x3,host=75GB/s", "torus:3x3,down=00-01"] {
        built(&topology(expression), pairwise, AllToAll, 0);
    }
}

/// The names give what the library gives, weights included, and refuse what it refuses.
#[test]
fn textbook_schedules_have_names() {
    let network = star(6);
    for (algorithm, builder, kind) in [
        (Algorithm::Pairwise, pairwise as Builder, AllToAll),
        (Algorithm::Bruck, bruck, AllToAll),
        (Algorithm::RecursiveDoubling, recursive_doubling, Allreduce),
        (Algorithm::Binomial, binomial, Scatter),
    ] {
        let schedule = builder(&network, collective(&network, kind, 0), &Never).unwrap();
        assert_eq!(plan(&network, algorithm, kind, 0).schedule, schedule);
        assert_eq!(schedule.algorithm, algorithm.name());
    }
    let weights = Shares::Weighted(vec![1, 2, 3, 4, 5, 6]);
    let weighed = plan_shares(&network, Algorithm::Bruck, Allgather, 0, weights.clone()).schedule;
    let equal = bruck(&network, collective(&network, Allgather, 0), &Never).unwrap();
    assert_eq!(Ok(weighed), with_shares(equal, weights));
    let refused = |network: &Topology, algorithm, kind| {
        let request = SynthesisRequest::new(collective(network, kind, 0), algorithm);
        synthesize(network, &request, &Never, &Silent).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&network, Algorithm::Bruck, Reduce),
        "bruck does not plan reduce; it plans allgather and all-to-all, and direct and ring plan all collectives"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let refusal = |builder: Builder, topology: &Topology, kind| {
        builder(topology, collective(topology, kind, 0), &Never).unwrap_err().to_string()
    };
    let six = star(6);
    assert_eq!(
        refusal(recursive_doubling, &six, Broadcast),
        "recursive-doubling does not plan broadcast; it plans allgather, reduce-scatter and allreduce"
    );
    assert_eq!(refusal(bruck, &six, Reduce), "bruck does not plan reduce; it plans allgather and all-to-all");
    assert_eq!(
        refusal(binomial, &six, Allgather),
        "binomial does not plan allgather; it plans broadcast, reduce, gather and scatter"
    );
    assert_eq!(
        refusal(bine, &six, Scatter),
        "bine needs a power of two of ranks, and there are 6; use recursive-doubling, binomial or ring"
    );
    assert_eq!(
        refusal(pairwise, &six, Scatter),
        "pairwise does not plan scatter; it plans all-to-all, reduce-scatter and allgather"
    );
}

#[test]
fn stopping_is_noticed() {
    for (builder, kind) in [
        (recursive_doubling as Builder, Allgather),
        (bruck, AllToAll),
        (binomial, Broadcast),
        (pairwise, Allgather),
        (bine, Scatter),
    ] {
        let topology = star(8);
        assert_eq!(builder(&topology, collective(&topology, kind, 0), &|| true), Err(SteppedError::Stopped));
    }
}
