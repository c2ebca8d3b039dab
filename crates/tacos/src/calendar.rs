//! When things of which there is one each are taken.

use std::collections::BTreeMap;

/// By thing, the times for which it is taken: start and end of each, none overlapping another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calendar {
    taken: Vec<BTreeMap<u64, u64>>,
}

impl Calendar {
    /// So many things, all free for ever.
    pub(crate) fn new(count: usize) -> Self {
        Self { taken: vec![BTreeMap::new(); count] }
    }

    /// Takes a thing that is free then. O(log times taken).
    pub(crate) fn take(&mut self, thing: u32, start: u64, ticks: u64) {
        debug_assert_eq!(self.first_free(thing, start, ticks), start, "what is taken has been free");
        self.taken[thing as usize].insert(start, start.saturating_add(ticks));
    }

    /// The first moment from which on a thing is free for so long, not before `earliest`. O(times passed · log times taken).
    pub(crate) fn first_free(&self, thing: u32, earliest: u64, ticks: u64) -> u64 {
        let mut start = earliest;
        while let Some((_, end)) = self.last_overlap(thing, start, ticks) {
            start = end;
        }
        start
    }

    /// The last such moment, not after `latest`; none where it was before the beginning.
    pub(crate) fn last_free(&self, thing: u32, latest: u64, ticks: u64) -> Option<u64> {
        let mut start = latest;
        while let Some((taken_from, _)) = self.last_overlap(thing, start, ticks) {
            start = taken_from.checked_sub(ticks)?;
        }
        Some(start)
    }

    /// The last time for which a thing is taken that overlaps this one.
    fn last_overlap(&self, thing: u32, start: u64, ticks: u64) -> Option<(u64, u64)> {
        let before_end = self.taken[thing as usize].range(..start.saturating_add(ticks)).next_back();
        before_end.map(|(&from, &end)| (from, end)).filter(|&(_, end)| end > start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_passed_over_both_ways() {
        let mut calendar = Calendar::new(2);
        calendar.take(0, 2, 3);
        calendar.take(0, 6, 2);
        assert_eq!([0, 1, 3, 5].map(|earliest| calendar.first_free(0, earliest, 1)), [0, 1, 5, 5]);
        assert_eq!([0, 1].map(|earliest| calendar.first_free(0, earliest, 2)), [0, 8]);
        assert_eq!([9, 7, 5, 4, 1].map(|latest| calendar.last_free(0, latest, 1)), [9, 5, 5, 1, 1].map(Some));
        assert_eq!([7, 4, 1].map(|latest| calendar.last_free(0, latest, 2)), [Some(0), Some(0), Some(0)]);
        assert_eq!(calendar.last_free(0, 6, 3), None);
        assert_eq!((calendar.first_free(1, 3, 9), calendar.last_free(1, 3, 9)), (3, Some(3)));
    }
}
