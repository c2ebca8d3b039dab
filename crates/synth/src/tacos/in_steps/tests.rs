//! Steps of schedules where latencies count, end to end.

use std::num::NonZeroU64;

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, check, compile};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;
use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::limits::TreeLimits;
use crate::synthesize::synthesize;

fn merit(steps: usize, end: u128, end_with_barriers: u128) -> Merit {
    Merit { steps, end, end_with_barriers }
}

#[test]
fn more_steps_must_save_more_than_a_twentieth_and_be_no_slower_with_barriers() {
    let fewer = merit(10, 1000, 1100);
    for (other, is_better) in [
        (merit(11, 949, 1100), true),
        (merit(11, 950, 1100), false),
        (merit(11, 500, 1101), false),
        (merit(10, 999, 5000), true),
        (merit(10, 1000, 1099), true),
        (merit(10, 1000, 1100), false),
        (merit(9, 1050, 1100), true),
        (merit(9, 1053, 1099), true),
        (merit(9, 1053, 1100), false),
    ] {
        assert_eq!(other.is_better_than(fewer), is_better, "{other:?}");
        assert_eq!(fewer.is_better_than(other), !is_better && other != fewer, "{other:?}");
    }
}

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Steps of a judged schedule of one chunk per share for a message of so many bytes.
#[track_caller]
fn step_count(expression: &str, kind: CollectiveKind, size_bytes: u64) -> u64 {
    let topology = network(expression);
    let Schedule { shape: Shape::Steps(steps), .. } = planned(&topology, kind, size_bytes) else {
        panic!("tacos makes steps")
    };
    steps.step_count()
}

#[track_caller]
fn planned(topology: &Topology, kind: CollectiveKind, size_bytes: u64) -> Schedule {
    let collective = Collective::new(kind, kind.has_root().then(|| Rank::new(0)), topology.rank_count()).unwrap();
    let request = SynthesisRequest {
        limits: TreeLimits { chunks: NonZeroU64::new(1), ..TreeLimits::NONE },
        size_bytes: NonZeroU64::new(size_bytes),
        ..SynthesisRequest::new(collective, Algorithm::Tacos)
    };
    let schedule = synthesize(topology, &request, &Never, &crate::Silent).unwrap();
    check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    schedule
}

/// As few as without latencies: the bound. With them alone, what is under way while links are free made 509, 126 and more.
#[test]
fn latencies_add_no_step() {
    for (expression, steps) in [("torus:32x32", 256), ("mesh:10x10", 50), ("mesh:2x50", 50), ("torus:4x4x4", 11)] {
        for size_bytes in [1 << 20, 1 << 30] {
            let with_latencies = format!("{expression},lat=500ns");
            let found = step_count(&with_latencies, CollectiveKind::Allgather, size_bytes);
            assert_eq!(found, steps, "{expression}, {size_bytes} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the latency and the size: on links that are alike, what latencies change is when steps end, not what they do.
    #[test]
    fn links_that_are_alike_take_the_steps_that_they_take_without_latencies(
        expression in prop_oneof![
            (2..6_u32, 2..6_u32).prop_map(|(a, b)| format!("mesh:{a}x{b}")),
            (3..7_u32, 3..7_u32).prop_map(|(a, b)| format!("torus:{a}x{b}")),
            (3..12_u32).prop_map(|n| format!("ring:{n}")),
            (2..5_u32).prop_map(|n| format!("hypercube:{n}")),
            (4..10_u32).prop_map(|n| format!("uniring:n={n},d=1")),
        ],
        kind in prop::sample::select(vec![
            CollectiveKind::Allgather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Allreduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
            CollectiveKind::Scatter,
        ]),
        latency_ns in 1..20_000_u64,
        size_log in 8..32_u32,
    ) {
        let with_latencies = format!("{expression},lat={latency_ns}ns");
        let found = step_count(&with_latencies, kind, 1 << size_log);
        let without = step_count(&expression, kind, 1 << size_log);
        prop_assert!(found <= without, "{} steps on {}, {} without latencies", found, with_latencies, without);
    }
}
