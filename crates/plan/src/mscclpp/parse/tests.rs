//! What is read, and what is refused with the path of its field.

use proptest::prelude::*;

use super::*;
use crate::mscclpp::write_execution_plan;

/// Two ranks that each copy their chunk and put it to the other, with a hand-shake before and after.
pub(in crate::mscclpp) const PAIR: &str = include_str!("tests/pair.json");

/// Replaces one text by another, which must be there.
fn with(from: &str, to: &str) -> String {
    assert!(PAIR.contains(from), "{from}");
    PAIR.replacen(from, to, 1)
}

fn refused(text: &str) -> String {
    let error = parse_execution_plan(text).unwrap_err();
    std::error::Error::source(&error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[test]
fn a_plan_by_hand_is_read_and_written_without_loss() {
    let plan = parse_execution_plan(PAIR).unwrap();
    assert_eq!((plan.name.as_str(), plan.ranks.len(), plan.bytes_max), ("pair", 2, u64::MAX));
    let text = write_execution_plan(&plan);
    assert_eq!(parse_execution_plan(&text).unwrap(), plan);
    assert_eq!(write_execution_plan(&parse_execution_plan(&text).unwrap()), text);
}

#[test]
fn what_is_missing_or_of_another_type_is_named() {
    for (from, to, words) in [
        ("\"name\": \"pair\",", "", "name is missing; name the plan"),
        (
            "\"input_chunks\": 1",
            "\"input_chunks\": -1",
            "gpus[0].input_chunks is -1; use a whole number from 0 to 1073741824",
        ),
        ("\"input_chunks\": 1", "\"input_chunks\": 1e99", "gpus[0].input_chunks is 1e+99; use a whole number"),
        ("\"input_chunks\": 1", "\"input_chunks\": [1]", "gpus[0].input_chunks is a list; use a whole number"),
        ("\"inplace\": false", "\"inplace\": 0", "inplace is 0; use true or false"),
        (
            "\"name\": \"copy\"",
            "\"name\": \"copies\"",
            "gpus[0].threadblocks[0].ops[1].name is `copies`, which is not an operation",
        ),
        ("\"name\": \"copy\"", "\"name\": \"start\"", "`start`, which is not an operation of the loader"),
        ("\"type\": \"i\"", "\"type\": \"x\"", "src_buff[0].type is \"x\"; use i, o or s"),
        (
            "\"type\": \"i\"",
            "\"buff\": \"i\"",
            "src_buff[0].buff is a field of an older version, which the loader ignores; use type",
        ),
        ("\"type\": \"i\"", "\"type\": \"i\", \"buffer_id\": 0", "src_buff[0] has no target; give exactly one"),
        (
            "\"channel_type\": \"memory\", \"connected_to\": [1]",
            "\"channel_type\": \"switch\", \"buff\": \"i\"",
            "gpus[0].channels[0].buff is a field of an older version",
        ),
        (
            "\"channel_type\": \"memory\", \"connected_to\": [1]",
            "\"channel_type\": \"tube\"",
            "gpus[0].channels[0].channel_type is \"tube\"; use memory, port, switch or none",
        ),
        ("\"gpus\": [", "\"gpus\": 7, \"rest\": [", "gpus is 7; use a list"),
    ] {
        let found = refused(&with(from, to));
        assert!(found.contains(words), "{found}\ninstead of\n{words}");
    }
}

#[test]
fn hostile_texts_end_in_errors() {
    for text in ["", "[]", "7", "null", "{", "\u{0}", "{\"gpus\": null}"] {
        refused(text);
    }
    assert!(refused("[]").contains("the plan is a list; use an object"));
    assert!(refused(&"[".repeat(1 << 20)).contains("recursion limit"));
    let nested = format!("{}{}", "{\"name\": \"pipeline\", \"ops\": [".repeat(5_000), "]}".repeat(5_000));
    refused(&with("{\"name\": \"copy\"", &format!("{nested}, {{\"name\": \"copy\"")));
    refused(&with("\"id\": 0", "\"id\": 18446744073709551615"));
    refused(&with("\"id\": 0", "\"id\": 99999999999999999999999999"));
}

#[test]
fn fields_that_the_loader_does_not_read_are_passed_over() {
    let text = with("\"name\": \"pair\",", "\"name\": \"pair\", \"comment\": {\"by\": [\"hand\"]},");
    assert_eq!(parse_execution_plan(&text).unwrap(), parse_execution_plan(PAIR).unwrap());
}

fn references() -> impl Strategy<Value = Vec<ChunkRef>> {
    let buffer = prop_oneof![Just(Buffer::Input), Just(Buffer::Output), Just(Buffer::Scratch)];
    let place = prop_oneof![
        buffer.prop_map(RefPlace::Local),
        (0..300_u32).prop_map(RefPlace::Remote),
        (0..300_u32).prop_map(RefPlace::Switch)
    ];
    let reference = (place, 0..1_u32 << 30, 0..1_u32 << 30);
    prop::collection::vec(reference.prop_map(|(place, index, size)| ChunkRef { place, index, size }), 0..4)
}

prop_compose! {
    fn operations()(
        name in prop::sample::select(OpName::ALL),
        sources in references(),
        targets in references(),
        kind in prop::option::of(prop::sample::select(ChannelType::ALL.as_slice())),
        channels in prop::collection::vec(0..20_u32, 0..4),
        slice in prop::option::of((0..9_u32, 0..9_u32)),
        numbers in (0..99_u32, 0..99_u32),
        semaphores in prop::collection::vec(0..20_u32, 0..3),
        unit_bytes: u64,
        word in prop::option::of("[a-z\"\\\\é]{0,6}"),
    ) -> ExecutionOp {
        let mut operation = ExecutionOp::new(name);
        (operation.sources, operation.targets, operation.channel_type) = (sources, targets, kind);
        (operation.channels, operation.slice, operation.semaphores, operation.reduce_op) = (channels, slice, semaphores, word);
        operation.barrier = (name == OpName::Barrier).then_some(numbers);
        let nested = vec![ExecutionOp::new(OpName::Nop), ExecutionOp::new(OpName::Copy)];
        operation.pipeline = (name == OpName::Pipeline).then_some(Pipeline { unit_bytes, chunk_count: numbers.0, operations: nested });
        operation
    }
}

prop_compose! {
    fn plans()(
        name in ".{0,12}",
        collective in prop::sample::select(vec!["allgather", "custom", "a \"word\""]),
        flags in any::<[bool; 4]>(),
        sizes in any::<[u64; 4]>(),
        chunks in prop::collection::vec((0..99_u32, 0..99_u32, 0..99_u32), 0..4),
        operations in prop::collection::vec(operations(), 0..6),
        peers in prop::collection::vec(0..9_u32, 0..5),
        is_port: bool,
    ) -> ExecutionPlan {
        let [is_ll, in_place, reuse_resources, double_scratch] = flags;
        let [alignment_bytes, threads_per_block, bytes_min, bytes_max] = sizes;
        let rank = |(id, (input_chunks, output_chunks, scratch_chunks)): (u32, (u32, u32, u32))| ExecutionRank {
            id,
            input_chunks,
            output_chunks,
            scratch_chunks,
            channels: vec![
                RankChannels::Peers { is_port, peers: peers.clone() },
                RankChannels::Switch { buffer: Buffer::Output, groups: vec![SwitchGroup { size: id, ranks: peers.clone() }] },
            ],
            remote_buffers: vec![RemoteBuffer { rank: id, buffer: Buffer::Scratch, access: vec![ChannelType::Port] }],
            semaphores: peers.clone(),
            blocks: vec![ExecutionBlock {
                id,
                channels: vec![(ChannelType::Memory, peers.clone())],
                remote_buffers: vec![(ChannelType::Port, peers.clone())],
                operations: operations.clone(),
            }],
        };
        let ranks = (0..).zip(chunks).map(rank).collect();
        let collective = collective.to_owned();
        ExecutionPlan {
            name, collective, is_ll, in_place, reuse_resources, double_scratch, alignment_bytes, threads_per_block, bytes_min,
            bytes_max, ranks,
        }
    }
}

proptest! {
    /// Whatever a plan says, right or wrong, is said again.
    #[test]
    fn reading_what_is_written_is_the_identity(plan in plans()) {
        let text = write_execution_plan(&plan);
        prop_assert_eq!(parse_execution_plan(&text).unwrap(), plan);
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}", at in 0..2_000_usize, byte in 32..127_u8) {
        let _ = parse_execution_plan(&text);
        let mut damaged = PAIR.as_bytes().to_vec();
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        if let Ok(text) = String::from_utf8(damaged) {
            let _ = parse_execution_plan(&text);
        }
    }
}

/// The head is that of the whole plan, without what ranks do.
#[test]
fn heads_are_those_of_plans() {
    let (whole, head) = (parse_execution_plan(PAIR).unwrap(), parse_execution_plan_head(PAIR).unwrap());
    assert_eq!((&head.name, &head.collective, head.in_place), (&whole.name, &whole.collective, whole.in_place));
    assert_eq!((head.alignment_bytes, head.bytes_min, head.bytes_max), (16, whole.bytes_min, whole.bytes_max));
    let chunks = |plan: &ExecutionPlan| -> Vec<(u32, u32)> {
        plan.ranks.iter().map(|rank| (rank.input_chunks, rank.output_chunks)).collect()
    };
    assert_eq!(chunks(&head), chunks(&whole));
    assert!(parse_execution_plan_head("{}").is_err());
    // Of several fields of one name, both take the last.
    let twice = PAIR.replacen('{', "{\"inplace\": 3, \"gpus\": [], \"name\": \"other\",", 1);
    assert_eq!(parse_execution_plan_head(&twice).unwrap(), head);
    assert_eq!(parse_execution_plan(&twice).unwrap(), whole);
}
