//! Whose turn it is: tenants share the workers by their weights, however much each of them asks for.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996) over what jobs turn out to take: a tenant's time is what its jobs
//! have taken, divided by its weight, and the tenant with the least goes first. One that had nothing in line for a while
//! begins where the others are, so that nothing is saved up.

use std::collections::HashMap;
use std::time::Duration;

/// Assumed time of a job that has not ended, so that one tenant does not get all workers at once.
pub(super) const EXPECTED: Duration = Duration::from_secs(1);
/// Tenants beyond which those that are not ahead are forgotten.
const TENANTS_MAX: usize = 1024;

/// The times of tenants, in nanoseconds of a tenant of weight 1.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    had: HashMap<String, u64>,
    /// The time of the tenant whose turn it was last, which is the least of all.
    now: u64,
}

impl Turns {
    /// The time of a tenant: of two, the lesser goes first. O(1).
    pub(crate) fn of(&self, tenant: &str) -> u64 {
        self.had.get(tenant).map_or(self.now, |&had| had.max(self.now))
    }

    /// A worker begins with something for a tenant of this weight, which is expected to take so long.
    pub(crate) fn begin(&mut self, tenant: &str, weight: u64, expected: Duration) {
        let time = self.of(tenant);
        self.now = time;
        if self.had.len() >= TENANTS_MAX {
            self.had.retain(|_, had| *had > time);
        }
        self.had.insert(tenant.to_owned(), time.saturating_add(nanoseconds(expected) / weight));
    }

    /// A worker is done with what it has begun, after this time.
    pub(crate) fn end(&mut self, tenant: &str, weight: u64, expected: Duration, took: Duration) {
        if let Some(had) = self.had.get_mut(tenant) {
            let expected = nanoseconds(expected) / weight;
            *had = had.saturating_sub(expected).saturating_add(nanoseconds(took) / weight);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
