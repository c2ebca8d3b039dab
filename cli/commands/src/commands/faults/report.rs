//! `canopy faults report`: says by hand what is broken.

use std::time::Duration;

use canopy_client::{ErrorClass, RequestId};
use canopy_faults::{Event, Loss, Severity};
use canopy_proto::v1::{ReportFaultsResponse, ReportOutcome};
use serde::Serialize;

use super::network::Subject;
use crate::args;
use crate::clock;
use crate::commands::operate::CommonArgs;
use crate::exit::Failure;
use crate::messages::say;
use crate::output::print_json;
use crate::protocol_words::word;
use crate::stdout::print;
use crate::table::count;

/// Report faults of a topology, of a job's network or of machines, or that elements are healthy again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy faults report dgx-a100:boxes=2 nic:b0g3 'link:b1g2>ib*1/2'
  canopy faults report topologies/0123abcd host:node7 --expires 2h
  canopy faults report --job 18 nic:gpu01:3
  canopy faults report nic:gpu01:3 host:gpu07
  canopy faults report cluster.yaml host:node7 --cleared

Devices belong to machines: a fault of one concerns all jobs that run there. Without T and --job, faults name hosts, and devices as
HOST:INDEX; with --job, they have the names of its topology or of its machines.")]
pub(crate) struct ReportArgs {
    /// Generator expression, file, or id of a stored topology, if the faults are of one; then the faults, such as
    /// nic:b0g3, link:a>b*1/2 or nic:gpu01:3
    #[arg(value_name = "[T] FAULT", required = true)]
    names: Vec<String>,
    /// Job whose leases say which network is meant and on which machines it is
    #[arg(long, value_name = "J")]
    job: Option<String>,
    /// The elements are healthy again, as far as this source knows
    #[arg(long)]
    cleared: bool,
    /// Reporter; each source clears only its own reports
    #[arg(long, value_name = "SOURCE", default_value = "operator")]
    source: String,
    /// Id of the event; a second report with this id changes nothing [default: random]
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// How long the report holds, such as 2h [default: until it is cleared]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Reported {
    topology: String,
    outcomes: Vec<Row>,
    active: u32,
    leases: u32,
    /// Leases on the topology that names of its own do not concern.
    #[serde(skip_serializing_if = "is_none")]
    placed_leases: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What became of one fault.
#[derive(Serialize)]
struct Row {
    fault: String,
    outcome: String,
    /// Whose element it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The outcome of a fault of a machine that the server knows no network of.
const UNMATCHED: &str = "unmatched";

/// An element with the fraction of it that is left, as the user wrote it.
fn with_fraction(element: &str, loss: &Loss) -> String {
    match loss.to_string().rsplit_once('*') {
        Some((_, part)) if !loss.remaining.is_gone() && !element.ends_with(part) => format!("{element}*{part}"),
        _ => element.to_owned(),
    }
}

/// Reports the faults, and fails if any of them was refused.
pub(crate) async fn run(args: &ReportArgs) -> Result<(), Failure> {
    let (subject, named) = Subject::read(&args.names, args.job.as_deref(), &args.common).await?;
    if named.is_empty() {
        return Err(Failure::input("no fault is named").help("name a fault, such as `nic:gpu01:3`"));
    }
    args.common.server.require_server().await?;
    let observed_ms = clock::since_1970_ms();
    let lifetime_ms = args.expires.map(|expires| u64::try_from(expires.as_millis()).unwrap_or(u64::MAX));
    let by_chance = RequestId::random();
    let event = |(position, loss): (usize, &Loss)| {
        let name = args.event_id.clone().unwrap_or_else(|| by_chance.to_string());
        Event {
            source: args.source.clone(),
            event_id: if named.len() > 1 { format!("{name}/{position}") } else { name },
            target: loss.target.clone(),
            remaining: loss.remaining,
            severity: if loss.remaining.is_gone() { Severity::Fatal } else { Severity::Degraded },
            observed_ms,
            expires_ms: lifetime_ms.map(|lifetime| observed_ms.saturating_add(lifetime)),
            cleared: args.cleared,
        }
        .checked()
        .map_err(|error| Failure::input(error.to_string()))
    };
    let events = named.iter().enumerate().map(event).collect::<Result<Vec<Event>, Failure>>()?;
    let reply = subject.report(&events, &args.common).await?;
    let rows: Vec<Row> = named
        .iter()
        .zip(&reply.outcomes)
        .map(|(loss, outcome)| Row {
            fault: Some(&outcome.element).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| loss.to_string()),
            scope: outcome.error.is_none().then(|| word(outcome.scope().as_str_name(), "FAULT_SCOPE")),
            outcome: word(outcome.outcome().as_str_name(), "REPORT_OUTCOME"),
            problem: outcome.error.as_ref().map(|error| error.message.clone()),
        })
        .collect();
    let refused = reply.outcomes.iter().filter(|outcome| outcome.outcome() == ReportOutcome::Refused).count();
    let ReportFaultsResponse { topology, active, leases, placed_leases, .. } = reply;
    if args.common.json {
        print_json("faults report", &Reported { topology, outcomes: rows, active, leases, placed_leases })?;
    } else {
        let lines = rows.iter().zip(&named).map(|(row, loss)| {
            let fault = with_fraction(&row.fault, loss);
            match &row.problem {
                Some(problem) => format!("{fault}  {}: {problem}", row.outcome),
                None if row.outcome == UNMATCHED => {
                    format!("{fault}  noted, matches nothing: no stored network, cluster or lease has it")
                }
                None => format!("{fault}  {}, scope {}", row.outcome, row.scope.as_deref().unwrap_or("unknown")),
            }
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let of = subject.words(&topology);
        let (elements, held) = (count(active as usize, "broken or slow element"), count(leases as usize, "lease"));
        print(&format!("{text}\n{of}: {elements}, {held} affected"))?;
        if placed_leases > 0 && rows.iter().any(|row| row.scope.as_deref() == Some("topology")) {
            say(&format!(
                "{placed_leases} leases place this topology on machines that it does not name, and are not affected\nhelp: name \
                 the device by its machine, such as `nic:HOST:INDEX`, or add `--job J`"
            ));
        }
    }
    if refused > 0 {
        return Err(Failure::new(ErrorClass::Input, format!("faults refused: {refused}")));
    }
    Ok(())
}
