//! One fault log with what was told of it, and what one call changes in many.

use std::collections::BTreeMap;
use std::sync::Arc;

use canopy_faults::{FaultLog, Loss, Policy, Record, Target};

use crate::replan::scope::Scope;

/// What counts as broken or slow in a scope, or in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// In a fixed order, each element once.
    pub(crate) losses: Arc<Vec<Loss>>,
    /// When that changed last, in milliseconds since 1970 UTC.
    pub(crate) since_ms: u64,
}

/// A book, and what was last told of it.
pub(super) struct Kind {
    pub(super) book: FaultLog,
    pub(super) told: u64,
    /// Its version when it was counted.
    counted: u64,
    pub(super) count: Count,
}

impl Kind {
    pub(super) fn new(book: FaultLog, since_ms: u64) -> Self {
        let count = Count { losses: Arc::new(book.active()), since_ms };
        // Nobody has been told of it.
        Self { told: u64::MAX, counted: book.version(), book, count }
    }

    pub(super) fn recount(&mut self, now: u64) {
        if self.counted != self.book.version() {
            self.counted = self.book.version();
            self.count = Count { losses: Arc::new(self.book.active()), since_ms: now };
        }
    }
}

/// What one call changes.
#[derive(Default)]
pub(super) struct Changes(BTreeMap<(Scope, Target), Change>);

/// The record of an element before and after.
#[derive(Default)]
pub(super) struct Change {
    before: Option<Record>,
    after: Option<Record>,
}

impl Changes {
    /// The element may change now.
    pub(super) fn begin(&mut self, scope: &Scope, target: &Target, book: &FaultLog) {
        let change = || Change { before: book.record(target).cloned(), after: None };
        self.0.entry((scope.clone(), target.clone())).or_insert_with(change);
    }

    /// All of them have.
    pub(super) fn end(&mut self, fault_logs: &BTreeMap<Scope, Kind>) {
        for ((scope, target), change) in &mut self.0 {
            change.after = fault_logs.get(scope).and_then(|kind| kind.book.record(target)).cloned();
        }
    }

    /// Undoes each change, unless the element has changed again since.
    pub(super) fn take_back(self, fault_logs: &mut BTreeMap<Scope, Kind>, policy: Policy, now_ms: u64) {
        for ((scope, target), Change { before, after }) in self.0 {
            let kind = fault_logs.entry(scope).or_insert_with(|| Kind::new(FaultLog::new(policy), now_ms));
            kind.book.take_back(&target, before, after.as_ref());
            kind.recount(now_ms);
        }
    }
}
