//! Chunks of a transfer graph as chunks of the ranks' buffers.

use std::ops::Range;

use canopy_schedule::{Batch, CollectiveKind, Shares, TransferGraph};

use super::{LowerError, MOVES_MAX};
use crate::batches;
use crate::promise::OwnCopy;

/// Most chunks of a file: offsets have 32 bits, and are added to.
const COUNT_MAX: u64 = 1 << 30;

/// Chunks as large as all ranges of a graph allow.
pub(super) struct Chunks {
    kind: CollectiveKind,
    root: u32,
    rank_count: u32,
    /// Chunks of the graph in one of these.
    unit: u64,
    /// Of a share, block, or message without shares or with shares that differ.
    share: u32,
    /// Of a whole message.
    count: u32,
}

impl Chunks {
    pub(super) fn new(graph: &TransferGraph) -> Result<Self, LowerError> {
        if graph.chunks_per_share == 0 || graph.batches.is_empty() {
            return Err(LowerError::NoChunks);
        }
        let unit = batches::unit(graph);
        let (kind, rank_count) = (graph.collective.kind(), graph.rank_count);
        let share = graph.chunks_per_share / unit;
        let need = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => share,
            _ => u64::try_from(graph.shares.weight_total(rank_count)).unwrap_or(u64::MAX).saturating_mul(share),
        };
        let over = |what, need, limit| LowerError::OverLimit { what, need, limit };
        let count = u32::try_from(need).ok().filter(|_| need <= COUNT_MAX);
        let count = count.ok_or_else(|| over("chunks", need, COUNT_MAX))?;
        let moved = |batch: &Batch| {
            u64::from(batch.transfers.end - batch.transfers.start.min(batch.transfers.end)) * (batch.chunk_count / unit)
        };
        let moves = graph.batches.iter().map(moved).fold(0, u64::saturating_add);
        if moves > MOVES_MAX {
            return Err(over("chunks in all transfers", moves, MOVES_MAX));
        }
        // What an allreduce promises is the whole vector, wherever its parts are added up.
        let share = if graph.shares == Shares::Equal { share } else { need };
        let share = u32::try_from(share).map_err(|_| over("chunks", need, COUNT_MAX))?;
        let root = graph.collective.root().map_or(0, |root| root.number());
        Ok(Self { kind, root, rank_count, unit, share, count })
    }

    /// Of a whole message.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Chunks that a batch moves.
    pub(super) fn of(&self, batch: &Batch) -> Range<u64> {
        batch.chunk_first / self.unit..batch.chunk_first.saturating_add(batch.chunk_count) / self.unit
    }

    /// The share or block of a chunk, and the chunk's place in it.
    fn divided(&self, chunk: u64) -> (u64, u32) {
        let place = u32::try_from(chunk % u64::from(self.share)).expect("less than a share");
        (chunk / u64::from(self.share), place)
    }

    /// Where a chunk is in the input of a rank, if it is there at the start.
    pub(super) fn input(&self, rank: u32, chunk: u64) -> Option<u32> {
        let (share, place) = self.divided(chunk);
        let whole = u32::try_from(chunk).ok().filter(|&whole| whole < self.count);
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Gather => (share == u64::from(rank)).then_some(place),
            CollectiveKind::ReduceScatter | CollectiveKind::Allreduce | CollectiveKind::Reduce => whole,
            CollectiveKind::Broadcast | CollectiveKind::Scatter => whole.filter(|_| rank == self.root),
            CollectiveKind::AllToAll => {
                let (source, destination) = self.ends(share)?;
                (source == rank).then_some(destination * self.share + place)
            }
        }
    }

    /// Where a chunk is in the output of a rank, if it is promised there.
    pub(super) fn output(&self, rank: u32, chunk: u64) -> Option<u32> {
        let (share, place) = self.divided(chunk);
        let whole = u32::try_from(chunk).ok().filter(|&whole| whole < self.count);
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Allreduce | CollectiveKind::Broadcast => whole,
            CollectiveKind::Reduce | CollectiveKind::Gather => whole.filter(|_| rank == self.root),
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => (share == u64::from(rank)).then_some(place),
            CollectiveKind::AllToAll => {
                let (source, destination) = self.ends(share)?;
                (destination == rank).then_some(source * self.share + place)
            }
        }
    }

    /// In all-to-all in place: the chunk that a rank sends from where a chunk for it goes.
    pub(super) fn displaced(&self, rank: u32, chunk: u64) -> Option<u64> {
        let (block, place) = self.divided(chunk);
        let (source, destination) = self.ends(block).filter(|_| self.kind == CollectiveKind::AllToAll)?;
        let opposite = u64::from(destination) * u64::from(self.rank_count) + u64::from(source);
        (destination == rank).then_some(opposite * u64::from(self.share) + u64::from(place))
    }

    /// Source and destination of a block of all-to-all.
    fn ends(&self, block: u64) -> Option<(u32, u32)> {
        let ranks = u64::from(self.rank_count);
        let source = u32::try_from(block / ranks).ok().filter(|&source| source < self.rank_count)?;
        Some((source, u32::try_from(block % ranks).ok()?))
    }

    /// What a rank copies by itself, out of place.
    pub(super) fn own_copy(&self, rank: u32) -> Option<OwnCopy> {
        OwnCopy::of(self.kind, self.root, rank, self.share)
    }
}
