//! Which job uses which plans: synced to disk before it is acknowledged.
//!
//! What a lease is about never changes and is its record; what becomes of it is its summary.

mod kept;
mod table;
mod valid;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use canopy_planner::PlanKey;
use canopy_wire::Priority;
use parking_lot::{Mutex, MutexGuard};

use self::kept::{key_from, read, summary_of};
use self::table::Table;
use super::placed::Placed;
use super::scope::Audience;
use crate::clock;
use crate::failure::LeaseError;
use crate::quota::OverQuota;
use crate::store::{Durability, MayBeOvertaken, Store, StoreError, deciding, encode_message};

pub(super) use self::kept::digest;
pub(crate) use self::kept::{Avoided, Item, LeaseState, LeaseTerms, ValidPlan};
pub(crate) use self::table::{HeldKey, HeldLinks};

/// Leases that are behind on the disk and written at once: nobody else can write meanwhile.
const BEHIND_AT_ONCE: usize = 16;
/// What every name begins with.
const FOLDER: &str = "leases/";

/// How many leases are kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseOptions {
    /// Most leases.
    pub(crate) count_max: usize,
    /// Most bytes of their records.
    pub(crate) bytes_max: usize,
    /// Milliseconds, by a clock that nobody sets.
    pub(crate) now_ms: fn() -> u64,
}

impl LeaseOptions {
    /// 100,000 leases, 256 MiB, and the clock that nobody sets.
    pub(crate) const STANDARD: Self = Self { count_max: 100_000, bytes_max: 256 << 20, now_ms: clock::steady_ms };
}

/// A lease. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) terms: Arc<LeaseTerms>,
    pub(crate) state: Arc<LeaseState>,
    /// Bytes of its record.
    record_bytes: usize,
}

impl Lease {
    fn new(terms: LeaseTerms, state: LeaseState, record_bytes: usize) -> Self {
        Self { terms: Arc::new(terms), state: Arc::new(state), record_bytes }
    }

    pub(crate) fn name(&self) -> String {
        name_of(self.terms.number)
    }

    pub(crate) fn base(&self) -> Option<PlanKey> {
        key_from(&self.terms.base)
    }

    /// Whose reports of faults count for it.
    pub(crate) fn audience(&self) -> Audience {
        Audience::Tenant(self.terms.owner.clone().unwrap_or_default())
    }

    /// The key of the request that acquired it, if that had an id.
    fn request(&self) -> Option<PlanKey> {
        key_from(&self.terms.request_key)
    }

    /// Priorities that this build does not know count as those of a job that starts.
    pub(crate) fn priority(&self) -> Priority {
        Priority::of_number(self.terms.priority).unwrap_or(Priority::JobStart)
    }
}

pub(crate) fn name_of(number: u64) -> String {
    format!("{FOLDER}{number:016x}")
}

/// The number of the lease of this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FOLDER)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (name_of(number) == name).then_some(number)
}

/// All leases. Clones share them. Whoever only looks does not wait for the disk.
#[derive(Clone)]
pub(crate) struct Leases {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    options: LeaseOptions,
    table: Mutex<Table>,
    /// Held by who writes; taken before `table`. Keys under which other servers have changed something that is not known here yet.
    writing: Mutex<Vec<PlanKey>>,
}

/// Nobody else writes as long as this is held.
type Turn<'a> = MutexGuard<'a, Vec<PlanKey>>;

impl Leases {
    /// Reads what is kept. A lease that cannot be read goes into quarantine.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(store: Arc<dyn Store>, options: LeaseOptions) -> Result<Self, StoreError> {
        let mut table = Table::default();
        for entry in store.all_summaries() {
            let (key, summary) = entry?;
            table.last = table.last.max(key.number());
            let Some(record) = store.get(&key)? else {
                store.remove(&[key])?;
                continue;
            };
            match read(&key, &record, &summary) {
                Some(lease) => table.put(lease),
                None => {
                    tracing::error!(lease = name_of(key.number()), "a lease cannot be read; it was quarantined");
                    store.quarantine(&key)?;
                }
            }
        }
        // Names of leases that have ended are not given again while anybody may remember them.
        table.last = table.last.max((options.now_ms)()).max(store.last_number()?);
        let (table, writing) = (Mutex::new(table), Mutex::default());
        Ok(Self { shared: Arc::new(Shared { store, options, table, writing }) })
    }

    /// Keeps a lease, and gives it its number, if its owner `may` have one more than this number.
    pub(crate) fn acquire(
        &self,
        terms: LeaseTerms,
        state: LeaseState,
        may: impl Fn(usize) -> Result<(), OverQuota>,
    ) -> Result<Lease, LeaseError> {
        deciding(|| self.try_to_acquire(terms.clone(), state.clone(), &may))
    }

    fn try_to_acquire(
        &self,
        mut terms: LeaseTerms,
        state: LeaseState,
        may: impl Fn(usize) -> Result<(), OverQuota>,
    ) -> Result<Lease, LeaseError> {
        let LeaseOptions { count_max, bytes_max: limit, now_ms } = self.shared.options;
        let _turn = self.turn()?;
        if let Some(lease) = self.acquired_by_same(&terms) {
            return Ok(lease);
        }
        let (count, of_owner, held, last) = {
            let table = self.shared.table.lock();
            (table.all().len(), table.owned_by(terms.owner.as_deref()), table.bytes(), table.last)
        };
        may(of_owner)?;
        if count >= count_max {
            return Err(LeaseError::TooMany { count });
        }
        terms.number = last + 1;
        terms.created_ms = now_ms();
        let record = encode_message(&terms);
        let found = record.len();
        if held + found > limit {
            return Err(LeaseError::TooLarge { held, found, limit });
        }
        self.shared.store.put_next(terms.number, &record, &encode_message(&state))?;
        let number = terms.number;
        let mut table = self.shared.table.lock();
        table.put(Lease::new(terms, state, found));
        Ok(table.get(number).expect("it was put there").clone())
    }

    /// The lease that the same request has acquired at another server meanwhile.
    fn acquired_by_same(&self, terms: &LeaseTerms) -> Option<Lease> {
        let lease = self.of_request(&key_from(&terms.request_key)?)?;
        (lease.terms.request_digest == terms.request_digest).then_some(lease)
    }

    /// Learns what other servers have changed.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn follow_others(&self) -> Result<(), StoreError> {
        self.turn().map(drop)
    }

    /// Lets nobody else write, and learns what other servers have changed.
    fn turn(&self) -> Result<Turn<'_>, StoreError> {
        let mut unheard = self.shared.writing.lock();
        unheard.extend(self.shared.store.catch_up());
        let now = |key: &PlanKey| -> Result<_, StoreError> {
            let (record, summary) = (self.shared.store.get(key)?, self.shared.store.summary(key)?);
            let lease = record.zip(summary).and_then(|(record, summary)| read(key, &record, &summary));
            Ok((key.number(), lease))
        };
        let changed = unheard.iter().map(now).collect::<Result<Vec<_>, StoreError>>()?;
        // Together: what another server does to several at once is seen as a whole.
        let mut table = self.shared.table.lock();
        for (number, lease) in changed {
            match lease {
                Some(lease) => table.learn(lease),
                None => table.take_out(number),
            }
            table.last = table.last.max(number);
        }
        table.last = table.last.max(self.shared.store.last_number()?);
        drop(table);
        unheard.clear();
        Ok(unheard)
    }

    /// Gives new leases greater numbers than this one.
    pub(crate) fn number_beyond(&self, number: u64) {
        let mut table = self.shared.table.lock();
        table.last = table.last.max(number);
    }

    /// The lease of this number, if it is held.
    pub(crate) fn get(&self, number: u64) -> Option<Lease> {
        self.shared.table.lock().get(number).cloned()
    }

    /// The lease that a request of this key acquired, if it is held: its answer may have been lost in a crash.
    pub(crate) fn of_request(&self, request: &PlanKey) -> Option<Lease> {
        self.shared.table.lock().of_request(request).cloned()
    }

    /// Has a lease last for so long from now on, or as long as before; returns it once that survives a crash. `None`: it is not held.
    pub(crate) fn renew(&self, number: u64, ttl_ms: Option<u64>) -> Result<Option<Lease>, StoreError> {
        deciding(|| self.try_to_renew(number, ttl_ms))
    }

    fn try_to_renew(&self, number: u64, ttl_ms: Option<u64>) -> Result<Option<Lease>, StoreError> {
        let _turn = self.turn()?;
        let Some(mut lease) = self.get(number).filter(|lease| !lease.state.is_ending) else { return Ok(None) };
        let now = self.now_ms();
        let renew = |state: &mut LeaseState| {
            state.ttl_ms = ttl_ms.unwrap_or(state.ttl_ms);
            state.expire_ms = now.saturating_add(state.ttl_ms);
        };
        renew(Arc::make_mut(&mut lease.state));
        self.shared.store.set_summaries(&[summary_of(&lease)], Durability::Synced)?;
        let mut table = self.shared.table.lock();
        // Its plans may be others by now.
        let mut lease = table.get(number).expect("none is let go but in turn").clone();
        renew(Arc::make_mut(&mut lease.state));
        table.put(lease.clone());
        Ok(Some(lease))
    }

    /// Has a lease say of a plan what an event says that is on the disk. The lease itself follows there with
    /// [`Leases::write_behind`].
    pub(crate) fn follow(&self, number: u64, item: usize, valid: ValidPlan) {
        let mut table = self.shared.table.lock();
        let Some(mut lease) = table.get(number).cloned() else { return };
        let state = Arc::make_mut(&mut lease.state);
        state.items.iter_mut().skip(item).take(1).for_each(|known| *known = valid.clone());
        table.put(lease);
        table.behind.insert(number);
    }

    /// Writes some of the leases that are behind on the disk; false: none is left.
    ///
    /// # Errors
    /// The engine failed; they are still behind.
    pub(crate) fn write_behind(&self) -> Result<bool, StoreError> {
        deciding(|| self.try_to_write_behind())
    }

    fn try_to_write_behind(&self) -> Result<bool, StoreError> {
        let _turn = self.turn()?;
        let some: Vec<Lease> = {
            let table = self.shared.table.lock();
            table.behind.iter().take(BEHIND_AT_ONCE).filter_map(|number| table.get(*number)).cloned().collect()
        };
        if !some.is_empty() {
            let summaries: Vec<_> = some.iter().map(summary_of).collect();
            self.shared.store.set_summaries(&summaries, Durability::Synced)?;
        }
        let mut table = self.shared.table.lock();
        for written in &some {
            let number = written.terms.number;
            if table.get(number).is_some_and(|lease| Arc::ptr_eq(&lease.state, &written.state)) {
                table.behind.remove(&number);
            }
        }
        Ok(!table.behind.is_empty())
    }

    /// Lets go of leases; returns how many were held.
    pub(crate) fn release(&self, numbers: &[u64]) -> Result<usize, StoreError> {
        deciding(|| {
            self.let_go(self.turn()?, |table| {
                numbers.iter().copied().filter(|number| table.get(*number).is_some()).collect()
            })
        })
    }

    /// Lets go of those that are `chosen` among all leases, at one moment: a lease that is acquired meanwhile, at whichever
    /// server, is among them or was acquired after it. Returns how many were let go.
    ///
    /// # Errors
    /// That of `chosen`, or the engine failed.
    pub(crate) fn release_of_all<E: From<StoreError> + MayBeOvertaken>(
        &self,
        chosen: impl Fn(&mut dyn Iterator<Item = &Lease>) -> Result<Vec<u64>, E>,
    ) -> Result<usize, E> {
        deciding(|| {
            let turn = self.turn()?;
            let numbers = chosen(&mut self.shared.table.lock().all())?;
            let keys: Vec<PlanKey> = numbers.iter().copied().map(PlanKey::numbered).collect();
            if !keys.is_empty() {
                self.shared.store.remove_of_all(&keys)?;
            }
            let mut table = self.shared.table.lock();
            numbers.iter().for_each(|number| table.take_out(*number));
            drop((table, turn));
            Ok(numbers.len())
        })
    }

    /// Lets go of leases that nobody has renewed, once `tell` has told of each; returns how many there were. A lease that
    /// cannot be told of is held until it can. `tell` must not write leases.
    ///
    /// # Errors
    /// The first failure to tell, or of the engine.
    pub(crate) fn expire<E: From<StoreError>>(&self, tell: impl Fn(&Lease) -> Result<(), E>) -> Result<usize, E> {
        let now = self.now_ms();
        if self.shared.table.lock().ended(now).next().is_none() {
            return Ok(0);
        }
        let (ended, turn) = deciding(|| self.begin_to_end(now))?;
        let (mut numbers, mut failure) = (Vec::new(), None);
        for lease in &ended {
            match tell(lease) {
                Ok(()) => numbers.push(lease.terms.number),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        drop(turn);
        // Another server may have written down what events say of it.
        let count = deciding(|| self.let_go(self.turn()?, |_| numbers.clone()))?;
        failure.map_or(Ok(count), Err)
    }

    /// The leases that nobody has renewed. From now on nobody can, at no server: they are about to be told of.
    fn begin_to_end(&self, now: u64) -> Result<(Vec<Lease>, Turn<'_>), StoreError> {
        let turn = self.turn()?;
        let mut ended: Vec<Lease> = {
            let table = self.shared.table.lock();
            table.ended(now).filter_map(|number| table.get(number)).cloned().collect()
        };
        ended.iter_mut().for_each(|lease| Arc::make_mut(&mut lease.state).is_ending = true);
        if !ended.is_empty() {
            let summaries: Vec<_> = ended.iter().map(summary_of).collect();
            self.shared.store.set_summaries(&summaries, Durability::Synced)?;
        }
        let mut table = self.shared.table.lock();
        for lease in &ended {
            let number = lease.terms.number;
            table.put(lease.clone());
            table.behind.remove(&number);
        }
        drop(table);
        Ok((ended, turn))
    }

    fn let_go(&self, _turn: Turn<'_>, which: impl FnOnce(&Table) -> Vec<u64>) -> Result<usize, StoreError> {
        let held = which(&self.shared.table.lock());
        let keys: Vec<PlanKey> = held.iter().copied().map(PlanKey::numbered).collect();
        if !keys.is_empty() {
            self.shared.store.remove(&keys)?;
        }
        let mut table = self.shared.table.lock();
        held.iter().for_each(|number| table.take_out(*number));
        Ok(held.len())
    }

    /// The leases that `wanted` picks, by their numbers. O(leases).
    pub(crate) fn select(&self, wanted: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        self.shared.table.lock().all().filter(|lease| wanted(lease)).cloned().collect()
    }

    /// The number of leases that this tenant has acquired.
    pub(crate) fn owned_by(&self, owner: &str) -> usize {
        self.shared.table.lock().owned_by(Some(owner))
    }

    /// Plans that are held on a topology.
    pub(crate) fn held_on(&self, base: &PlanKey) -> Vec<HeldLinks> {
        self.shared.table.lock().held_on(base)
    }

    /// Leases on a topology that hold one of some plans. O(plans · log plans + leases found).
    pub(crate) fn holding<'a>(&self, base: &PlanKey, plans: impl Iterator<Item = &'a PlanKey>) -> BTreeSet<u64> {
        self.shared.table.lock().holding(base, plans)
    }

    /// Leases on a topology with another plan than the original.
    pub(crate) fn moved(&self, base: &PlanKey) -> BTreeSet<u64> {
        self.shared.table.lock().moved(base)
    }

    /// Of those, the ones that hold one of some plans.
    pub(crate) fn moved_holding(&self, base: &PlanKey, plans: &HashSet<PlanKey>) -> BTreeSet<u64> {
        self.shared.table.lock().moved_holding(base, plans)
    }

    /// Where the request for a plan that is held places ranks.
    pub(crate) fn placed(&self, base: &PlanKey, plan: &PlanKey) -> Option<Arc<Placed>> {
        self.shared.table.lock().placed(base, plan)
    }

    /// Topologies that leases are on.
    pub(crate) fn bases(&self) -> Vec<PlanKey> {
        self.shared.table.lock().bases().copied().collect()
    }

    /// A plan that is held and not among those known, and a lease that holds it.
    pub(crate) fn other_than(&self, known: impl Fn(&HeldKey) -> bool) -> Option<(HeldKey, Lease)> {
        self.shared.table.lock().plans().find(|(key, _)| !known(key)).map(|(key, lease)| (key, lease.clone()))
    }

    /// One of the leases that hold a plan.
    pub(crate) fn holder(&self, held: &HeldKey) -> Option<Lease> {
        self.shared.table.lock().holder(held).cloned()
    }

    /// Number of leases.
    pub(crate) fn len(&self) -> usize {
        self.shared.table.lock().all().len()
    }

    /// The number of the lease that was acquired last.
    pub(crate) fn last_number(&self) -> u64 {
        self.shared.table.lock().last
    }

    /// Now, by the clock of the leases.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.shared.options.now_ms)()
    }
}

impl Lease {
    /// As it is kept: key, record and summary.
    pub(super) fn kept(&self) -> (PlanKey, Vec<u8>, Vec<u8>) {
        let (key, summary) = summary_of(self);
        (key, encode_message(&*self.terms), summary)
    }
}

#[cfg(test)]
mod tests;
