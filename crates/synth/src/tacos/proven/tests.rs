//! Schedules that are proven to be fastest, end to end.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Shares, check, compile};
use canopy_topology::{Rank, TopologyLimits, generate};

use super::*;
use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::synthesize::synthesize_explained;

/// The proof of a schedule, judged; and its steps.
#[track_caller]
fn proven(expression: &str, kind: CollectiveKind, root: u32) -> (ProvenTime, u64) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let root = kind.has_root().then(|| Rank::new(root));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, Algorithm::TacosIlp);
    let found = synthesize_explained(&topology, &request, None, &Never, &crate::Silent).unwrap();
    check(&topology, &compile(&topology, &found.schedule).unwrap()).unwrap();
    let Shape::Steps(steps) = &found.schedule.shape else { panic!("schedules in time are steps") };
    (found.time_proof.unwrap(), steps.step_count())
}

/// Won et al., figures 5 and 20, tables III and IV.
#[test]
fn published_networks_are_proven_optimal() {
    for (expression, kind, root, steps) in [
        ("mesh:3x3", CollectiveKind::Allgather, 0, 4),
        ("mesh:6x6", CollectiveKind::Broadcast, 0, 10),
        ("mesh:6x6", CollectiveKind::Reduce, 0, 10),
        ("uniring:n=4,d=1", CollectiveKind::Scatter, 1, 3),
        ("uniring:n=4,d=1", CollectiveKind::Gather, 1, 3),
        ("mesh:4x4,nodes-down=13+21", CollectiveKind::Allgather, 0, 13),
        ("mesh:4x4,nodes-down=13+21", CollectiveKind::Allreduce, 0, 26),
        ("mesh:3x3", CollectiveKind::ReduceScatter, 0, 4),
    ] {
        let (time, count) = proven(expression, kind, root);
        assert_eq!((count, time.total), (steps, TimeProof { end: steps, bound: steps }), "{kind} on {expression}");
        assert!(time.total.is_optimal());
    }
}

/// Slow links and switches: whatever is proven, the schedule is right and not faster than its bound.
#[test]
fn all_collectives_are_planned_on_networks_of_any_kind() {
    for expression in ["hypercube:3", "dgx-a100:boxes=1", "dims:ring2+fc3,bw=2GB/s+1GB/s", "uniring:n=5,d=2"] {
        for kind in CollectiveKind::ALL {
            let (ProvenTime { total, .. }, _) = proven(expression, kind, 0);
            assert!(total.bound <= total.end && total.bound > 0, "{kind} on {expression}");
        }
    }
}

/// What a proof leaves open: sums and copies at the same time, and switches unwound in another way.
#[test]
fn proofs_say_of_which_schedules_they_are() {
    for (expression, has_switches) in [("mesh:3x3", false), ("dims:switch5", true), ("dgx-a100:boxes=1", true)] {
        for kind in CollectiveKind::ALL {
            let (time, _) = proven(expression, kind, 0);
            assert_eq!(time.is_of_one_unwinding, has_switches, "{kind} on {expression}");
            let phases = if kind == CollectiveKind::Allreduce { 2 } else { 0 };
            assert_eq!(time.phases.len(), phases, "{kind} on {expression}");
            let sum = |of: fn(&TimeProof) -> u64| time.phases.iter().map(of).sum::<u64>();
            let total = TimeProof { end: sum(|phase| phase.end), bound: sum(|phase| phase.bound) };
            assert!(phases == 0 || total == time.total, "{kind} on {expression}: {time:?}");
        }
    }
}

#[test]
fn weights_are_heeded() {
    let topology = generate("uniring:n=4,d=1", &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(CollectiveKind::Scatter, Some(Rank::new(1)), 4).unwrap();
    let request = SynthesisRequest {
        shares: Shares::Weighted(vec![1, 0, 2, 0]),
        ..SynthesisRequest::new(collective, Algorithm::TacosIlp)
    };
    let found = synthesize_explained(&topology, &request, None, &Never, &crate::Silent).unwrap();
    check(&topology, &compile(&topology, &found.schedule).unwrap()).unwrap();
    // The chunk for rank 0 is three links away, those for rank 2 one.
    let total = TimeProof { end: 3, bound: 3 };
    assert_eq!(found.time_proof, Some(ProvenTime { total, phases: Vec::new(), is_of_one_unwinding: false }));
}
