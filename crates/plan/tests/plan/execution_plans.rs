//! Execution plans of MSCCL++ for every collective: written, read back, proved and run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    ExecutionLowerError, ExecutionLowerOptions, ExecutionPlan, ExecutorProfile, emulate_execution_plan,
    lower_execution_plan, parse_execution_plan, prove_execution_plan, write_execution_plan,
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
    let warnings: Vec<&str> = proof.warnings.iter().map(|warning| warning.message.as_str()).collect();
    if asked.kind() == CollectiveKind::AllToAll && profile == ExecutorProfile::V10 {
        assert!(matches!(warnings[..], [text] if text.contains("does not answer NCCL's all-to-all")), "{warnings:?}");
    } else {
        assert_eq!(warnings, [""; 0]);
    }
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

/// The runtime divides the ranks by those of a rank's own box, and takes what is equal for one box.
#[test]
fn boxes_that_the_runtime_would_divide_otherwise_are_refused() {
    let topology = topology("ring:4");
    let graph = graph(&topology, CollectiveKind::Allgather, None, Algorithm::Auto);
    let on = |boxes: &[u32]| {
        let options = ExecutionLowerOptions::on(&topology, ExecutorProfile::V10, "test".to_owned(), false, 1 << 20);
        let options = ExecutionLowerOptions { boxes: boxes.to_vec(), switches: Vec::new(), ..options };
        lower_execution_plan(&graph, &options, &|| false)
    };
    for boxes in [[0, 0, 0, 0], [0, 0, 1, 1], [3, 3, 1, 1], [0, 1, 2, 3]] {
        assert!(on(&boxes).is_ok(), "{boxes:?}");
    }
    let refused = |boxes: &[u32]| match on(boxes) {
        Err(ExecutionLowerError::Domains { rank, peer, of_box, .. }) => (rank, peer, of_box),
        other => panic!("{boxes:?}: {other:?}"),
    };
    assert_eq!(refused(&[0, 1, 0, 1]), (0, 1, 2));
    // Three ranks at a time: 0, 1 and 2 are together, as they are; 3 is alone and takes itself for the fourth of one each.
    assert_eq!(on(&[0, 0, 0, 1]).map(|plan| plan.ranks.len()), Ok(4));
    // The first box is alone, and the second would be divided behind its second rank.
    assert_eq!(refused(&[0, 1, 1, 1]), (1, 0, 3));
}
