//! What has happened to chunks at each rank, while moves are put in order.

use std::ops::Range;

use crate::msccl::lower::ranges::Ranges;

/// Most entries, one for each chunk at each rank, that are kept in a table: 64 MiB of them.
const CELLS_MAX: usize = 1 << 23;

/// What has happened to some chunks at one rank: numbers of generations or waves, from 1; 0 for never.
#[derive(Clone, Copy, Default)]
pub(super) struct Touched {
    read: u32,
    written: u32,
}

/// What has happened to all chunks at all ranks.
///
/// A table is several times as fast as ranges, which take no more room where there are many chunks.
pub(super) enum Record {
    /// Chunk by chunk, all those of a rank after all those of the rank before.
    Table { chunks: usize, cells: Vec<Touched> },
    /// By rank.
    Ranges(Vec<Ranges<Touched>>),
}

impl Record {
    /// Nothing has happened to any of these chunks yet.
    pub(super) fn new(rank_count: u32, chunk_count: u32) -> Self {
        let (ranks, chunks) = (rank_count as usize, chunk_count as usize);
        match ranks.checked_mul(chunks).filter(|&cells| cells <= CELLS_MAX) {
            Some(cells) => Self::Table { chunks, cells: vec![Touched::default(); cells] },
            None => Self::in_ranges(ranks),
        }
    }

    fn in_ranges(ranks: usize) -> Self {
        Self::Ranges(vec![Ranges::new(); ranks])
    }

    /// First generation or wave in which a hop may go: after those that write what it reads or touch what it writes.
    pub(super) fn earliest(&self, (from, to): (u32, u32), chunks: &Range<u32>) -> u32 {
        let sent = self.most(from, chunks, |touched| touched.written);
        sent.max(self.most(to, chunks, |touched| touched.written.max(touched.read)))
    }

    /// Notes that a hop goes in the generation or wave before this number.
    pub(super) fn touch(&mut self, (from, to): (u32, u32), chunks: &Range<u32>, number: u32) {
        self.update(from, chunks, |touched| touched.read = touched.read.max(number));
        self.update(to, chunks, |touched| touched.written = number);
    }

    fn most(&self, rank: u32, chunks: &Range<u32>, number: impl Fn(&Touched) -> u32) -> u32 {
        let rank = rank as usize;
        match self {
            Self::Table { chunks: all, cells } => cells[cells_of(rank, *all, chunks)].iter().map(number).max(),
            Self::Ranges(ranks) => ranks[rank].over(chunks.clone()).map(|(_, touched)| number(touched)).max(),
        }
        .unwrap_or(0)
    }

    fn update(&mut self, rank: u32, chunks: &Range<u32>, change: impl FnMut(&mut Touched)) {
        let rank = rank as usize;
        match self {
            Self::Table { chunks: all, cells } => {
                let cells = &mut cells[cells_of(rank, *all, chunks)];
                cells.iter_mut().for_each(change);
            }
            Self::Ranges(ranks) => ranks[rank].update(chunks.clone(), &Touched::default(), change),
        }
    }
}

/// The place in the table of some of `all` chunks at a rank.
const fn cells_of(rank: usize, all: usize, chunks: &Range<u32>) -> Range<usize> {
    rank * all + chunks.start as usize..rank * all + chunks.end as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whether there is a table or not, moves have the same order.
        #[test]
        fn tables_and_ranges_say_the_same(
            hops in prop::collection::vec((0_u32..4, 0_u32..4, 0_u32..12, 1_u32..6), 1..60),
        ) {
            let (mut table, mut ranges) = (Record::new(4, 17), Record::in_ranges(4));
            let is_table = matches!(table, Record::Table { .. });
            prop_assert!(is_table);
            for (from, to, first, count) in hops {
                let chunks = first..first + count;
                let number = table.earliest((from, to), &chunks);
                prop_assert_eq!(number, ranges.earliest((from, to), &chunks));
                [&mut table, &mut ranges].into_iter().for_each(|record| record.touch((from, to), &chunks, number + 1));
            }
        }
    }
}
