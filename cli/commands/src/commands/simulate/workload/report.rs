//! What iterations take, for people and as JSON.

use canopy_schedule::CollectiveKind;
use canopy_simulate::timeline::{Call, Operation, Slot, Traffic, Work};
use serde::Serialize;

use super::{BOUND, Entrant, Epoch, FASTEST_OF_EACH, Found};
use crate::commands::simulate::report::Model;
use crate::commands::simulate::{Absent, SimulateArgs};
use crate::exit::Failure;
use crate::output::{TopologySummary, print_json};
use crate::sizes::in_words;
use crate::stdout;
use crate::table::{Table, count, joined};

/// Most lines of a time line that the text has; JSON has all.
const LINES_MAX: usize = 40;
/// Picoseconds of a second.
const PICOS: f64 = 1e12;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Iterated {
    workload: String,
    topology: TopologySummary,
    model: Model,
    operations: usize,
    iterations: Vec<IterationSummary>,
    refused: Vec<Absent>,
}

/// An iteration with the plans of an algorithm, or with each call at its bound.
#[derive(Debug, Serialize)]
struct IterationSummary {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket_bytes: Option<u64>,
    /// Collectives that have the plan of `auto`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_auto: Vec<&'static str>,
    time_ps: u64,
    compute_ps: u64,
    network_ps: u64,
    exposed_ps: u64,
    iterations_per_sec: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<EpochSummary>,
    collectives: Vec<TrafficSummary>,
    calls: Vec<CallSummary>,
    timeline: Vec<LineSummary>,
}

#[derive(Debug, Serialize)]
struct EpochSummary {
    iterations: u64,
    seconds: f64,
}

/// All calls of a kind.
#[derive(Debug, Serialize)]
struct TrafficSummary {
    collective: &'static str,
    calls: u64,
    time_ps: u64,
    exposed_ps: u64,
}

/// How long one call takes.
#[derive(Debug, Serialize)]
struct CallSummary {
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    size_bytes: u64,
    time_ps: u64,
}

/// An operation on the time line.
#[derive(Debug, Serialize)]
struct LineSummary {
    name: String,
    on: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    start_ps: u64,
    end_ps: u64,
}

/// Prints the tables or the object.
pub(super) fn print(args: &SimulateArgs, found: &Found) -> Result<(), Failure> {
    if !args.json {
        return stdout::print(&readable(args, found));
    }
    let ranks = found.topology.rank_count();
    let report = Iterated {
        workload: found.workload.name.clone(),
        topology: TopologySummary::of(&found.topology),
        model: Model::of(args),
        operations: found.workload.variants.first().map_or(0, |variant| variant.program.operations().len()),
        iterations: found.entrants.iter().map(|entrant| summary(entrant, found.workload.epoch, ranks)).collect(),
        refused: found.absent.clone(),
    };
    print_json("simulate", &report)
}

fn summary(entrant: &Entrant, epoch: Option<Epoch>, ranks: u32) -> IterationSummary {
    let timeline = &entrant.timeline;
    let traffic = |(kind, traffic): (&CollectiveKind, &Traffic)| TrafficSummary {
        collective: kind.name(),
        calls: traffic.calls,
        time_ps: traffic.time_ps,
        exposed_ps: traffic.exposed_ps,
    };
    let call = |(call, &time_ps): (&Call, &u64)| CallSummary {
        collective: call.kind.name(),
        root: call.root,
        size_bytes: call.size_bytes,
        time_ps,
    };
    let used = entrant.program.calls();
    let calls = entrant.times_ps.iter().filter(|(call, _)| used.binary_search(call).is_ok());
    IterationSummary {
        name: entrant.name,
        bucket_bytes: entrant.bucket_bytes,
        by_auto: entrant.by_auto.iter().map(|kind| kind.name()).collect(),
        time_ps: timeline.time_ps,
        compute_ps: timeline.compute_ps,
        network_ps: timeline.network_ps(),
        exposed_ps: timeline.exposed_ps(),
        iterations_per_sec: PICOS / timeline.time_ps.max(1) as f64,
        epoch: epoch.map(|epoch| {
            let iterations = epoch.iterations(ranks);
            EpochSummary { iterations, seconds: iterations as f64 * timeline.time_ps as f64 / PICOS }
        }),
        collectives: timeline.traffic.iter().map(traffic).collect(),
        calls: calls.map(call).collect(),
        timeline: lines(entrant).map(|(operation, slot)| line(operation, slot)).collect(),
    }
}

/// Operations that take part, by their start.
fn lines(entrant: &Entrant) -> impl Iterator<Item = (&Operation, Slot)> {
    let all = entrant.program.operations().iter().zip(entrant.timeline.slots.iter().copied());
    let mut all: Vec<(&Operation, Slot)> = all.filter(|(operation, _)| operation.work != Work::Join).collect();
    all.sort_by_key(|(_, slot)| (slot.start_ps, slot.end_ps));
    all.into_iter()
}

fn line(operation: &Operation, slot: Slot) -> LineSummary {
    let (on, call) = match operation.work {
        Work::Compute { .. } => ("compute", None),
        Work::Host { .. } => ("host", None),
        Work::Collective(call) => ("network", Some(call)),
        Work::Join => ("", None),
    };
    LineSummary {
        name: operation.name.clone(),
        on,
        collective: call.map(|call| call.kind.name()),
        size_bytes: call.map(|call| call.size_bytes),
        start_ps: slot.start_ps,
        end_ps: slot.end_ps,
    }
}

fn readable(args: &SimulateArgs, found: &Found) -> String {
    let ranks = count(found.topology.rank_count() as usize, "rank");
    let how = if args.bound { "each collective at its bound".to_owned() } else { Model::of(args).in_words() };
    let mut blocks = vec![format!("{} on {ranks}: {how}", found.workload.name), iterations(found)];
    let by_auto = found.entrants.iter().filter(|entrant| !entrant.by_auto.is_empty()).map(|entrant| {
        let kinds: Vec<&str> = entrant.by_auto.iter().map(|kind| kind.name()).collect();
        format!("by auto    {}, for which {} has no plan", joined(&kinds, "and"), entrant.name)
    });
    let absent = found.absent.iter().map(|absent| format!("no plan    {}: {}", absent.name, absent.reason));
    let notes: Vec<String> = by_auto.chain(absent).collect();
    if !notes.is_empty() {
        blocks.push(notes.join("\n"));
    }
    if let Some(fastest) = fastest(found) {
        blocks.push(calls(found));
        blocks.push(time_line(fastest));
    }
    blocks.join("\n\n")
}

/// The fastest algorithm, of equals the first; the bound where there is none.
fn fastest(found: &Found) -> Option<&Entrant> {
    let is_algorithm = |entrant: &&Entrant| entrant.name != FASTEST_OF_EACH && entrant.name != BOUND;
    let best = found.entrants.iter().filter(is_algorithm).min_by_key(|entrant| entrant.timeline.time_ps);
    best.or_else(|| found.entrants.first())
}

/// A row for each algorithm.
fn iterations(found: &Found) -> String {
    let kinds: Vec<CollectiveKind> =
        found.entrants.first().map_or_else(Vec::new, |entrant| entrant.timeline.traffic.keys().copied().collect());
    let has_bucket = found.entrants.iter().any(|entrant| entrant.bucket_bytes.is_some());
    let (epoch, ranks) = (found.workload.epoch, found.topology.rank_count());
    let mut heading: Vec<String> =
        ["ALGORITHM", "ITERATION ms#", "COMPUTE ms#", "EXPOSED ms#", "EXPOSED#", "PER s#"].map(str::to_owned).to_vec();
    if kinds.len() > 1 {
        heading.extend(kinds.iter().map(|kind| format!("{kind} ms#")));
    }
    heading.extend(has_bucket.then(|| "BUCKET#".to_owned()));
    heading.extend(epoch.map(|_| "EPOCH s#".to_owned()));
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for entrant in &found.entrants {
        let timeline = &entrant.timeline;
        let (time, exposed) = (timeline.time_ps.max(1) as f64, timeline.exposed_ps());
        let mut row = vec![
            entrant.name.to_owned(),
            millis(timeline.time_ps),
            millis(timeline.compute_ps),
            millis(exposed),
            format!("{:.1}%", exposed as f64 / time * 100.0),
            format!("{:.3}", PICOS / time),
        ];
        if kinds.len() > 1 {
            let of = |kind| timeline.traffic.get(kind).map_or(0, |traffic| traffic.exposed_ps);
            row.extend(kinds.iter().map(|kind| millis(of(kind))));
        }
        row.extend(has_bucket.then(|| entrant.bucket_bytes.map_or("-".to_owned(), in_words)));
        row.extend(epoch.map(|epoch| format!("{:.1}", epoch.iterations(ranks) as f64 * time / PICOS)));
        table.row(row);
    }
    table.text()
}

/// How often each kind of collective is called, and what all of its calls take.
fn calls(found: &Found) -> String {
    let mut table = Table::new(&["ALGORITHM", "COLLECTIVE", "CALLS#", "TIME ms#", "EXPOSED ms#"]);
    for entrant in &found.entrants {
        for (kind, traffic) in &entrant.timeline.traffic {
            let (time, exposed) = (millis(traffic.time_ps), millis(traffic.exposed_ps));
            table.row([entrant.name.to_owned(), kind.name().to_owned(), traffic.calls.to_string(), time, exposed]);
        }
    }
    table.text()
}

/// What runs when, from the start.
fn time_line(entrant: &Entrant) -> String {
    let mut table = Table::new(&["START ms#", "END ms#", "ON", "WHAT"]);
    let mut left = 0_usize;
    for (number, (operation, slot)) in lines(entrant).enumerate() {
        if number >= LINES_MAX {
            left += 1;
            continue;
        }
        let LineSummary { name, on, collective, size_bytes, .. } = line(operation, slot);
        let what = match (collective, size_bytes) {
            (Some(kind), Some(size)) if kind == name => format!("{kind} of {}", in_words(size)),
            (Some(kind), Some(size)) => format!("{name}: {kind} of {}", in_words(size)),
            _ => name,
        };
        table.row([millis(slot.start_ps), millis(slot.end_ps), on.to_owned(), what]);
    }
    let rest = if left > 0 { format!("\n… {left} more; --json lists all") } else { String::new() };
    format!("time line with {}\n{}{rest}", entrant.name, table.text())
}

fn millis(picos: u64) -> String {
    format!("{}.{:03}", picos / 1_000_000_000, picos / 1_000_000 % 1_000)
}
