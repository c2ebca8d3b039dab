//! What the loader and the kernel need of pipelines and of scratch that plans share, and do not check.

use super::super::profile::ExecutorProfile;
use super::super::program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, Pipeline, RefPlace,
};
use super::{message_chunks, shared_chunk_bytes};
use crate::msccl::{Buffer, Findings, Place};

/// Most repetitions that the runtime counts.
const REPETITIONS_MAX: u64 = u16::MAX as u64;
/// Bytes that the kernel reads at once: offsets inside are cut off.
const WORD_BYTES: u64 = 16;

/// An operation and what it repeats.
pub(super) fn with_nested(operation: &ExecutionOp) -> impl Iterator<Item = &ExecutionOp> {
    std::iter::once(operation).chain(operation.repeated().into_iter().flat_map(|pipeline| &pipeline.operations))
}

/// Units that the kernel can count in.
pub(super) fn structure(pipeline: &Pipeline, place: Place, findings: &mut Findings<'_>) {
    let unit = pipeline.unit_bytes;
    if unit == 0 || !unit.is_multiple_of(WORD_BYTES) || unit > u64::from(u32::MAX) {
        findings.problem(place, format!("unit_size is {unit}; use a multiple of {WORD_BYTES} below 2^32"));
    }
    if pipeline.chunk_count == 0 {
        findings.problem(place, "num_chunks is 0, so nothing is repeated; use at least 1");
    }
    if pipeline.operations.is_empty() {
        findings.problem(place, "a pipeline has no operations; remove it");
    }
}

/// Whether the largest message repeats pipelines no more often than the runtime counts, and has room in shared scratch
/// outside of pipelines. A plan that bounds no message is only warned about.
pub(super) fn limits(plan: &ExecutionPlan, profile: ExecutorProfile, findings: &mut Findings<'_>) {
    let Some(bytes_max) = profile.bytes_max_inclusive(plan.bytes_max) else { return };
    let chunk_bytes = bytes_max / u64::from(message_chunks(plan).max(1));
    let mut found = |place, message: String| {
        if plan.bytes_max >= u64::MAX - 1 { findings.warning(place, message) } else { findings.problem(place, message) }
    };
    let shared = shared_chunk_bytes(plan).filter(|&bytes| bytes < chunk_bytes);
    for (rank, of_rank) in (0_u32..).zip(&plan.ranks) {
        for (number, block) in (0_u32..).zip(&of_rank.blocks) {
            for (step, operation) in (0_u32..).zip(&block.operations) {
                let place = Place::step(rank, number, step);
                if let Some(pipeline) = operation.repeated() {
                    let passes = u128::from(chunk_bytes) * u128::from(pipeline.chunk_count);
                    let times = passes.div_ceil(u128::from(pipeline.unit_bytes.max(1)));
                    if times > u128::from(REPETITIONS_MAX) {
                        let remedy = "lower max_message_size or raise unit_size";
                        found(
                            place,
                            format!(
                                "messages of {bytes_max} bytes repeat it {times} times, over the limit of \
                                 {REPETITIONS_MAX}; {remedy}"
                            ),
                        );
                        return;
                    }
                } else if let Some(bytes) = shared.filter(|_| has_scratch(of_rank, block, operation)) {
                    let message = format!(
                        "a chunk of shared scratch has {bytes} bytes, but messages up to {bytes_max} bytes need \
                         {chunk_bytes}"
                    );
                    found(place, message + "; use a pipeline or lower max_message_size");
                    return;
                }
            }
        }
    }
}

/// Whether an operation reads or writes scratch, its own or another rank's.
fn has_scratch(rank: &ExecutionRank, block: &ExecutionBlock, operation: &ExecutionOp) -> bool {
    let remote = |id: u32| {
        let number = block.remotes_of(operation.channel_type?).nth(id as usize)?;
        rank.remote_buffers.get(number as usize).map(|remote| remote.buffer)
    };
    let group = |id: u32| {
        let number = block.channels_of(ChannelType::Switch).nth(id as usize)?;
        rank.switch_groups().nth(number as usize).map(|(buffer, _)| buffer)
    };
    let buffer = |reference: &ChunkRef| match reference.place {
        RefPlace::Local(buffer) => Some(buffer),
        RefPlace::Remote(id) => remote(id),
        RefPlace::Switch(id) => group(id),
    };
    operation.sources.iter().chain(&operation.targets).any(|reference| buffer(reference) == Some(Buffer::Scratch))
}
