//! How every call ended, and how long it took.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use canopy_client::ClientError;

/// What is called, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    PlanCached,
    Lookup,
    StreamPlan,
    PlanNew,
    Recall,
    ShortDeadline,
    Prefetch,
    WaitOperation,
    CancelOperation,
    AcquireLease,
    RenewLease,
    ReleaseLease,
    ReportFaults,
    ClearFaults,
    PlanAroundFaults,
    WatchLeases,
    ListPlans,
    Pin,
    Unpin,
    Evict,
    PutTopology,
    DeleteTopology,
    Reload,
    Status,
    Metrics,
    Connect,
}

/// Busy answers that any call may get at saturation.
const BUSY: &[&str] = &["QUEUE_FULL", "MEMORY_BUDGET"];
/// Ends of calls with short deadlines: the server's answers, and the client's own if the server's comes later.
const LATE: &[&str] = &["SOLVER_TIME_LIMIT", "CALL_TIME_LIMIT", "deadline", CANCELLED];
/// The end of every call that shares a job which an operator cancels.
const CANCELLED: &str = "OPERATION_CANCELLED";

impl Kind {
    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlanCached => "Plan, cached",
            Self::Lookup => "LookUpPlan",
            Self::StreamPlan => "StreamPlan, cached",
            Self::PlanNew => "Plan, new",
            Self::Recall => "StreamPlan, recalled all-to-all",
            Self::ShortDeadline => "Plan, short deadline",
            Self::Prefetch => "Prefetch",
            Self::WaitOperation => "WaitOperation",
            Self::CancelOperation => "CancelOperation",
            Self::AcquireLease => "AcquireLease",
            Self::RenewLease => "RenewLease",
            Self::ReleaseLease => "ReleaseLease",
            Self::ReportFaults => "ReportFaults",
            Self::ClearFaults => "ClearFaults",
            Self::PlanAroundFaults => "Plan, around faults",
            Self::WatchLeases => "WatchLeases, opened",
            Self::ListPlans => "ListPlans",
            Self::Pin => "PinPlan",
            Self::Unpin => "UnpinPlan",
            Self::Evict => "EvictPlans",
            Self::PutTopology => "PutTopology",
            Self::DeleteTopology => "DeleteTopology",
            Self::Reload => "ReloadConfig",
            Self::Status => "GetStatus",
            Self::Metrics => "/metrics",
            Self::Connect => "connect and leave",
        }
    }

    /// Failures that the load provokes, besides [`BUSY`].
    const fn provoked(self) -> &'static [&'static str] {
        match self {
            Self::Lookup | Self::AcquireLease => &["PLAN_NOT_CACHED"],
            Self::ShortDeadline => LATE,
            // Others remove plans and topologies meanwhile.
            Self::Pin | Self::Unpin | Self::Evict => &["PLAN_UNKNOWN"],
            Self::DeleteTopology => &["TOPOLOGY_UNKNOWN"],
            // Jobs are cancelled by their operation.
            Self::PlanNew | Self::Prefetch => &[CANCELLED],
            // An ended operation makes room for later ones.
            Self::WaitOperation | Self::CancelOperation => &["OPERATION_UNKNOWN"],
            _ => &[],
        }
    }

    /// Whether the load expects this failure.
    pub(super) fn expects(self, failure: &str) -> bool {
        BUSY.contains(&failure) || self.provoked().contains(&failure)
    }
}

/// What the table says of a failure: the server's reason, or what happened on this side.
pub(super) fn label(error: &ClientError) -> String {
    match error {
        ClientError::Refused(refusal) => match &refusal.reason {
            Some(reason) => reason.clone(),
            None => format!("{:?}: {}", refusal.class, refusal.message),
        },
        ClientError::Deadline { .. } => "deadline".to_owned(),
        other => other.to_string(),
    }
}

/// Counts of one kind of calls.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) begun: u64,
    pub(super) answered: u64,
    /// Left by this side on purpose.
    pub(super) left: u64,
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) times: Histogram,
}

impl Tally {
    /// Calls that have neither an answer nor a status.
    pub(super) fn unanswered(&self) -> u64 {
        self.begun - self.answered - self.left - self.failures.values().sum::<u64>()
    }
}

/// Shared by all callers.
#[derive(Default)]
pub(super) struct Ledger(Mutex<BTreeMap<Kind, Tally>>);

impl Ledger {
    fn note(&self, kind: Kind, change: impl FnOnce(&mut Tally)) {
        change(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default());
    }

    pub(super) fn begun(&self, kind: Kind) {
        self.note(kind, |tally| tally.begun += 1);
    }

    pub(super) fn answered(&self, kind: Kind, time: Duration) {
        self.note(kind, |tally| {
            tally.answered += 1;
            tally.times.add(time);
        });
    }

    pub(super) fn failed(&self, kind: Kind, failure: String) {
        self.note(kind, |tally| *tally.failures.entry(failure).or_default() += 1);
    }

    pub(super) fn left(&self, kind: Kind) {
        self.note(kind, |tally| tally.left += 1);
    }

    /// All kinds.
    pub(super) fn all(&self) -> BTreeMap<Kind, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls that have ended.
    pub(super) fn ended(&self) -> u64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|tally| tally.begun - tally.unanswered()).sum()
    }
}

/// Steps between a time and its double.
const STEPS: u32 = 16;
/// Steps in all: from 1 µs to more than an hour.
const PLACES: usize = 32 * STEPS as usize;

/// Times to within 5 %, in constant memory.
#[derive(Clone)]
pub(super) struct Histogram(Vec<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![0; PLACES])
    }
}

impl Histogram {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 0 and rounded down on purpose"
    )]
    fn add(&mut self, time: Duration) {
        let micros = (time.as_secs_f64() * 1e6).max(1.0);
        let place = (micros.log2() * f64::from(STEPS)) as usize;
        self.0[place.min(PLACES - 1)] += 1;
    }

    /// The time in milliseconds that a part of the calls stays below; 0 without calls.
    pub(super) fn quantile_ms(&self, part: f64) -> f64 {
        let total: u64 = self.0.iter().sum();
        let wanted = total as f64 * part;
        let mut passed = 0;
        for (place, count) in (0_u32..).zip(&self.0) {
            passed += count;
            if passed > 0 && passed as f64 >= wanted {
                return ((f64::from(place) + 1.0) / f64::from(STEPS)).exp2() / 1e3;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_five_per_cent() {
        let mut times = Histogram::default();
        (1..=1000).for_each(|ms| times.add(Duration::from_millis(ms)));
        for (part, ms) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = times.quantile_ms(part);
            assert!((found / ms - 1.0).abs() < 0.05, "{part}: {found}");
        }
        assert!(Histogram::default().quantile_ms(0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_call_without_an_end_is_unanswered() {
        let ledger = Ledger::default();
        (0..4).for_each(|_| ledger.begun(Kind::Lookup));
        ledger.answered(Kind::Lookup, Duration::from_millis(1));
        ledger.failed(Kind::Lookup, "PLAN_NOT_CACHED".to_owned());
        ledger.left(Kind::Lookup);
        let all = ledger.all();
        assert_eq!((all[&Kind::Lookup].unanswered(), ledger.ended()), (1, 3));
        assert!(Kind::Lookup.expects("PLAN_NOT_CACHED") && !Kind::Status.expects("PLAN_NOT_CACHED"));
    }
}
