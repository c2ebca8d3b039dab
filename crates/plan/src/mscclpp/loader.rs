//! What the loader needs of a plan, including what it does not check itself: sizes, numbers and tables.

mod groups;
mod pipelines;
mod slices;

use canopy_schedule::CollectiveKind;

use super::contract;
use super::profile::ExecutorProfile;
use super::program::{ChannelType, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, OpName, RankChannels};
use crate::msccl::{Findings, Place};

/// Most ranks and chunks that a plan is followed for.
const RANKS_MAX: usize = 1 << 16;
/// Scratch that plans with `reuse_resources` share, in bytes.
const SHARED_SCRATCH_BYTES: u64 = 1 << 26;
/// Bytes that the kernel moves at once.
const MOVED_BYTES: u64 = 16;

/// Order of ranks and blocks, counts of chunks, and every number at both levels.
pub(super) fn structure(plan: &ExecutionPlan, profile: ExecutorProfile, findings: &mut Findings<'_>) {
    head(plan, profile, findings);
    for (position, rank) in (0_u32..).zip(&plan.ranks) {
        let place = Place::rank(position);
        if rank.id != position {
            findings.problem(place, format!("gpus[{position}] has id {}; list the ranks in order", rank.id));
        }
        for (field, chunks) in [("input_chunks", rank.input_chunks), ("output_chunks", rank.output_chunks)] {
            if chunks == 0 {
                findings.problem(place, format!("{field} is 0, but the loader divides by it; use at least 1"));
            }
        }
        if let Some(first) = plan.ranks.first()
            && (first.input_chunks, first.output_chunks) != (rank.input_chunks, rank.output_chunks)
        {
            findings.problem(place, "the counts of chunks differ from rank 0's; use one size on all ranks");
        }
        rank_lists(plan, rank, place, findings);
        for (number, block) in (0_u32..).zip(&rank.blocks) {
            let place = Place::block(position, number);
            if block.id != number {
                findings.problem(place, format!("threadblocks[{number}] has id {}; list them in order", block.id));
            }
            block_lists(rank, block, place, findings);
            for (step, operation) in (0_u32..).zip(&block.operations) {
                let place = Place::step(position, number, step);
                if let Some(pipeline) = operation.repeated() {
                    pipelines::structure(pipeline, place, findings);
                }
                for operation in pipelines::with_nested(operation) {
                    operation_numbers(rank, block, operation, place, findings);
                    if !profile.knows(operation.name) {
                        let name = operation.name.name();
                        let first = ExecutorProfile::first_with(operation.name);
                        let message = format!("{profile} has no operation {name}; use {first}");
                        findings.problem(place, message);
                    }
                }
            }
        }
        if findings.must_stop(rank.blocks.len() as u64) {
            return;
        }
    }
    groups::check(plan, findings);
}

fn head(plan: &ExecutionPlan, profile: ExecutorProfile, findings: &mut Findings<'_>) {
    let mut problem = |message: String| findings.problem(Place::FILE, message);
    if plan.ranks.len() < 2 || plan.ranks.len() > RANKS_MAX {
        problem(format!("{} gpus; a collective has 2 to {RANKS_MAX}", plan.ranks.len()));
    }
    if plan.alignment_bytes == 0 || !plan.alignment_bytes.is_multiple_of(MOVED_BYTES) {
        let alignment = plan.alignment_bytes;
        problem(format!("buffer_alignment is {alignment}, but the kernel moves {MOVED_BYTES} bytes at once; use 16"));
    }
    let threads = profile.limits().threads_per_block;
    if plan.threads_per_block == 0 || plan.threads_per_block > threads {
        problem(format!("num_threads_per_block is {}; use 1 to {threads}", plan.threads_per_block));
    }
    match profile.bytes_max_inclusive(plan.bytes_max) {
        Some(max) if plan.bytes_min <= max => {}
        _ => problem(format!(
            "no message is from min_message_size {} to max_message_size {}; widen the range",
            plan.bytes_min, plan.bytes_max
        )),
    }
}

fn rank_lists(plan: &ExecutionPlan, rank: &ExecutionRank, place: Place, findings: &mut Findings<'_>) {
    let is_rank = |&other: &u32| (other as usize) < plan.ranks.len();
    for entry in &rank.channels {
        match entry {
            RankChannels::Peers { peers, .. } => {
                if let Some(peer) = peers.iter().find(|peer| !is_rank(peer) || **peer == rank.id) {
                    findings.problem(place, format!("a channel connects to {peer}, which is not another rank"));
                }
            }
            RankChannels::Switch { groups, .. } => {
                for group in groups {
                    if !group.ranks.iter().all(is_rank) || !group.ranks.contains(&rank.id) {
                        findings.problem(place, "a rank group omits the rank itself or names one that does not exist");
                    }
                    let mut sorted = group.ranks.clone();
                    sorted.sort_unstable();
                    sorted.dedup();
                    if sorted.len() != group.ranks.len() {
                        findings.problem(place, "a rank group names a rank twice");
                    }
                }
            }
        }
    }
    for (number, remote) in rank.remote_buffers.iter().enumerate() {
        if !is_rank(&remote.rank) || remote.rank == rank.id {
            findings.problem(
                place,
                format!("remote_buffers[{number}] belongs to {}, which is not another rank", remote.rank),
            );
        }
        if remote.access.is_empty() || remote.access.contains(&ChannelType::Switch) {
            findings.problem(place, format!("remote_buffers[{number}] has no usable access; use memory, port or both"));
        }
        // Two ends that register the same buffer twice would be told apart only by their order.
        let is_same =
            |other: &&super::program::RemoteBuffer| (other.rank, other.buffer) == (remote.rank, remote.buffer);
        if rank.remote_buffers.iter().take(number).any(|other| is_same(&other)) {
            findings.problem(place, format!("remote_buffers[{number}] repeats an earlier one; list each once"));
        }
    }
}

/// Channels of a type that a rank has, all entries together.
pub(super) fn channel_count(rank: &ExecutionRank, of: ChannelType) -> usize {
    let count = |entry: &RankChannels| match (entry, of) {
        (RankChannels::Peers { is_port: false, peers }, ChannelType::Memory)
        | (RankChannels::Peers { is_port: true, peers }, ChannelType::Port) => peers.len(),
        (RankChannels::Switch { groups, .. }, ChannelType::Switch) => groups.len(),
        _ => 0,
    };
    rank.channels.iter().map(count).sum()
}

fn block_lists(rank: &ExecutionRank, block: &ExecutionBlock, place: Place, findings: &mut Findings<'_>) {
    for (kind, ids) in &block.channels {
        let count = channel_count(rank, *kind);
        if let Some(id) = ids.iter().find(|id| **id as usize >= count) {
            findings.problem(place, format!("channel_ids has {id}, but the rank has {count} {} channels", kind.name()));
        }
    }
    for (kind, ids) in &block.remote_buffers {
        for &id in ids {
            match rank.remote_buffers.get(id as usize) {
                None => findings.problem(place, format!("remote_buffer_ids has {id}, which the rank does not list")),
                Some(remote) if !remote.access.contains(kind) => {
                    let message =
                        format!("remote buffer {id} is not accessible by {}; add that to its access", kind.name());
                    findings.problem(place, message);
                }
                Some(_) => {}
            }
        }
    }
}

fn operation_numbers(
    rank: &ExecutionRank,
    block: &ExecutionBlock,
    operation: &ExecutionOp,
    place: Place,
    findings: &mut Findings<'_>,
) {
    let name = operation.name.name();
    if !operation.channels.is_empty() {
        let count = operation.channel_type.map_or(0, |kind| block.channels_of(kind).count());
        if let Some(id) = operation.channels.iter().find(|id| **id as usize >= count) {
            let message = format!("{name} uses channel {id}, but the block has {count} of this type");
            findings.problem(place, message);
        }
    }
    if let Some((position, count)) = operation.slice
        && position >= count
    {
        findings.problem(place, format!("{name} is slice {position}, but there are {count} slices"));
    }
    if let Some(id) = operation.semaphores.iter().find(|id| **id as usize >= rank.semaphores.len()) {
        findings.problem(place, format!("{name} uses semaphore {id}, but the rank has {}", rank.semaphores.len()));
    }
    if let Some(word) = operation.reduce_op.as_ref().filter(|word| *word != "sum") {
        let word: String = word.chars().take(80).collect();
        findings.problem(place, format!("reduce_op is `{word}`, but the runtime ignores it and always sums"));
    }
    if operation.name == OpName::Flush {
        findings.problem(place, FLUSH);
    }
}

/// What the kernel makes of `flush`, of which it takes the number of channels from a field that is not written.
pub(super) const FLUSH: &str = "flush does nothing in this runtime; use pwsf from 0.10 on, or wait for a signal back";

/// Tables of the runtime that are not checked when a plan is loaded, and the size of what is asked for.
pub(super) fn limits(plan: &ExecutionPlan, profile: ExecutorProfile, findings: &mut Findings<'_>) {
    let limits = profile.limits();
    let over = |findings: &mut Findings<'_>, place, what: &str, found: usize, limit: u32| {
        if found > limit as usize {
            findings.problem(place, format!("{found} {what}, over the limit of {limit}"));
        }
    };
    for (position, rank) in (0_u32..).zip(&plan.ranks) {
        if rank.blocks.len() > limits.blocks_resident as usize {
            let (found, limit) = (rank.blocks.len(), limits.blocks_resident);
            let message = format!(
                "{found} thread blocks, of which more than {limit} may not run at once, and waiting blocks spin"
            );
            findings.warning(Place::rank(position), message);
        }
        for (number, block) in (0_u32..).zip(&rank.blocks) {
            let place = Place::block(position, number);
            let nested = |operation: &ExecutionOp| 1 + operation.repeated().map_or(0, |pipe| pipe.operations.len());
            let count = block.operations.iter().map(nested).sum();
            over(findings, place, "operations in the block", count, limits.operations_per_block);
            for kind in ChannelType::ALL {
                let (channels, remotes) = (block.channels_of(kind).count(), block.remotes_of(kind).count());
                over(findings, place, "channels of a type in the block", channels, limits.channels_per_block);
                over(findings, place, "remote buffers of a type in the block", remotes, limits.remotes_per_block);
            }
            if let Some(id) = block.remote_buffers.iter().flat_map(|(_, ids)| ids).find(|id| **id > limits.index) {
                let message =
                    format!("remote buffer {id} does not fit the runtime's tables, which end at {}", limits.index);
                findings.problem(place, message);
            }
            for (step, operation) in (0_u32..).zip(&block.operations) {
                let place = Place::step(position, number, step);
                for operation in pipelines::with_nested(operation) {
                    over(
                        findings,
                        place,
                        "channels in the operation",
                        operation.channels.len(),
                        limits.channels_per_operation,
                    );
                    let references = operation.sources.len().max(operation.targets.len());
                    over(findings, place, "references in the operation", references, limits.references_per_operation);
                    let semaphores = operation.semaphores.len();
                    over(findings, place, "semaphores in the operation", semaphores, limits.semaphores_per_operation);
                    if operation.barrier.is_some_and(|(barrier, _)| barrier >= limits.barriers) {
                        findings.problem(place, format!("barrier_id must be below {}", limits.barriers));
                    }
                }
            }
        }
    }
    offsets(plan, profile, findings);
    slices::limits(plan, findings);
    pipelines::limits(plan, profile, findings);
    if plan.ranks.iter().any(|rank| channel_count(rank, ChannelType::Switch) > 0) {
        findings.warning(Place::FILE, SWITCHES_NEED);
    }
    if plan.collective == contract::word(CollectiveKind::AllToAll) && !profile.limits().intercepts_all_to_all {
        findings.warning(Place::FILE, format!("{profile} {NO_ALL_TO_ALL}"));
    }
}

/// What a program must do whose calls to NCCL are answered by the runtime.
const NO_ALL_TO_ALL: &str =
    "does not answer NCCL's all-to-all calls, so a program must run this plan by MSCCL++'s own executor";

/// What is asked of those who run switch channels: the kernel has no code for other accelerators and types, and says nothing.
const SWITCHES_NEED: &str = "switch channels need GPUs of compute capability 9.0 or later, multicast-capable buffers of \
                             equal length on all ranks, and 16-bit or 32-bit elements, and otherwise have no effect";

/// Whether the offsets of the largest message fit 32 bits. A plan that bounds no message is only warned about.
fn offsets(plan: &ExecutionPlan, profile: ExecutorProfile, findings: &mut Findings<'_>) {
    let Some(bytes_max) = profile.bytes_max_inclusive(plan.bytes_max) else { return };
    // Packets and halves that launches alternate between are in scratch only.
    let copies = if plan.is_ll { 2 } else { 1 } * if plan.double_scratch { 2 } else { 1 };
    let of_rank = |rank: &ExecutionRank| {
        let buffers = rank.input_chunks.max(rank.output_chunks);
        u128::from(buffers).max(u128::from(rank.scratch_chunks) * copies)
    };
    let chunks_max = plan.ranks.iter().map(of_rank).max().unwrap_or(0);
    let chunk_bytes = u128::from(bytes_max) / u128::from(message_chunks(plan).max(1));
    let need = chunk_bytes * chunks_max;
    if need > u128::from(profile.limits().offset_bytes) {
        let limit = profile.limits().offset_bytes;
        let message =
            format!("messages up to {bytes_max} bytes need offsets up to {need}, over {limit}; lower max_message_size");
        if plan.bytes_max >= u64::MAX - 1 {
            findings.warning(Place::FILE, message);
        } else {
            findings.problem(Place::FILE, message);
        }
    }
}

/// Chunks of what the runtime measures as the size of a message: the output of an allgather, the input of all others.
pub(crate) fn message_chunks(plan: &ExecutionPlan) -> u32 {
    let Some(first) = plan.ranks.first() else { return 0 };
    if plan.collective == "allgather" { first.output_chunks } else { first.input_chunks }
}

/// Bytes of a chunk of shared scratch; none where a plan has scratch of its own, or none.
///
/// Source: `calScratchBufferSize` and `calMaxScratchChunkSize` of the loader.
pub(super) fn shared_chunk_bytes(plan: &ExecutionPlan) -> Option<u64> {
    let chunks = plan.ranks.iter().map(|rank| u64::from(rank.scratch_chunks)).max().filter(|&chunks| chunks > 0)?;
    let all = if plan.double_scratch { SHARED_SCRATCH_BYTES / 2 } else { SHARED_SCRATCH_BYTES };
    let alignment = plan.alignment_bytes.max(1);
    plan.reuse_resources.then(|| all.div_ceil(chunks).div_ceil(alignment).saturating_mul(alignment))
}
