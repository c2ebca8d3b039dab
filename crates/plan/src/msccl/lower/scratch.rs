//! Allots scratch to chunks that a rank holds only for a while.

use std::collections::BTreeMap;
use std::ops::Range;

use super::fuse::Fusion;
use super::message::Spot;
use super::placement::Placed;
use crate::msccl::program::Operation;

/// Chunks that lie together in scratch for as long as any of them is used.
struct Stay {
    chunks: Range<u32>,
    /// Number of the last move that uses them.
    last_use: usize,
    /// First cell, once allotted.
    first: Option<u32>,
    /// Block that used them last.
    block: usize,
}

/// Scratch of one rank.
///
/// Cells are used again without cost where the same block used them last, whose steps run in order anyway. Cells
/// of other blocks would need a wait and are taken only when scratch would become larger than the message.
pub(super) struct Scratch {
    /// By first chunk; they do not overlap.
    stays: Vec<Stay>,
    /// Stays by the move that uses them last.
    ends: BTreeMap<usize, Vec<usize>>,
    /// Unused cells, by the block that used them last.
    free: BTreeMap<usize, Vec<Range<u32>>>,
    size: u32,
    /// Size from which on waiting for cells is better.
    size_wise: u32,
}

impl Scratch {
    /// Scratch of each rank for these moves.
    pub(super) fn of_ranks(placed: &[Placed], fusion: &Fusion, rank_count: u32, size_wise: u32) -> Vec<Self> {
        let mut uses: Vec<Vec<(Range<u32>, usize)>> = vec![Vec::new(); rank_count as usize];
        for (index, at) in placed.iter().enumerate() {
            let (from, to, chunks) = (at.moving.from as usize, at.moving.to as usize, &at.moving.chunks);
            let sent_at = fusion.within[index].unwrap_or(index);
            if at.source == Spot::SCRATCH && fusion.within[index].is_none() {
                uses[from].push((chunks.clone(), index));
            }
            uses[from].extend(at.settles.iter().map(|chunks| (chunks.clone(), sent_at)));
            let is_stored = !matches!(fusion.onward[index], Some((_, Operation::ReceiveReduceSend)));
            if (at.target == Spot::SCRATCH && is_stored) || at.held == Some(Spot::SCRATCH) {
                uses[to].push((chunks.clone(), index));
            }
        }
        uses.into_iter().map(|uses| Self::new(uses, size_wise)).collect()
    }

    fn new(mut uses: Vec<(Range<u32>, usize)>, size_wise: u32) -> Self {
        uses.sort_by_key(|(chunks, index)| (chunks.start, *index));
        let mut stays: Vec<Stay> = Vec::new();
        for (chunks, last_use) in uses {
            match stays.last_mut().filter(|stay| chunks.start < stay.chunks.end) {
                Some(stay) => {
                    stay.chunks.end = stay.chunks.end.max(chunks.end);
                    stay.last_use = stay.last_use.max(last_use);
                }
                None => stays.push(Stay { chunks, last_use, first: None, block: 0 }),
            }
        }
        let mut ends: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, stay) in stays.iter().enumerate() {
            ends.entry(stay.last_use).or_default().push(number);
        }
        Self { stays, ends, free: BTreeMap::new(), size: 0, size_wise }
    }

    /// Cell of a chunk of [`Spot::SCRATCH`], which a block is about to use.
    pub(super) fn cell(&mut self, chunk: u32, block: usize) -> u32 {
        let number = self.stays.partition_point(|stay| stay.chunks.end <= chunk);
        let Range { start, end } = self.stays[number].chunks;
        let first = match self.stays[number].first {
            Some(first) => first,
            None => self.take(end - start, block),
        };
        let stay = &mut self.stays[number];
        (stay.first, stay.block) = (Some(first), block);
        first + (chunk - start)
    }

    /// Takes cells that stay with one block; they are never given back.
    pub(super) fn take(&mut self, length: u32, block: usize) -> u32 {
        let fits = |cells: &Range<u32>| cells.end - cells.start >= length;
        let best = |free: &[Range<u32>]| {
            let fitting = free.iter().enumerate().filter(|(_, cells)| fits(cells));
            fitting.min_by_key(|(_, cells)| (cells.end - cells.start, cells.start)).map(|(position, _)| position)
        };
        let own = self.free.get(&block).and_then(|free| best(free)).map(|position| (block, position));
        let found = match own {
            None if self.size.saturating_add(length) > self.size_wise => {
                self.free.iter().find_map(|(&block, free)| Some((block, best(free)?)))
            }
            own => own,
        };
        let Some((owner, position)) = found else {
            let first = self.size;
            self.size = first.saturating_add(length);
            return first;
        };
        let free = self.free.get_mut(&owner).expect("found there");
        let cells = &mut free[position];
        let first = cells.start;
        cells.start += length;
        if cells.start == cells.end {
            free.remove(position);
        }
        first
    }

    /// Frees what a move was the last to use.
    pub(super) fn end(&mut self, moving: usize) {
        for number in self.ends.remove(&moving).unwrap_or_default() {
            let stay = &self.stays[number];
            if let Some(first) = stay.first {
                let cells = first..first + (stay.chunks.end - stay.chunks.start);
                self.free.entry(stay.block).or_default().push(cells);
            }
        }
    }

    /// `s_chunks`.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }
}
