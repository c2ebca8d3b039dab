//! All keys or summaries of a store, read page by page: memory for one page, however many there are.

use canopy_planner::PlanKey;

use super::{Store, StoreError};

/// Keys or summaries read at a time.
pub(super) const PAGE: usize = 1024;

impl dyn Store {
    /// The keys of all records, in rising order. Records may come and go meanwhile. Nothing follows an error.
    pub fn all_keys(&self) -> impl Iterator<Item = Result<PlanKey, StoreError>> + '_ {
        all(|after| self.keys(after, PAGE), |key| *key)
    }

    /// All summaries in the order of their keys, as [`all_keys`](Self::all_keys).
    pub fn all_summaries(&self) -> impl Iterator<Item = Result<(PlanKey, Vec<u8>), StoreError>> + '_ {
        all(|after| self.summaries(after, PAGE), |(key, _)| *key)
    }
}

/// What `read` gives, a page after the last key of the page before, until there is none.
fn all<T>(
    read: impl Fn(Option<&PlanKey>) -> Result<Vec<T>, StoreError>,
    key_of: impl Fn(&T) -> PlanKey,
) -> impl Iterator<Item = Result<T, StoreError>> {
    let (mut page, mut after, mut ended) = (Vec::new().into_iter(), None, false);
    std::iter::from_fn(move || {
        if page.as_slice().is_empty() && !ended {
            match read(after.as_ref()) {
                Ok(next) => {
                    ended = next.is_empty();
                    after = next.last().map(&key_of);
                    page = next.into_iter();
                }
                Err(error) => {
                    ended = true;
                    return Some(Err(error));
                }
            }
        }
        page.next().map(Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[test]
    fn all_are_listed_once_in_order_whatever_the_pages() {
        for count in [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 1] {
            let (memory, expected) = (MemoryStore::default(), (0..count as u64).map(PlanKey::numbered));
            let expected: Vec<PlanKey> = expected.collect();
            expected.iter().for_each(|key| memory.put(key, b"record", b"summary").unwrap());
            let store: &dyn Store = &memory;
            assert_eq!(store.all_keys().map(Result::unwrap).collect::<Vec<_>>(), expected);
            let summaries: Vec<_> = store.all_summaries().map(|entry| entry.unwrap().0).collect();
            assert_eq!(summaries, expected);
        }
    }

    #[test]
    fn what_is_removed_meanwhile_ends_nothing() {
        let memory = MemoryStore::default();
        let keys: Vec<PlanKey> = (0..2 * PAGE as u64).map(PlanKey::numbered).collect();
        keys.iter().for_each(|key| memory.put(key, b"record", &[]).unwrap());
        let store: &dyn Store = &memory;
        let listed = store.all_keys().inspect(|key| memory.remove(&[*key.as_ref().unwrap()]).unwrap());
        assert_eq!(listed.count(), keys.len());
    }
}
