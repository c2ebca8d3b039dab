//! Joint schedules, end to end, judged by a checker that shares no code.

use std::num::NonZeroU64;

use canopy_optimize::Never;
use canopy_schedule::{
    Collective, CollectiveKind, JointPart, JointTask, JointVerdict, Shares, check_joint, joint_bound,
};
use canopy_topology::{NodeIndex, Rank, Ratio, Topology, TopologyLimits, generate};

use super::{JointCollective, JointPlans, JointSynthesisError, synthesize_joint};
use crate::error::SynthesisError;

/// A collective of equal shares of a mebibyte.
fn collective(kind: CollectiveKind, ranks: &[u32], root: Option<u32>, chunks: u64) -> JointCollective {
    let count = u32::try_from(ranks.len()).unwrap();
    let number = |rank: u32| Rank::new(u32::try_from(ranks.iter().position(|&own| own == rank).unwrap()).unwrap());
    let shares =
        if kind.has_root() && !matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter) { 1 } else { count };
    JointCollective {
        ranks: ranks.iter().copied().map(Rank::new).collect(),
        collective: Collective::new(kind, root.map(number), count).unwrap(),
        shares: Shares::Equal,
        chunks: NonZeroU64::new(chunks).unwrap(),
        size_bytes: NonZeroU64::new(u64::from(shares) << 20).unwrap(),
    }
}

/// A joint schedule, judged.
#[track_caller]
fn planned(expression: &str, collectives: &[JointCollective], with_latency: bool) -> (JointPlans, JointVerdict) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let plans = synthesize_joint(&topology, collectives, with_latency, 24, &Never).unwrap();
    let verdict = judged(&topology, collectives, &plans);
    assert_eq!((verdict.steps, verdict.shared_links), (plans.steps, 0), "{expression}");
    assert!(plans.time <= plans.time_one_by_one, "{expression}");
    assert!(plans.plans.iter().all(|plan| plan.time_bound <= plan.time_alone && plan.time_bound <= plans.time));
    let members: Vec<Vec<NodeIndex>> =
        collectives.iter().map(|asked| asked.ranks.iter().map(|rank| rank.node()).collect()).collect();
    let tasks = collectives.iter().zip(&members).map(|(asked, members)| JointTask {
        members,
        collective: asked.collective,
        size_bytes: asked.size_bytes,
    });
    let bound = joint_bound(&topology, &tasks.collect::<Vec<_>>(), &[], &|| false).unwrap();
    assert!(bound.seconds <= plans.seconds(plans.time), "{expression}: {bound:?}");
    (plans, verdict)
}

#[track_caller]
fn judged(topology: &Topology, collectives: &[JointCollective], plans: &JointPlans) -> JointVerdict {
    let parts = plans.plans.iter().zip(collectives).map(|(plan, asked)| JointPart {
        topology: &plan.topology,
        schedule: &plan.schedule,
        size_bytes: asked.size_bytes,
    });
    check_joint(topology, &parts.collect::<Vec<_>>(), &|| false).unwrap()
}

fn steps_alone(plans: &JointPlans) -> Vec<u64> {
    plans.plans.iter().map(|plan| plan.steps_alone).collect()
}

/// No longer than the longest alone, 23 steps one after the other.
#[test]
fn three_parts_of_a_mesh_take_no_longer_than_the_longest() {
    let (upper, lower): (Vec<u32>, Vec<u32>) = ((0..18).collect(), (18..36).collect());
    let collectives = [
        collective(CollectiveKind::Allgather, &upper, None, 1),
        collective(CollectiveKind::Broadcast, &lower, Some(35), 1),
        collective(CollectiveKind::Reduce, &lower, Some(18), 1),
    ];
    let (plans, _) = planned("mesh:6x6", &collectives, false);
    assert_eq!((steps_alone(&plans), plans.steps), (vec![9, 7, 7], 9));
    assert_eq!(plans.time * 23, plans.time_one_by_one * 9);
    // A mebibyte over 25 GB/s.
    assert_eq!(Some(plans.seconds(plans.time)), Ratio::new(9_u64 << 20, 25_000_000_000_u64));
}

/// Rows 0 to 3 gather while rows 2 to 5 sum: 12 + 16 steps and more one by one.
#[test]
fn overlapping_collectives_save_time() {
    let (upper, lower): (Vec<u32>, Vec<u32>) = ((0..24).collect(), (12..36).collect());
    let collectives = [
        collective(CollectiveKind::Allgather, &upper, None, 1),
        collective(CollectiveKind::Reduce, &lower, Some(12), 1),
        collective(CollectiveKind::Broadcast, &lower, Some(12), 1),
    ];
    let (plans, _) = planned("mesh:6x6", &collectives, false);
    assert_eq!(plans.time_one_by_one * plans.steps, plans.time * 28, "{} steps", plans.steps);
    assert!(plans.steps <= 14, "{} steps", plans.steps);
}

/// Ranks that are strewn over a network reach each other past ranks of others, and through switches.
#[test]
fn strewn_ranks_and_all_kinds_of_collectives_get_along() {
    for expression in ["mesh:4x4", "torus:4x4", "leaf-spine:leaves=4,hosts=4,spines=2", "dgx-a100:boxes=2"] {
        let (even, odd): (Vec<u32>, Vec<u32>) = (0..16).partition(|rank| rank % 2 == 0);
        let few = [15, 1, 6];
        for kinds in [
            (CollectiveKind::Allreduce, CollectiveKind::AllToAll),
            (CollectiveKind::Allgather, CollectiveKind::Scatter),
            (CollectiveKind::ReduceScatter, CollectiveKind::Gather),
        ] {
            let root = kinds.1.has_root().then_some(6);
            let collectives = [
                collective(kinds.0, &even, None, 1),
                collective(CollectiveKind::Reduce, &odd, Some(5), 2),
                collective(kinds.1, &few, root, 1),
            ];
            planned(expression, &collectives, expression.starts_with("dgx"));
        }
    }
}

/// What is called off, and ranks that are no group.
#[test]
fn refusals() {
    let mesh = generate("mesh:2x2", &TopologyLimits::STANDARD).unwrap();
    let collectives = [collective(CollectiveKind::Allgather, &[0, 1, 2], None, 1)];
    let stopped = synthesize_joint(&mesh, &collectives, false, 1, &|| true);
    assert!(matches!(stopped, Err(JointSynthesisError { error: SynthesisError::Stopped, .. })), "{stopped:?}");
    let twice = JointCollective { ranks: vec![Rank::new(0); 3], ..collectives[0].clone() };
    let refused = synthesize_joint(&mesh, &[twice], false, 1, &Never);
    let found = refused.map_err(|error| (error.collective, matches!(error.error, SynthesisError::Broken { .. })));
    assert_eq!(found, Err((Some(0), true)));
}
