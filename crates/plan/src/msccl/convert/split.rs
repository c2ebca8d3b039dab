//! Splits operations that a runtime does not have into those it has.
//!
//! | step | becomes |
//! |---|---|
//! | `rcs` | `r` dst · `s` dst |
//! | `rrc` | `r` dst · `re` src into dst; where both are the same place: `r` scratch · `re` scratch into dst |
//! | `rrcs` | the same, then `s` dst |
//! | `rrs` | `r` scratch · `re` src into scratch · `s` scratch |
//!
//! The first step takes over the wait, the last the publication. A block needs scratch for its widest step only, as
//! its steps run one after the other.

use std::collections::BTreeMap;

use super::{Change, ConvertError};
use crate::msccl::profile::Profile;
use crate::msccl::program::{Buffer, Chunks, Operation, Program, RankProgram, Step, ThreadBlock};

/// Splits every step whose operation `to` lacks.
pub(super) fn split(program: &mut Program, to: Profile, changes: &mut Vec<Change>) -> Result<(), ConvertError> {
    let mut counts: BTreeMap<&'static str, (Operation, u64)> = BTreeMap::new();
    let mut scratch_added = 0;
    for rank in &mut program.ranks {
        let scratch = rank.scratch_chunks;
        split_rank(rank, to, &mut counts)?;
        scratch_added = scratch_added.max(rank.scratch_chunks - scratch);
    }
    changes.extend(counts.into_values().map(|(operation, count)| Change::Split { operation, count }));
    if scratch_added > 0 {
        changes.push(Change::Scratch { chunks: scratch_added });
    }
    Ok(())
}

fn split_rank(
    rank: &mut RankProgram,
    to: Profile,
    counts: &mut BTreeMap<&'static str, (Operation, u64)>,
) -> Result<(), ConvertError> {
    let limit = to.limits().offset;
    let mut positions: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for block in &mut rank.thread_blocks {
        let needs_scratch = |step: &&Step| !to.allows(step.operation) && receives_apart(step);
        let widest = block.steps.iter().filter(needs_scratch).map(|step| step.chunk_count).max().unwrap_or(0);
        let scratch = rank.scratch_chunks;
        let grown = scratch.checked_add(widest).filter(|&grown| widest == 0 || grown <= limit);
        rank.scratch_chunks = grown.ok_or(ConvertError::Scratch { rank: rank.rank, limit })?;
        let last_positions = split_block(block, to, Chunks { buffer: Buffer::Scratch, offset: Some(scratch) }, counts);
        positions.insert(block.id, last_positions);
    }
    // Whoever waited for a step waits for its last part.
    for step in rank.thread_blocks.iter_mut().flat_map(|block| &mut block.steps) {
        let moved = |wait_block: u32, wait_step: u32| positions.get(&wait_block)?.get(wait_step as usize).copied();
        if let (Some(wait_block), Some(wait_step)) = (step.wait_block, step.wait_step)
            && let Some(position) = moved(wait_block, wait_step)
        {
            step.wait_step = Some(position);
        }
    }
    Ok(())
}

/// Whether what a step receives must not lie where it adds.
fn receives_apart(step: &Step) -> bool {
    match step.operation {
        Operation::ReceiveReduceSend => true,
        Operation::ReceiveReduceCopy | Operation::ReceiveReduceCopySend => step.source == step.destination,
        _ => false,
    }
}

/// Returns the new position of the last part of each old step.
fn split_block(
    block: &mut ThreadBlock,
    to: Profile,
    scratch: Chunks,
    counts: &mut BTreeMap<&'static str, (Operation, u64)>,
) -> Vec<u32> {
    let mut steps: Vec<Step> = Vec::with_capacity(block.steps.len());
    let mut positions = Vec::with_capacity(block.steps.len());
    for step in &block.steps {
        if to.allows(step.operation) {
            steps.push(*step);
        } else {
            counts.entry(step.operation.name()).or_insert((step.operation, 0)).1 += 1;
            steps.extend(parts(step, scratch));
        }
        positions.push(u32::try_from(steps.len() - 1).unwrap_or(u32::MAX));
    }
    for (position, step) in (0_u32..).zip(&mut steps) {
        step.index = position;
    }
    block.steps = steps;
    positions
}

/// A step as several.
fn parts(step: &Step, scratch: Chunks) -> Vec<Step> {
    let apart = receives_apart(step);
    let arrived = if apart { scratch } else { step.destination };
    let part = |operation, source, destination| Step {
        operation,
        source,
        destination,
        wait_block: None,
        wait_step: None,
        is_awaited: false,
        ..*step
    };
    let mut parts = vec![part(Operation::Receive, arrived, arrived)];
    let result = match step.operation {
        Operation::ReceiveReduceSend => {
            parts.push(part(Operation::Reduce, step.source, scratch));
            scratch
        }
        Operation::ReceiveReduceCopy | Operation::ReceiveReduceCopySend => {
            let addend = if apart { scratch } else { step.source };
            parts.push(part(Operation::Reduce, addend, step.destination));
            step.destination
        }
        _ => step.destination,
    };
    if step.operation.sends() {
        parts.push(part(Operation::Send, result, result));
    }
    if let Some(first) = parts.first_mut() {
        (first.wait_block, first.wait_step) = (step.wait_block, step.wait_step);
    }
    if let Some(last) = parts.last_mut() {
        last.is_awaited = step.is_awaited;
    }
    parts
}
