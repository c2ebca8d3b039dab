//! Values by ranges of numbers: what holds for each chunk or cell, without an entry for each.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each number of some disjoint ranges. All operations take O(log ranges) per range they meet.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<V> {
    /// By first number: end, value.
    map: BTreeMap<u32, (u32, V)>,
}

impl<V: Clone> Ranges<V> {
    pub(crate) const fn new() -> Self {
        Self { map: BTreeMap::new() }
    }

    /// The parts of a range that have a value, in order.
    pub(crate) fn over(&self, range: Range<u32>) -> impl Iterator<Item = (Range<u32>, &V)> {
        let before = self.map.range(..range.start).next_back();
        let entries = before.into_iter().chain(self.map.range(range.clone()));
        entries
            .filter(move |&(_, &(end, _))| end > range.start)
            .map(move |(&start, (end, value))| (start.max(range.start)..(*end).min(range.end), value))
    }

    /// Gives a whole range one value.
    pub(crate) fn set(&mut self, range: Range<u32>, value: V) {
        self.remove(range.clone());
        self.map.insert(range.start, (range.end, value));
    }

    /// Takes the values of a range away.
    pub(crate) fn remove(&mut self, range: Range<u32>) {
        self.cut(range.start);
        self.cut(range.end);
        let starts: Vec<u32> = self.map.range(range).map(|(&start, _)| start).collect();
        for start in starts {
            self.map.remove(&start);
        }
    }

    /// Changes the values of a range, starting from `default` where there is none.
    pub(crate) fn update(&mut self, range: Range<u32>, default: &V, mut change: impl FnMut(&mut V)) {
        self.cut(range.start);
        self.cut(range.end);
        let mut at = range.start;
        let mut gaps = Vec::new();
        for (&start, (end, value)) in self.map.range_mut(range.clone()) {
            if at < start {
                gaps.push(at..start);
            }
            change(value);
            at = *end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            let mut value = default.clone();
            change(&mut value);
            self.map.insert(gap.start, (gap.end, value));
        }
    }

    /// Makes sure that no range reaches across a number.
    fn cut(&mut self, at: u32) {
        if let Some((_, (end, value))) = self.map.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (std::mem::replace(end, at), value.clone());
            self.map.insert(at, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(ranges: &Ranges<char>, range: Range<u32>) -> Vec<(Range<u32>, char)> {
        ranges.over(range).map(|(part, &value)| (part, value)).collect()
    }

    #[test]
    fn later_values_cut_into_earlier_ones() {
        let mut ranges = Ranges::new();
        ranges.set(2..10, 'a');
        ranges.set(4..6, 'b');
        assert_eq!(parts(&ranges, 0..20), [(2..4, 'a'), (4..6, 'b'), (6..10, 'a')]);
        assert_eq!(parts(&ranges, 5..7), [(5..6, 'b'), (6..7, 'a')]);
        ranges.remove(3..5);
        assert_eq!(parts(&ranges, 0..20), [(2..3, 'a'), (5..6, 'b'), (6..10, 'a')]);
        assert_eq!(parts(&ranges, 3..5), []);
    }

    #[test]
    fn changes_reach_exactly_the_range() {
        let mut ranges = Ranges::new();
        ranges.set(2..4, 'a');
        ranges.set(6..9, 'c');
        ranges.update(3..8, &'x', |value| *value = value.to_ascii_uppercase());
        assert_eq!(parts(&ranges, 0..9), [(2..3, 'a'), (3..4, 'A'), (4..6, 'X'), (6..8, 'C'), (8..9, 'c')]);
    }
}
