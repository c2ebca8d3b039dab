//! Sizes of messages for which a plan is followed.
//!
//! Most plans do the same for messages of every size: chunks are cut into as many cells as slices of blocks tell apart, and
//! that is all. A pipeline repeats its operations as often as the message needs, a unit of so many bytes each time and the rest
//! the last time. So such a plan is followed for several sizes: with one repetition and with some, with and without a rest,
//! with more than its semaphores let ahead, and with more than shared scratch has room for.

use std::collections::BTreeSet;

use super::super::loader::{message_chunks, shared_chunk_bytes};
use super::super::program::{ExecutionOp, ExecutionPlan, Pipeline};
use super::CELLS_MAX;
use crate::batches::divisor;
use crate::msccl::{Findings, Place};

/// Most parts of a chunk that slices tell apart.
const GRAIN_MAX: u64 = 64;
/// Most operations, repetitions counted, of all sizes together.
const EVENTS_MAX: u64 = 1 << 18;

/// A size of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Cells of a chunk.
    pub(super) grain: u64,
    /// Cells of a chunk of scratch: fewer where scratch is shared and has no room for all.
    pub(super) scratch_grain: u64,
    /// So many cells are so many bytes.
    cells: u64,
    bytes: u64,
}

/// What one repetition handles of every reference, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: u64,
    pub(super) count: u64,
    /// Chunks that pass in all.
    pub(super) chunks: u32,
}

impl Scale {
    /// The repetitions of a pipeline, whose unit is not 0.
    pub(super) fn parts(&self, pipeline: &Pipeline) -> impl Iterator<Item = Part> + use<> {
        let total = u64::from(pipeline.chunk_count) * self.grain;
        let unit = (pipeline.unit_bytes / self.bytes.max(1) * self.cells).max(1);
        let chunks = pipeline.chunk_count;
        let starts = (0..total.div_ceil(unit)).map(move |number| number * unit);
        starts.map(move |first| Part { first, count: unit.min(total - first), chunks })
    }

    /// Whether a chunk of scratch holds less than a chunk of the message.
    pub(super) const fn wraps(&self) -> bool {
        self.scratch_grain < self.grain
    }
}

/// All pipelines of a plan.
fn pipelines(plan: &ExecutionPlan) -> impl Iterator<Item = &Pipeline> {
    let blocks = plan.ranks.iter().flat_map(|rank| &rank.blocks);
    blocks.flat_map(|block| &block.operations).filter_map(|operation| operation.repeated())
}

/// The sizes for which a plan is followed, rising; none, and a problem, if it cannot be.
pub(crate) fn scales(plan: &ExecutionPlan, findings: &mut Findings<'_>) -> Vec<Scale> {
    let Some(slices) = slices(plan, findings) else { return Vec::new() };
    let units: BTreeSet<u64> = pipelines(plan).map(|pipeline| pipeline.unit_bytes).collect();
    let Some(&largest) = units.last() else {
        return vec![Scale { grain: slices, scratch_grain: slices, cells: slices, bytes: 1 }];
    };
    let unit = units.iter().fold(0, |a, &b| divisor(a, b)).max(1);
    let shared = shared_chunk_bytes(plan);
    if let Some(bytes) = shared.filter(|bytes| units.iter().any(|&unit| unit == 0 || !bytes.is_multiple_of(unit))) {
        let message = format!(
            "a chunk of shared scratch has {bytes} bytes, and unit_size does not divide them, so a repetition would run \
             into the next chunk"
        );
        findings.problem(Place::FILE, message);
        return Vec::new();
    }
    // In halves of a unit, so that the last repetition may be short.
    let ahead = plan.ranks.iter().flat_map(|rank| &rank.semaphores).max().map_or(0, |&ahead| u64::from(ahead));
    let (ratio, room) = (largest / unit, shared.map_or(0, |bytes| bytes / unit));
    let wanted = [1, 2, 3, 4, 5, 2 * ratio + 1, 4 * ratio + 1];
    let beyond = [ahead.saturating_add(1).saturating_mul(2 * ratio), room * 2, room * 4];
    let beyond = beyond.into_iter().filter(|&halves| halves > 0).flat_map(|halves| [halves, halves.saturating_add(1)]);
    let message_chunks = u64::from(message_chunks(plan)).max(1);
    let halves_of = |bytes: u64| u128::from(bytes) * 2 / (u128::from(unit) * u128::from(message_chunks));
    let (least, most) = (halves_of(plan.bytes_min).max(1), halves_of(plan.bytes_max).max(1));
    let mut halves: BTreeSet<u64> = wanted.into_iter().chain(beyond).collect();
    halves.extend(u64::try_from(least));
    halves.retain(|&halves| (least..=most).contains(&u128::from(halves)));
    let mut scales = Vec::new();
    let mut events = 0_u64;
    let mut last = 0;
    for halves in halves {
        let grain = halves.saturating_mul(slices);
        let scratch_grain = if shared.is_some() { grain.min(room * 2 * slices) } else { grain };
        let scale = Scale { grain, scratch_grain, cells: 2 * slices, bytes: unit };
        events = events.saturating_add(scale.events(plan));
        if events > EVENTS_MAX || chunks(plan).saturating_mul(grain) > CELLS_MAX / 4 {
            break;
        }
        scales.push(scale);
        last = halves;
    }
    if scales.is_empty() {
        let message =
            "pipelines repeat more often than the proof can follow; use larger unit_size, or smaller messages";
        findings.problem(Place::FILE, message);
    } else if u128::from(last) < most {
        let bytes = u128::from(last) * u128::from(unit) / 2 * u128::from(message_chunks);
        let message =
            format!("the proof follows pipelines for messages up to {bytes} bytes, and larger ones repeat more often");
        findings.warning(Place::FILE, message);
    }
    scales
}

impl Scale {
    /// Operations of a plan with all repetitions.
    fn events(&self, plan: &ExecutionPlan) -> u64 {
        let of = |operation: &ExecutionOp| match operation.repeated() {
            None => 1,
            Some(pipeline) => {
                let total = u64::from(pipeline.chunk_count).saturating_mul(self.grain);
                let unit = (pipeline.unit_bytes / self.bytes.max(1)).saturating_mul(self.cells).max(1);
                total.div_ceil(unit).saturating_mul(pipeline.operations.len() as u64)
            }
        };
        let blocks = plan.ranks.iter().flat_map(|rank| &rank.blocks);
        blocks.flat_map(|block| &block.operations).map(of).fold(0, u64::saturating_add)
    }
}

fn chunks(plan: &ExecutionPlan) -> u64 {
    let of = |rank: &super::ExecutionRank| [rank.input_chunks, rank.output_chunks, rank.scratch_chunks].map(u64::from);
    plan.ranks.iter().flat_map(of).sum()
}

/// Parts of a chunk that slices can tell apart.
fn slices(plan: &ExecutionPlan, findings: &mut Findings<'_>) -> Option<u64> {
    let operations = plan.ranks.iter().flat_map(|rank| &rank.blocks).flat_map(|block| &block.operations);
    let nested = operations.flat_map(|operation| {
        std::iter::once(operation).chain(operation.repeated().into_iter().flat_map(|pipeline| &pipeline.operations))
    });
    let mut grain = 1_u64;
    for (_, count) in nested.filter_map(|operation| operation.slice) {
        let count = u64::from(count.max(1));
        grain = grain / divisor(grain, count) * count;
        if grain > GRAIN_MAX {
            let message = format!(
                "groups of blocks share operations in slices of {grain} parts of a chunk, over the limit of \
                 {GRAIN_MAX}; use groups of similar size"
            );
            findings.problem(Place::FILE, message);
            return None;
        }
    }
    Some(grain)
}
