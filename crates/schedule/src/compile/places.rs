//! Who has read and written what, by rank and chunk range: where the dependencies of stepped schedules come from.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_topology::Rank;

/// What a transfer does to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Sends what is there.
    Read,
    /// Adds to it.
    Reduce,
    /// Overwrites it.
    Copy,
}

/// The latest accesses to one rank's place for some neighbouring chunks.
///
/// Accesses come in runs that need no order among themselves: reads, or reductions, or one copy. A transfer has to wait
/// for the run before its own, and so for everything before that.
#[derive(Clone, Debug)]
struct Segment {
    end: u64,
    access: Access,
    before: Vec<u32>,
    run: Vec<u32>,
}

/// All places that have been touched.
#[derive(Debug)]
pub(super) struct Places {
    /// By rank: segments that do not overlap, by their first chunk.
    ranks: Vec<BTreeMap<u64, Segment>>,
    /// Segments and dependencies that may still be looked at.
    budget: u64,
}

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Places {
    /// Untouched places of so many ranks.
    pub(super) fn new(rank_count: u32, budget: u64) -> Self {
        Self { ranks: (0..rank_count).map(|_| BTreeMap::new()).collect(), budget }
    }

    /// Uses up some of the budget.
    pub(super) fn spend(&mut self, work: usize) -> Result<(), Exhausted> {
        self.budget = self.budget.checked_sub(work as u64).ok_or(Exhausted)?;
        Ok(())
    }

    /// Records an access to an existing rank's place, and appends to `waits` the transfers it has to wait for. They may
    /// repeat. O(segments touched · log segments + waits).
    pub(super) fn access(
        &mut self,
        transfer: u32,
        rank: Rank,
        chunks: &Range<u64>,
        access: Access,
        waits: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let segments = &mut self.ranks[rank.index()];
        let copied = split(segments, chunks.start) + split(segments, chunks.end);
        let (mut touched, waiting) = (1 + copied, waits.len());
        let mut gaps = Vec::new();
        let mut next = chunks.start;
        for (&first, segment) in segments.range_mut(chunks.clone()) {
            touched += 1;
            if next < first {
                gaps.push(next..first);
            }
            next = segment.end;
            if segment.access != access || access == Access::Copy {
                segment.before = std::mem::take(&mut segment.run);
                segment.access = access;
            }
            segment.run.push(transfer);
            waits.extend_from_slice(&segment.before);
        }
        if next < chunks.end {
            gaps.push(next..chunks.end);
        }
        for gap in gaps {
            segments.insert(gap.start, Segment { end: gap.end, access, before: Vec::new(), run: vec![transfer] });
        }
        let work = touched + waits.len() - waiting;
        self.spend(work)
    }
}

/// Makes sure that no segment has `at` in its inside; returns how much had to be copied.
fn split(segments: &mut BTreeMap<u64, Segment>, at: u64) -> usize {
    let Some((_, segment)) = segments.range_mut(..at).next_back().filter(|(_, segment)| segment.end > at) else {
        return 0;
    };
    let right = segment.clone();
    let copied = right.before.len() + right.run.len();
    segment.end = at;
    segments.insert(at, right);
    copied
}
