//! Execution plans of MSCCL++ for every collective: written, read back, proved and run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    ExecutionPlan, ExecutorProfile, emulate_execution_plan, parse_execution_plan, prove_execution_plan,
    write_execution_plan,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::Algorithm;
use canopy_topology::Rank;
use execution::{graph, lowered, topology};

use crate::support::execution;

/// Reads back, proves, and runs in several interleavings.
#[track_caller]
fn judge(plan: &ExecutionPlan, asked: Collective, profile: ExecutorProfile) {
    let text = write_execution_plan(plan);
    let read = parse_execution_plan(&text).unwrap();
    assert_eq!(&read, plan);
    let proof = prove_execution_plan(&read, Some(asked), profile, &|| false).unwrap();
    assert!(proof.is_ok(), "{profile} {}: {:#?}\n{text}", asked.kind(), proof.problems);
    assert_eq!(proof.warnings, []);
    emulate_execution_plan(&read, Some(asked), profile, [1], &|| false).unwrap();
}

#[test]
fn every_collective_is_lowered_on_every_kind_of_network() {
    for expression in ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:4"] {
        let topology = topology(expression);
        for kind in CollectiveKind::ALL {
            let graph = graph(&topology, kind, None, Algorithm::Auto);
            for profile in ExecutorProfile::ALL {
                for in_place in [false, true] {
                    let plan = lowered(&topology, &graph, profile, in_place);
                    judge(&plan, graph.collective, profile);
                }
            }
        }
    }
}

#[test]
fn any_rank_may_be_the_root() {
    let topology = topology("leaf-spine:leaves=1,hosts=12,spines=1");
    for kind in CollectiveKind::ALL.into_iter().filter(|kind| kind.has_root()) {
        let graph = graph(&topology, kind, Some(Rank::new(5)), Algorithm::Direct);
        for in_place in [false, true] {
            judge(&lowered(&topology, &graph, ExecutorProfile::V10, in_place), graph.collective, ExecutorProfile::V10);
        }
    }
}

/// A star of 24 has more children than a block has channels: blocks hand over by semaphores. Sums have as many
/// greetings, in several blocks.
#[test]
fn what_one_block_cannot_do_is_divided() {
    let topology = topology("leaf-spine:leaves=1,hosts=24,spines=1");
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        let graph = graph(&topology, kind, None, Algorithm::Direct);
        let plan = lowered(&topology, &graph, ExecutorProfile::V10, false);
        assert!(plan.ranks[0].semaphores.len() > 1, "{:?}", plan.ranks[0].semaphores);
        judge(&plan, graph.collective, ExecutorProfile::V10);
    }
}
