//! The published figures of the model, and that its plans are correct.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Composition, SynthesisRequest, TreeLimits, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, construction, generate};

use super::{Sums, Tenant, queued_time_ps, queued_together_ps, ran};

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
    (ran(&topology, &request, (0, Sums::Reversed), &Never).unwrap().end, steps.step_count())
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

/// Won et al., table I: of an allreduce with a chunk of 1 MiB for each rank, 0.5 µs for each message, straight messages and a ring. Its two
/// columns stand the other way around; their quotients are those of the model to every digit.
#[test]
fn table_1_has_the_quotients_of_the_model() {
    for (boxes, [direct, ring]) in [(1_u64, [144_u64, 374]), (2, [378, 744]), (4, [1128, 748]), (8, [2647, 754])] {
        let outside = if boxes == 1 { String::new() } else { format!("ring:{boxes},dir=uni,bw=50GB/s;") };
        let expression = format!("product({outside}hamming:4,bw=100GB/s;ring:2,bw=200GB/s)");
        let time = |algorithm| {
            let (topology, request) = request(&expression, CollectiveKind::Allreduce, algorithm);
            let size = std::num::NonZeroU64::new(u64::from(topology.rank_count()) << 20).unwrap();
            queued_time_ps(&topology, &request, 500, size, &Never).unwrap()
        };
        let (found_direct, found_ring) = (time(crate::DIRECT_XY), time(crate::RING_XY));
        // What was printed is off by half of the last digit at most, of both: in halves of a hundredth.
        let within = |least: u64, most: u64| least * found_ring <= most * found_direct;
        let is_near =
            within(2 * direct - 1, 2 * ring + 1) && (2 * direct + 1) * found_ring >= (2 * ring - 1) * found_direct;
        assert!(is_near, "{boxes} boxes: {found_direct} / {found_ring}, not {direct} / {ring}");
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
    let of_seed =
        |seed| ran(&topology, &SynthesisRequest { seed, ..gather.clone() }, (0, Sums::Reversed), &Never).unwrap().end;
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

/// A tenant on all ranks takes what it takes alone; two on ranks apart what the longer one takes; the same twice, no more than
/// twice as long, and all of its bottleneck twice.
#[test]
fn tenants_share_queues() {
    use CollectiveKind::{Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
    let chunks = std::num::NonZeroU64::MIN;
    for algorithm in [crate::DIRECT_XY, crate::RING_XY] {
        for (kind, ranks) in [(Allgather, 16), (ReduceScatter, 16), (Allreduce, 16), (Broadcast, 1), (Reduce, 1)] {
            let (topology, request) = request("mesh:4x4,bw=1GB/s", kind, algorithm);
            let size_bytes = std::num::NonZeroU64::new(1000 * ranks).unwrap();
            let of = |members: std::ops::Range<u32>| Tenant {
                collective: request.collective,
                members: members.map(Rank::new).collect(),
                chunks,
                size_bytes,
            };
            let time = |tenants: &[Tenant]| {
                queued_together_ps(&topology, (request.composition.as_ref(), algorithm), tenants, 0, &Never).unwrap()
            };
            let alone = time(&[of(0..16)]);
            if kind != Reduce {
                assert_eq!(
                    alone,
                    queued_time_ps(&topology, &request, 0, size_bytes, &Never).unwrap(),
                    "{kind} {algorithm}"
                );
            }
            let (low, high) = (of(0..8), of(8..16));
            let apart = time(&[low.clone(), high.clone()]);
            assert_eq!(apart, time(&[low]).max(time(&[high])), "{kind} {algorithm}");
            let twice = time(&[of(0..16), of(0..16)]);
            assert!(alone < twice && twice <= 2 * alone, "{kind} {algorithm}: {alone} {twice}");
        }
    }
    // A chunk that is three times as large takes three times as long on the way, with one of the small size behind it.
    let (topology, request) = request("ring:3,dir=uni,bw=1GB/s", Broadcast, crate::DIRECT_XY);
    let of = |size| Tenant {
        collective: request.collective,
        members: (0..2).map(Rank::new).collect(),
        chunks,
        size_bytes: std::num::NonZeroU64::new(size).unwrap(),
    };
    let time =
        |tenants: &[Tenant]| queued_together_ps(&topology, (None, crate::DIRECT_XY), tenants, 0, &Never).unwrap();
    assert_eq!((time(&[of(3000)]), time(&[of(3000), of(1000)])), (3_000_000, 4_000_000));
}
