//! Chunk ranges of sends by rank and by chunk.

use std::ops::Range;

use canopy_topology::Rank;
use rayon::prelude::*;

use crate::schedule::Send;

/// Number of chunks of a range; 0 of one that runs backwards.
pub(super) const fn length(chunks: &Range<u64>) -> u64 {
    chunks.end.saturating_sub(chunks.start)
}

/// The chunks of one send.
#[derive(Clone, Copy)]
pub(super) struct Span {
    start: u64,
    end: u64,
    pub(super) send: u32,
    pub(super) step: u32,
}

impl Span {
    /// Its last chunk, where it has one.
    const fn last(&self) -> u64 {
        self.end.saturating_sub(1)
    }

    /// Chunks that it has in common with a range.
    pub(super) fn overlap(&self, chunks: &Range<u64>) -> u64 {
        self.end.min(chunks.end).saturating_sub(self.start.max(chunks.start))
    }
}

/// Where in one rank's spans, which are apart and sorted, those begin that reach a chunk.
///
/// Looked up by the high bits of the chunk: for spans that are spread evenly that is one look at memory, where halving takes one
/// for each doubling of their number. Up to 8 bytes for each span.
#[derive(Default)]
struct Index {
    /// Low bits of a chunk's number that are left out.
    shift: u32,
    /// By the other bits: number of spans whose last chunk has lower ones. One more entry than last chunks can have.
    firsts: Vec<u32>,
}

impl Index {
    /// Of sorted spans that are apart; of others, of no use. O(spans).
    fn new(spans: &[Span]) -> Self {
        let last = spans.iter().map(Span::last).max().unwrap_or(0);
        let most = 2 * spans.len() as u64;
        let shift = (0..u64::BITS).find(|&shift| last >> shift <= most).unwrap_or(0);
        // No more than 2³² spans: at most twice as many entries and two.
        let high = |span: &Span| usize::try_from(span.last() >> shift).expect("at most twice the number of spans");
        let count = spans.iter().map(high).max().map_or(1, |greatest| greatest + 2);
        let mut firsts = vec![0_u32; count];
        spans.iter().for_each(|span| firsts[high(span) + 1] += 1);
        for entry in 1..count {
            firsts[entry] += firsts[entry - 1];
        }
        Self { shift, firsts }
    }

    /// How many of the spans end before a chunk.
    fn before(&self, spans: &[Span], chunk: u64) -> usize {
        let entry = usize::try_from(chunk >> self.shift).ok();
        let Some(&[first, past]) = entry.and_then(|entry| self.firsts.get(entry..)?.first_chunk()) else {
            return spans.len();
        };
        let near = &spans[first as usize..past as usize];
        first as usize + near.partition_point(|span| span.last() < chunk)
    }
}

/// Spans by rank, then by first chunk. 24 bytes each, and an index.
pub(super) struct Spans {
    /// The spans of a rank are `starts[rank] .. starts[rank + 1]`.
    starts: Vec<usize>,
    spans: Vec<Span>,
    /// By rank, where spans are to be apart.
    indices: Vec<Index>,
    /// By span, where spans may overlap: the greatest end of a span of the same rank so far.
    reaches: Vec<u64>,
}

impl Spans {
    /// The chunks of a run of sends between existing ranks, by one of these. Each rank's spans are sorted in parallel.
    pub(super) fn new(sends: &[Send], range: Range<usize>, rank_count: u32, rank: fn(&Send) -> Rank) -> Self {
        let mut made = Self::made(sends, range, rank_count, rank, |_| true);
        let ranks = made.starts.par_windows(2);
        made.indices = ranks.map(|bounds| Index::new(&made.spans[bounds[0]..bounds[1]])).collect();
        made
    }

    /// [`new`](Self::new) for some of the sends, whose spans may overlap.
    pub(super) fn of_some(
        sends: &[Send],
        range: Range<usize>,
        rank_count: u32,
        rank: fn(&Send) -> Rank,
        is_in: impl Fn(&Send) -> bool,
    ) -> Self {
        let mut made = Self::made(sends, range, rank_count, rank, is_in);
        for bounds in made.starts.windows(2) {
            let mut most = 0;
            made.reaches.extend(made.spans[bounds[0]..bounds[1]].iter().map(|span| {
                most = span.end.max(most);
                most
            }));
        }
        made
    }

    /// Sorted by counting, then by chunk within each rank.
    fn made(
        sends: &[Send],
        range: Range<usize>,
        rank_count: u32,
        rank: fn(&Send) -> Rank,
        is_in: impl Fn(&Send) -> bool,
    ) -> Self {
        let chosen = || range.clone().filter(|&position| is_in(&sends[position]));
        let mut starts = vec![0_usize; rank_count as usize + 1];
        chosen().for_each(|position| starts[rank(&sends[position]).index() + 1] += 1);
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut next = starts.clone();
        let mut spans = vec![Span { start: 0, end: 0, send: 0, step: 0 }; starts[rank_count as usize]];
        for position in chosen() {
            let Send { step, ref chunks, .. } = sends[position];
            let send = u32::try_from(position).expect("sends are counted in 32 bits");
            let place = &mut next[rank(&sends[position]).index()];
            spans[*place] = Span { start: chunks.start, end: chunks.end, send, step };
            *place += 1;
        }
        let mut slices = Vec::with_capacity(rank_count as usize);
        let mut rest = &mut spans[..];
        for bounds in starts.windows(2) {
            let (slice, later) = std::mem::take(&mut rest).split_at_mut(bounds[1] - bounds[0]);
            slices.push(slice);
            rest = later;
        }
        slices.into_par_iter().for_each(|slice| slice.sort_unstable_by_key(|span| (span.start, span.send)));
        Self { starts, spans, indices: Vec::new(), reaches: Vec::new() }
    }

    fn of(&self, rank: Rank) -> &[Span] {
        &self.spans[self.starts[rank.index()]..self.starts[rank.index() + 1]]
    }

    /// Whether no two spans of one rank overlap.
    pub(super) fn are_apart(&self) -> bool {
        let ranks = self.starts.par_windows(2);
        ranks.all(|bounds| self.spans[bounds[0]..bounds[1]].windows(2).all(|pair| pair[0].end <= pair[1].start))
    }

    /// Chunks of all spans of a rank, which are apart.
    pub(super) fn length(&self, rank: Rank) -> u64 {
        self.of(rank).iter().map(|span| span.end - span.start).sum()
    }

    /// Spans of a rank that overlap some chunks, where spans are [apart](Self::are_apart). O(log spans of the rank), and
    /// O(1) where they are spread evenly.
    pub(super) fn over(&self, rank: Rank, chunks: &Range<u64>) -> &[Span] {
        let spans = self.of(rank);
        let spans = &spans[self.indices[rank.index()].before(spans, chunks.start)..];
        let count = spans.iter().take_while(|span| span.start < chunks.end).count();
        &spans[..count]
    }

    /// The same for spans that may overlap each other.
    pub(super) fn touching(&self, rank: Rank, chunks: &Range<u64>) -> impl Iterator<Item = &Span> {
        let first = self.starts[rank.index()];
        let past = first + self.of(rank).partition_point(|span| span.start < chunks.end);
        let start = chunks.start;
        let near = (first..past).rev().take_while(move |&at| self.reaches[at] > start).map(|at| &self.spans[at]);
        near.filter(move |span| span.end > start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forest::Action;

    /// Sends to rank 1 of these chunks, one after the other; a rank before it and one behind it are sent nothing.
    fn spans(ranges: &[Range<u64>]) -> Spans {
        let send = |chunks: &Range<u64>| Send {
            step: 0,
            action: Action::Copy,
            from: Rank::new(0),
            to: Rank::new(1),
            chunks: chunks.clone(),
            carriers: 0..1,
        };
        let sends: Vec<Send> = ranges.iter().map(send).collect();
        Spans::new(&sends, 0..sends.len(), 3, |send| send.to)
    }

    proptest! {
        /// However unevenly spans are spread, the index finds what a look at every span does.
        #[test]
        fn spans_over_chunks_are_those_that_share_one(
            parts in prop::collection::vec((prop_oneof![0..4_u64, 0..1_000_u64, any::<u32>().prop_map(u64::from)], 1..9_u64), 0..60),
            first in prop_oneof![Just(0), any::<u32>().prop_map(u64::from), Just(u64::MAX - (1 << 45))],
            looks in prop::collection::vec((any::<prop::sample::Index>(), 0..20_u64, 0..2_000_u64), 1..20),
        ) {
            let mut at = first;
            let ranges: Vec<Range<u64>> = parts
                .iter()
                .map(|(gap, length)| {
                    let start = at + gap;
                    at = start + length;
                    start..at
                })
                .collect();
            let spans = spans(&ranges);
            prop_assert!(spans.are_apart());
            for (near, back, length) in looks {
                let start = ranges.get(near.index(ranges.len().max(1))).map_or(first, |range| range.start).saturating_sub(back);
                let chunks = start..start.saturating_add(length + 1);
                let found: Vec<usize> = spans.over(Rank::new(1), &chunks).iter().map(|span| span.send as usize).collect();
                let expected: Vec<usize> = (0..ranges.len())
                    .filter(|&at| ranges[at].start < chunks.end && chunks.start < ranges[at].end)
                    .collect();
                prop_assert_eq!(found, expected);
                prop_assert!(spans.over(Rank::new(0), &chunks).is_empty());
                prop_assert!(spans.over(Rank::new(2), &chunks).is_empty());
            }
        }
    }

    #[test]
    fn chunks_beyond_all_spans_and_the_greatest_numbers_are_looked_up() {
        let spans = spans(&[0..1, u64::MAX - 1..u64::MAX]);
        let over = |chunks: Range<u64>| spans.over(Rank::new(1), &chunks).len();
        assert_eq!((over(0..u64::MAX), over(1..u64::MAX - 1), over(u64::MAX - 1..u64::MAX)), (2, 0, 1));
        assert_eq!(over(u64::MAX..u64::MAX), 0);
    }
}
