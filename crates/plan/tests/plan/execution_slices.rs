//! Blocks that share operations: only messages that the loader divides as it is meant.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{ExecutorProfile, parse_execution_plan, prove_execution_plan};
use serde_json::{Value, json};

/// Two ranks that exchange their inputs, each by two blocks that share what they do: a copy, and a put.
fn shared(copy_slices: usize, put_slices: usize) -> Value {
    let blocks = copy_slices.max(put_slices);
    let rank = |rank: usize| {
        let block = |block: usize| {
            let own = |name: &str| json!({"name": name, "channel_type": "memory", "channel_ids": [0]});
            let from = json!([{"type": "i", "index": 0, "size": 1}]);
            let slice = |count: usize| json!({"tb_id": block, "tbg_size": count});
            let copy = json!({
                "name": "copy", "src_buff": from, "dst_buff": [{"type": "o", "index": rank, "size": 1}],
                "tbg_info": slice(copy_slices),
            });
            let put = json!({
                "name": "put", "channel_type": "memory", "channel_ids": [0], "src_buff": from,
                "dst_buff": [{"buffer_id": 0, "index": rank, "size": 1}], "tbg_info": slice(put_slices),
            });
            let mut ops = vec![own("rlxsignal"), own("rlxwait"), json!({"name": "nop"})];
            ops.extend((block < copy_slices).then_some(copy));
            ops.extend((block < put_slices).then_some(put));
            ops.extend([json!({"name": "nop"}), own("signal"), own("wait")]);
            json!({
                "id": block,
                "channels": [{"channel_type": "memory", "channel_ids": [block]}],
                "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
                "ops": ops,
            })
        };
        json!({
            "id": rank, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0,
            "channels": [{"channel_type": "memory", "connected_to": vec![1 - rank; blocks]}],
            "remote_buffers": [{"rank": 1 - rank, "type": "o", "access_channel_types": ["memory"]}],
            "threadblocks": (0..blocks).map(block).collect::<Vec<_>>(),
        })
    };
    json!({"name": "shared", "collective": "allgather", "protocol": "Simple", "inplace": false, "gpus": [rank(0), rank(1)]})
}

/// Problems and warnings.
fn found(plan: &Value) -> [Vec<String>; 2] {
    let plan = parse_execution_plan(&plan.to_string()).unwrap();
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    [proof.problems, proof.warnings].map(|found| found.iter().map(ToString::to_string).collect())
}

#[test]
fn messages_with_fewer_parts_than_slices_are_refused_or_warned_of() {
    let mut plan = shared(2, 2);
    let words = "messages of less than 64 bytes have fewer parts than slices";
    let [problems, warnings] = found(&plan);
    assert_eq!(problems, [""; 0]);
    assert!(warnings.iter().any(|warning| warning.contains(words)), "{warnings:#?}");
    // The output of 64 bytes has two chunks of two parts each.
    plan["min_message_size"] = json!(64);
    let [problems, warnings] = found(&plan);
    assert!(
        problems.is_empty() && !warnings.iter().any(|warning| warning.contains("slices")),
        "{problems:#?} {warnings:#?}"
    );
    plan["min_message_size"] = json!(32);
    let [problems, _] = found(&plan);
    assert!(problems.iter().any(|problem| problem.contains(words)), "{problems:#?}");
}

#[test]
fn chunks_in_different_numbers_of_slices_are_refused() {
    let [problems, _] = found(&shared(2, 4));
    let words = "blocks share 1 chunks in 2 slices and 1 in 4, which the loader cuts at different places";
    assert!(problems.iter().any(|problem| problem.contains(words)), "{problems:#?}");
}
