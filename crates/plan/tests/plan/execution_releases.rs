//! What tells versions of the runtime apart: the operations that they know, and those that they execute otherwise.

use canopy_plan::{
    ChannelType, EmulationError, ExecutionOp, ExecutionPlan, ExecutorProfile, OpName, emulate_execution_plan,
    prove_execution_plan,
};
use canopy_schedule::{CollectiveKind, TransferGraph};
use canopy_synth::Algorithm;
use execution::{graph, lowered, topology};

use crate::support::execution;

/// Those whose kernels take the address of a `pwsf`'s offsets for the offset of its source.
const MISREADING: [ExecutorProfile; 2] = [ExecutorProfile::V08, ExecutorProfile::V09];

fn operations(plan: &ExecutionPlan) -> impl Iterator<Item = &ExecutionOp> {
    plan.ranks.iter().flat_map(|rank| &rank.blocks).flat_map(|block| &block.operations)
}

fn count(plan: &ExecutionPlan, name: OpName) -> usize {
    operations(plan).filter(|operation| operation.name == name).count()
}

/// A plan of the newest version, with the greatest message in the words of another.
fn newest(expression: &str, kind: CollectiveKind, profile: ExecutorProfile) -> (ExecutionPlan, TransferGraph) {
    let topology = topology(expression);
    let graph = graph(&topology, kind, None, Algorithm::Auto);
    let plan = lowered(&topology, &graph, ExecutorProfile::V10, false);
    let bytes_max = profile.bytes_max_attribute(plan.bytes_max);
    (ExecutionPlan { bytes_max, ..plan }, graph)
}

fn blocks(plan: &mut ExecutionPlan) -> impl Iterator<Item = &mut Vec<ExecutionOp>> {
    plan.ranks.iter_mut().flat_map(|rank| &mut rank.blocks).map(|block| &mut block.operations)
}

/// Every put with a signal also flushes.
fn flushing(mut plan: ExecutionPlan) -> ExecutionPlan {
    for operation in blocks(&mut plan).flatten().filter(|operation| operation.name == OpName::PutSignal) {
        operation.name = OpName::PutSignalFlush;
    }
    plan
}

/// Blocks end without notices over ports: what arrived is not reported.
fn unacknowledged(mut plan: ExecutionPlan) -> ExecutionPlan {
    for operations in blocks(&mut plan) {
        let is_notice = |operation: &ExecutionOp| {
            matches!(operation.name, OpName::Signal | OpName::Wait) && operation.channel_type == Some(ChannelType::Port)
        };
        if operations.last().is_some_and(is_notice) {
            operations.pop();
        }
    }
    plan
}

/// Whatever the release: the end of a plan is acknowledged.
#[test]
fn no_plan_flushes() {
    for expression in
        ["dgx-a100:boxes=2,gpus=4", "dgx-a100:boxes=3,gpus=2", "rail:boxes=3,gpus=4,nv=900GB/s,nic=50GB/s"]
    {
        let topology = topology(expression);
        for kind in CollectiveKind::ALL {
            let graph = graph(&topology, kind, None, Algorithm::Auto);
            for in_place in [false, true] {
                for profile in ExecutorProfile::ALL {
                    let plan = lowered(&topology, &graph, profile, in_place);
                    assert_eq!(count(&plan, OpName::PutSignalFlush), 0, "{expression} {kind} {profile}");
                    assert!(count(&plan, OpName::PutSignal) > 0, "{expression} {kind} {profile}");
                    let proof = prove_execution_plan(&plan, Some(graph.collective), profile, &|| false).unwrap();
                    assert!(proof.is_ok(), "{expression} {kind} {profile}: {:#?}", proof.problems);
                    emulate_execution_plan(&plan, Some(graph.collective), profile, [5], &|| false).unwrap();
                }
            }
        }
    }
}

/// Acknowledgements are what keeps proxies from reading after the launch: a plan without them is refused, unless it flushes.
#[test]
fn a_plan_that_neither_flushes_nor_is_acknowledged_is_refused() {
    let words = "may still be in flight when rank";
    for profile in ExecutorProfile::ALL {
        let (plan, graph) = newest("dgx-a100:boxes=2,gpus=2", CollectiveKind::Allgather, profile);
        let plan = unacknowledged(plan);
        let proof = prove_execution_plan(&plan, Some(graph.collective), profile, &|| false).unwrap();
        assert!(proof.problems.iter().any(|problem| problem.message.contains(words)), "{:#?}", proof.problems);
        if profile == ExecutorProfile::V10 {
            let proof = prove_execution_plan(&flushing(plan), Some(graph.collective), profile, &|| false).unwrap();
            assert!(proof.is_ok(), "{:#?}", proof.problems);
        }
    }
}

#[test]
fn a_flushing_put_over_ports_is_right_from_0_10_on_and_wrong_before() {
    for kind in CollectiveKind::ALL {
        for profile in MISREADING {
            let (plan, graph) = newest("dgx-a100:boxes=2,gpus=2", kind, profile);
            let plan = flushing(plan);
            let asked = Some(graph.collective);
            let proof = prove_execution_plan(&plan, asked, profile, &|| false).unwrap();
            let problem = proof.problems.first().unwrap();
            let words = format!("the kernel of {profile} uses the address of the offsets as the source offset");
            assert!(problem.check == "operations" && problem.message.contains(&words), "{kind}: {problem}");
            for seed in 3..6 {
                let found = emulate_execution_plan(&plan, asked, profile, [seed], &|| false);
                assert!(matches!(found, Err(EmulationError::WrongOutput { .. })), "{kind} {profile}: {found:?}");
            }
        }
        let (plan, graph) = newest("dgx-a100:boxes=2,gpus=2", kind, ExecutorProfile::V10);
        let plan = flushing(plan);
        let proof = prove_execution_plan(&plan, Some(graph.collective), ExecutorProfile::V10, &|| false).unwrap();
        assert!(proof.is_ok(), "{kind}: {:#?}", proof.problems);
        emulate_execution_plan(&plan, Some(graph.collective), ExecutorProfile::V10, [3], &|| false).unwrap();
    }
}

/// Over memory channels all kernels only put, so nothing is misread there.
#[test]
fn a_flushing_put_over_memory_is_a_put_in_all_versions() {
    for profile in ExecutorProfile::ALL {
        let (mut plan, graph) = newest("ring:4", CollectiveKind::Allgather, profile);
        let blocks = plan.ranks.iter_mut().flat_map(|rank| &mut rank.blocks);
        let puts = blocks.flat_map(|block| &mut block.operations).filter(|operation| operation.name == OpName::Put);
        for put in puts {
            assert_eq!(put.channel_type, Some(ChannelType::Memory));
            put.name = OpName::PutSignalFlush;
        }
        let asked = Some(graph.collective);
        let proof = prove_execution_plan(&plan, asked, profile, &|| false).unwrap();
        assert!(proof.is_ok(), "{profile}: {:#?}", proof.problems);
        emulate_execution_plan(&plan, asked, profile, [3], &|| false).unwrap();
    }
}

#[test]
fn operations_are_known_from_their_version_on() {
    for name in OpName::ALL.iter().copied() {
        let first = match name {
            OpName::GroupStore | OpName::GroupStorePackets => ExecutorProfile::V10,
            OpName::ReduceCopyPackets | OpName::ReduceCopySendPackets => ExecutorProfile::V09,
            _ => ExecutorProfile::V08,
        };
        for profile in ExecutorProfile::ALL {
            let (mut plan, graph) = newest("ring:3", CollectiveKind::Allgather, profile);
            plan.ranks[1].blocks[0].operations[0] = ExecutionOp::new(name);
            let proof = prove_execution_plan(&plan, Some(graph.collective), profile, &|| false).unwrap();
            let message = format!("{profile} has no operation {}; use {first}", name.name());
            let is_refused = proof.problems.iter().any(|problem| problem.message == message);
            assert_eq!(is_refused, profile < first, "{message}");
        }
    }
}
