//! Plans of packets by hand: right as they are, and refused once one thing is changed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{ExecutorProfile, emulate_execution_plan, parse_execution_plan, prove_execution_plan};
use canopy_schedule::CollectiveKind;
use serde_json::{Value, json};

use crate::execution_interpreter::{Task, Verdict, run_all};

/// An allreduce of two ranks: each sends its input as packets to the other, and adds what comes.
fn packets() -> Value {
    let rank = |rank: usize| {
        let at = |buffer: &str| json!({"type": buffer, "index": 0, "size": 1});
        json!({
            "id": rank, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 1,
            "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
            "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
            "threadblocks": [{
                "id": 0,
                "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
                "ops": [
                    {"name": "ppkt", "channel_type": "memory", "channel_ids": [0], "src_buff": [at("i")],
                     "dst_buff": [{"buffer_id": 0, "index": 0, "size": 1}]},
                    {"name": "repkt", "src_buff": [at("i"), at("s")], "dst_buff": [at("o")]},
                ],
            }],
        })
    };
    json!({
        "name": "packets", "collective": "allreduce", "protocol": "LL", "inplace": false,
        "use_double_scratch_buffer": true, "gpus": [rank(0), rank(1)],
    })
}

/// An allgather of two ranks: each makes packets of its input and stores them at both through a switch.
fn stored_packets() -> Value {
    let rank = |rank: usize| {
        let at = |buffer: &str, index: usize| json!({"type": buffer, "index": index, "size": 1});
        json!({
            "id": rank, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 2,
            "channels": [{"channel_type": "switch", "buffer_type": "s", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}],
            "remote_buffers": [],
            "threadblocks": [{
                "id": 0,
                "channels": [{"channel_type": "switch", "channel_ids": [0]}],
                "ops": [
                    {"name": "cpkt", "src_buff": [at("i", 0)], "dst_buff": [at("s", rank)]},
                    {"name": "nop"},
                    {"name": "gstorepkt", "channel_type": "switch", "src_buff": [at("s", rank)],
                     "dst_buff": [{"switch_channel_id": 0, "index": rank, "size": 1}]},
                    {"name": "upkt", "src_buff": [at("s", 0)], "dst_buff": [at("o", 0)]},
                    {"name": "upkt", "src_buff": [at("s", 1)], "dst_buff": [at("o", 1)]},
                ],
            }],
        })
    };
    json!({
        "name": "stored", "collective": "allgather", "protocol": "LL", "inplace": false,
        "use_double_scratch_buffer": true, "gpus": [rank(0), rank(1)],
    })
}

fn problems(plan: &Value) -> Vec<String> {
    let plan = parse_execution_plan(&plan.to_string()).unwrap();
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    proof.problems.iter().map(ToString::to_string).collect()
}

/// A plan is right as it is.
#[track_caller]
fn check_right(plan: &Value, kind: CollectiveKind) {
    assert_eq!(problems(plan), [""; 0]);
    let read = parse_execution_plan(&plan.to_string()).unwrap();
    emulate_execution_plan(&read, None, ExecutorProfile::V10, 0..20, &|| false).unwrap();
    let task = Task { kind, root: 0, in_place: false, misreads_flushing_puts: false, chunk_bytes: 32 };
    let verdict = run_all(plan, task, None);
    assert!(matches!(verdict, Verdict::Right(_)), "{verdict:?}");
}

/// A plan with one value changed is refused for this.
#[track_caller]
fn check_refused(mut plan: Value, pointer: &str, value: Value, words: &str) {
    *plan.pointer_mut(pointer).unwrap() = value;
    let found = problems(&plan);
    assert!(found.iter().any(|problem| problem.contains(words)), "{found:#?}");
}

#[test]
fn packets_that_are_answered_are_right() {
    check_right(&packets(), CollectiveKind::Allreduce);
}

#[test]
fn packets_without_room_for_their_flags_are_refused() {
    check_refused(packets(), "/protocol", json!("Simple"), "packets take twice the room of their data");
}

#[test]
fn offsets_of_packets_in_the_second_half_fit_32_bits() {
    let mut plan = packets();
    plan["max_message_size"] = json!(1_u64 << 29);
    assert_eq!(problems(&plan), [""; 0]);
    check_refused(plan, "/max_message_size", json!(3_u64 << 29), "need offsets up to 6442450944");
}

#[test]
fn alignments_are_of_what_the_kernel_moves_at_once() {
    let mut plan = packets();
    plan["buffer_alignment"] = json!(32);
    assert_eq!(problems(&plan), [""; 0]);
    check_refused(plan, "/buffer_alignment", json!(4), "the kernel moves 16 bytes at once");
}

#[test]
fn plain_data_in_one_of_two_halves_is_refused() {
    let words = "launches alternate between two halves of scratch";
    check_refused(packets(), "/gpus/0/threadblocks/0/ops/0/name", json!("put"), words);
}

/// Launch by launch, nothing tells the sender that what it sent was read.
#[test]
fn packets_that_are_never_answered_are_refused() {
    let mut plan = packets();
    plan["collective"] = json!("broadcast");
    plan["gpus"][0]["threadblocks"][0]["ops"][1] = json!({
        "name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}],
    });
    plan["gpus"][1]["threadblocks"][0]["ops"] = json!([{
        "name": "upkt", "src_buff": [{"type": "s", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}],
    }]);
    let found = problems(&plan);
    assert!(found.iter().any(|problem| problem.contains("rank 0 hears nothing from rank 1")), "{found:#?}");
    // A signal back is enough.
    let own = |name: &str| json!({"name": name, "channel_type": "memory", "channel_ids": [0]});
    plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap().push(own("wait"));
    plan["gpus"][1]["threadblocks"][0]["ops"].as_array_mut().unwrap().push(own("signal"));
    check_right(&plan, CollectiveKind::Broadcast);
}

#[test]
fn switches_store_packets_that_were_made_before() {
    check_right(&stored_packets(), CollectiveKind::Allgather);
    let from = json!([{"type": "i", "index": 0, "size": 1}]);
    let words = "packets are in i, but the kernel keeps them in scratch";
    check_refused(stored_packets(), "/gpus/1/threadblocks/0/ops/2/src_buff", from, words);
}
