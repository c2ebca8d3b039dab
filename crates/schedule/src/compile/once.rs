//! Stepped schedules that use no place twice: sums that leave every rank once, then copies that reach every rank once.
//!
//! Breadth-first broadcasts and schedules composed of them are such. What a send waits for is then found by looking its
//! chunks up among the sends into its sender, in sorted tables, without a record of what has happened to every place.

use std::ops::Range;

use canopy_topology::Rank;
use rayon::slice::ParallelSliceMut as _;

use super::guess::count_below;
use crate::forest::Action;
use crate::schedule::{Send, Steps};

/// Sends of a schedule by the places they use.
pub(super) struct Once<'a> {
    sends: &'a [Send],
    /// Whether sums come before the copies.
    has_sums: bool,
    /// Reductions, by receiver.
    summed: Spans,
    /// Reductions, by sender: chunks of one rank do not overlap.
    left: Spans,
    /// Copies, by receiver: likewise.
    arrived: Spans,
}

impl<'a> Once<'a> {
    /// The tables of a schedule whose sends have been found well-formed; `None` where some place is sent on by two
    /// reductions or written by two copies, or a reduction does not come before all copies. O(sends log sends).
    pub(super) fn of(steps: &'a Steps, rank_count: u32) -> Option<Self> {
        let sends = &steps.sends[..];
        let copies = sends.iter().position(|send| send.action == Action::Copy).unwrap_or(sends.len());
        let (sums, later) = sends.split_at(copies);
        let is_apart = match (sums.last(), later.first()) {
            (Some(sum), Some(copy)) => sum.step < copy.step,
            _ => true,
        };
        if !is_apart || later.iter().any(|send| send.action == Action::Reduce) {
            return None;
        }
        let table = |range: Range<usize>, rank: fn(&Send) -> Rank| Spans::new(sends, range, rank_count, rank);
        let left = table(0..copies, |send| send.from);
        let arrived = table(copies..sends.len(), |send| send.to);
        if !left.are_apart() || !arrived.are_apart() {
            return None;
        }
        Some(Self { sends, has_sums: copies > 0, summed: table(0..copies, |send| send.to), left, arrived })
    }

    /// Appends the sends that one waits for, which may repeat, and returns how many were looked at; `None` where a place is
    /// used again, or before it is ready.
    pub(super) fn waits_of(&self, send: usize, waits: &mut Vec<u32>) -> Option<usize> {
        let &Send { step, action, from, to, ref chunks, .. } = &self.sends[send];
        let first = waits.len();
        let mut looked_at = 0;
        let mut add = |spans: &Spans, rank: Rank, waits: &mut Vec<u32>| {
            let mut covered = 0;
            looked_at += spans.find(rank, chunks, |span| {
                covered += span.end.min(chunks.end) - span.start.max(chunks.start);
                waits.push(span.send);
            });
            covered
        };
        match action {
            Action::Reduce => {
                add(&self.summed, from, waits);
            }
            Action::Copy => {
                let length = chunks.end - chunks.start;
                let covered = add(&self.arrived, from, waits);
                if self.has_sums && covered == 0 {
                    add(&self.summed, from, waits);
                }
                // Of what is overwritten, all has been sent on; what is sent came by copies or not.
                let is_whole =
                    !self.has_sums || (covered == 0 || covered == length) && add(&self.left, to, waits) == length;
                if !is_whole {
                    return None;
                }
            }
        }
        waits[first..].iter().all(|&wait| self.sends[wait as usize].step < step).then_some(looked_at)
    }
}

/// Chunk ranges of some sends, by rank, then by their first chunk.
struct Spans {
    /// The spans of a rank are `starts[rank] .. starts[rank + 1]`.
    starts: Vec<usize>,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    rank: u32,
    send: u32,
    start: u64,
    end: u64,
    /// The greatest end of a span of the same rank so far.
    reach: u64,
}

impl Spans {
    fn new(sends: &[Send], range: Range<usize>, rank_count: u32, rank: fn(&Send) -> Rank) -> Self {
        let mut spans: Vec<Span> = range
            .map(|position| {
                let Send { ref chunks, .. } = sends[position];
                let send = u32::try_from(position).expect("the number of sends is limited");
                Span {
                    rank: rank(&sends[position]).number(),
                    send,
                    start: chunks.start,
                    end: chunks.end,
                    reach: chunks.end,
                }
            })
            .collect();
        spans.par_sort_unstable_by_key(|span| (span.rank, span.start, span.send));
        for position in 1..spans.len() {
            let before = spans[position - 1];
            if before.rank == spans[position].rank {
                spans[position].reach = spans[position].reach.max(before.reach);
            }
        }
        let starts = (0..=rank_count).map(|rank| spans.partition_point(|span| span.rank < rank)).collect();
        Self { starts, spans }
    }

    /// Whether no two spans of one rank overlap.
    fn are_apart(&self) -> bool {
        self.spans.windows(2).all(|pair| pair[0].rank != pair[1].rank || pair[0].end <= pair[1].start)
    }

    /// Calls with every span of a rank that overlaps some chunks; returns how many spans were looked at.
    fn find(&self, rank: Rank, chunks: &Range<u64>, mut found: impl FnMut(&Span)) -> usize {
        let spans = &self.spans[self.starts[rank.index()]..self.starts[rank.index() + 1]];
        let past = count_below(spans, |span| span.start, chunks.end);
        let candidates = spans[..past].iter().rev().take_while(|span| span.reach > chunks.start);
        let mut looked_at = 1;
        for span in candidates {
            looked_at += 1;
            if span.end > chunks.start {
                found(span);
            }
        }
        looked_at
    }
}

#[cfg(test)]
mod tests;
