//! The second check: does the graph compute what the collective promises, whenever its dependencies are kept?
//!
//! The vector is cut at the ends of all batches, shares and blocks. In each piece all chunks fare alike, so one symbolic
//! run with a set of contributions per rank stands for all of them. The run follows the transfers by index; that every
//! other order the dependencies allow gives the same result is proved on the way, by [`super::order`]. No piece needs to
//! know of another, so they are judged in parallel.

mod contributions;

use std::ops::Range;

use canopy_topology::Rank;
use rayon::prelude::*;

use self::contributions::{At, Contributions};
use super::error::MeaningError;
use super::order::Order;
use super::pieces::Pieces;
use super::{CheckError, Stop};
use crate::collective::CollectiveKind;
use crate::shares::ChunkLayout;
use crate::transfer::TransferGraph;

/// Most runs of pieces that are judged on their own: enough to keep every thread busy.
const BLOCKS_MAX: usize = 256;

/// Most memory for the state of one thread where there are several: 23,000 ranks that all contribute.
const STATE_BYTES_MAX: u64 = 1 << 26;

/// Runs a well-formed graph symbolically, and proves that its dependencies suffice.
///
/// Every copy must bring something new and destroy nothing, every reduction must bring contributions that are not there
/// yet, and at the end each rank holds exactly what the collective promises it. A transfer whose chunks nobody needs
/// later passes: it costs load, which the third check counts, and harms no result.
///
/// The error is the one of the first piece at fault, whatever the number of threads.
///
/// O(transfers · N/64) for graphs compiled from forests, where a piece of the vector meets one tree per phase; in
/// general O(Σ over pieces of the transfers that move it, · N/64). Memory N²/8 bytes for each thread where all ranks
/// contribute; beyond 64 MiB one thread does it all.
pub(super) fn check_meaning(graph: &TransferGraph, layout: &ChunkLayout, stop: Stop<'_>) -> Result<(), CheckError> {
    let promise = Promise { kind: graph.collective.kind(), root: graph.collective.root(), layout, graph };
    if let Some(missing) = first_block_left_out(graph, layout) {
        return Err(missing.into());
    }
    let pieces = Pieces::new(graph, layout);
    let blocks = if state_bytes(&promise) > STATE_BYTES_MAX { 1 } else { pieces.len().min(BLOCKS_MAX) };
    let block = |index: usize| index * pieces.len() / blocks..(index + 1) * pieces.len() / blocks;
    let judge = || Judge { promise: &promise, contributions: Contributions::new(&promise), order: Order::new(graph) };
    let results = (0..blocks).into_par_iter().map_init(judge, |judge, index| judge.run(&pieces, block(index), stop));
    results.find_first(Result::is_err).unwrap_or(Ok(()))
}

/// Bytes of one thread's sets of contributions.
fn state_bytes(promise: &Promise<'_>) -> u64 {
    let ranks = u64::from(promise.rank_count());
    if promise.sums() { ranks * ranks.div_ceil(64) * 8 } else { ranks * 8 }
}

/// All-to-all: the first block that has to move and that no batch moves.
///
/// Blocks are the square of the ranks, so without this a small graph that moves hardly any of them would ask for a list
/// that outgrows memory. O(batches log batches).
fn first_block_left_out(graph: &TransferGraph, layout: &ChunkLayout) -> Option<MeaningError> {
    if graph.collective.kind() != CollectiveKind::AllToAll {
        return None;
    }
    let mut moved: Vec<u64> = graph.batches.iter().map(|batch| layout.unit_of(batch.chunk_first)).collect();
    moved.sort_unstable();
    let mut moved = moved.into_iter().peekable();
    let ranks = || (0..graph.rank_count).map(Rank::new);
    let pairs = ranks().flat_map(|source| ranks().map(move |destination| (source, destination)));
    for (block, (source, destination)) in (0..).zip(pairs) {
        let chunks = layout.chunks_between(source, destination);
        // The blocks of ranks for themselves, on the diagonal, stay, and empty ones have nothing to move.
        if source == destination || chunks.is_empty() {
            continue;
        }
        while moved.next_if(|&other| other < block).is_some() {}
        if moved.peek() != Some(&block) {
            let (rank, chunk, contribution) = (destination.number(), chunks.start, source.number());
            return Some(MeaningError::Missing { rank, chunk, contribution });
        }
    }
    None
}

/// One thread's buffers.
struct Judge<'a> {
    promise: &'a Promise<'a>,
    contributions: Contributions,
    order: Order<'a>,
}

impl Judge<'_> {
    fn run(&mut self, pieces: &Pieces<'_>, range: Range<usize>, stop: Stop<'_>) -> Result<(), CheckError> {
        pieces.visit(range, |chunk, batches| self.piece(chunk, batches, stop))
    }

    /// Judges the piece that starts at a chunk.
    fn piece(&mut self, chunk: u64, batches: &[u32], stop: Stop<'_>) -> Result<(), CheckError> {
        let promise = self.promise;
        let share = promise.layout.share_of(chunk);
        self.contributions.reset(promise, share);
        self.order.reset(batches);
        for &batch in batches {
            if stop() {
                return Err(CheckError::Stopped);
            }
            let batch = &promise.graph.batches[batch as usize];
            for (index, transfer) in batch.transfers.clone().zip(promise.graph.transfers_of(batch)) {
                let at = At { transfer: index, from: transfer.from, to: transfer.to, chunk };
                self.contributions.apply(promise, share, batch.action, &at)?;
                let ordered = self.order.add(index, transfer, batch.action);
                ordered.map_err(|clash| MeaningError::Unordered {
                    first: clash.first,
                    second: clash.second,
                    rank: clash.rank.number(),
                    chunk,
                })?;
            }
        }
        Ok(self.contributions.require(promise, share, chunk)?)
    }
}

/// What a collective gives and promises.
struct Promise<'a> {
    kind: CollectiveKind,
    root: Option<Rank>,
    layout: &'a ChunkLayout,
    graph: &'a TransferGraph,
}

impl Promise<'_> {
    const fn rank_count(&self) -> u32 {
        self.graph.rank_count
    }

    /// Whether every rank contributes to every chunk. Otherwise each chunk is one rank's.
    const fn sums(&self) -> bool {
        matches!(self.kind, CollectiveKind::ReduceScatter | CollectiveKind::Allreduce | CollectiveKind::Reduce)
    }

    /// The only rank that holds a chunk of this share at the start, where there is only one.
    fn origin(&self, share: Rank) -> Rank {
        match (self.kind, self.root) {
            (CollectiveKind::Scatter, Some(root)) => root,
            _ => share,
        }
    }

    /// The ranks that are promised a chunk, which belongs to this share.
    fn receivers(&self, share: Rank, chunk: u64) -> impl Iterator<Item = Rank> + use<> {
        let only = |rank: Rank| rank.number()..rank.number() + 1;
        let ranks = match (self.kind, self.root) {
            (CollectiveKind::Allgather | CollectiveKind::Broadcast | CollectiveKind::Allreduce, _) => {
                0..self.rank_count()
            }
            (CollectiveKind::AllToAll, _) => only(self.layout.destination_of(chunk)),
            (CollectiveKind::Gather | CollectiveKind::Reduce, Some(root)) => only(root),
            _ => only(share),
        };
        ranks.map(Rank::new)
    }
}
