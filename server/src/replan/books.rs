//! The books of faults of all topologies: on the disk before a report is acknowledged.
//!
//! Reports that come together are written together: whoever finds the disk busy has what it entered written by the next one who
//! gets at it, so that a storm costs as many writes as the disk can do, and not as many as there are events. What could not be
//! written stays to be written, and until it is, nobody's report is acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use canopy_faults::{Book, BookError, Directory, Event, Loss, MeaningError, Outcome, Policy, Record, Target};
use prost::Message;

use super::bases::Base;
use crate::clock;
use crate::key::PlanKey;
use crate::store::{Store, StoreError, decode_record, encode_record};

/// Keys read at a time.
const PAGE: usize = 1024;
/// Most topologies with faults.
const BOOKS_MAX: usize = 1024;

/// The record of an element; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Kept {
    /// Key of its topology.
    #[prost(bytes = "vec", tag = "1")]
    base: Vec<u8>,
    /// What is known of it, as JSON.
    #[prost(bytes = "vec", tag = "2")]
    record: Vec<u8>,
}

/// Why an event was not entered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Meaning(#[from] MeaningError),
    #[error(transparent)]
    Book(#[from] BookError),
    #[error("{count} topologies have faults, as many as may; clear those of some")]
    TooManyBooks { count: usize },
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) outcome: Outcome,
    /// Whether other things count now than before.
    pub(crate) changes: bool,
}

/// What counts as broken or slow in a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// In a fixed order, each element once.
    pub(crate) losses: Arc<Vec<Loss>>,
    /// When that changed last, in milliseconds since 1970 UTC.
    pub(crate) since_ms: u64,
}

/// All books. Clones share them.
#[derive(Clone)]
pub(crate) struct Books {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    policy: Policy,
    now_ms: fn() -> u64,
    books: Mutex<BTreeMap<PlanKey, Kind>>,
    /// Held by who writes: elements whose records on the disk are behind.
    writing: Mutex<BTreeSet<(PlanKey, Target)>>,
}

/// A book, and what was last told of it.
struct Kind {
    book: Book,
    told: u64,
    /// Its version when it was counted.
    counted: u64,
    count: Count,
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books").field("policy", &self.shared.policy).finish_non_exhaustive()
    }
}

impl Books {
    /// Reads what is kept. What cannot be read is forgotten: its sources say it again, or an operator does.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(store: Arc<dyn Store>, policy: Policy, now_ms: fn() -> u64) -> Result<Self, StoreError> {
        let (mut records, mut after) = (BTreeMap::<PlanKey, Vec<Record>>::new(), None);
        let mut unreadable = Vec::new();
        loop {
            let keys = store.keys(after.as_ref(), PAGE)?;
            let Some(&last) = keys.last() else { break };
            after = Some(last);
            for key in keys {
                match store.get(&key)?.and_then(|bytes| read(&key, &bytes)) {
                    Some((base, record)) => records.entry(base).or_default().push(record),
                    None => unreadable.push(key),
                }
            }
        }
        if !unreadable.is_empty() {
            tracing::error!(count = unreadable.len(), "faults cannot be read and are forgotten; report them again");
            store.remove(&unreadable)?;
        }
        let now = now_ms();
        let books = records.into_iter().map(|(base, records)| {
            let since_ms = records.iter().map(Record::since_ms).max().unwrap_or(now);
            (base, Kind::new(Book::rebuilt(policy, 0, records), since_ms))
        });
        let books = Mutex::new(books.collect());
        Ok(Self { shared: Arc::new(Shared { store, policy, now_ms, books, writing: Mutex::default() }) })
    }

    /// Enters events about a topology, in their order; returns once what was entered survives a crash.
    ///
    /// # Errors
    /// The engine failed: what was entered counts, and may be lost in a crash.
    pub(crate) fn report(
        &self,
        (key, base): (&PlanKey, &Base),
        events: Vec<Event>,
    ) -> Result<Vec<Result<Entered, ReportError>>, StoreError> {
        let directory = Directory::new(base.topology());
        let mut books = self.shared.lock();
        let now = (self.shared.now_ms)();
        let count = books.len();
        let kind = match books.get_mut(key) {
            Some(kind) => kind,
            None if count >= BOOKS_MAX => {
                return Ok(events.iter().map(|_| Err(ReportError::TooManyBooks { count })).collect());
            }
            None => books.entry(*key).or_insert_with(|| Kind::new(Book::new(self.shared.policy), now)),
        };
        let enter = |event: Event| -> Result<Entered, ReportError> {
            let event = directory.canonical_event(event.checked().map_err(BookError::from)?)?;
            let before = kind.book.version();
            let outcome = kind.book.report(event, now)?;
            Ok(Entered { outcome, changes: kind.book.version() != before })
        };
        let entered = events.into_iter().map(enter).collect();
        kind.recount(now);
        drop(books);
        self.write()?;
        Ok(entered)
    }

    /// Takes elements out of the book of a topology, or all of them, but for those that have been known only since then; returns how many
    /// counted, once that survives a crash.
    ///
    /// # Errors
    /// The engine failed, as for [`Books::report`].
    pub(crate) fn clear(&self, key: &PlanKey, targets: Option<&[Target]>, until_ms: u64) -> Result<usize, StoreError> {
        let mut books = self.shared.lock();
        let now = (self.shared.now_ms)();
        let Some(kind) = books.get_mut(key) else {
            drop(books);
            return self.write().map(|()| 0);
        };
        let all: Vec<Target> = match targets {
            Some(targets) => targets.to_vec(),
            None => kind.book.records().map(|record| record.target().clone()).collect(),
        };
        let is_old =
            |book: &Book, target: &Target| book.record(target).is_none_or(|record| record.since_ms() <= until_ms);
        let old: Vec<Target> = all.into_iter().filter(|target| is_old(&kind.book, target)).collect();
        let cleared = old.iter().filter(|target| kind.book.clear(target, now) == Outcome::Cleared).count();
        kind.recount(now);
        drop(books);
        self.write().map(|()| cleared)
    }

    /// Lets the time pass; returns the topologies of which other things count than when this was last called, and when it should
    /// be called again. What that changed is on the disk after [`Books::write`]; until then a start finds it out again.
    pub(crate) fn tick(&self) -> (Vec<PlanKey>, Option<u64>) {
        let now = (self.shared.now_ms)();
        let (mut changed, mut next) = (Vec::new(), None::<u64>);
        for (key, kind) in self.shared.lock().iter_mut() {
            kind.book.tick(now);
            kind.recount(now);
            if kind.told != kind.book.version() {
                kind.told = kind.book.version();
                changed.push(*key);
            }
            next = next.into_iter().chain(kind.book.next_wake()).min();
        }
        (changed, next)
    }

    /// What counts as broken or slow in a topology; `None`: nothing ever did, as far as is remembered.
    pub(crate) fn count(&self, key: &PlanKey) -> Option<Count> {
        self.shared.lock().get(key).map(|kind| kind.count.clone())
    }

    /// Shows all elements of which anything counts, of all topologies.
    pub(crate) fn for_each(&self, mut take: impl FnMut(&PlanKey, &Record)) {
        let books = self.shared.lock();
        let records = books.iter().flat_map(|(key, kind)| kind.book.records().map(move |record| (key, record)));
        let counting = records.filter(|(_, record)| !record.counts_as().is_whole() || record.is_held());
        counting.for_each(|(key, record)| take(key, record));
    }

    /// Elements that count, over all topologies, and changes that were held back.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let books = self.shared.lock();
        let active = books.values().map(|kind| kind.count.losses.len()).sum();
        let held_back = books.values().flat_map(|kind| kind.book.records()).map(Record::flaps_suppressed).sum();
        (active, held_back)
    }

    /// When clears count.
    pub(crate) fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Writes down all that has changed since anybody last did, and what could not be written then.
    ///
    /// # Errors
    /// The engine failed: all of it is still to be written.
    pub(crate) fn write(&self) -> Result<(), StoreError> {
        let mut behind = self.shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        {
            let mut books = self.shared.lock();
            for (base, kind) in books.iter_mut() {
                behind.extend(kind.book.take_unsaved().into_iter().map(|(target, _)| (*base, target)));
            }
            for (base, target) in behind.iter() {
                let key = key_of(base, target);
                match books.get(base).and_then(|kind| kind.book.record(target)) {
                    Some(record) => kept.push((key, encode(base, record))),
                    None => gone.push(key),
                }
            }
            // A book that nothing is in any more is needed no more; what it told is known.
            books.retain(|_, kind| kind.book.records().len() > 0 || kind.told != kind.book.version());
        }
        if !kept.is_empty() {
            self.shared.store.put_all(&kept)?;
        }
        if !gone.is_empty() {
            self.shared.store.remove(&gone)?;
        }
        behind.clear();
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlanKey, Kind>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind {
    fn new(book: Book, since_ms: u64) -> Self {
        let count = Count { losses: Arc::new(book.active()), since_ms };
        // Nobody has been told of it.
        Self { told: u64::MAX, counted: book.version(), book, count }
    }

    fn recount(&mut self, now: u64) {
        if self.counted != self.book.version() {
            self.counted = self.book.version();
            self.count = Count { losses: Arc::new(self.book.active()), since_ms: now };
        }
    }
}

/// Now, by the clock of the system.
pub(crate) const SYSTEM_CLOCK: fn() -> u64 = clock::unix_ms;

fn key_of(base: &PlanKey, target: &Target) -> PlanKey {
    let mut hasher = blake3::Hasher::new_derive_key("canopy fault 1");
    hasher.update(base.as_bytes()).update(target.to_string().as_bytes());
    PlanKey::from_bytes(*hasher.finalize().as_bytes())
}

fn encode(base: &PlanKey, record: &Record) -> Vec<u8> {
    let record = serde_json::to_vec(record).expect("records hold texts and numbers");
    encode_record(&Kept { base: base.as_bytes().to_vec(), record }.encode_to_vec())
}

fn read(key: &PlanKey, bytes: &[u8]) -> Option<(PlanKey, Record)> {
    let kept = Kept::decode(decode_record(bytes).ok()?).ok()?;
    let base = PlanKey::from_bytes(kept.base.as_slice().try_into().ok()?);
    let record: Record = serde_json::from_slice(&kept.record).ok()?;
    (key_of(&base, record.target()) == *key).then_some((base, record))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use canopy_faults::{Remaining, Severity};
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::store::{Gated, MemoryStore};

    const BASE: PlanKey = PlanKey::from_bytes([9; 32]);

    fn base() -> Base {
        Base::new(generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap())
    }

    fn event(id: &str, target: &str, observed_ms: u64, cleared: bool) -> Event {
        Event {
            source: "test".to_owned(),
            event_id: id.to_owned(),
            target: target.parse().unwrap(),
            remaining: Remaining::GONE,
            severity: Severity::Fatal,
            observed_ms,
            expires_ms: None,
            cleared,
        }
    }

    #[test]
    fn faults_survive_a_restart_and_replays_change_nothing() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let now: fn() -> u64 = || 1_000_000;
        let books = Books::open(Arc::clone(&store), Policy::STANDARD, now).unwrap();
        let events = || {
            vec![
                event("1", "gpu:b0:3", 10, false),
                event("2", "gpu:b0g3", 11, false),
                event("3", "gpu:b9g9", 12, false),
            ]
        };
        let entered = books.report((&BASE, &base()), events()).unwrap();
        assert!(matches!(entered[0], Ok(Entered { outcome: Outcome::New, changes: true })));
        assert!(matches!(entered[1], Ok(Entered { outcome: Outcome::Updated, changes: false })), "by its other name");
        assert!(matches!(entered[2], Err(ReportError::Meaning(_))));
        let again = Books::open(store, Policy::STANDARD, now).unwrap();
        let losses = again.count(&BASE).unwrap().losses;
        assert_eq!(losses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["gpu:b0g3"]);
        assert_eq!(again.tick().0, [BASE], "whoever begins is told of all");
        for entered in again.report((&BASE, &base()), events()).unwrap().iter().take(2) {
            assert!(matches!(entered, Ok(Entered { outcome: Outcome::Repeated, changes: false })), "{entered:?}");
        }
        assert_eq!(again.tick().0, []);
    }

    #[test]
    fn what_could_not_be_written_is_written_later_and_not_acknowledged_before() {
        let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let is_sound = Arc::new(AtomicBool::new(false));
        let sound = Arc::clone(&is_sound);
        let now: fn() -> u64 = || 1_000_000;
        let store = Gated::over(&disk, move |_| sound.load(Ordering::Relaxed));
        let books = Books::open(store, Policy::STANDARD, now).unwrap();
        let report = |id, target| books.report((&BASE, &base()), vec![event(id, target, 10, false)]);
        assert!(report("1", "gpu:b0g3").is_err());
        assert!(report("1", "gpu:b0g3").is_err(), "said again, it is still not on the disk");
        assert!(books.write().is_err());
        assert_eq!(books.tick().0, [BASE], "it counts all the same");
        is_sound.store(true, Ordering::Relaxed);
        assert!(report("2", "gpu:b0g4").is_ok());
        let kept = || Books::open(Arc::clone(&disk), Policy::STANDARD, now).unwrap().count(&BASE);
        assert_eq!(kept().unwrap().losses.len(), 2, "whoever writes next writes all");

        is_sound.store(false, Ordering::Relaxed);
        assert!(books.clear(&BASE, None, u64::MAX).is_err());
        assert_eq!(kept().unwrap().losses.len(), 2);
        is_sound.store(true, Ordering::Relaxed);
        books.write().unwrap();
        assert_eq!(kept().unwrap().losses.len(), 0);
    }

    static NOW: AtomicU64 = AtomicU64::new(1_000_000);

    #[test]
    fn what_is_cleared_counts_until_it_was_sound_for_a_while() {
        let books =
            Books::open(Arc::new(MemoryStore::default()), Policy::STANDARD, || NOW.load(Ordering::Relaxed)).unwrap();
        let report = |id, cleared| {
            let entered = books
                .report((&BASE, &base()), vec![event(id, "nic:b0g1", NOW.load(Ordering::Relaxed), cleared)])
                .unwrap();
            entered.into_iter().next().unwrap().unwrap().outcome
        };
        assert_eq!(report("1", false), Outcome::New);
        assert_eq!((books.tick().0.len(), books.totals().0), (1, 1));
        NOW.fetch_add(100, Ordering::Relaxed);
        assert_eq!(report("2", true), Outcome::ClearPending);
        let (changed, next) = books.tick();
        assert_eq!((changed.len(), books.totals().0), (0, 1));
        NOW.store(next.unwrap(), Ordering::Relaxed);
        assert_eq!((books.tick().0, books.totals().0), (vec![BASE], 0));
        assert_eq!(books.count(&BASE).unwrap().since_ms, NOW.load(Ordering::Relaxed));
        // Long enough ago that it is no flapping.
        NOW.fetch_add(3_600_000, Ordering::Relaxed);
        assert_eq!(report("3", false), Outcome::New);
        let shown = || {
            let mut shown = 0;
            books.for_each(|_, _| shown += 1);
            shown
        };
        let since = NOW.load(Ordering::Relaxed);
        assert_eq!(books.clear(&BASE, None, since - 1).unwrap(), 0, "it has been known only since");
        assert_eq!((shown(), books.clear(&BASE, None, since).unwrap()), (1, 1));
        assert_eq!((books.tick().0, shown()), (vec![BASE], 0));
    }
}
