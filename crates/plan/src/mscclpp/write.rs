//! Writes a plan as text: one operation per line, fields always in the same order.

use std::fmt::Write as _;

use super::program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, RankChannels, RefPlace,
    RemoteBuffer,
};

/// The text of a plan. The same plan gives the same bytes. O(operations).
pub fn write_execution_plan(plan: &ExecutionPlan) -> String {
    let mut out = String::new();
    write_plan_head(&mut out, plan);
    for (position, rank) in plan.ranks.iter().enumerate() {
        out.push_str(if position == 0 { "\n" } else { ",\n" });
        write_rank(&mut out, rank);
    }
    write_plan_end(&mut out);
    out
}

/// Everything before the ranks.
pub(crate) fn write_plan_head(out: &mut String, plan: &ExecutionPlan) {
    let flag = |value: bool| if value { "true" } else { "false" };
    put(out, format_args!("{{\n  \"name\": {},\n", quoted(&plan.name)));
    put(out, format_args!("  \"collective\": {},\n", quoted(&plan.collective)));
    put(out, format_args!("  \"protocol\": \"{}\",\n", if plan.is_ll { "LL" } else { "Simple" }));
    put(out, format_args!("  \"inplace\": {},\n", flag(plan.in_place)));
    put(out, format_args!("  \"reuse_resources\": {},\n", flag(plan.reuse_resources)));
    put(out, format_args!("  \"use_double_scratch_buffer\": {},\n", flag(plan.double_scratch)));
    put(out, format_args!("  \"buffer_alignment\": {},\n", plan.alignment_bytes));
    put(out, format_args!("  \"num_threads_per_block\": {},\n", plan.threads_per_block));
    put(out, format_args!("  \"min_message_size\": {},\n", plan.bytes_min));
    put(out, format_args!("  \"max_message_size\": {},\n  \"gpus\": [", plan.bytes_max));
}

/// Everything behind the ranks.
pub(crate) fn write_plan_end(out: &mut String) {
    out.push_str("\n  ]\n}\n");
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a text cannot fail");
}

/// A text in JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list<T>(items: &[T], mut one: impl FnMut(&T) -> String) -> String {
    let written: Vec<String> = items.iter().map(&mut one).collect();
    format!("[{}]", written.join(", "))
}

fn numbers(items: &[u32]) -> String {
    list(items, u32::to_string)
}

pub(crate) fn write_rank(out: &mut String, rank: &ExecutionRank) {
    put(out, format_args!("    {{\"id\": {}, \"input_chunks\": {}, ", rank.id, rank.input_chunks));
    put(out, format_args!("\"output_chunks\": {}, \"scratch_chunks\": {},\n", rank.output_chunks, rank.scratch_chunks));
    write_rank_links(out, &rank.channels, &rank.remote_buffers);
    let semaphores = list(&rank.semaphores, |value| format!("{{\"init_value\": {value}}}"));
    put(out, format_args!(",\n     \"semaphores\": {semaphores},\n     \"threadblocks\": ["));
    for (position, block) in rank.blocks.iter().enumerate() {
        out.push_str(if position == 0 { "\n" } else { ",\n" });
        write_block(out, block);
    }
    out.push_str("]}");
}

/// Channels and remote buffers of a rank: what loaders of other ranks read of it.
pub(crate) fn write_rank_links(out: &mut String, of_rank: &[RankChannels], remote_buffers: &[RemoteBuffer]) {
    put(out, format_args!("     \"channels\": {},\n", list(of_rank, channels)));
    let remote = list(remote_buffers, |remote| {
        let access = list(&remote.access, |access| quoted(access.name()));
        let letter = remote.buffer.letter();
        format!("{{\"rank\": {}, \"type\": \"{letter}\", \"access_channel_types\": {access}}}", remote.rank)
    });
    put(out, format_args!("     \"remote_buffers\": {remote}"));
}

fn channels(entry: &RankChannels) -> String {
    match entry {
        RankChannels::Peers { is_port, peers } => {
            let kind = if *is_port { ChannelType::Port } else { ChannelType::Memory };
            format!("{{\"channel_type\": \"{}\", \"connected_to\": {}}}", kind.name(), numbers(peers))
        }
        RankChannels::Switch { buffer, groups } => {
            let groups =
                list(groups, |group| format!("{{\"size\": {}, \"ranks\": {}}}", group.size, numbers(&group.ranks)));
            let letter = buffer.letter();
            format!("{{\"channel_type\": \"switch\", \"buffer_type\": \"{letter}\", \"rank_groups\": {groups}}}")
        }
    }
}

fn write_block(out: &mut String, block: &ExecutionBlock) {
    let channels = list(&block.channels, |(kind, ids)| {
        format!("{{\"channel_type\": \"{}\", \"channel_ids\": {}}}", kind.name(), numbers(ids))
    });
    let remotes = list(&block.remote_buffers, |(kind, ids)| {
        format!("{{\"access_channel_type\": \"{}\", \"remote_buffer_ids\": {}}}", kind.name(), numbers(ids))
    });
    put(out, format_args!("      {{\"id\": {}, \"channels\": {channels},\n", block.id));
    put(out, format_args!("       \"remote_buffer_refs\": {remotes},\n       \"ops\": ["));
    for (position, operation) in block.operations.iter().enumerate() {
        out.push_str(if position == 0 { "\n        " } else { ",\n        " });
        write_operation(out, operation);
    }
    out.push_str("]}");
}

fn write_operation(out: &mut String, operation: &ExecutionOp) {
    put(out, format_args!("{{\"name\": \"{}\"", operation.name.name()));
    if !operation.sources.is_empty() {
        put(out, format_args!(", \"src_buff\": {}", list(&operation.sources, reference)));
    }
    if !operation.targets.is_empty() {
        put(out, format_args!(", \"dst_buff\": {}", list(&operation.targets, reference)));
    }
    if !operation.channels.is_empty() {
        put(out, format_args!(", \"channel_ids\": {}", numbers(&operation.channels)));
    }
    if let Some(kind) = operation.channel_type {
        put(out, format_args!(", \"channel_type\": \"{}\"", kind.name()));
    }
    if let Some((position, count)) = operation.slice {
        put(out, format_args!(", \"tbg_info\": {{\"tb_id\": {position}, \"tbg_size\": {count}}}"));
    }
    if let Some((barrier, blocks)) = operation.barrier {
        put(out, format_args!(", \"barrier_id\": {barrier}, \"num_threadblocks\": {blocks}"));
    }
    if !operation.semaphores.is_empty() {
        put(out, format_args!(", \"semaphore_ids\": {}", numbers(&operation.semaphores)));
    }
    if let Some(reduce_op) = &operation.reduce_op {
        put(out, format_args!(", \"reduce_op\": {}", quoted(reduce_op)));
    }
    if let Some(pipeline) = &operation.pipeline {
        let (unit, chunks) = (pipeline.unit_bytes, pipeline.chunk_count);
        put(out, format_args!(", \"iter_context\": {{\"unit_size\": {unit}, \"num_chunks\": {chunks}}}, \"ops\": ["));
        for (position, nested) in pipeline.operations.iter().enumerate() {
            out.push_str(if position == 0 { "" } else { ", " });
            write_operation(out, nested);
        }
        out.push(']');
    }
    out.push('}');
}

fn reference(reference: &ChunkRef) -> String {
    let ChunkRef { place, index, size } = reference;
    let place = match place {
        RefPlace::Local(buffer) => format!("\"type\": \"{}\"", buffer.letter()),
        RefPlace::Remote(id) => format!("\"buffer_id\": {id}"),
        RefPlace::Switch(id) => format!("\"switch_channel_id\": {id}"),
    };
    format!("{{{place}, \"index\": {index}, \"size\": {size}}}")
}
