//! How often each length occurs.

/// Numbers of things by their length, by rising length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// `(length, count)`, no count zero.
    counts: Vec<(u32, u64)>,
}

impl Histogram {
    /// So many of one length.
    pub(crate) fn of(length: u32, count: u64) -> Self {
        let mut histogram = Self::default();
        histogram.add(length, count);
        histogram
    }

    /// Adds so many of a length. O(lengths).
    pub(crate) fn add(&mut self, length: u32, count: u64) {
        if count == 0 {
            return;
        }
        match self.counts.binary_search_by_key(&length, |entry| entry.0) {
            Ok(place) => self.counts[place].1 += count,
            Err(place) => self.counts.insert(place, (length, count)),
        }
    }

    /// `(length, count)` by rising length, no count zero.
    pub fn entries(&self) -> &[(u32, u64)] {
        &self.counts
    }

    /// How many there are of a length.
    pub fn count(&self, length: u32) -> u64 {
        self.counts.iter().find(|entry| entry.0 == length).map_or(0, |entry| entry.1)
    }

    /// The sum of all lengths.
    pub(crate) fn sum(&self) -> u64 {
        self.counts.iter().map(|&(length, count)| u64::from(length) * count).sum()
    }

    /// The greatest length; 0 where there is nothing.
    pub(crate) fn longest(&self) -> u32 {
        self.counts.last().map_or(0, |entry| entry.0)
    }

    /// The same lengths, each so many times as often.
    pub(crate) fn times(&self, factor: u64) -> Self {
        Self { counts: self.counts.iter().map(|&(length, count)| (length, count * factor)).collect() }
    }

    /// Every length one more.
    pub(crate) fn longer_by_one(&self) -> Self {
        Self { counts: self.counts.iter().map(|&(length, count)| (length + 1, count)).collect() }
    }

    /// The shorter of every pair of one of each.
    pub(crate) fn shorter_of_pairs(&self, other: &Self) -> Self {
        let mut all = Self::default();
        for &(one, ones) in &self.counts {
            for &(two, twos) in &other.counts {
                all.add(one.min(two), ones * twos);
            }
        }
        all
    }
}
