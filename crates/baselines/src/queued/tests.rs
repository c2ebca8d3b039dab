//! The published figures of the model, and that its plans are correct.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Composition, SynthesisRequest, TreeLimits, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, construction, generate};

use super::ran;

fn request(expression: &str, kind: CollectiveKind, algorithm: Algorithm) -> (Topology, SynthesisRequest) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let found = construction(expression, &TopologyLimits::STANDARD).unwrap();
    let composition = found.map(|construction| Composition { construction, ranks: None });
    (topology, SynthesisRequest { composition, ..SynthesisRequest::new(collective, algorithm) })
}

/// Steps of the model, and of the plan.
#[track_caller]
fn steps(expression: &str, kind: CollectiveKind, algorithm: Algorithm) -> (u64, u64) {
    let (topology, request) = request(expression, kind, algorithm);
    let schedule = synthesize(&topology, &request, &Never, &canopy_synth::Silent).unwrap();
    check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
    let Shape::Steps(steps) = &schedule.shape else { panic!("queues make steps") };
    (ran(&topology, &request, 0, &Never).unwrap().end, steps.step_count())
}

/// Won et al., figure 6 (allreduce with one chunk for each of 100 ranks) and table IV (broadcast from a corner).
#[test]
fn the_published_steps_are_those_of_the_model() {
    use CollectiveKind::{Allreduce, Broadcast};
    for (expression, kind, algorithm, expected) in [
        ("ring:100", Allreduce, crate::RING_XY, 198),
        ("ring:100", Allreduce, crate::DIRECT_XY, 2550),
        ("complete:100", Allreduce, crate::RING_XY, 198),
        ("complete:100", Allreduce, crate::DIRECT_XY, 2),
        ("mesh:10x10", Allreduce, crate::RING_XY, 394),
        ("mesh:6x6", Broadcast, crate::DIRECT_XY, 39),
    ] {
        let (model, plan) = steps(expression, kind, algorithm);
        assert_eq!(model, expected, "{algorithm} on {expression}: {plan} steps in the plan");
        // What is not sent a second time may be most of it: every rank on the way of a message has the chunk from then on.
        assert!(plan <= model, "{algorithm} on {expression}: {plan} of {model}");
    }
}

/// Won et al., table I, whose columns for the two stand the other way around: a ring of N ranks takes about 2 (N − 1) rounds of the slowest
/// link, and straight messages load it with N (N − 8) / 16 chunks in each phase. Four steps are one chunk on that link.
#[test]
fn rings_of_switches_cost_what_table_1_says() {
    let scaled = |expression: &str, algorithm| {
        let (topology, request) = request(expression, CollectiveKind::Allreduce, algorithm);
        ran(&topology, &request, 0, &Never).unwrap().end
    };
    for nodes in [2_u64, 4, 8] {
        let expression = format!("dims:switch{nodes}+fc4+ring2,bw=50GB/s+100GB/s+200GB/s,unwind=1");
        let ranks = 8 * nodes;
        let (ring, direct) = (scaled(&expression, crate::RING_XY), scaled(&expression, crate::DIRECT_XY));
        let (rounds, chunks) = (8 * (ranks - 1), 8 * ranks * (ranks - 8) / 16);
        assert!((rounds..=rounds + 8).contains(&ring), "{ring} of {rounds} on {expression}");
        assert!((chunks..=chunks + 8).contains(&direct), "{direct} of {chunks} on {expression}");
    }
}

/// Won et al., tables III and IV: paths that know nothing of each other are as good as any where one chunk is spread, or where one rank
/// has a single link; of a gather they are 1.11 times as long as the 18 steps that are possible.
#[test]
fn trees_that_know_nothing_of_each_other_cost_what_is_published() {
    use CollectiveKind::{Allreduce, Broadcast, Gather};
    let costs = |expression: &str, kind: CollectiveKind| {
        let (model, plan) = steps(expression, kind, crate::TACCL_LIKE);
        assert_eq!(model, plan, "nothing comes twice");
        model
    };
    assert_eq!(costs("mesh:4x4,nodes-down=13+21", Allreduce), 26);
    assert_eq!(costs("mesh:6x6", Broadcast), 10);
    costs("mesh:6x6", Gather);
    let (topology, gather) = request("mesh:6x6", Gather, crate::TACCL_LIKE);
    let of_seed = |seed| ran(&topology, &SynthesisRequest { seed, ..gather.clone() }, 0, &Never).unwrap().end;
    let ends: Vec<u64> = (0..8).map(of_seed).collect();
    // All below the 30 steps of messages along the grid.
    assert!(ends.iter().all(|end| (18..30).contains(end)) && ends.iter().any(|end| *end <= 20), "{ends:?}");
}

#[test]
fn plans_of_all_kinds_of_networks_are_correct() {
    for expression in [
        "mesh:3x4",
        "torus:4x4",
        "uniring:n=5,d=2",
        "dgx-a100:boxes=2",
        "fat-tree:k=4",
        "dragonfly:4x5",
        "dims:switch8+switch4,bw=300GB/s+25GB/s",
    ] {
        for kind in CollectiveKind::ALL {
            steps(expression, kind, crate::DIRECT_XY);
            steps(expression, kind, crate::TACCL_LIKE);
            if !matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll) {
                steps(expression, kind, crate::RING_XY);
            }
        }
    }
    let (topology, request) = request("mesh:3x3", CollectiveKind::AllToAll, crate::RING_XY);
    let refused = synthesize(&topology, &request, &Never, &canopy_synth::Silent).unwrap_err();
    assert!(refused.to_string().starts_with("ring-xy does not plan all-to-all; it plans allgather"), "{refused}");
}

#[test]
fn shares_and_chunks_of_any_number_are_queued() {
    for algorithm in [crate::DIRECT_XY, crate::RING_XY, crate::TACCL_LIKE] {
        let (topology, request) = request("mesh:3x3", CollectiveKind::Allgather, algorithm);
        let shares = Shares::Weighted((0..9).map(|rank| rank % 3).collect());
        let limits = TreeLimits { chunks: std::num::NonZeroU64::new(2), ..TreeLimits::NONE };
        let request = SynthesisRequest { shares, limits, ..request };
        let schedule = synthesize(&topology, &request, &Never, &canopy_synth::Silent).unwrap();
        assert_eq!(schedule.shape.chunks_per_share(), 2);
        check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        let limits = TreeLimits { max_chunks: std::num::NonZeroU64::new(2), ..TreeLimits::NONE };
        let refused = synthesize(&topology, &SynthesisRequest { limits, ..request }, &Never, &canopy_synth::Silent);
        assert!(refused.is_err());
    }
}
