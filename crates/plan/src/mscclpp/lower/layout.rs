//! Where the chunks of a collective lie in the buffers of its ranks.

use std::ops::Range;

use canopy_schedule::{Collective, CollectiveKind, Shares, TransferGraph};

use super::{ExecutionLowerError, ExecutionLowerOptions};
use crate::batches;
use crate::msccl::Buffer;
use crate::need::Certainty;
use crate::promise::OwnCopy;

/// A place in a buffer of one rank: the first of a range of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) buffer: Buffer,
    pub(super) index: u32,
}

/// A copy of a range of chunks within one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpotCopy {
    pub(super) from: Spot,
    pub(super) to: Spot,
    pub(super) count: u32,
}

/// Where a range of chunks lies: chunk `c` at `c + shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) buffer: Buffer,
    shift: i64,
}

impl Mapping {
    /// Puts chunks from `first` on at the start of a buffer, or from `index` on.
    pub(super) fn placing(buffer: Buffer, first: u32, index: u32) -> Self {
        Self { buffer, shift: i64::from(index) - i64::from(first) }
    }

    pub(super) fn spot(self, chunk: u32) -> Spot {
        let index = u32::try_from(i64::from(chunk) + self.shift).expect("chunks lie inside the buffers made for them");
        Spot { buffer: self.buffer, index }
    }
}

/// The numbering of a graph's chunks, in units of the greatest common divisor of all ranges, and the buffers for them.
pub(super) struct Layout {
    pub(super) kind: CollectiveKind,
    root: u32,
    pub(super) in_place: bool,
    pub(super) ranks: u32,
    /// Chunks of one share, in all-to-all of one block; of the whole vector where shares differ.
    pub(super) share: u32,
    /// Pieces that follow one another along each tree: each has an equal part of every share, one after the other.
    pub(super) pieces: u32,
    unit: u64,
    /// Chunks that are numbered.
    pub(super) total: u32,
}

/// Most chunks of a rank's buffer: what 32 bits of offset can tell apart at 16 bytes each.
const CHUNKS_MAX: u64 = 1 << 28;

impl Layout {
    pub(super) fn new(graph: &TransferGraph, options: &ExecutionLowerOptions) -> Result<Self, ExecutionLowerError> {
        let collective: Collective = graph.collective;
        let kind = collective.kind();
        if graph.shares != Shares::Equal && kind != CollectiveKind::Allreduce {
            return Err(ExecutionLowerError::Shares { profile: options.profile });
        }
        let unit = batches::unit(graph).max(1);
        let share = graph.chunks_per_share / unit;
        let ranks = u64::from(graph.rank_count);
        let vector = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some(share),
            _ => u64::try_from(graph.shares.weight_total(graph.rank_count)).ok().and_then(|all| share.checked_mul(all)),
        };
        let total =
            if kind == CollectiveKind::AllToAll { vector.and_then(|all| all.checked_mul(ranks)) } else { vector };
        let (Some(total), Some(share)) = (
            total.filter(|&total| total <= CHUNKS_MAX).and_then(|total| u32::try_from(total).ok()),
            u32::try_from(share).ok(),
        ) else {
            return Err(ExecutionLowerError::OverLimit {
                profile: options.profile,
                what: "chunks",
                limit: CHUNKS_MAX,
                need: total.unwrap_or(u64::MAX),
                rank: None,
                certainty: Certainty::Found,
                remedy: "plan with fewer trees or chunks",
            });
        };
        let share = if graph.shares == Shares::Equal { share } else { total };
        let root = collective.root().map_or(0, |root| root.number());
        let in_place = options.in_place;
        Ok(Self { kind, root, in_place, ranks: graph.rank_count, share, pieces: 1, unit, total })
    }

    /// The same with every chunk in so many pieces; none where they cannot be numbered.
    pub(super) fn in_pieces(&self, pieces: u32) -> Option<Self> {
        let total = self.total.checked_mul(pieces).filter(|&total| u64::from(total) <= CHUNKS_MAX)?;
        Some(Self { share: self.share * pieces, pieces, total, ..*self })
    }

    /// The piece of a range of whole chunks.
    pub(super) fn piece(&self, chunks: &Range<u32>, piece: u32) -> Range<u32> {
        let whole = self.share / self.pieces;
        let first = chunks.start / whole * self.share + piece * whole + chunks.start % whole;
        first..first + (chunks.end - chunks.start)
    }

    /// A range of the graph's chunks in this numbering, which has no pieces, if it is one and lies in one share.
    pub(super) fn range(&self, first: u64, count: u64) -> Option<Range<u32>> {
        let narrow = |chunk: u64| u32::try_from(chunk / self.unit).ok().filter(|&chunk| chunk <= self.total);
        let range = narrow(first)?..narrow(first.checked_add(count)?)?;
        let is_inside = !range.is_empty() && range.start / self.share == (range.end - 1) / self.share;
        Some(range).filter(|_| is_inside)
    }

    /// Number in the graph of a chunk.
    pub(super) fn graph_chunk(&self, chunk: u32) -> u64 {
        let whole = self.share / self.pieces;
        u64::from(chunk / self.share * whole + chunk % self.share % whole) * self.unit
    }

    /// Chunks of one share of every rank.
    fn vector(&self) -> u32 {
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Allreduce => self.total,
            _ => self.share * self.ranks,
        }
    }

    /// Chunks of every rank's input and output.
    pub(super) fn buffers(&self) -> (u32, u32) {
        let vector = self.vector();
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Gather => (self.share, vector),
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => (vector, self.share),
            _ => (vector, vector),
        }
    }

    /// Chunks of all buffers of all ranks together.
    pub(super) fn cells(&self, scratch: &[u32]) -> u64 {
        let (input, output) = self.buffers();
        scratch.iter().map(|&scratch| u64::from(input) + u64::from(output) + u64::from(scratch)).sum()
    }

    /// Scratch that is set aside before any is allotted: in all-to-all in place, what arrives waits there until what it
    /// replaces has left.
    pub(super) fn landing(&self) -> u32 {
        if self.kind == CollectiveKind::AllToAll && self.in_place { self.vector() } else { 0 }
    }

    /// The chunks a rank holds at the start, and where.
    pub(super) fn start(&self, rank: u32) -> Option<(Range<u32>, Mapping)> {
        let (share, is_root) = (self.share, rank == self.root);
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Gather => {
                let own = rank * share..(rank + 1) * share;
                let first = own.start;
                Some((own, Mapping::placing(Buffer::Input, first, 0)))
            }
            CollectiveKind::Broadcast | CollectiveKind::Scatter if !is_root => None,
            CollectiveKind::AllToAll => {
                let first = rank * self.vector();
                Some((first..first + self.vector(), Mapping::placing(Buffer::Input, first, 0)))
            }
            _ => Some((0..self.vector(), Mapping::placing(Buffer::Input, 0, 0))),
        }
    }

    /// Where a chunk must arrive at a rank; none where the collective does not promise it there.
    pub(super) fn goal(&self, rank: u32, chunk: u32) -> Option<Mapping> {
        let (share, is_root) = (chunk / self.share, rank == self.root);
        let both = if self.in_place { Buffer::Input } else { Buffer::Output };
        let same = |buffer| Mapping::placing(buffer, 0, 0);
        match self.kind {
            CollectiveKind::Allgather => Some(same(Buffer::Output)),
            CollectiveKind::Gather => is_root.then_some(same(Buffer::Output)),
            CollectiveKind::Broadcast | CollectiveKind::Allreduce => Some(same(both)),
            CollectiveKind::Reduce => is_root.then_some(same(both)),
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => {
                (share == rank).then_some(Mapping::placing(Buffer::Output, share * self.share, 0))
            }
            CollectiveKind::AllToAll => {
                let (source, destination) = (share / self.ranks, share % self.ranks);
                let buffer = if self.in_place { Buffer::Scratch } else { Buffer::Output };
                let mapping = Mapping::placing(buffer, share * self.share, source * self.share);
                (destination == rank).then_some(mapping)
            }
        }
    }

    /// What a rank copies by itself. Nothing in place.
    pub(super) fn own_copy(&self, rank: u32) -> Option<SpotCopy> {
        let OwnCopy { source, target, count } =
            OwnCopy::of(self.kind, self.root, rank, self.share).filter(|_| !self.in_place)?;
        let from = Spot { buffer: Buffer::Input, index: source };
        Some(SpotCopy { from, to: Spot { buffer: Buffer::Output, index: target }, count })
    }
}
