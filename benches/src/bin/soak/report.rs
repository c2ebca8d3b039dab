//! What a run prints.

use canopy_benches::{print_table, thousands};

use super::samples::Sample;
use super::verdict::{Check, Outcome};

/// Most rows of the table over time.
const ROWS_MAX: usize = 20;
/// Most kinds of lines of the log.
const LOG_KINDS_MAX: usize = 12;

/// One measurement as a line.
pub(super) fn progress(sample: &Sample) -> String {
    format!(
        "{:>5.0} s: {} resident, {} anonymous, {} descriptors, {} threads, log {}, {} plans, {} jobs, {} calls",
        sample.at.as_secs_f64(),
        mb(sample.resident),
        mb(sample.anonymous),
        sample.descriptors,
        sample.threads,
        mb(sample.log_bytes),
        sample.plans,
        sample.jobs,
        thousands(sample.calls as f64)
    )
}

/// Prints all tables.
#[expect(clippy::print_stdout, reason = "the tables are the result")]
pub(super) fn print(outcome: &Outcome, checks: &[Check]) {
    over_time(outcome);
    println!();
    calls(outcome);
    println!();
    failures(outcome);
    println!();
    log(outcome);
    println!();
    let operations = &outcome.operations;
    println!(
        "Operations: {} acknowledged, {} succeeded, {} cancelled, {} replaced by later ones. Leases: {} held, {} released, {} left to expire. \
         Events: {}; watches resumed {} times.",
        operations.acknowledged,
        operations.succeeded,
        operations.cancelled,
        operations.forgotten,
        outcome.leases.held.len(),
        outcome.leases.released,
        outcome.leases.expiring.len(),
        outcome.stayed.events.len(),
        outcome.resumed.iter().map(|(_, seen)| seen.resumed).sum::<u64>()
    );
    println!();
    let rows: Vec<[String; 4]> = checks
        .iter()
        .map(|check| {
            let holds = if check.holds { "yes" } else { "NO" };
            [check.name.to_owned(), check.found.clone(), check.wanted.clone(), holds.to_owned()]
        })
        .collect();
    print_table(["check", "found", "wanted", "holds"], &rows);
}

fn over_time(outcome: &Outcome) {
    let step = outcome.samples.len().div_ceil(ROWS_MAX).max(1);
    let chosen = outcome.samples.iter().skip(step - 1).step_by(step);
    let mut rows: Vec<[String; 9]> =
        chosen.map(|sample| row(format!("{:.0} s", sample.at.as_secs_f64()), sample)).collect();
    rows.push(row("at rest".to_owned(), &outcome.resting));
    let heading =
        ["time", "resident", "anonymous", "descriptors", "threads", "log", "plans", "size of plans", "calls ended"];
    print_table(heading, &rows);
}

fn row(time: String, sample: &Sample) -> [String; 9] {
    [
        time,
        mb(sample.resident),
        mb(sample.anonymous),
        sample.descriptors.to_string(),
        sample.threads.to_string(),
        mb(sample.log_bytes),
        sample.plans.to_string(),
        mb(sample.plan_bytes),
        thousands(sample.calls as f64),
    ]
}

fn calls(outcome: &Outcome) {
    let seconds = outcome.samples.last().map_or(1.0, |last| last.at.as_secs_f64());
    let rows: Vec<[String; 7]> = outcome
        .ledger
        .iter()
        .map(|(kind, tally)| {
            [
                kind.name().to_owned(),
                thousands(tally.answered as f64),
                format!("{:.1}", tally.answered as f64 / seconds),
                format!("{:.1}", tally.times.quantile_ms(0.5)),
                format!("{:.1}", tally.times.quantile_ms(0.99)),
                thousands(tally.failures.values().sum::<u64>() as f64),
                thousands(tally.left as f64),
            ]
        })
        .collect();
    print_table(["call", "answered", "per second", "p50 ms", "p99 ms", "failed", "left"], &rows);
}

fn failures(outcome: &Outcome) {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (kind, tally) in &outcome.ledger {
        for (failure, count) in &tally.failures {
            let expected = if kind.expects(failure) { "yes" } else { "NO" };
            rows.push([kind.name().to_owned(), failure.clone(), thousands(*count as f64), expected.to_owned()]);
        }
    }
    print_table(["call", "failure", "number", "expected"], &rows);
}

fn log(outcome: &Outcome) {
    let rows: Vec<[String; 4]> = outcome
        .log
        .kinds()
        .into_iter()
        .take(LOG_KINDS_MAX)
        .map(|(kind, count, bytes)| {
            let each = bytes.checked_div(count).unwrap_or(0);
            [kind, thousands(count as f64), mb(bytes), each.to_string()]
        })
        .collect();
    print_table(["line of the log", "number", "size", "bytes each"], &rows);
}

fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
