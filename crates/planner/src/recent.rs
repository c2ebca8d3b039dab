//! Recently used values in memory, up to a number of bytes.

use std::hash::Hash;

use lru::LruCache;

/// The contents of such a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Values.
    pub records: usize,
    /// Their bytes, estimated.
    pub bytes: u64,
    /// Most bytes.
    pub bytes_max: u64,
    /// Values evicted to make room for others.
    pub evictions: u64,
}

/// A cache of values by key; the least recently used ones are evicted first.
#[derive(Debug)]
pub struct Recent<K: Hash + Eq, V> {
    bytes_max: u64,
    bytes: u64,
    evictions: u64,
    entries: LruCache<K, (V, u64)>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    /// A cache for values of this many bytes in total.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, evictions: 0, entries: LruCache::unbounded() }
    }

    /// The value, if it is here. O(1).
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.entries.get(key).map(|(value, _)| value.clone())
    }

    /// Caches a value of about this many bytes, and evicts others as needed. A value of more than a quarter of the
    /// cache is not cached.
    pub fn keep(&mut self, key: K, value: V, bytes: u64) {
        self.forget(&key);
        if bytes > self.bytes_max / 4 {
            return;
        }
        while self.bytes.saturating_add(bytes) > self.bytes_max {
            let Some((_, (_, freed))) = self.entries.pop_lru() else { break };
            self.bytes -= freed;
            self.evictions += 1;
        }
        self.bytes += bytes;
        self.entries.put(key, (value, bytes));
    }

    /// All values, the most recently used first.
    pub fn latest(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, (value, _))| (key, value))
    }

    /// How much is here.
    pub fn usage(&self) -> MemoryUsage {
        let (bytes_max, evictions) = (self.bytes_max, self.evictions);
        MemoryUsage { records: self.entries.len(), bytes: self.bytes, bytes_max, evictions }
    }

    /// Removes a value.
    pub fn forget(&mut self, key: &K) {
        if let Some((_, freed)) = self.entries.pop(key) {
            self.bytes -= freed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_asked_for_longest_ago_makes_room() {
        let mut recent = Recent::new(40);
        (0..4).for_each(|key| recent.keep(key, key, 10));
        assert_eq!(recent.get(&0), Some(0));
        recent.keep(4, 4, 10);
        assert_eq!([0, 1, 2, 3, 4].map(|key| recent.get(&key).is_some()), [true, false, true, true, true]);
        recent.keep(5, 5, 1);
        assert_eq!([0, 2, 3, 4, 5].map(|key| recent.get(&key).is_some()), [false, true, true, true, true]);
    }

    #[test]
    fn what_is_kept_twice_counts_once_and_what_is_large_not_at_all() {
        let mut recent = Recent::new(40);
        (0..9).for_each(|_| recent.keep(1, 1, 10));
        assert_eq!(recent.bytes, 10);
        recent.keep(1, 2, 11);
        assert_eq!((recent.get(&1), recent.bytes), (None, 0));
        recent.keep(2, 2, 10);
        recent.forget(&2);
        assert_eq!((recent.get(&2), recent.bytes), (None, 0));
    }
}
