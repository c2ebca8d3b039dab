//! The logs of faults of all topologies, placements and machines: on the disk before a report is acknowledged.
//!
//! Reports that come together are written together: whoever finds the disk busy has what it entered written by the next one who
//! gets at it, so that a storm costs as many writes as the disk can do, and not as many as there are events. What could not be
//! written stays to be written, and until it is, nobody's report is acknowledged.

mod book;
mod voices;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use canopy_access::Quota;
use canopy_faults::{Event, FaultLog, FaultLogError, Outcome, Policy, Record, Target};
use canopy_planner::PlanKey;
use parking_lot::Mutex;

pub(crate) use self::book::Count;
use self::book::{Changes, Kind};
use self::voices::{hosts_like, known_scope, voices};
use super::scope::{Audience, KeptScope, Scope};
use super::suspects::Suspects;
use crate::quota::OverQuota;
use crate::store::{Store, StoreError, deciding, decode_message, encode_message};
use crate::{call, clock};

/// Most topologies with faults, those that are placed counted by placement.
const BOOKS_MAX: usize = 1024;
/// Most machines with faults.
const HOSTS_MAX: usize = 65_536;

/// The record of an element; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Kept {
    /// Key of its topology; empty: it is a machine's.
    #[prost(bytes = "vec", tag = "1")]
    base: Vec<u8>,
    /// What is known of it, as JSON.
    #[prost(bytes = "vec", tag = "2")]
    record: Vec<u8>,
    /// The placement or machine whose it is; none: the topology's, wherever it is.
    #[prost(message, optional, tag = "3")]
    beside: Option<KeptScope>,
}

/// Why an event was not entered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    FaultLog(#[from] FaultLogError),
    #[error("the limit of {count} {what} with faults is reached; clear the faults of some")]
    TooManyBooks { count: usize, what: &'static str },
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) outcome: Outcome,
    /// Whether other things count now than before.
    pub(crate) changes: bool,
}

/// All fault logs. Clones share them.
#[derive(Clone)]
pub(crate) struct FaultLogs {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    policy: Policy,
    now_ms: fn() -> u64,
    fault_logs: Mutex<BTreeMap<Scope, Kind>>,
    /// Whether anything counts anywhere, for those who need not wait to learn that nothing does.
    any_counts: AtomicBool,
    /// How often other things may have counted than before.
    changes: AtomicU64,
    /// Held by who writes.
    writing: Mutex<Unwritten>,
    /// How often another server was first to change an element: what was entered here of it is gone.
    overtaken: AtomicU64,
}

/// What the disk and this server do not know of each other.
#[derive(Default)]
struct Unwritten {
    /// Elements whose records on the disk are behind.
    behind: BTreeSet<(Scope, Target)>,
    /// Keys under which other servers have changed something that is not known here yet.
    unheard: Vec<PlanKey>,
}

impl FaultLogs {
    /// Reads what is kept. What cannot be read is forgotten: its sources say it again, or an operator does.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(store: Arc<dyn Store>, policy: Policy, now_ms: fn() -> u64) -> Result<Self, StoreError> {
        let (mut records, mut unreadable) = (BTreeMap::<Scope, Vec<Record>>::new(), Vec::new());
        for key in store.all_keys() {
            let key = key?;
            match store.get(&key)?.and_then(|bytes| read(&key, &bytes)) {
                Some((scope, record)) => records.entry(scope).or_default().push(record),
                None => unreadable.push(key),
            }
        }
        if !unreadable.is_empty() {
            tracing::error!(count = unreadable.len(), "faults cannot be read and are dropped; report them again");
            store.remove(&unreadable)?;
        }
        let now = now_ms();
        let fault_logs = records.into_iter().map(|(scope, records)| {
            let since_ms = records.iter().map(Record::since_ms).max().unwrap_or(now);
            (scope, Kind::new(FaultLog::rebuilt(policy, 0, records), since_ms))
        });
        let fault_logs: BTreeMap<Scope, Kind> = fault_logs.collect();
        let any_counts = AtomicBool::new(any_counts(&fault_logs));
        let (fault_logs, writing) = (Mutex::new(fault_logs), Mutex::default());
        let (changes, overtaken) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Shared { store, policy, now_ms, fault_logs, any_counts, changes, writing, overtaken };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Enters events, each in its scope under the one name that its element has there, in their order; returns once what was
    /// entered survives a crash.
    ///
    /// # Errors
    /// The engine failed: what was entered is taken back.
    pub(crate) fn report(&self, events: Vec<(Scope, Event)>) -> Result<Vec<Result<Entered, ReportError>>, StoreError> {
        deciding(|| self.try_to_report(events.clone()))
    }

    fn try_to_report(&self, events: Vec<(Scope, Event)>) -> Result<Vec<Result<Entered, ReportError>>, StoreError> {
        let overtaken = self.shared.overtaken.load(Ordering::Acquire);
        let mut fault_logs = self.shared.fault_logs.lock();
        let now = (self.shared.now_ms)();
        let (mut touched, mut changes) = (BTreeSet::new(), Changes::default());
        let mut enter = |(scope, event): (Scope, Event)| -> Result<Entered, ReportError> {
            let event = event.checked().map_err(FaultLogError::from)?;
            let scope = known_scope(&fault_logs, scope);
            let event = Event { target: scope.rehosted(event.target), ..event };
            let kind = match fault_logs.contains_key(&scope) {
                true => fault_logs.get_mut(&scope),
                false => {
                    require_room(&fault_logs, &scope)?;
                    call::bill().map_or(Ok(()), |bill| bill.spend(Quota::FaultScopesPerHour))?;
                    let new = Kind::new(FaultLog::new(self.shared.policy), now);
                    Some(fault_logs.entry(scope.clone()).or_insert(new))
                }
            };
            let kind = kind.expect("it was found, or put there");
            let before = kind.book.version();
            changes.begin(&scope, &event.target, &kind.book);
            let outcome = kind.book.report(event, now)?;
            touched.insert(scope);
            Ok(Entered { outcome, changes: kind.book.version() != before })
        };
        let entered: Vec<Result<Entered, ReportError>> = events.into_iter().map(&mut enter).collect();
        touched.iter().for_each(|scope| fault_logs.get_mut(scope).into_iter().for_each(|kind| kind.recount(now)));
        self.shared.note(&fault_logs, entered.iter().flatten().any(|entered| entered.changes));
        changes.end(&fault_logs);
        drop(fault_logs);
        self.write_or_take_back(changes, overtaken)?;
        Ok(entered)
    }

    /// Takes elements out of some scopes, or all that is in them, but for those that have been known only since then, as far
    /// as sources have reported them that are meant; returns how many counted and do no more, once that survives a crash.
    ///
    /// # Errors
    /// The engine failed, as for [`FaultLogs::report`].
    pub(crate) fn clear(
        &self,
        wanted: &[(Scope, Option<Target>)],
        until_ms: u64,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<usize, StoreError> {
        deciding(|| self.try_to_clear(wanted, until_ms, &is_meant))
    }

    fn try_to_clear(
        &self,
        wanted: &[(Scope, Option<Target>)],
        until_ms: u64,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<usize, StoreError> {
        let overtaken = self.shared.overtaken.load(Ordering::Acquire);
        let mut fault_logs = self.shared.fault_logs.lock();
        let now = (self.shared.now_ms)();
        let (mut cleared, mut changes) = (0, Changes::default());
        for (scope, target) in wanted {
            let scope = known_scope(&fault_logs, scope.clone());
            let Some(kind) = fault_logs.get_mut(&scope) else { continue };
            let all: Vec<Target> = match target {
                Some(target) => vec![scope.rehosted(target.clone())],
                None => kind.book.records().map(|record| record.target().clone()).collect(),
            };
            let is_old = |target: &Target| kind.book.record(target).is_none_or(|record| record.since_ms() <= until_ms);
            let old: Vec<Target> = all.into_iter().filter(is_old).collect();
            old.iter().for_each(|target| changes.begin(&scope, target, &kind.book));
            let clears = |target: &&Target| kind.book.clear_of(target, &is_meant, now) == Outcome::Cleared;
            cleared += old.iter().filter(clears).count();
            kind.recount(now);
        }
        self.shared.note(&fault_logs, cleared > 0);
        changes.end(&fault_logs);
        drop(fault_logs);
        self.write_or_take_back(changes, overtaken).map(|()| cleared)
    }

    /// Writes what has changed. What cannot be written was refused, and is taken back; so is what was entered while another
    /// server was first, as `overtaken` then says no more.
    fn write_or_take_back(&self, changes: Changes, overtaken: u64) -> Result<(), StoreError> {
        let written = self.write().and_then(|()| match self.shared.overtaken.load(Ordering::Acquire) == overtaken {
            true => Ok(()),
            false => Err(StoreError::Overtaken),
        });
        if written.is_err() {
            let mut fault_logs = self.shared.fault_logs.lock();
            changes.take_back(&mut fault_logs, self.shared.policy, (self.shared.now_ms)());
            self.shared.note(&fault_logs, true);
        }
        written
    }

    /// Lets the time pass; returns the scopes in which other things count than when this was last called, and when it should
    /// be called again. What that changed is on the disk after [`FaultLogs::write`]; until then a start finds it out again.
    pub(crate) fn tick(&self) -> (Vec<Scope>, Option<u64>) {
        let now = (self.shared.now_ms)();
        let (mut changed, mut next) = (Vec::new(), None::<u64>);
        let mut fault_logs = self.shared.fault_logs.lock();
        for (scope, kind) in fault_logs.iter_mut() {
            kind.book.tick(now);
            kind.recount(now);
            if kind.told != kind.book.version() {
                kind.told = kind.book.version();
                changed.push(scope.clone());
            }
            next = next.into_iter().chain(kind.book.next_wake()).min();
        }
        self.shared.note(&fault_logs, !changed.is_empty());
        (changed, next)
    }

    /// Topologies that anything is known of, but for what is known by machines and clusters.
    pub(crate) fn bases(&self) -> BTreeSet<PlanKey> {
        self.shared.fault_logs.lock().keys().filter_map(Scope::base).copied().collect()
    }

    /// Whether anything counts as broken or slow anywhere. Waits for nobody.
    pub(crate) fn any_counts(&self) -> bool {
        self.shared.any_counts.load(Ordering::Relaxed)
    }

    /// A number that is another one once other things count than before. Waits for nobody.
    pub(crate) fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Acquire)
    }

    /// Whose faults count.
    pub(super) fn suspects(&self) -> Suspects {
        let fault_logs = self.shared.fault_logs.lock();
        Suspects::of(fault_logs.iter().filter(|(_, kind)| !kind.count.losses.is_empty()).map(|(scope, _)| scope))
    }

    /// What counts as broken or slow in a scope; `None`: nothing ever did, as far as is remembered.
    #[cfg(test)]
    pub(crate) fn count(&self, scope: &Scope) -> Option<Count> {
        self.shared.fault_logs.lock().get(scope).map(|kind| kind.count.clone())
    }

    /// Counts of one place: for all, and by each tenant's reporters whose reports count.
    pub(crate) fn counts(&self, place: &Scope, audience: &Audience) -> Vec<Count> {
        let fault_logs = self.shared.fault_logs.lock();
        let scopes = voices(&fault_logs, audience).into_iter().map(|tenant| place.clone().by(&tenant));
        scopes.filter_map(|scope| fault_logs.get(&scope)).map(|kind| kind.count.clone()).collect()
    }

    /// Tenants of whose reporters anything is remembered, and the empty name for the others.
    pub(crate) fn reporters(&self) -> Vec<String> {
        voices(&self.shared.fault_logs.lock(), &Audience::Everyone)
    }

    /// Places that anything is remembered of, whoever reported it.
    pub(crate) fn places(&self) -> BTreeSet<Scope> {
        self.shared.fault_logs.lock().keys().map(Scope::place).cloned().collect()
    }

    /// Number of elements that count for an audience, over all scopes.
    pub(crate) fn active(&self, audience: &Audience) -> usize {
        let fault_logs = self.shared.fault_logs.lock();
        let heard = fault_logs.iter().filter(|(scope, _)| audience.hears(scope));
        heard.map(|(_, kind)| kind.count.losses.len()).sum()
    }

    /// Whether anything is remembered of any machine.
    pub(crate) fn has_hosts(&self) -> bool {
        let fault_logs = self.shared.fault_logs.lock();
        fault_logs.keys().next_back().is_some_and(|last| last.host().is_some())
            || fault_logs.keys().take_while(|scope| scope.tenant().is_some()).any(|scope| scope.host().is_some())
    }

    /// What counts on a machine by this name, whole or short: of each that it may be.
    pub(crate) fn of_host(&self, name: &str, audience: &Audience) -> Vec<Count> {
        let fault_logs = self.shared.fault_logs.lock();
        let tenants = voices(&fault_logs, audience);
        let scopes = tenants.iter().flat_map(|tenant| hosts_like(&fault_logs, name, tenant));
        scopes.filter_map(|scope| fault_logs.get(&scope)).map(|kind| kind.count.clone()).collect()
    }

    /// Shows all elements of which anything counts, of all scopes.
    pub(crate) fn for_each(&self, mut take: impl FnMut(&Scope, &Record)) {
        let fault_logs = self.shared.fault_logs.lock();
        let records =
            fault_logs.iter().flat_map(|(scope, kind)| kind.book.records().map(move |record| (scope, record)));
        let counting = records.filter(|(_, record)| !record.counts_as().is_whole() || record.is_held());
        counting.for_each(|(scope, record)| take(scope, record));
    }

    /// All that is remembered of elements: keys and records.
    pub(super) fn snapshot(&self) -> Vec<(PlanKey, Vec<u8>)> {
        let fault_logs = self.shared.fault_logs.lock();
        let records = fault_logs.iter().flat_map(|(scope, kind)| kind.book.records().map(move |one| (scope, one)));
        let kept = |(scope, one): (&Scope, &Record)| (scope.key_of(&one.target().to_string()), encode(scope, one));
        records.map(kept).collect()
    }

    /// Elements that count, over all scopes, by kind; and changes that were held back.
    pub(crate) fn totals(&self) -> ([(&'static str, usize); Target::KINDS.len()], u64) {
        let fault_logs = self.shared.fault_logs.lock();
        let mut active = Target::KINDS.map(|kind| (kind, 0));
        for loss in fault_logs.values().flat_map(|kind| kind.count.losses.iter()) {
            active.iter_mut().filter(|(kind, _)| *kind == loss.target.kind()).for_each(|(_, count)| *count += 1);
        }
        let held_back = fault_logs.values().flat_map(|kind| kind.book.records()).map(Record::flaps_suppressed).sum();
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
        let mut unwritten = self.shared.writing.lock();
        self.hear(&mut unwritten)?;
        let behind = &mut unwritten.behind;
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        {
            let mut fault_logs = self.shared.fault_logs.lock();
            for (scope, kind) in fault_logs.iter_mut() {
                behind.extend(kind.book.take_unsaved().into_iter().map(|(target, _)| (scope.clone(), target)));
            }
            for (scope, target) in behind.iter() {
                let key = scope.key_of(&target.to_string());
                match fault_logs.get(scope).and_then(|kind| kind.book.record(target)) {
                    Some(record) => kept.push((key, encode(scope, record))),
                    None => gone.push(key),
                }
            }
            // A book that nothing is in any more is needed no more; what it told is known.
            fault_logs.retain(|_, kind| kind.book.records().len() > 0 || kind.told != kind.book.version());
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

    /// Learns what other servers have changed. What counts otherwise by that, [`FaultLogs::tick`] tells.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn follow(&self) -> Result<(), StoreError> {
        self.hear(&mut self.shared.writing.lock())
    }

    /// The same, by who writes. What was entered here of an element that another server has changed is gone: whoever entered it
    /// is told, and enters it again.
    fn hear(&self, unwritten: &mut Unwritten) -> Result<(), StoreError> {
        unwritten.unheard.extend(self.shared.store.catch_up());
        while let Some(key) = unwritten.unheard.last().copied() {
            let found = self.shared.store.get(&key)?.and_then(|record| read(&key, &record));
            let mut fault_logs = self.shared.fault_logs.lock();
            let now = (self.shared.now_ms)();
            let (known, record) = match found {
                Some((scope, record)) => (Some((scope, record.target().clone())), Some(record)),
                None => (element_of(&fault_logs, &key), None),
            };
            if let Some((scope, target)) = known {
                let element = (scope.clone(), target);
                let kind = fault_logs.entry(scope).or_insert_with(|| Kind::new(FaultLog::new(self.shared.policy), now));
                let is_lost = kind.book.is_unsaved(&element.1) | unwritten.behind.remove(&element);
                self.shared.overtaken.fetch_add(u64::from(is_lost), Ordering::Release);
                kind.book.learn(&element.1, record);
                kind.recount(now);
            }
            self.shared.note(&fault_logs, true);
            drop(fault_logs);
            unwritten.unheard.pop();
        }
        Ok(())
    }
}

impl Shared {
    /// To be called whenever other things may count; `is_changed`: they do.
    fn note(&self, fault_logs: &BTreeMap<Scope, Kind>, is_changed: bool) {
        self.any_counts.store(any_counts(fault_logs), Ordering::Relaxed);
        self.changes.fetch_add(u64::from(is_changed), Ordering::Release);
    }
}

fn any_counts(fault_logs: &BTreeMap<Scope, Kind>) -> bool {
    fault_logs.values().any(|kind| !kind.count.losses.is_empty())
}

/// The element whose record is under this key. O(elements).
fn element_of(fault_logs: &BTreeMap<Scope, Kind>, key: &PlanKey) -> Option<(Scope, Target)> {
    let elements = fault_logs.iter().flat_map(|(scope, kind)| kind.book.records().map(move |record| (scope, record)));
    let mut targets = elements.map(|(scope, record)| (scope, record.target()));
    let found = targets.find(|(scope, target)| scope.key_of(&target.to_string()) == *key);
    found.map(|(scope, target)| (scope.clone(), target.clone()))
}

fn require_room(fault_logs: &BTreeMap<Scope, Kind>, scope: &Scope) -> Result<(), ReportError> {
    if fault_logs.len() < BOOKS_MAX.min(HOSTS_MAX) {
        return Ok(());
    }
    // Those of which another server has cleared the last fault stay where only that one tells of changes.
    let with_faults = |are_hosts: bool| {
        let alike = fault_logs.iter().filter(|(scope, _)| scope.host().is_some() == are_hosts);
        alike.filter(|(_, kind)| kind.book.records().len() > 0).count()
    };
    let (count, limit, what) = match scope.host() {
        Some(_) => (with_faults(true), HOSTS_MAX, "machines"),
        None => (with_faults(false), BOOKS_MAX, "topologies"),
    };
    if count < limit { Ok(()) } else { Err(ReportError::TooManyBooks { count, what }) }
}

/// Now, by the clock that nobody sets.
pub(crate) const SYSTEM_CLOCK: fn() -> u64 = clock::steady_ms;

fn encode(scope: &Scope, record: &Record) -> Vec<u8> {
    let record = serde_json::to_vec(record).expect("records hold texts and numbers");
    let (base, beside) = scope.kept();
    encode_message(&Kept { base, record, beside })
}

fn read(key: &PlanKey, bytes: &[u8]) -> Option<(Scope, Record)> {
    let Kept { base, record, beside } = decode_message(bytes).ok()?;
    let scope = Scope::from_kept(&base, beside)?;
    let record: Record = serde_json::from_slice(&record).ok()?;
    (scope.key_of(&record.target().to_string()) == *key).then_some((scope, record))
}

#[cfg(test)]
mod tests;
