//! Execution plans with pipelines: followed for messages of several sizes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use canopy_plan::{
    ExecutionOp, ExecutionPlan, ExecutorProfile, OpName, Pipeline, emulate_execution_plan, parse_execution_plan,
    prove_execution_plan, write_execution_plan,
};
use canopy_prerequisites::samples;
use canopy_schedule::CollectiveKind;
use repeated::repeated;

use crate::support::repeated;

const PROFILE: ExecutorProfile = ExecutorProfile::V10;

/// Problems of a plan, which must be read back as it is; the emulator must agree that there are none, or some.
#[track_caller]
fn problems(plan: &ExecutionPlan) -> Vec<String> {
    assert_eq!(&parse_execution_plan(&write_execution_plan(plan)).unwrap(), plan);
    let proof = prove_execution_plan(plan, None, PROFILE, &|| false).unwrap();
    if proof.is_ok() {
        emulate_execution_plan(plan, None, PROFILE, [0, 31, 62, 93], &|| false).unwrap();
    }
    proof.problems.iter().map(|problem| format!("{}: {problem}", problem.check)).collect()
}

fn warnings(plan: &ExecutionPlan) -> Vec<String> {
    let proof = prove_execution_plan(plan, None, PROFILE, &|| false).unwrap();
    proof.warnings.into_iter().map(|warning| warning.message).collect()
}

/// Two ranks that add up what they have: each copies a unit into scratch that plans share, and adds what the other has there.
/// 64 MiB of scratch hold four units of 16 MiB; the second semaphore says how many may be under way.
fn shared_scratch(ahead: u32, unit: u64) -> ExecutionPlan {
    let rank = |id: u32| {
        let peer = 1 - id;
        let meet = r#"{"name": "nop"}"#;
        let signal = r#"{"name": "signal", "channel_ids": [0], "channel_type": "memory"}"#;
        let wait = r#"{"name": "wait", "channel_ids": [0], "channel_type": "memory"}"#;
        let semaphore = |name: &str, id: u32| format!(r#"{{"name": "sem_{name}", "semaphore_ids": [{id}]}}"#);
        let copy = r#"{"name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"type": "s", "index": 0, "size": 1}]}"#;
        let add = r#"{"name": "rre", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}], "dst_buff": [{"type": "i", "index": 0, "size": 1}]}"#;
        let block = |number: u32, ops: &[&str], remotes: &str| {
            format!(
                r#"{{"id": {number}, "channels": [{{"channel_type": "memory", "channel_ids": [{number}]}}], "remote_buffer_refs": [{remotes}],
                "ops": [{{"name": "pipeline", "iter_context": {{"unit_size": {unit}, "num_chunks": 1}}, "ops": [{}]}}]}}"#,
                ops.join(", ")
            )
        };
        let first =
            block(0, &[&semaphore("acquire", 1), meet, copy, meet, signal, wait, meet, &semaphore("release", 0)], "");
        let second = block(
            1,
            &[&semaphore("acquire", 0), meet, add, meet, signal, wait, meet, &semaphore("release", 1)],
            r#"{"access_channel_type": "memory", "remote_buffer_ids": [0]}"#,
        );
        format!(
            r#"{{"id": {id}, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 1,
            "channels": [{{"channel_type": "memory", "connected_to": [{peer}, {peer}]}}],
            "remote_buffers": [{{"rank": {peer}, "type": "s", "access_channel_types": ["memory"]}}],
            "semaphores": [{{"init_value": 0}}, {{"init_value": {ahead}}}], "threadblocks": [{first}, {second}]}}"#
        )
    };
    let text = format!(
        r#"{{"name": "shared", "collective": "allreduce", "protocol": "Simple", "inplace": true, "reuse_resources": true,
        "gpus": [{}, {}]}}"#,
        rank(0),
        rank(1)
    );
    parse_execution_plan(&text).unwrap()
}

#[test]
fn as_many_units_may_be_under_way_as_shared_scratch_holds() {
    assert_eq!(problems(&shared_scratch(4, 1 << 24)), [""; 0]);
    assert_eq!(problems(&shared_scratch(1, 1 << 24)), [""; 0]);
    let found = problems(&shared_scratch(5, 1 << 24));
    assert!(found[0].starts_with("races: ") && found[0].contains("unordered with"), "{found:#?}");
    // A message that fits scratch as a whole has room for them all.
    let small = ExecutionPlan { bytes_max: 1 << 26, ..shared_scratch(9, 1 << 24) };
    assert_eq!(problems(&small), [""; 0]);
    let found = problems(&shared_scratch(0, 1 << 24));
    assert!(found[0].contains("waits for a semaphore that is never released"), "{found:#?}");
    let found = problems(&shared_scratch(4, 3 << 20));
    assert!(found[0].contains("and unit_size does not divide them"), "{found:#?}");
    let words = "the proof follows pipelines for messages up to 142606336 bytes, and larger ones repeat more often";
    assert!(
        warnings(&shared_scratch(4, 1 << 24)).iter().any(|warning| warning == words),
        "{:#?}",
        warnings(&shared_scratch(4, 1 << 24))
    );
}

/// The pipeline of a rank's first block.
fn pipeline(plan: &mut ExecutionPlan, rank: usize) -> &mut Pipeline {
    plan.ranks[rank].blocks[0].operations[0].pipeline.as_mut().unwrap()
}

#[test]
fn plans_may_do_everything_unit_by_unit() {
    for (expression, kind) in [
        ("ring:3", CollectiveKind::Allgather),
        ("complete:4", CollectiveKind::Allreduce),
        ("dgx-a100:boxes=2,gpus=2", CollectiveKind::Allgather),
    ] {
        for unit in [16, 1 << 20] {
            let plan = repeated(expression, kind, unit);
            assert_eq!(problems(&ExecutionPlan { bytes_max: 1 << 20, ..plan }), [""; 0], "{expression} {kind} {unit}");
        }
    }
}

#[test]
fn what_goes_wrong_in_repetitions_is_found() {
    let plan = ExecutionPlan { bytes_max: 1 << 20, ..repeated("ring:3", CollectiveKind::Allgather, 4096) };
    let check = |change: &dyn Fn(&mut Pipeline), words: &str| {
        let mut changed = plan.clone();
        change(pipeline(&mut changed, 1));
        let found = problems(&changed);
        assert!(found.iter().any(|found| found.contains(words)), "{found:#?}\ninstead of\n{words}");
    };
    // One thread uses a channel in each repetition: the nop at the end is for others, and here they need none.
    let mut without = plan.clone();
    drop(pipeline(&mut without, 1).operations.pop());
    assert_eq!(problems(&without), [""; 0]);
    check(&|pipeline| pipeline.unit_bytes = 0, "unit_size is 0; use a multiple of 16");
    check(&|pipeline| pipeline.unit_bytes = 4100, "unit_size is 4100; use a multiple of 16");
    check(&|pipeline| pipeline.chunk_count = 0, "num_chunks is 0, so nothing is repeated");
    check(&|pipeline| pipeline.chunk_count += 1, "the kernel would skip some or go beyond");
    check(&|pipeline| pipeline.operations.clear(), "a pipeline has no operations");
    // Half the units: as many signals are not waited for.
    check(&|pipeline| pipeline.unit_bytes *= 2, "waits; make the numbers equal");
    check(
        &|pipeline| {
            let inner = pipeline.clone();
            pipeline.operations = vec![ExecutionOp { pipeline: Some(inner), ..ExecutionOp::new(OpName::Pipeline) }];
        },
        "the kernel knows no pipeline in a pipeline",
    );
    let often = ExecutionPlan { bytes_max: 1 << 31, ..repeated("ring:3", CollectiveKind::Allgather, 16) };
    assert!(problems(&often)[0].contains("times, over the limit of 65535; lower max_message_size or raise unit_size"));
}

/// The published plan for an older loader, with the fields of this one.
#[test]
fn the_stale_sample_in_present_words_is_right() {
    let Some(path) = samples("mscclpp/allreduce_pipeline.json") else { return };
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("\"buff\"", "\"buffer_type\"").replace("\"output_chunks\": 0", "\"output_chunks\": 4");
    let mut plan = parse_execution_plan(&text).unwrap();
    assert_eq!(problems(&plan), [""; 0]);
    // It lets as many units ahead as shared scratch holds, and not one more.
    for rank in &mut plan.ranks {
        assert_eq!(rank.semaphores[2], 32);
        rank.semaphores[2] = 33;
    }
    assert!(problems(&plan)[0].starts_with("races: "));
}
