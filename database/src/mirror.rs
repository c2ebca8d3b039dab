//! What a server knows of a space: all its keys and summaries, and the numbers of their last changes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use tokio_postgres::Row;

use crate::Key;
use crate::error::DatabaseError;

/// The columns that [`Entry::read`] takes, of a table called `r`.
pub(crate) const COLUMNS: &str = "r.version, r.size, r.digest, r.summary, r.small";

/// What is known of what is kept under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the change that made it.
    pub version: i64,
    /// Of the record; none: there is only a summary.
    pub record: Option<RecordFacts>,
    /// The summary; none: there is only a record.
    pub summary: Option<Arc<[u8]>>,
    /// The record itself, where the space keeps small ones at hand.
    pub(crate) small: Option<Arc<[u8]>>,
}

/// What is known of a record without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFacts {
    /// Its length in bytes.
    pub size: u64,
    /// Its hash (BLAKE3).
    pub digest: [u8; 32],
}

impl RecordFacts {
    /// Those of a record.
    pub fn of(record: &[u8]) -> Self {
        Self { size: record.len() as u64, digest: *blake3::hash(record).as_bytes() }
    }
}

impl Entry {
    /// Reads the [`COLUMNS`] from this one on; none: there is no row.
    pub(crate) fn read(row: &Row, first: usize, keeps_small: bool) -> Result<Option<Self>, DatabaseError> {
        let Some(version) = row.try_get::<_, Option<i64>>(first)? else { return Ok(None) };
        let (size, digest): (Option<i64>, Option<&[u8]>) = (row.try_get(first + 1)?, row.try_get(first + 2)?);
        let record = match size.zip(digest) {
            None => None,
            Some((size, digest)) => {
                let digest = digest.try_into().map_err(|_| DatabaseError::Damaged { reason: "a digest".to_owned() })?;
                Some(RecordFacts { size: size.unsigned_abs(), digest })
            }
        };
        let summary = row.try_get::<_, Option<&[u8]>>(first + 3)?.map(Arc::from);
        let small = if keeps_small { row.try_get::<_, Option<&[u8]>>(first + 4)?.map(Arc::from) } else { None };
        Ok(Some(Self { version, record, summary, small }))
    }
}

/// The copy of a space that a server decides by. It changes when its owner catches up, and by what it writes itself; never
/// behind its back.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    entries: BTreeMap<Key, Entry>,
    /// What this server removed itself, with the number of the change, as long as older news of it may be on the way.
    removed: HashMap<Key, i64>,
    /// News of others: the version, and what is there now.
    pending: BTreeMap<Key, (i64, Option<Entry>)>,
}

/// A record that was changed with a number, as it is now.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) key: Key,
    pub(crate) version: i64,
    pub(crate) entry: Option<Entry>,
}

impl Mirror {
    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The number that a change states which is decided by what is known here.
    pub(crate) fn version_of(&self, key: &Key) -> i64 {
        self.entries.get(key).map_or(0, |entry| entry.version)
    }

    pub(crate) fn after<'a>(&'a self, after: Option<&Key>) -> impl Iterator<Item = (&'a Key, &'a Entry)> + 'a {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(*key));
        self.entries.range((from, Bound::Unbounded))
    }

    /// This server has written what is there now. News of what was there until then is none any more: it may have come
    /// before this server knew that its own write was made.
    pub(crate) fn wrote(&mut self, key: Key, version: i64, entry: Option<Entry>) {
        if self.pending.get(&key).is_some_and(|(heard, _)| *heard <= version) {
            self.pending.remove(&key);
        }
        match entry {
            Some(entry) => {
                self.entries.insert(key, entry);
                self.removed.remove(&key);
            }
            None => {
                self.entries.remove(&key);
                self.removed.insert(key, version);
            }
        }
    }

    /// Something was changed with this number, and is like this now; returns whether that is news.
    pub(crate) fn heard(&mut self, key: Key, version: i64, entry: Option<Entry>) -> bool {
        let version = entry.as_ref().map_or(version, |entry| entry.version.max(version));
        let known = self.removed.get(&key).copied().unwrap_or_default().max(self.version_of(&key));
        if version <= known {
            // What was removed by this server, all have heard of by now.
            if self.removed.get(&key).is_some_and(|removed| *removed <= version) {
                self.removed.remove(&key);
            }
            return false;
        }
        self.pending.insert(key, (version, entry));
        true
    }

    /// What is there as a whole, with the number of the last change that it shows; returns whether that is news.
    pub(crate) fn heard_all(&mut self, version: i64, all: BTreeMap<Key, Entry>) -> bool {
        let gone: Vec<Key> = self.entries.keys().filter(|key| !all.contains_key(*key)).copied().collect();
        let mut is_news = false;
        for key in gone {
            is_news |= self.heard(key, version, None);
        }
        for (key, entry) in all {
            is_news |= self.heard(key, entry.version, Some(entry));
        }
        is_news
    }

    /// Takes over what was heard; returns the keys of which other things hold now.
    pub(crate) fn catch_up(&mut self) -> Vec<Key> {
        let mut changed = Vec::new();
        for (key, (version, entry)) in std::mem::take(&mut self.pending) {
            let known = self.removed.get(&key).copied().unwrap_or_default().max(self.version_of(&key));
            if version <= known {
                continue;
            }
            self.removed.remove(&key);
            match entry {
                Some(entry) => self.entries.insert(key, entry),
                None => self.entries.remove(&key),
            };
            changed.push(key);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: i64) -> Option<Entry> {
        Some(Entry { version, record: None, summary: None, small: None })
    }

    #[test]
    fn news_is_taken_over_when_its_owner_says_so() {
        let mut mirror = Mirror::default();
        assert!(mirror.heard([1; 32], 4, entry(4)));
        assert_eq!((mirror.version_of(&[1; 32]), mirror.get(&[1; 32])), (0, None));
        assert_eq!(mirror.catch_up(), [[1; 32]]);
        assert_eq!(mirror.version_of(&[1; 32]), 4);
        assert!(!mirror.heard([1; 32], 4, entry(4)), "it is known");
        assert!(mirror.heard([1; 32], 5, None));
        assert_eq!(mirror.catch_up(), [[1; 32]]);
        assert_eq!(mirror.get(&[1; 32]), None);
        assert!(mirror.catch_up().is_empty());
    }

    #[test]
    fn late_news_of_what_this_server_changed_itself_changes_nothing() {
        let mut mirror = Mirror::default();
        mirror.wrote([1; 32], 4, entry(4));
        mirror.wrote([1; 32], 6, None);
        assert!(!mirror.heard([1; 32], 4, entry(4)), "its own deed, undone since");
        assert!(!mirror.heard([1; 32], 6, None));
        assert!(mirror.removed.is_empty(), "nothing older can come");
        mirror.wrote([2; 32], 9, entry(9));
        assert!(mirror.heard([2; 32], 10, entry(10)));
        mirror.wrote([2; 32], 11, entry(11));
        assert!(mirror.catch_up().is_empty());
        assert_eq!(mirror.version_of(&[2; 32]), 11);
    }

    #[test]
    fn news_of_an_own_deed_that_comes_before_its_end_brings_nothing_back() {
        let mut mirror = Mirror::default();
        assert!(mirror.heard([1; 32], 4, entry(4)), "it is written, and this server does not know yet");
        mirror.wrote([1; 32], 4, entry(4));
        mirror.wrote([1; 32], 6, None);
        assert!(!mirror.heard([1; 32], 6, None));
        assert!(mirror.catch_up().is_empty());
        assert_eq!(mirror.get(&[1; 32]), None);
    }

    #[test]
    fn what_is_there_as_a_whole_says_what_is_not() {
        let mut mirror = Mirror::default();
        mirror.wrote([1; 32], 1, entry(1));
        mirror.wrote([2; 32], 2, entry(2));
        let all = [([2; 32], entry(2)), ([3; 32], entry(7))];
        let all = all.into_iter().filter_map(|(key, entry)| Some((key, entry?))).collect();
        assert!(mirror.heard_all(8, all));
        assert_eq!(mirror.catch_up(), [[1; 32], [3; 32]]);
        let versions: Vec<i64> = mirror.after(None).map(|(_, entry)| entry.version).collect();
        assert_eq!(versions, [2, 7]);
    }
}
