//! Where the buffers of a rank are.

use std::ops::Range;

use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;

use super::program::{Program, RankProgram, Span};
use crate::msccl::Buffer;

/// Chunks of one rank's share, in all-to-all of one block; of the whole message where the collective knows no shares,
/// and in allreduce, which divides the whole vector.
pub(crate) fn share_chunks(program: &Program) -> u32 {
    if program.collective.kind().has_shares() {
        program.chunk_count / program.rank_count.max(1)
    } else {
        program.chunk_count
    }
}

/// Chunks of the input and of the output that a rank's caller gives it. Only the root has an input in broadcast and
/// scatter, and an output in reduce and gather.
pub(crate) fn expected_chunks(program: &Program, rank: u32) -> (u32, u32) {
    let (chunks, share) = (program.chunk_count, share_chunks(program));
    let is_root = program.collective.root() == Some(Rank::new(rank));
    let of_root = |count| if is_root { count } else { 0 };
    match program.collective.kind() {
        CollectiveKind::Allgather => (share, chunks),
        CollectiveKind::ReduceScatter => (chunks, share),
        CollectiveKind::Allreduce | CollectiveKind::AllToAll => (chunks, chunks),
        CollectiveKind::Broadcast => (of_root(chunks), chunks),
        CollectiveKind::Reduce => (chunks, of_root(chunks)),
        CollectiveKind::Gather => (share, of_root(chunks)),
        CollectiveKind::Scatter => (of_root(chunks), share),
    }
}

/// Where a rank's buffers lie in one array of chunks, so that in-place programs share cells as the caller's do.
///
/// Out of place the three buffers are disjoint. In place a rank with both has one buffer for both: allgather's and
/// gather's `i[k]` is `o[r·s + k]` with shares of `s` chunks, reduce-scatter's and scatter's `o[k]` is `i[r·s + k]`,
/// elsewhere `i[k]` is `o[k]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    input: (u64, u64),
    output: (u64, u64),
    scratch: (u64, u64),
    /// The input may be written.
    is_input_free: bool,
}

impl Memory {
    /// Lays out the buffers of one rank.
    pub(crate) fn new(program: &Program, rank: &RankProgram) -> Self {
        use CollectiveKind::{Allgather, Gather, ReduceScatter, Scatter};
        let (input, output) = expected_chunks(program, rank.rank);
        let (input, output) = (u64::from(input), u64::from(output));
        let kind = program.collective.kind();
        let shares = program.in_place && input > 0 && output > 0;
        let own = u64::from(rank.rank) * u64::from(share_chunks(program));
        let (input_base, output_base) = match kind {
            _ if !shares => (0, input),
            Allgather | Gather => (own, 0),
            ReduceScatter | Scatter => (0, own),
            _ => (0, 0),
        };
        let scratch_base = if shares { input.max(output) } else { input + output };
        Self {
            input: (input_base, input),
            output: (output_base, output),
            scratch: (scratch_base, u64::from(rank.scratch_chunks)),
            // The root of a scatter shares its own part of the input only.
            is_input_free: shares && kind != Scatter,
        }
    }

    /// First cell and number of chunks of a buffer.
    pub(crate) const fn place(&self, buffer: Buffer) -> (u64, u64) {
        match buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
        }
    }

    /// Cells in all.
    pub(crate) const fn cell_count(&self) -> u64 {
        self.scratch.0 + self.scratch.1
    }

    /// Chunks of a buffer.
    pub(crate) const fn chunks(&self, buffer: Buffer) -> u64 {
        self.place(buffer).1
    }

    /// Whether programs may write a buffer.
    pub(crate) const fn is_free(&self, buffer: Buffer) -> bool {
        !matches!(buffer, Buffer::Input) || self.is_input_free
    }

    /// Whether all chunks of a span exist.
    pub(crate) fn has(&self, span: Span) -> bool {
        u64::from(span.first) + u64::from(span.count) <= self.chunks(span.buffer)
    }

    /// Cells of a span.
    pub(crate) fn cells(&self, span: Span) -> Range<u64> {
        let start = self.place(span.buffer).0 + u64::from(span.first);
        start..start + u64::from(span.count)
    }
}
