//! Quotas over all servers that share a database: each tells the others every second what is used at it.
//!
//! What is limited within a second, and calls and uploads under way, count at each server by itself; leases are counted where they
//! are stored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_access::{Measure, Quota};
use canopy_database::{QuotaNow, QuotaUse};

use super::{Account, Accounts, Holder};

/// What is counted over all servers.
fn shared() -> impl Iterator<Item = Quota> {
    Quota::all().filter(|quota| match quota.measure() {
        Measure::AtOnce => *quota == Quota::Jobs,
        Measure::PerSeconds(seconds) => seconds > 1,
    })
}

impl Accounts {
    /// What is used here, of accounts that matter now. What is used over time is told once.
    pub(crate) fn uses_here(&self, now: Instant) -> Vec<QuotaUse> {
        let all: Vec<Arc<Account>> =
            self.all.lock().iter().flat_map(|by_name| by_name.values()).map(Arc::clone).collect();
        let mut uses = Vec::new();
        for account in all {
            let is_idle = account.is_idle(now);
            let mut state = account.state.lock();
            if is_idle && !std::mem::take(&mut state.is_touched) {
                continue;
            }
            for quota in shared() {
                if state.limits.of(quota).is_none() {
                    continue;
                }
                let more = std::mem::take(&mut state.unshared[quota.index()]);
                let (account, held) = (account.shared_name(), state.held[quota.index()]);
                uses.push(QuotaUse { account, quota: quota.name().to_owned(), more, held });
            }
        }
        uses
    }

    /// Learns what is used at all servers.
    pub(crate) fn learn(&self, all: &[QuotaNow], now: Instant) {
        for QuotaNow { account, quota, back_in, held_elsewhere } in all {
            let Some(account) = self.named(account) else { continue };
            let Some(quota) = shared().find(|known| known.name() == quota) else { continue };
            let mut state = account.state.lock();
            state.elsewhere[quota.index()] = *held_elsewhere;
            if matches!(quota.measure(), Measure::PerSeconds(_)) {
                // What was used since then is not in it.
                let back_in = back_in.saturating_add(state.unshared[quota.index()]);
                state.back_at[quota.index()] = now.checked_add(back_in).filter(|_| back_in > Duration::ZERO);
            }
        }
    }

    /// What was not told after all counts here, and is told next time.
    pub(crate) fn take_back(&self, untold: &[QuotaUse]) {
        for QuotaUse { account, quota, more, .. } in untold {
            let quota = shared().find(|known| known.name() == quota);
            if let (Some(account), Some(quota)) = (self.named(account), quota) {
                let unshared = &mut account.state.lock().unshared[quota.index()];
                *unshared = unshared.saturating_add(*more);
            }
        }
    }

    /// The account of this name among those of all servers.
    fn named(&self, name: &str) -> Option<Arc<Account>> {
        let (holder, name) = match name.split_at_checked(1)? {
            ("t", name) => (Holder::Tenant, name),
            ("i", name) => (Holder::Identity, name),
            _ => return None,
        };
        self.all.lock()[holder as usize].get(name).map(Arc::clone)
    }
}

impl Account {
    fn shared_name(&self) -> String {
        let holder = match self.holder {
            Holder::Tenant => 't',
            Holder::Identity => 'i',
        };
        format!("{holder}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use canopy_access::Policy;

    use super::*;
    use crate::clock;
    use crate::metrics::Metrics;

    fn accounts() -> (Accounts, super::super::Bill) {
        let rules = "[quotas]\ndefault = { jobs = 3, planning_seconds_per_hour = 100 }\n";
        let policy = Policy::read(rules, |_| Err("nothing is named".to_owned())).unwrap();
        let accounts = Accounts::new(Metrics::off());
        let bill = accounts.of("ann", "red", policy.quotas());
        (accounts, bill)
    }

    fn of<'a>(uses: &'a [QuotaUse], quota: &str) -> &'a QuotaUse {
        uses.iter().find(|one| one.account == "tred" && one.quota == quota).unwrap()
    }

    #[test]
    fn what_is_used_elsewhere_counts_here() {
        let (accounts, bill) = accounts();
        let now = clock::now();
        let _used = bill.take(Quota::Jobs).unwrap();
        bill.charge_planning(Duration::from_secs(50));
        let uses = accounts.uses_here(now);
        assert_eq!(
            (of(&uses, "jobs").held, of(&uses, "planning_seconds_per_hour").more),
            (1, Duration::from_secs(1800))
        );
        // It is told once.
        assert!(of(&accounts.uses_here(now), "planning_seconds_per_hour").more.is_zero());
        let all = |quota: &str, back_in, held_elsewhere| QuotaNow {
            account: "tred".to_owned(),
            quota: quota.to_owned(),
            back_in,
            held_elsewhere,
        };
        accounts.learn(&[all("jobs", Duration::ZERO, 2)], now);
        assert!(bill.take(Quota::Jobs).is_err(), "two are elsewhere");
        accounts.learn(&[all("jobs", Duration::ZERO, 0)], now);
        assert!(bill.take(Quota::Jobs).is_ok());
        accounts.learn(&[all("planning_seconds_per_hour", Duration::from_secs(3700), 0)], now);
        assert!(bill.require(Quota::PlanningSecondsPerHour).is_err(), "others have used up the rest");
        accounts.learn(&[all("planning_seconds_per_hour", Duration::ZERO, 0)], now);
        assert!(bill.require(Quota::PlanningSecondsPerHour).is_ok());
    }

    #[test]
    fn what_could_not_be_told_is_told_next_time() {
        let (accounts, bill) = accounts();
        let now = clock::now();
        bill.charge_planning(Duration::from_secs(10));
        let uses = accounts.uses_here(now);
        bill.charge_planning(Duration::from_secs(10));
        accounts.take_back(&uses);
        let told = accounts.uses_here(now);
        assert_eq!(of(&told, "planning_seconds_per_hour").more, Duration::from_secs(720));
        // Once all has come back, there is nothing to tell.
        let later = now + Duration::from_secs(10_000);
        accounts.uses_here(later);
        assert!(accounts.uses_here(later).is_empty());
    }
}
