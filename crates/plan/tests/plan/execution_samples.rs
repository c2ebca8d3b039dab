//! Real execution plans of MSCCL++, read in place where they are at hand.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use canopy_plan::{
    ChannelType, ExecutionPlan, ExecutorProfile, OpName, RankChannels, emulate_execution_plan, parse_execution_plan,
    prove_execution_plan, write_execution_plan,
};
use canopy_prerequisites::samples;

/// The text of a sample; none, after saying so, where they are absent.
fn sample(name: &str) -> Option<String> {
    samples(&format!("mscclpp/{name}")).map(|path| fs::read_to_string(path).unwrap())
}

/// Reads a sample, writes it, reads it again, and runs it many times.
fn problems_of(name: &str) -> Option<Vec<String>> {
    let plan = parse_execution_plan(&sample(name)?).unwrap();
    assert_eq!(parse_execution_plan(&write_execution_plan(&plan)).unwrap(), plan, "{name}");
    emulate_execution_plan(&plan, None, ExecutorProfile::V10, 0..20, &|| false)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    Some(proof.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn right_plans_are_found_right() {
    for name in [
        "allreduce.json",
        "allreduce_packet.json",
        "reduce.json",
        "reduce_nvls.json",
        "reduce_pack.json",
        "transfer_pack.json",
    ] {
        let Some(problems) = problems_of(name) else { return };
        assert_eq!(problems, [""; 0], "{name}");
    }
}

/// Its two blocks divide a reference of two chunks at the boundary between them, and one of one chunk in the middle of it;
/// so each reads what the other of its peer has copied, but waits for its own partner only.
#[test]
fn a_race_between_slices_of_references_of_different_sizes_is_found() {
    let Some(problems) = problems_of("reduce_tbg.json") else { return };
    let race = "gpu 0 tb 1 step 6: reads memory of rank 1, unordered with gpu 1 tb 0 step 0";
    assert!(problems.iter().any(|problem| problem == race), "{problems:#?}");
}

#[test]
fn the_stale_plan_is_refused_by_the_name_of_its_field() {
    let Some(text) = sample("allreduce_pipeline.json") else { return };
    assert_eq!(
        parse_execution_plan(&text).unwrap_err().to_string(),
        "gpus[0].channels[0].buff is a field of an older version, which the loader ignores; use buffer_type"
    );
}

/// Proxies forward packets as they are; packets of plain memory they would take from another buffer.
#[test]
fn packets_are_forwarded_over_ports_and_not_made_there() {
    let Some(text) = sample("transfer_pack.json") else { return };
    let plan = parse_execution_plan(&text).unwrap();
    let over_ports = |name: OpName, rank: usize| {
        let mut plan = plan.clone();
        let of_rank = &mut plan.ranks[rank];
        for entry in &mut of_rank.channels {
            if let RankChannels::Peers { is_port, .. } = entry {
                *is_port = true;
            }
        }
        of_rank.remote_buffers.iter_mut().for_each(|remote| remote.access = vec![ChannelType::Port]);
        for block in &mut of_rank.blocks {
            block.channels.iter_mut().chain(&mut block.remote_buffers).for_each(|(kind, _)| *kind = ChannelType::Port);
            for operation in block.operations.iter_mut().filter(|operation| operation.name == name) {
                operation.channel_type = Some(ChannelType::Port);
                operation.channels = vec![0];
            }
        }
        plan
    };
    let judged = |plan: &ExecutionPlan| prove_execution_plan(plan, None, ExecutorProfile::V10, &|| false).unwrap();
    let forwarded = over_ports(OpName::ReadPutPackets, 1);
    assert_eq!(judged(&forwarded).problems, []);
    emulate_execution_plan(&forwarded, None, ExecutorProfile::V10, 0..20, &|| false).unwrap();
    // What a proxy still reads may be overwritten by the next launch, where launches do not alternate.
    let alone = ExecutionPlan { double_scratch: false, ..forwarded };
    assert!(judged(&alone).problems.iter().any(|problem| problem.message.contains("may still be in flight")));
    let made = judged(&over_ports(OpName::PutPackets, 0));
    assert!(made.problems[0].message.contains("make packets with cpkt and forward them with rppkt"), "{made:#?}");
}
