//! Schedules that are proven to be fastest, end to end.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Shape, Shares, check, compile};
use canopy_topology::{Rank, TopologyLimits, generate};

use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::synthesize::synthesize_explained;
use canopy_tacos::TimeProof;

/// The proof of a schedule, judged; and its steps.
#[track_caller]
fn proven(expression: &str, kind: CollectiveKind, root: u32) -> (TimeProof, u64) {
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
        let (proof, count) = proven(expression, kind, root);
        assert_eq!((count, proof.end, proof.bound), (steps, steps, steps), "{kind} on {expression}");
        assert!(proof.is_optimal());
    }
}

/// Slow links and switches: whatever is proven, the schedule is right and not faster than its bound.
#[test]
fn all_collectives_are_planned_on_networks_of_any_kind() {
    for expression in ["hypercube:3", "dgx-a100:boxes=1", "dims:ring2+fc3,bw=2GB/s+1GB/s", "uniring:n=5,d=2"] {
        for kind in CollectiveKind::ALL {
            let (proof, _) = proven(expression, kind, 0);
            assert!(proof.bound <= proof.end && proof.bound > 0, "{kind} on {expression}");
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
    assert_eq!(found.time_proof, Some(TimeProof { end: 3, bound: 3 }));
}
