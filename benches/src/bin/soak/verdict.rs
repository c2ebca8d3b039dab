//! The checks of a run.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::ledger::{Kind, Tally};
use super::load::{Counts, Known};
use super::log::Log;
use super::samples::{Sample, mean, slope_per_minute};
use super::watches::{Change, Witnessed, broken_chains, compare};

/// Most growth of resident memory, in bytes per minute.
const GROWTH_MAX: f64 = 1e6;
/// Most bytes of log per minute: 20 MB in 20 minutes.
const LOG_MAX: f64 = 1e6;
/// Most descriptors or threads that the last quarter has more than the one before, on average.
const MORE_MAX: f64 = 4.0;
/// Most problems that a line of the table names.
const NAMED_MAX: usize = 3;

/// What a run has shown.
pub(super) struct Outcome {
    pub(super) minutes: f64,
    /// While the load ran.
    pub(super) samples: Vec<Sample>,
    /// After it, at rest.
    pub(super) resting: Sample,
    pub(super) ledger: BTreeMap<Kind, Tally>,
    pub(super) leases: Known,
    pub(super) operations: Counts,
    pub(super) stayed: Witnessed,
    /// By the job that is followed.
    pub(super) resumed: Vec<(String, Witnessed)>,
    /// Plans of leases at the end.
    pub(super) current: BTreeMap<String, String>,
    pub(super) stuck_loops: usize,
    pub(super) settled: Result<Duration, String>,
    pub(super) status: ExitStatus,
    pub(super) drain: Duration,
    pub(super) log: Arc<Log>,
}

/// One line of the last table.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) found: String,
    pub(super) wanted: String,
    pub(super) holds: bool,
}

/// All checks.
pub(super) fn checks(outcome: &Outcome) -> Vec<Check> {
    let mut checks = growth(outcome);
    checks.extend(calls(outcome));
    checks.extend(events(outcome));
    checks.extend(end(outcome));
    checks
}

fn growth(outcome: &Outcome) -> Vec<Check> {
    let samples = &outcome.samples;
    let half = &samples[samples.len() / 2..];
    let slope = slope_per_minute(half, |sample| sample.resident);
    let anonymous = slope_per_minute(half, |sample| sample.anonymous);
    let log = outcome.log.written().0 as f64;
    let flat = |name, value: fn(&Sample) -> u64| {
        let (before, last) = half.split_at(half.len() / 2);
        let (before, last) = (mean(before, value), mean(last, value));
        Check {
            name,
            found: format!("{before:.1}, then {last:.1}"),
            wanted: format!("at most {MORE_MAX} more"),
            holds: last - before <= MORE_MAX,
        }
    };
    vec![
        Check {
            name: "growth of resident memory in the last half",
            found: format!("{:.2} MB/min (anonymous {:.2})", slope / 1e6, anonymous / 1e6),
            wanted: format!("at most {} MB/min", GROWTH_MAX / 1e6),
            holds: slope <= GROWTH_MAX,
        },
        Check {
            name: "log",
            found: format!("{:.1} MB", log / 1e6),
            wanted: format!("at most {:.1} MB", LOG_MAX * outcome.minutes / 1e6),
            holds: log <= LOG_MAX * outcome.minutes,
        },
        flat("descriptors, third and last quarter", |sample| sample.descriptors),
        flat("threads, third and last quarter", |sample| sample.threads),
    ]
}

fn calls(outcome: &Outcome) -> Vec<Check> {
    let unanswered = outcome.ledger.iter().filter(|(_, tally)| tally.unanswered() > 0);
    let unanswered = unanswered.map(|(kind, tally)| format!("{}: {}", kind.name(), tally.unanswered()));
    let failed =
        outcome.ledger.iter().flat_map(|(kind, tally)| tally.failures.iter().map(move |failure| (kind, failure)));
    let unexpected = failed.filter(|(kind, (failure, _))| !kind.expects(failure));
    let unexpected = unexpected.map(|(kind, (failure, count))| format!("{}: {failure} × {count}", kind.name()));
    let operations = &outcome.operations;
    let ended = operations.succeeded + operations.cancelled + operations.forgotten;
    vec![
        nothing("calls without an end", unanswered.collect()),
        nothing("failures that the load does not provoke", unexpected.collect()),
        Check {
            name: "operations",
            found: format!("{} acknowledged, {ended} ended{}", operations.acknowledged, named(&operations.bad)),
            wanted: "all ended".to_owned(),
            holds: operations.bad.is_empty() && ended == operations.acknowledged,
        },
        Check {
            name: "loops that did not end",
            found: outcome.stuck_loops.to_string(),
            wanted: "0".to_owned(),
            holds: outcome.stuck_loops == 0,
        },
    ]
}

fn events(outcome: &Outcome) -> Vec<Check> {
    let stayed = &outcome.stayed;
    let resumed = &outcome.resumed;
    let problems = stayed.problems.iter().chain(resumed.iter().flat_map(|(_, seen)| &seen.problems));
    let missed = resumed.iter().flat_map(|(job, seen)| compare(stayed, seen, job)).collect();
    let expired =
        |lease: &String| stayed.events.values().any(|seen| seen.lease == *lease && seen.change == Change::Expired);
    let kept = outcome.leases.expiring.iter().filter(|lease| !expired(lease)).cloned().collect();
    let superseded = stayed.events.values().filter(|seen| matches!(seen.change, Change::Superseded { .. })).count();
    vec![
        nothing("watches that ended or lost their place", problems.cloned().collect()),
        nothing("events that a watch missed by resuming", missed),
        nothing("plans of leases without their event", broken_chains(stayed, &outcome.leases.held, &outcome.current)),
        nothing("leases that did not expire", kept),
        nothing("refused reports of faults", outcome.leases.refused.clone()),
        Check {
            name: "faults have changed plans",
            found: format!("{} changes, {superseded} plans superseded", outcome.leases.changes),
            wanted: "some".to_owned(),
            holds: outcome.leases.changes > 0 && superseded > 0,
        },
    ]
}

fn end(outcome: &Outcome) -> Vec<Check> {
    let (unexpected, lines) = outcome.log.unexpected();
    vec![
        Check {
            name: "rest after the load",
            found: outcome
                .settled
                .as_ref()
                .map_or_else(Clone::clone, |time| format!("after {:.1} s", time.as_secs_f64())),
            wanted: "an empty queue, and all events seen".to_owned(),
            holds: outcome.settled.is_ok(),
        },
        Check {
            name: "lines of the log at WARN or ERROR",
            found: format!("{unexpected}{}", named(&lines)),
            wanted: "0".to_owned(),
            holds: unexpected == 0,
        },
        Check {
            name: "drain",
            found: format!("{} after {:.1} s", outcome.status, outcome.drain.as_secs_f64()),
            wanted: "exit status: 0".to_owned(),
            holds: outcome.status.success(),
        },
    ]
}

/// A check that there are no problems.
fn nothing(name: &'static str, problems: Vec<String>) -> Check {
    let found = format!("{}{}", problems.len(), named(&problems));
    Check { name, found, wanted: "0".to_owned(), holds: problems.is_empty() }
}

fn named(problems: &[String]) -> String {
    let mut first: Vec<&str> = problems.iter().take(NAMED_MAX).map(String::as_str).collect();
    if problems.len() > NAMED_MAX {
        first.push("…");
    }
    if first.is_empty() { String::new() } else { format!(" ({})", first.join("; ")) }
}
