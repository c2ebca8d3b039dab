//! Unwinding and schedules in time, end to end.

use std::num::NonZeroU64;

use canopy_optimize::Never;
use canopy_schedule::{ChunkLayout, Collective, CollectiveKind, Schedule, Shape, Shares, Verdict, check, compile};
use canopy_topology::{Capacity, Latency, Rank, Rate, Topology, TopologyDraft, TopologyLimits, generate};

use super::unwound::{Patterns, Unwound};
use crate::algorithm::Algorithm;
use crate::algorithm::SynthesisRequest;
use crate::limits::TreeLimits;
use crate::synthesize::synthesize;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// A schedule of so many chunks per share, judged.
#[track_caller]
fn planned(topology: &Topology, kind: CollectiveKind, chunks: Option<u64>) -> (Schedule, Verdict) {
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let limits = TreeLimits { chunks: chunks.and_then(NonZeroU64::new), ..TreeLimits::NONE };
    let request = SynthesisRequest { limits, ..SynthesisRequest::new(collective, Algorithm::Tacos) };
    let schedule = synthesize(topology, &request, &Never, &crate::Silent).unwrap();
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    (schedule, verdict)
}

fn step_count(schedule: &Schedule) -> u64 {
    let Shape::Steps(steps) = &schedule.shape else { panic!("tacos makes steps") };
    steps.step_count()
}

#[test]
fn steps_are_as_few_as_the_bound_says() {
    for (expression, steps) in [
        ("mesh:3x3", 4),
        ("mesh:4x4", 8),
        ("mesh:5x5", 12),
        ("mesh:4x4,nodes-down=13+21", 13),
        ("torus:4x4", 4),
        ("torus:8x8", 16),
        ("torus:4x4x4", 11),
        ("hypercube:7", 19),
    ] {
        let (schedule, verdict) = planned(&network(expression), CollectiveKind::Allgather, Some(1));
        assert_eq!(step_count(&schedule), steps, "{expression}");
        assert_eq!(verdict.steps.map(|cost| u64::from(cost.count)), Some(steps), "{expression}");
    }
}

#[test]
fn sums_take_as_long_as_copies_of_the_network_turned_around() {
    for kind in
        [CollectiveKind::ReduceScatter, CollectiveKind::Allreduce, CollectiveKind::Reduce, CollectiveKind::Broadcast]
    {
        for (expression, allgather, broadcast) in [("torus:4x4", 4, 4), ("uniring:n=5,d=1", 4, 4), ("mesh:3x3", 4, 4)] {
            let expected = match kind {
                CollectiveKind::ReduceScatter => allgather,
                CollectiveKind::Allreduce => 2 * allgather,
                _ => broadcast,
            };
            let (schedule, _) = planned(&network(expression), kind, Some(1));
            assert_eq!(step_count(&schedule), expected, "{kind} on {expression}");
        }
    }
}

/// A port is never claimed for more than it carries, and every rank is joined to the next.
#[test]
fn unwound_links_share_the_ports_of_a_switch() {
    for expression in
        ["dgx-a100:boxes=3", "fat-tree:k=4", "leaf-spine:leaves=2,hosts=3,spines=2", "dims:ring2+fc4+switch5"]
    {
        let topology = network(expression);
        for patterns in Patterns::all(&topology) {
            let unwound = Unwound::of(&topology, &patterns, &Never).unwrap();
            let mut claimed = vec![0.0; topology.links().len()];
            for link in &unwound.links {
                let share = link.capacity as f64 / link.parts as f64;
                link.route.iter().for_each(|link| claimed[link.index()] += share);
            }
            for (link, claimed) in topology.links().iter().zip(claimed) {
                assert!(claimed <= link.capacity.bytes_per_sec() as f64 * 1.000_001, "{expression}: {patterns:?}");
            }
        }
    }
}

/// Rank 0 sends into the switch, and the others receive from it: of ranks in a circle each would be joined to the next, which most are not.
#[test]
fn switches_that_lead_one_way_are_unwound_into_links_that_join_all() {
    let mut draft = TopologyDraft::default();
    (0..4).for_each(|rank| draft.add_compute(format!("r{rank}")));
    draft.add_switch("s");
    let mut link = |from: &str, to: &str| {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(1_000_000_000).unwrap(), Latency::default());
    };
    link("r0", "s");
    for rank in ["r1", "r2", "r3"] {
        link("s", rank);
        link(rank, "r0");
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    for patterns in Patterns::all(&topology) {
        assert!(Unwound::of(&topology, &patterns, &Never).unwrap().joins_all(), "{patterns:?}");
    }
    for kind in CollectiveKind::ALL {
        planned(&topology, kind, Some(1));
    }
}

#[test]
fn switches_slow_links_and_weights_are_planned_for() {
    for expression in [
        "dgx-a100:boxes=2",
        "dgx-a100:boxes=2,degrade=b0g3-ib*1/2",
        "mi250:boxes=2",
        "fat-tree:k=4",
        "leaf-spine:leaves=2,hosts=3,spines=2",
        "dims:ring2+fc4+switch4,bw=200GB/s+100GB/s+50GB/s",
        "dragonfly:4x5",
        "uniring:n=7,d=2",
    ] {
        let topology = network(expression);
        for kind in CollectiveKind::ALL {
            planned(&topology, kind, Some(2));
        }
        planned(&topology, CollectiveKind::Broadcast, None);
        let weights = (0..u64::from(topology.rank_count())).map(|rank| rank % 3).collect();
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
        let request = SynthesisRequest {
            shares: Shares::Weighted(weights),
            size_bytes: NonZeroU64::new(1 << 20),
            ..SynthesisRequest::new(collective, Algorithm::Tacos)
        };
        let schedule = synthesize(&topology, &request, &Never, &crate::Silent).unwrap();
        check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        assert_eq!(synthesize(&topology, &request, &Never, &crate::Silent), Ok(schedule));
    }
}

#[test]
fn what_is_for_one_rank_takes_as_long_as_the_bound_says() {
    use CollectiveKind::{AllToAll, Gather, Scatter};
    // Won et al., figure 5, and the networks whose all-to-all it leaves open.
    for (expression, kind, steps) in [
        ("uniring:n=4,d=1", Scatter, 3),
        ("uniring:n=4,d=1", Gather, 3),
        ("mesh:6x6", Scatter, 18),
        ("mesh:6x6", Gather, 18),
        ("torus:8x8", Scatter, 16),
        ("torus:8x8", Gather, 16),
        ("mesh:6x6", AllToAll, 54),
        ("ring:8", AllToAll, 8),
    ] {
        let (schedule, verdict) = planned(&network(expression), kind, Some(1));
        assert_eq!(step_count(&schedule), steps, "{kind} on {expression}");
        assert_eq!(verdict.steps.map(|cost| u64::from(cost.count)), Some(steps), "{kind} on {expression}");
    }
}

#[test]
fn blocks_and_shares_of_any_sizes_are_delivered() {
    for expression in ["mesh:3x3", "dgx-a100:boxes=2", "uniring:n=5,d=2"] {
        let topology = network(expression);
        let ranks = topology.rank_count();
        for kind in [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll] {
            let root = kind.has_root().then(|| Rank::new(1));
            let collective = Collective::new(kind, root, ranks).unwrap();
            let units = if kind == CollectiveKind::AllToAll { ranks * ranks } else { ranks };
            let weights = (0..u64::from(units)).map(|unit| unit * 7 % 4).collect();
            let shares = Shares::in_proportion(collective, ranks, weights).unwrap();
            for size_bytes in [None, NonZeroU64::new(1 << 20)] {
                let request = SynthesisRequest {
                    shares: shares.clone(),
                    size_bytes,
                    ..SynthesisRequest::new(collective, Algorithm::Tacos)
                };
                let schedule = synthesize(&topology, &request, &Never, &crate::Silent).unwrap();
                check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn it_stops_when_asked() {
    let topology = network("ring:4");
    for kind in [CollectiveKind::Allgather, CollectiveKind::AllToAll] {
        let request = SynthesisRequest::new(Collective::new(kind, None, 4).unwrap(), Algorithm::Tacos);
        let stopped = synthesize(&topology, &request, &|| true, &crate::Silent);
        assert_eq!(stopped, Err(crate::SynthesisError::Stopped));
    }
}

#[test]
fn seeds_change_what_is_chosen_and_nothing_else_takes_one() {
    let topology = network("mesh:3x3");
    let request = |kind, algorithm, seed| {
        let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
        SynthesisRequest { seed, ..SynthesisRequest::new(collective, algorithm) }
    };
    let planned = |request: &SynthesisRequest| synthesize(&topology, request, &Never, &crate::Silent);
    for kind in [CollectiveKind::Allgather, CollectiveKind::AllToAll] {
        let [first, again, other] = [7, 7, 8].map(|seed| planned(&request(kind, Algorithm::Tacos, seed)).unwrap());
        assert_eq!(first, again, "{kind}");
        assert_ne!(first, other, "{kind}");
    }
    let refused = planned(&request(CollectiveKind::Allgather, Algorithm::Forest, 7)).unwrap_err();
    assert!(refused.to_string().contains("forest makes no random choices"), "{refused}");
}

/// Nothing of a pace but the word: what the checker states, in turn where links differ, against what a cut proves.
#[test]
fn rates_on_links_of_different_speeds_are_stated_whole() {
    use canopy_schedule::Pace::{Barriers, InTurn};
    let three_speeds = "dims:ring2+fc4+switch64,bw=200GB/s+100GB/s+50GB/s";
    let grid = "dims:ring16+ring16,bw=100GB/s+25GB/s";
    let (allgather, allreduce) = (CollectiveKind::Allgather, CollectiveKind::Allreduce);
    // Ranks · capacity into a part ÷ ranks outside it: eight ranks at 50 GB/s, a box at 200 GB/s, a rank at 250 GB/s.
    for (expression, kind, chunks, (numerator, denominator), permille, pace) in [
        (three_speeds, allgather, None, (512 * 400, 504_u64), 990_u64, InTurn),
        (three_speeds, allreduce, None, (512 * 200, 504), 990, InTurn),
        ("dgx-a100:boxes=8", allgather, Some(16), (64 * 200, 56), 980, InTurn),
        (grid, allgather, Some(1), (256 * 250, 255), 970, InTurn),
        ("torus:8x8", allgather, Some(1), (64 * 100, 63), 980, Barriers),
    ] {
        let (schedule, verdict) = planned(&network(expression), kind, chunks);
        let Shape::Steps(steps) = &schedule.shape else { panic!("tacos makes steps") };
        assert_eq!(steps.pace, pace, "{expression}");
        let least = Rate::new(permille * 1_000_000 * numerator, denominator).unwrap();
        assert!(verdict.algbw >= least, "{kind} on {expression}: {} for {least}", verdict.algbw);
    }
}

/// Random cycles share some edges, whose links have twice the capacity then: no step more than where all links are alike.
#[test]
fn wide_links_cost_no_step() {
    for (ranks, seeds) in [(256, 1..=4), (1024, 1..=1)] {
        for seed in seeds {
            let topology = network(&format!("random-regular:n={ranks},d=4,seed={seed}"));
            let capacities = topology.links().iter().map(|link| link.capacity.bytes_per_sec());
            assert!(capacities.clone().min() < capacities.max(), "{ranks} ranks, seed {seed}");
            let (schedule, verdict) = planned(&topology, CollectiveKind::Allgather, Some(1));
            let Shape::Steps(steps) = &schedule.shape else { panic!("tacos makes steps") };
            assert_eq!((steps.step_count(), steps.pace), (ranks / 4, canopy_schedule::Pace::Barriers), "seed {seed}");
            assert!(verdict.algbw >= Rate::new(100_000_000_000_u64, 1_u32).unwrap(), "{}", verdict.algbw);
        }
    }
}

/// Up to four times as wide as the narrowest, where there is no switch: each part is as wide as that.
#[test]
fn wide_links_become_parallel_ones() {
    for (expression, links) in [
        ("dims:ring4+ring4,bw=50GB/s+25GB/s", Some(32 * 2 + 32)),
        ("dims:ring4+ring4,bw=100GB/s+25GB/s", Some(32 * 4 + 32)),
        ("dims:ring4+ring4,bw=125GB/s+25GB/s", None),
        ("dims:ring4+ring4,bw=75GB/s+50GB/s", None),
        ("dims:ring4+switch4,bw=50GB/s+25GB/s", None),
        ("torus:4x4", None),
    ] {
        let topology = network(expression);
        let parallel = Patterns::with_parallel(&topology).split_off(Patterns::all(&topology).len());
        let unwound = parallel.first().map(|patterns| Unwound::of(&topology, patterns, &Never).unwrap());
        assert_eq!(unwound.as_ref().map(|unwound| unwound.links.len()), links, "{expression}");
        let parts = unwound.iter().flat_map(|unwound| &unwound.links).map(|link| link.capacity / link.parts);
        assert!(parts.into_iter().all(|part| part == 25_000_000_000), "{expression}");
    }
}

/// A part takes as long for a chunk as the narrowest link does, and its end is as far.
#[test]
fn parallel_links_have_the_latency_of_the_whole() {
    let topology = network("dims:ring4+ring4,bw=100GB/s+25GB/s,lat=1us");
    let patterns = Patterns::with_parallel(&topology).pop().unwrap();
    let unwound = Unwound::of(&topology, &patterns, &Never).unwrap();
    let collective = Collective::new(CollectiveKind::Allgather, None, 16).unwrap();
    let layout = ChunkLayout::new(collective, 16, 1, &Shares::Equal).unwrap();
    // Chunks of 25,000 bytes: a microsecond at 25 GB/s, in picoseconds.
    let clock = super::times::Clock::for_chunks(&unwound, layout.size(), NonZeroU64::new(16 * 25_000));
    let found = clock.network(&unwound).unwrap();
    assert!(found.links().iter().all(|link| (link.latency, link.occupancy) == (2_000_000, 1_000_000)), "{found:?}");
}

/// Where links lead both ways, sums are the copies turned around; one way they are found by themselves.
#[test]
fn ways_know_their_mirrors_and_translations() {
    // Of the switch, each with the next, both ways and one way.
    let switched = "dims:ring2+fc4+switch16,bw=200GB/s+100GB/s+50GB/s";
    for (expression, pattern, is_mirror, order) in [
        ("torus:8x8", 0, true, 64),
        ("uniring:n=64,d=1", 0, false, 64),
        (switched, 0, true, 128),
        (switched, 1, false, 128),
        ("mesh:8x9", 0, true, 1),
    ] {
        let topology = network(expression);
        let patterns = Patterns::all(&topology);
        let mut way = super::way::Way::of(&topology, &patterns[pattern], &Never).unwrap();
        assert_eq!(way.transposition.is_some(), is_mirror, "{expression}");
        // Whoever can be moved anywhere can be turned around.
        way.find_translations(&topology, &Never).unwrap();
        assert_eq!((way.transposition.is_some(), way.group.order()), (true, order), "{expression}");
    }
}
