//! Reads a plan as the runtime's loader does, and reports where and why a text is not a plan.
//!
//! Fields that the loader does not look at are passed over, as it does. What it would read as another plan than the
//! text means to a reader is refused: names of operations that it does not know, and fields of older versions.

mod cursor;
mod json;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use self::cursor::At;
use self::json::Json;
use super::program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, OpName, Pipeline, RankChannels,
    RefPlace, RemoteBuffer, SwitchGroup,
};
use crate::msccl::Buffer;

/// Most bytes of a plan: 256 MiB. What is read takes some ten times the bytes of its text.
pub const EXECUTION_PLAN_BYTES_MAX: usize = 1 << 28;

/// Why a text is not an execution plan.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExecutionPlanError {
    #[error("the execution plan has {found} bytes, over the limit of {limit}; plan for fewer ranks")]
    TooLarge { found: usize, limit: usize },
    #[error("the text is not JSON")]
    Json(#[source] serde_json::Error),
    #[error("{path} is missing; {remedy}")]
    Missing { path: String, remedy: &'static str },
    #[error("{path} is {found}; use {expected}")]
    Type { path: String, found: String, expected: &'static str },
    #[error("{path} is a field of an older version, which the loader ignores; use {instead}")]
    Stale { path: String, instead: &'static str },
    #[error("{path} is `{found}`, which is not an operation of the loader")]
    UnknownOperation { path: String, found: String },
    #[error("{path} has no target; give exactly one of type, buffer_id and switch_channel_id")]
    NoPlace { path: String },
}

type Read<T> = Result<T, ExecutionPlanError>;

/// Reads an execution plan.
///
/// The result is what the text says, not necessarily a plan that runs: see
/// [`prove_execution_plan`](super::prove_execution_plan).
///
/// # Errors
/// The first thing that is wrong with the text, with the path of its field. Never panics, whatever the text; nesting is
/// bounded by the JSON reader. O(bytes).
pub fn parse_execution_plan(text: &str) -> Result<ExecutionPlan, ExecutionPlanError> {
    if text.len() > EXECUTION_PLAN_BYTES_MAX {
        return Err(ExecutionPlanError::TooLarge { found: text.len(), limit: EXECUTION_PLAN_BYTES_MAX });
    }
    let value: Json<'_> = serde_json::from_str(text).map_err(ExecutionPlanError::Json)?;
    let top = At::top(&value);
    top.require_object()?;
    Ok(ExecutionPlan {
        name: top.need("name", "name the plan")?.text()?,
        collective: top.need("collective", "name the collective")?.text()?,
        is_ll: top.need("protocol", "use \"Simple\" or \"LL\"")?.text()? == "LL",
        in_place: top.need("inplace", "use true or false")?.flag()?,
        reuse_resources: top.flag_or("reuse_resources", false)?,
        double_scratch: top.flag_or("use_double_scratch_buffer", false)?,
        alignment_bytes: top.long_or("buffer_alignment", 16)?,
        threads_per_block: top.long_or("num_threads_per_block", 1024)?,
        bytes_min: top.long_or("min_message_size", 0)?,
        bytes_max: top.long_or("max_message_size", u64::MAX)?,
        ranks: top.need("gpus", "list what each rank does")?.each(rank)?,
    })
}

/// Reads what a plan is for, without what its ranks do: each has its buffers alone.
///
/// # Errors
/// The text is no JSON, or one of these fields is missing or of another type. O(bytes), some tenth of the whole.
pub fn parse_execution_plan_head(text: &str) -> Result<ExecutionPlan, ExecutionPlanError> {
    let head = head(text).map_err(ExecutionPlanError::Json)?;
    let top = At::top(&head);
    Ok(ExecutionPlan {
        name: top.need("name", "name the plan")?.text()?,
        collective: top.need("collective", "name the collective")?.text()?,
        is_ll: false,
        in_place: top.need("inplace", "use true or false")?.flag()?,
        reuse_resources: false,
        double_scratch: false,
        alignment_bytes: top.long_or("buffer_alignment", 16)?,
        threads_per_block: 0,
        bytes_min: top.long_or("min_message_size", 0)?,
        bytes_max: top.long_or("max_message_size", u64::MAX)?,
        ranks: top.need("gpus", "list what each rank does")?.each(rank_head)?,
    })
}

/// Fields of an object, none of them read; of several of one name the last, as for the whole plan.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The object with the fields of the head alone.
fn head(text: &str) -> serde_json::Result<Json<'_>> {
    let top: Fields<'_> = serde_json::from_str(text)?;
    let names = ["name", "collective", "inplace", "buffer_alignment", "min_message_size", "max_message_size"];
    let mut fields = some_of(&top, &names)?;
    if let Some(ranks) = top.get("gpus") {
        let ranks: Vec<Fields<'_>> = serde_json::from_str(ranks.get())?;
        let rank = |rank| Ok(Json::Object(some_of(rank, &["id", "input_chunks", "output_chunks", "scratch_chunks"])?));
        let ranks = ranks.iter().map(rank).collect::<serde_json::Result<_>>()?;
        fields.push(("gpus".into(), Json::List(ranks)));
    }
    Ok(Json::Object(fields))
}

/// Those of these fields that there are, read.
fn some_of<'a>(fields: &Fields<'a>, names: &[&'static str]) -> serde_json::Result<Vec<(Cow<'a, str>, Json<'a>)>> {
    let read = |name: &&'static str| Some((*name, fields.get(*name)?.get()));
    let found = names.iter().filter_map(read);
    found.map(|(name, value)| Ok((name.into(), serde_json::from_str(value)?))).collect()
}

fn rank_head(at: &At<'_>) -> Read<ExecutionRank> {
    let remedy = "give the number of chunks";
    Ok(ExecutionRank {
        id: at.need("id", "number the ranks from 0")?.number()?,
        input_chunks: at.need("input_chunks", remedy)?.number()?,
        output_chunks: at.need("output_chunks", remedy)?.number()?,
        scratch_chunks: at.need("scratch_chunks", remedy)?.number()?,
        channels: Vec::new(),
        remote_buffers: Vec::new(),
        semaphores: Vec::new(),
        blocks: Vec::new(),
    })
}

fn rank(at: &At<'_>) -> Read<ExecutionRank> {
    let head = rank_head(at)?;
    Ok(ExecutionRank {
        channels: at.need("channels", "list the channels, or []")?.each(channels)?,
        remote_buffers: at.need("remote_buffers", "list the buffers of other ranks, or []")?.each(remote_buffer)?,
        semaphores: at.list_or_empty("semaphores", |at| at.need("init_value", "give its first value")?.number())?,
        blocks: at.need("threadblocks", "list the thread blocks, or []")?.each(block)?,
        ..head
    })
}

fn channels(at: &At<'_>) -> Read<RankChannels> {
    match channel_type(&at.need("channel_type", "use memory, port or switch")?)? {
        Some(ChannelType::Switch) => {
            if at.get("buffer_type").is_none() && at.get("buff").is_some() {
                return Err(ExecutionPlanError::Stale { path: at.path_of("buff"), instead: "buffer_type" });
            }
            let buffer = buffer(&at.need("buffer_type", "use i, o or s")?)?;
            let groups = at.need("rank_groups", "list size and ranks of each group")?.each(|at| {
                let size = at.need("size", "give the number of chunks it spans")?.number()?;
                Ok(SwitchGroup { size, ranks: at.need("ranks", "list its members")?.each(|at| at.number())? })
            })?;
            Ok(RankChannels::Switch { buffer, groups })
        }
        Some(kind) => Ok(RankChannels::Peers {
            is_port: kind == ChannelType::Port,
            peers: at.need("connected_to", "list the peers")?.each(|at| at.number())?,
        }),
        None => Err(at.at("channel_type").wrong("memory, port or switch")),
    }
}

fn remote_buffer(at: &At<'_>) -> Read<RemoteBuffer> {
    let access = at.need("access_channel_types", "list memory, port or both")?;
    Ok(RemoteBuffer {
        rank: at.need("rank", "name the owner")?.number()?,
        buffer: buffer(&at.need("type", "use i, o or s")?)?,
        access: access.each(|at| channel_type(at)?.ok_or_else(|| at.wrong("memory or port")))?,
    })
}

fn block(at: &At<'_>) -> Read<ExecutionBlock> {
    let listed = |at: &At<'_>, kind: &'static str, ids: &'static str| {
        if at.get("buff").is_some() {
            return Err(ExecutionPlanError::Stale { path: at.path_of("buff"), instead: "buffer_type" });
        }
        let of = at.need(kind, "use memory, port or switch")?;
        let of = channel_type(&of)?.ok_or_else(|| of.wrong("memory, port or switch"))?;
        Ok((of, at.need(ids, "list numbers, or []")?.each(|at| at.number())?))
    };
    Ok(ExecutionBlock {
        id: at.need("id", "number the blocks of a rank from 0")?.number()?,
        channels: at.list_or_empty("channels", |at| listed(at, "channel_type", "channel_ids"))?,
        remote_buffers: at
            .list_or_empty("remote_buffer_refs", |at| listed(at, "access_channel_type", "remote_buffer_ids"))?,
        operations: at.need("ops", "list the operations, or []")?.each(operation)?,
    })
}

fn operation(at: &At<'_>) -> Read<ExecutionOp> {
    let word = at.need("name", "name the operation")?;
    let text = word.text()?;
    let name = OpName::ALL.iter().copied().find(|name| name.name() == text);
    let found = || text.chars().take(80).collect();
    let name = name.ok_or_else(|| ExecutionPlanError::UnknownOperation { path: word.path(), found: found() })?;
    let mut operation = ExecutionOp::new(name);
    operation.sources = at.list_or_empty("src_buff", reference)?;
    operation.targets = at.list_or_empty("dst_buff", reference)?;
    operation.channels = at.list_or_empty("channel_ids", |at| at.number())?;
    operation.semaphores = at.list_or_empty("semaphore_ids", |at| at.number())?;
    if at.get("channel_type").is_some() {
        operation.channel_type = channel_type(&at.at("channel_type"))?;
    }
    if at.get("tbg_info").is_some() {
        let group = at.at("tbg_info");
        let count = group.need("tbg_size", "give the number of blocks that share it")?.number()?;
        operation.slice = Some((group.need("tb_id", "give the position of this block")?.number()?, count));
    }
    if name == OpName::Barrier || at.get("barrier_id").is_some() {
        let barrier = at.need("barrier_id", "number the barrier")?.number()?;
        operation.barrier =
            Some((barrier, at.need("num_threadblocks", "give the number of blocks that meet")?.number()?));
    }
    if name == OpName::Pipeline || at.get("iter_context").is_some() {
        let context = at.need("iter_context", "give unit_size and num_chunks")?;
        operation.pipeline = Some(Pipeline {
            unit_bytes: context.need("unit_size", "give the bytes per iteration")?.long()?,
            chunk_count: context.need("num_chunks", "give the chunks that pass")?.number()?,
            operations: at.need("ops", "list the repeated operations")?.each(self::operation)?,
        });
    }
    if at.get("reduce_op").is_some() {
        operation.reduce_op = Some(at.at("reduce_op").text()?);
    }
    Ok(operation)
}

fn reference(at: &At<'_>) -> Read<ChunkRef> {
    at.require_object()?;
    let (local, remote, switch) = (at.get("type"), at.get("buffer_id"), at.get("switch_channel_id"));
    let place = match (local, remote, switch) {
        (Some(_), None, None) => RefPlace::Local(buffer(&at.at("type"))?),
        (None, Some(_), None) => RefPlace::Remote(at.at("buffer_id").number()?),
        (None, None, Some(_)) => RefPlace::Switch(at.at("switch_channel_id").number()?),
        _ if at.get("buff").is_some() => {
            return Err(ExecutionPlanError::Stale { path: at.path_of("buff"), instead: "type" });
        }
        _ => return Err(ExecutionPlanError::NoPlace { path: at.path() }),
    };
    let index = at.need("index", "give the first chunk")?.number()?;
    Ok(ChunkRef { place, index, size: at.need("size", "give the number of chunks")?.number()? })
}

fn buffer(at: &At<'_>) -> Read<Buffer> {
    Buffer::read(&at.text()?).ok_or_else(|| at.wrong("i, o or s"))
}

/// A type of channel; none for the word `none`.
fn channel_type(at: &At<'_>) -> Read<Option<ChannelType>> {
    let text = at.text()?;
    if text == "none" {
        return Ok(None);
    }
    let known = ChannelType::ALL.into_iter().find(|kind| kind.name() == text);
    known.map(Some).ok_or_else(|| at.wrong("memory, port, switch or none"))
}

#[cfg(test)]
pub(super) mod tests;
