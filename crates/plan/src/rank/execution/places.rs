//! Where a rank has each chunk while it sums up.

use std::ops::Range;

use canopy_schedule::CollectiveKind;

use crate::msccl::{Buffer, Ranges};

/// Chunks in a row of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) buffer: Buffer,
    pub(super) index: u32,
    pub(super) count: u32,
}

/// A sum of chunks in a row.
pub(super) struct Sum {
    pub(super) own: Spot,
    /// Where contributions wait in scratch.
    pub(super) slots: Vec<u32>,
    pub(super) result: Spot,
}

/// Buffers of a rank by chunk: chunk `c` is at the place of the first chunk of its range, and as far from there.
pub(super) struct Places {
    ranges: Ranges<(Buffer, u32, u32)>,
    kind: CollectiveKind,
    in_place: bool,
    own: Range<u32>,
    /// End of the scratch that is in use.
    pub(super) scratch: u64,
}

impl Places {
    /// All contributions of the rank in its input.
    ///
    /// * `own`: chunks of its share; `scratch`: where its sums may begin.
    pub(super) fn of_input(
        kind: CollectiveKind,
        in_place: bool,
        (own, chunks): (Range<u32>, u32),
        scratch: u64,
    ) -> Self {
        let mut ranges = Ranges::new();
        ranges.set(0..chunks, (Buffer::Input, 0, 0));
        Self { ranges, kind, in_place, own, scratch }
    }

    /// Where some chunks are, in order.
    pub(super) fn of(&self, chunks: &Range<u32>) -> Vec<Spot> {
        let spot = |(part, &(buffer, first, index)): (Range<u32>, &(Buffer, u32, u32))| Spot {
            buffer,
            index: index + (part.start - first),
            count: part.end - part.start,
        };
        self.ranges.over(chunks.clone()).map(spot).collect()
    }

    /// Adds contributions, each of chunks in a row with the place where it waits, and moves the sums to where they
    /// stay. O(c log c + c · b) for c contributions with b boundaries.
    pub(super) fn add(&mut self, contributions: &[(Range<u32>, u32)]) -> Vec<Sum> {
        let mut cuts: Vec<u32> = contributions.iter().flat_map(|(chunks, _)| [chunks.start, chunks.end]).collect();
        for (chunks, _) in contributions {
            cuts.extend(self.ranges.over(chunks.clone()).map(|(part, _)| part.start));
            cuts.extend([self.own.start, self.own.end].into_iter().filter(|cut| chunks.contains(cut)));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut sums = Vec::new();
        for pair in cuts.windows(2) {
            let part = pair[0]..pair[1];
            let covering =
                contributions.iter().filter(|(chunks, _)| chunks.start <= part.start && part.end <= chunks.end);
            let slots: Vec<u32> =
                covering.map(|(chunks, slot)| slot.saturating_add(part.start - chunks.start)).collect();
            if slots.is_empty() {
                continue;
            }
            for own in self.of(&part) {
                let result = self.settle(&part, own);
                sums.push(Sum { own, slots: slots.clone(), result });
            }
        }
        sums
    }

    /// Where the sum of some chunks stays, which are now at `own`.
    fn settle(&mut self, part: &Range<u32>, own: Spot) -> Spot {
        if self.in_place || own.buffer != Buffer::Input {
            return own;
        }
        let (buffer, index) = match self.kind {
            CollectiveKind::Allreduce => (Buffer::Output, part.start),
            _ if self.own.contains(&part.start) => (Buffer::Output, part.start - self.own.start),
            _ => {
                let index = u32::try_from(self.scratch).unwrap_or(u32::MAX);
                self.scratch = self.scratch.saturating_add(u64::from(own.count));
                (Buffer::Scratch, index)
            }
        };
        self.ranges.set(part.clone(), (buffer, part.start, index));
        Spot { buffer, index, ..own }
    }
}

impl Sum {
    /// The part of one of several blocks that divide its chunks.
    pub(super) fn part(&self, number: u32, blocks: u32) -> Option<Self> {
        let count = u64::from(self.own.count);
        let cut = |at: u32| u32::try_from(count * u64::from(at) / u64::from(blocks.max(1))).unwrap_or(self.own.count);
        let (first, end) = (cut(number), cut(number + 1));
        let spot = |spot: Spot| Spot { index: spot.index + first, count: end - first, ..spot };
        let slots = self.slots.iter().map(|slot| slot.saturating_add(first)).collect();
        (first < end).then(|| Self { own: spot(self.own), slots, result: spot(self.result) })
    }
}
