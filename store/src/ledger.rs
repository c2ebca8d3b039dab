//! The contents of the store in about a hundred bytes of memory per plan: enough to decide what to evict.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use canopy_planner::PlanKey;

use super::{PlanSummary, Usage};

/// Weights of all stored plans.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<PlanKey, Weight>,
    bytes: u64,
    pinned_bytes: u64,
    pinned_count: usize,
    owned_count: usize,
}

/// What decides how long a plan stays.
#[derive(Clone, Copy, Debug)]
struct Weight {
    bytes: u64,
    synthesis_ms: u64,
    hits: u64,
    last_used_ms: u64,
    pinned: bool,
    /// Whether it is the plan of one tenant alone.
    owned: bool,
}

impl Weight {
    /// Synthesis time × uses: what would have to be spent again. Storing counts as a use and nothing takes no time,
    /// else a plan that is new or cheap would weigh nothing at any size.
    fn worth(&self) -> u128 {
        u128::from(self.synthesis_ms.max(1)) * (u128::from(self.hits) + 1)
    }

    /// Orders by worth ÷ bytes, exactly; of equals the one unused for longest comes first.
    fn compare(&self, other: &Self) -> Ordering {
        let own = self.worth().saturating_mul(u128::from(other.bytes.max(1)));
        let others = other.worth().saturating_mul(u128::from(self.bytes.max(1)));
        own.cmp(&others).then(self.last_used_ms.cmp(&other.last_used_ms))
    }
}

impl Ledger {
    /// Enters a plan in place of what was known of it.
    pub(super) fn enter(&mut self, summary: &PlanSummary) {
        self.strike(&summary.key());
        let weight = Weight {
            bytes: summary.size_bytes,
            synthesis_ms: summary.synthesis_ms,
            hits: summary.hits,
            last_used_ms: summary.last_used_ms,
            pinned: summary.pinned,
            owned: !summary.tenant.is_empty(),
        };
        self.owned_count += usize::from(weight.owned);
        self.bytes += weight.bytes;
        if weight.pinned {
            self.pinned_bytes += weight.bytes;
            self.pinned_count += 1;
        }
        self.entries.insert(summary.key(), weight);
    }

    /// Strikes out a plan that is no longer stored.
    pub(super) fn strike(&mut self, key: &PlanKey) {
        if let Some(weight) = self.entries.remove(key) {
            self.bytes -= weight.bytes;
            self.owned_count -= usize::from(weight.owned);
            if weight.pinned {
                self.pinned_bytes -= weight.bytes;
                self.pinned_count -= 1;
            }
        }
    }

    /// How much is stored beside so many damaged records, where so many bytes may be.
    pub(super) fn usage(&self, bytes_max: u64, quarantined: usize) -> Usage {
        let Self { bytes, pinned_bytes, pinned_count: pinned, owned_count: owned, .. } = *self;
        Usage { records: self.entries.len(), bytes, bytes_max, pinned, owned, pinned_bytes, quarantined }
    }

    /// The pinned plans with most uses, the last used first among equals. O(plans) where any is pinned.
    pub(super) fn pinned(&self, limit: usize) -> Vec<PlanKey> {
        if self.pinned_count == 0 {
            return Vec::new();
        }
        let mut pinned: Vec<_> = self.entries.iter().filter(|(_, weight)| weight.pinned).collect();
        pinned.sort_by_key(|(key, weight)| (Reverse(weight.hits), Reverse(weight.last_used_ms), **key));
        pinned.into_iter().take(limit).map(|(key, _)| *key).collect()
    }

    /// Bytes in use once a plan of `needed` bytes is stored under `key`, and how many of them would be pinned.
    pub(super) fn with(&self, key: &PlanKey, needed: u64) -> (u64, u64) {
        let old = self.entries.get(key).copied();
        let (old_bytes, pinned) = old.map_or((0, false), |weight| (weight.bytes, weight.pinned));
        let bytes = self.bytes - old_bytes + needed;
        let pinned_bytes = self.pinned_bytes - if pinned { old_bytes } else { 0 };
        (bytes, pinned_bytes)
    }

    /// The plans that go first until `excess` bytes are free: least worth per byte first, never a pinned one, never
    /// `keep`. O(plans × log plans).
    pub(super) fn victims(&self, excess: u64, keep: &PlanKey) -> Vec<PlanKey> {
        let mut candidates: Vec<_> =
            self.entries.iter().filter(|(key, weight)| !weight.pinned && *key != keep).collect();
        candidates.sort_by(|(key, weight), (other_key, other)| weight.compare(other).then(key.cmp(other_key)));
        let mut freed = 0_u64;
        candidates
            .into_iter()
            .take_while(|(_, weight)| {
                let wanted = freed < excess;
                freed = freed.saturating_add(weight.bytes);
                wanted
            })
            .map(|(key, _)| *key)
            .collect()
    }
}
