//! What tenants and callers use of the server, held against their quotas.
//!
//! Each call has two accounts: its tenant's, and its caller's own. Whatever is limited is taken from both.

mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_access::{Limits, Measure, Quota, Quotas};
use parking_lot::Mutex;

use crate::clock;
use crate::metrics::Metrics;

/// Accounts beyond which those that use nothing are forgotten.
const ACCOUNTS_MAX: usize = 10_000;
/// When to try again where others of the same account must give something back first.
const RETRY_AT_ONCE: Duration = Duration::from_secs(1);

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A tenant; callers without one share the empty name.
    Tenant,
    Identity,
}

/// What is used, and how much may be.
struct Account {
    holder: Holder,
    name: String,
    metrics: Metrics,
    state: Mutex<State>,
}

struct State {
    limits: Limits,
    /// Whether a call came since other servers were asked last.
    is_touched: bool,
    /// What other servers do not know yet of what counts over time, as the time in which it comes back.
    unshared: [Duration; Quota::COUNT],
    /// What other servers hold of what is limited at once.
    elsewhere: [u64; Quota::COUNT],
    /// What is there at once.
    held: [u64; Quota::COUNT],
    /// For what counts over time: when all that was taken will have come back; `None` if it never was taken.
    back_at: [Option<Instant>; Quota::COUNT],
}

/// A quota that is used up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{of} has used up its quota `{quota}` of {limit}; try again later, or ask an administrator to raise it")]
pub struct OverQuota {
    /// Whose it is.
    pub of: String,
    /// What is used up.
    pub quota: Quota,
    /// How much there is of it.
    pub limit: u64,
    /// When there will be room again, at the earliest.
    pub retry_after: Duration,
}

impl Account {
    fn over(&self, quota: Quota, limit: u64, retry_after: Duration) -> OverQuota {
        let name = &self.name;
        let of = match self.holder {
            Holder::Tenant if name.is_empty() => "the group of callers without a tenant".to_owned(),
            Holder::Tenant => format!("tenant {name}"),
            Holder::Identity => format!("caller {name}"),
        };
        self.metrics.count("canopy_quota_refusals_total", &[("quota", quota.name().into())]);
        OverQuota { of, quota, limit, retry_after }
    }

    /// Takes so much of what is limited at once. False: it is not limited, and not counted.
    fn take(&self, quota: Quota, amount: u64) -> Result<bool, OverQuota> {
        let mut state = self.state.lock();
        let Some(limit) = state.limits.of(quota) else { return Ok(false) };
        let elsewhere = state.elsewhere[quota.index()];
        let held = &mut state.held[quota.index()];
        if held.saturating_add(elsewhere).saturating_add(amount) > limit {
            return Err(self.over(quota, limit, RETRY_AT_ONCE));
        }
        *held += amount;
        Ok(true)
    }

    fn give_back(&self, quota: Quota, amount: u64) {
        let held = &mut self.state.lock().held[quota.index()];
        *held = held.saturating_sub(amount);
    }

    /// Takes `count` of what counts over time, if there is room for one.
    fn spend(&self, quota: Quota, count: u64, now: Instant) -> Result<(), OverQuota> {
        let mut state = self.state.lock();
        let (Some(limit), Measure::PerSeconds(seconds)) = (state.limits.of(quota), quota.measure()) else {
            return Ok(());
        };
        let back_at = state.back_at[quota.index()].map_or(now, |at| at.max(now));
        let room = Duration::from_secs(seconds.into());
        let waits = (back_at + time_of(ONE, seconds, limit)).duration_since(now).saturating_sub(room);
        if !waits.is_zero() {
            return Err(self.over(quota, limit, waits));
        }
        let takes = time_of(u128::from(count) * ONE, seconds, limit);
        state.back_at[quota.index()] = Some(back_at + takes);
        state.unshared[quota.index()] = state.unshared[quota.index()].saturating_add(takes);
        Ok(())
    }

    /// Counts what was used, in parts of [`ONE`]. After too much of it, `spend` refuses until that has come back.
    fn charge(&self, quota: Quota, parts: u128, now: Instant) {
        let mut state = self.state.lock();
        let (Some(limit), Measure::PerSeconds(seconds)) = (state.limits.of(quota), quota.measure()) else { return };
        let back_at = state.back_at[quota.index()].map_or(now, |at| at.max(now));
        // What can never come back would be no time at all.
        let takes = time_of(parts, seconds, limit);
        let Some(back_at) = back_at.checked_add(takes) else { return };
        state.back_at[quota.index()] = Some(back_at);
        state.unshared[quota.index()] = state.unshared[quota.index()].saturating_add(takes);
    }

    /// What is limited, and how much of it is used.
    fn uses(&self, now: Instant) -> Vec<Use> {
        let state = self.state.lock();
        let of = |quota: Quota| {
            let limit = state.limits.of(quota)?;
            let used = match quota.measure() {
                Measure::AtOnce => state.held[quota.index()].saturating_add(state.elsewhere[quota.index()]),
                Measure::PerSeconds(seconds) => {
                    let left =
                        state.back_at[quota.index()].map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
                    let used = left.as_nanos().saturating_mul(limit.into());
                    u64::try_from(used.div_ceil(u128::from(seconds) * NANOS)).unwrap_or(u64::MAX)
                }
            };
            Some(Use { quota, limit, used })
        };
        Quota::all().filter_map(of).collect()
    }

    fn is_idle(&self, now: Instant) -> bool {
        let state = self.state.lock();
        state.held.iter().all(|&held| held == 0) && state.back_at.iter().all(|at| at.is_none_or(|at| at <= now))
    }
}

/// Nanoseconds of a second.
const NANOS: u128 = 1_000_000_000;
/// Parts of one: a second of planning has as many nanoseconds.
const ONE: u128 = NANOS;

/// The time in which a quota of `limit` per `seconds` gives these parts of [`ONE`] back, rounded down to nanoseconds.
fn time_of(parts: u128, seconds: u32, limit: u64) -> Duration {
    let nanos = u128::from(seconds).saturating_mul(parts) / u128::from(limit.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A limit, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) quota: Quota,
    pub(crate) limit: u64,
    pub(crate) used: u64,
}

/// Accounts by the names of their holders.
type ByName = HashMap<String, Arc<Account>>;

/// All accounts; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Accounts {
    /// Those of tenants, those of identities.
    all: Arc<Mutex<[ByName; 2]>>,
    metrics: Metrics,
}

impl Accounts {
    pub(crate) fn new(metrics: Metrics) -> Self {
        for quota in Quota::all() {
            metrics.none_yet("canopy_quota_refusals_total", &[("quota", quota.name().into())]);
        }
        Self { all: Arc::default(), metrics }
    }

    /// The accounts of a call, with the limits that the rules state now.
    pub(crate) fn of(&self, identity: &str, tenant: &str, quotas: &Quotas) -> Bill {
        Bill {
            tenant: self.account(Holder::Tenant, tenant, quotas.of_tenant(tenant)),
            own: self.account(Holder::Identity, identity, quotas.of_identity(identity)),
        }
    }

    fn account(&self, holder: Holder, name: &str, limits: Limits) -> Arc<Account> {
        let all = &mut self.all.lock()[holder as usize];
        if let Some(account) = all.get(name) {
            let mut state = account.state.lock();
            (state.limits, state.is_touched) = (limits, true);
            drop(state);
            return Arc::clone(account);
        }
        if all.len() >= ACCOUNTS_MAX {
            let now = clock::now();
            all.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle(now));
        }
        let state = State {
            limits,
            is_touched: true,
            unshared: [Duration::ZERO; Quota::COUNT],
            elsewhere: [0; Quota::COUNT],
            held: [0; Quota::COUNT],
            back_at: [None; Quota::COUNT],
        };
        let (name, metrics) = (name.to_owned(), self.metrics.clone());
        let account = Arc::new(Account { holder, name: name.clone(), metrics, state: Mutex::new(state) });
        all.insert(name, Arc::clone(&account));
        account
    }
}

/// The accounts of a call; clones are the same ones.
#[derive(Clone)]
pub(crate) struct Bill {
    tenant: Arc<Account>,
    own: Arc<Account>,
}

impl Bill {
    fn both(&self) -> [&Arc<Account>; 2] {
        [&self.tenant, &self.own]
    }

    /// Takes one of what is limited at once.
    ///
    /// # Errors
    /// One of the accounts has as many already.
    pub(crate) fn take(&self, quota: Quota) -> Result<Used, OverQuota> {
        self.take_some(quota, 1)
    }

    /// Takes so much of what is limited at once.
    ///
    /// # Errors
    /// One of the accounts would have too much.
    pub(crate) fn take_some(&self, quota: Quota, amount: u64) -> Result<Used, OverQuota> {
        let mut used = Used { quota, amount, of: Vec::new() };
        for account in self.both() {
            if account.take(quota, amount)? {
                used.of.push(Arc::clone(account));
            }
        }
        Ok(used)
    }

    /// Takes one of what counts over time.
    ///
    /// # Errors
    /// One of the accounts has used up what it may. The other one's is taken all the same.
    pub(crate) fn spend(&self, quota: Quota) -> Result<(), OverQuota> {
        let now = clock::now();
        self.both().into_iter().try_for_each(|account| account.spend(quota, 1, now))
    }

    /// Whether something that is charged afterwards may begin.
    ///
    /// # Errors
    /// One of the accounts has used up what it may.
    pub(crate) fn require(&self, quota: Quota) -> Result<(), OverQuota> {
        let now = clock::now();
        self.both().into_iter().try_for_each(|account| account.spend(quota, 0, now))
    }

    /// Counts time of a planning worker that was used.
    pub(crate) fn charge_planning(&self, used: Duration) {
        self.charge(Quota::PlanningSecondsPerHour, used.as_nanos());
        self.tenant.metrics.planned_for(&self.tenant.name, used);
    }

    /// Counts bytes that were stored.
    pub(crate) fn charge_stored(&self, bytes: u64) {
        self.charge(Quota::StoredBytesPerHour, u128::from(bytes) * ONE);
    }

    fn charge(&self, quota: Quota, parts: u128) {
        let now = clock::now();
        self.both().into_iter().for_each(|account| account.charge(quota, parts, now));
    }

    /// Whether the tenant, which holds this many of what is counted elsewhere, may have one more.
    ///
    /// # Errors
    /// It has as many already.
    pub(crate) fn admits(&self, quota: Quota, held: usize) -> Result<(), OverQuota> {
        let limit = self.tenant.state.lock().limits.of(quota);
        match limit {
            Some(limit) if held as u64 >= limit => Err(self.tenant.over(quota, limit, RETRY_AT_ONCE)),
            _ => Ok(()),
        }
    }

    /// The tenant; empty for none.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant.name
    }

    /// The caller.
    pub(crate) fn identity(&self) -> &str {
        &self.own.name
    }

    /// What is limited for the tenant, which holds this number of leases.
    pub(crate) fn of_tenant(&self, leases: usize) -> Vec<Use> {
        let mut uses = self.tenant.uses(clock::now());
        let of_leases = uses.iter_mut().filter(|one| one.quota == Quota::Leases);
        of_leases.for_each(|one| one.used = leases as u64);
        uses
    }

    /// What is limited for the caller.
    pub(crate) fn of_identity(&self) -> Vec<Use> {
        self.own.uses(clock::now())
    }

    /// The share of planning workers that its tenant has, compared with others.
    pub(crate) fn weight(&self) -> u64 {
        self.tenant.state.lock().limits.weight()
    }
}

/// What was taken at once; dropping it gives it back.
pub(crate) struct Used {
    quota: Quota,
    amount: u64,
    of: Vec<Arc<Account>>,
}

impl Used {
    /// Whether anything was counted.
    pub(crate) fn is_something(&self) -> bool {
        !self.of.is_empty()
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.of.iter().for_each(|account| account.give_back(self.quota, self.amount));
    }
}

#[cfg(test)]
mod tests {
    use canopy_access::Policy;

    use super::*;

    fn bill(rules: &str) -> Bill {
        let policy = Policy::read(rules, |_| Err("nothing is named".to_owned())).unwrap();
        Accounts::new(Metrics::off()).of("ann", "red", policy.quotas())
    }

    #[test]
    fn what_is_given_back_may_be_taken_again_and_both_accounts_count() {
        let bill = bill("[quotas]\ndefault = { calls = 2 }\n[quotas.identities]\nann = { calls = 1 }\n");
        let used = bill.take(Quota::Calls).unwrap();
        let over = bill.take(Quota::Calls).err().unwrap();
        assert_eq!((over.of.as_str(), over.limit), ("caller ann", 1));
        // What the tenant's account had given for it came back.
        drop(used);
        assert!(bill.take(Quota::Calls).is_ok_and(|used| used.is_something()));
        assert!(bill.take(Quota::Jobs).is_ok_and(|used| !used.is_something()), "nothing is said of jobs");
    }

    #[test]
    fn what_counts_over_time_comes_back_evenly() {
        let bill = bill("[quotas]\ndefault = { topologies_per_hour = 4, planning_seconds_per_hour = 3600 }\n");
        let (account, now) = (&bill.tenant, clock::now());
        let spend = |seconds| account.spend(Quota::TopologiesPerHour, 1, now + Duration::from_secs(seconds));
        (0..4).for_each(|_| spend(0).unwrap());
        assert_eq!(spend(0).unwrap_err().retry_after, Duration::from_secs(900));
        assert_eq!(spend(600).unwrap_err().retry_after, Duration::from_secs(300));
        spend(900).unwrap();
        assert!(spend(901).is_err());
        // After an hour without use all is back, and no more than that.
        (0..4).for_each(|_| spend(9000).unwrap());
        assert!(spend(9000).is_err());
        // Time of workers is known afterwards: one may have more than there is, and waits that long.
        let require = |seconds| account.spend(Quota::PlanningSecondsPerHour, 0, now + Duration::from_secs(seconds));
        require(0).unwrap();
        account.charge(Quota::PlanningSecondsPerHour, 5_000 * ONE, now);
        assert_eq!(require(0).unwrap_err().retry_after, Duration::from_secs(1401));
        require(1401).unwrap();
    }

    #[test]
    fn bytes_are_counted_to_the_last_one_however_many_there_may_be() {
        let bill = bill("[quotas]\ndefault = { stored_bytes_per_hour = 1000000000000 }\n");
        bill.charge_stored(999_999_999_999);
        let used = || bill.of_tenant(0)[0].used;
        assert!((999_000_000_000..=999_999_999_999).contains(&used()), "{}", used());
        bill.require(Quota::StoredBytesPerHour).unwrap();
        bill.charge_stored(2_000_000_000_000);
        let wait = bill.require(Quota::StoredBytesPerHour).unwrap_err().retry_after;
        assert!((Duration::from_secs(7190)..Duration::from_secs(7201)).contains(&wait), "{wait:?}");
        // More than will ever come back is not held against it for ever.
        bill.charge_stored(u64::MAX);
        assert!(bill.require(Quota::StoredBytesPerHour).is_err());
    }

    #[test]
    fn accounts_that_use_nothing_are_forgotten() {
        let accounts = Accounts::new(Metrics::off());
        let held = accounts.of("ann", "red", &Quotas::default());
        for number in 0..ACCOUNTS_MAX {
            accounts.of(&number.to_string(), "red", &Quotas::default());
        }
        assert!(accounts.all.lock()[Holder::Identity as usize].len() <= ACCOUNTS_MAX);
        assert!(Arc::ptr_eq(&held.own, &accounts.of("ann", "red", &Quotas::default()).own));
    }
}
