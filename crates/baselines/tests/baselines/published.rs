//! The published method of TACOS, end to end.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_baselines::TACOS_PUBLISHED;
use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, check, compile};
use canopy_synth::{Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn step_count(schedule: &Schedule) -> u64 {
    let Shape::Steps(steps) = &schedule.shape else { panic!("schedules in time are steps") };
    steps.step_count()
}

/// At least one step more than the bound of 16, with every seed; as many as it where the network leaves no choice.
#[test]
fn the_published_method_is_planned_by_its_name() {
    for (expression, kind, least, most) in [
        ("torus:8x8", CollectiveKind::Allgather, 17, 17),
        ("mesh:3x3", CollectiveKind::Allgather, 4, 4),
        ("mesh:4x4,nodes-down=13+21", CollectiveKind::Allreduce, 26, 26),
        ("mesh:4x4", CollectiveKind::Broadcast, 6, 6),
        ("dgx-a100:boxes=2", CollectiveKind::ReduceScatter, 1, u64::MAX),
        ("dims:switch8+switch4,bw=300GB/s+25GB/s", CollectiveKind::Allreduce, 1, u64::MAX),
    ] {
        let topology = network(expression);
        let root = kind.has_root().then(|| Rank::new(0));
        let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
        let request = SynthesisRequest::new(collective, TACOS_PUBLISHED);
        let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
        check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        let steps = step_count(&schedule);
        assert!((least..=most).contains(&steps), "{kind} on {expression}: {steps}");
        assert_eq!(synthesize(&topology, &request, &Never, &Silent), Ok(schedule));
    }
    let topology = network("ring:4");
    let collective = Collective::new(CollectiveKind::AllToAll, None, 4).unwrap();
    let request = SynthesisRequest::new(collective, TACOS_PUBLISHED);
    let refused = synthesize(&topology, &request, &Never, &Silent).unwrap_err();
    assert!(refused.to_string().starts_with("tacos-published does not plan all-to-all; it plans allgather"));
}
