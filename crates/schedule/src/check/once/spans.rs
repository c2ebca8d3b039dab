//! Chunk ranges of sends by rank and by chunk.

use std::ops::Range;

use canopy_topology::Rank;
use rayon::prelude::*;

use crate::guess::count_below;
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
    /// Chunks that it has in common with a range.
    pub(super) fn overlap(&self, chunks: &Range<u64>) -> u64 {
        self.end.min(chunks.end).saturating_sub(self.start.max(chunks.start))
    }
}

/// Spans by rank, then by first chunk. 24 bytes each.
pub(super) struct Spans {
    /// The spans of a rank are `starts[rank] .. starts[rank + 1]`.
    starts: Vec<usize>,
    spans: Vec<Span>,
    /// By span, where spans may overlap: the greatest end of a span of the same rank so far.
    reaches: Vec<u64>,
}

impl Spans {
    /// The chunks of a run of sends between existing ranks, by one of these. Each rank's spans are sorted in parallel.
    pub(super) fn new(sends: &[Send], range: Range<usize>, rank_count: u32, rank: fn(&Send) -> Rank) -> Self {
        Self::made(sends, range, rank_count, rank, |_| true)
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
        Self { starts, spans, reaches: Vec::new() }
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

    /// Spans of a rank that overlap some chunks, where spans are apart. O(log spans of the rank).
    pub(super) fn over(&self, rank: Rank, chunks: &Range<u64>) -> &[Span] {
        let spans = self.of(rank);
        let spans = &spans[count_below(spans, |span| span.end, chunks.start.saturating_add(1))..];
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
