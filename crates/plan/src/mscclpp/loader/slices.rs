//! Slices of blocks: which messages the loader divides among them without a rest.

use std::collections::BTreeSet;

use super::{message_chunks, pipelines};
use crate::msccl::{Findings, Place};
use crate::mscclpp::program::ExecutionPlan;

/// Whether slices are what they are meant to be for all messages.
///
/// The loader cuts a reference in units of `buffer_alignment`: where there are fewer units than slices, some slices have no
/// size or one that wraps, and where units do not divide evenly, references of other sizes, or in another number of slices,
/// are cut elsewhere.
///
/// Source: `calcOffset` and `calcSize` of the loader.
pub(super) fn limits(plan: &ExecutionPlan, findings: &mut Findings<'_>) {
    let operations = plan.ranks.iter().flat_map(|rank| &rank.blocks).flat_map(|block| &block.operations);
    let mut cut = BTreeSet::new();
    let mut least = 0_u128;
    for operation in operations.flat_map(pipelines::with_nested) {
        let Some((_, count)) = operation.slice.filter(|(_, count)| *count > 1) else { continue };
        for reference in operation.sources.iter().chain(&operation.targets).filter(|reference| reference.size > 0) {
            let chunk_units = u128::from(count).div_ceil(u128::from(reference.size));
            least = least.max(chunk_units * u128::from(plan.alignment_bytes) * u128::from(message_chunks(plan)));
            // Whole chunks for each slice are cut between chunks, whatever their size.
            if !reference.size.is_multiple_of(count) {
                cut.insert((reference.size, count));
            }
        }
    }
    if let [(size, count), (other_size, other_count), ..] = cut.iter().copied().collect::<Vec<_>>()[..] {
        let message = format!(
            "blocks share {size} chunks in {count} slices and {other_size} in {other_count}, which the loader cuts at different \
             places unless a message divides evenly; use one size and number for all"
        );
        findings.problem(Place::FILE, message);
    }
    if u128::from(plan.bytes_min) < least {
        let message = format!(
            "messages of less than {least} bytes have fewer parts than slices, which the loader gets wrong; raise \
             min_message_size"
        );
        if plan.bytes_min == 0 {
            findings.warning(Place::FILE, message);
        } else {
            findings.problem(Place::FILE, message);
        }
    }
}
