//! `canopy faults report`: says by hand what is broken.

use std::time::Duration;

use canopy_client::{ErrorClass, RequestId};
use canopy_faults::{Event, Loss, Severity};
use canopy_proto::v1::{ReportFaultsReply, ReportOutcome};
use serde::Serialize;

use super::network::Network;
use super::wire;
use crate::args;
use crate::clock;
use crate::commands::operate::CommonArgs;
use crate::exit::Failure;
use crate::output::{FORMAT_VERSION, print, print_json};

/// Report faults of a topology, or that elements are sound again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy faults report dgx-a100:boxes=2 nic:b0g3 'link:b1g2>ib*1/2'
  canopy faults report topologies/0123abcd host:node7 --expires 2h
  canopy faults report cluster.yaml host:node7 --cleared")]
pub(crate) struct ReportArgs {
    /// Generator expression, file, or id of a stored topology
    #[arg(value_name = "T")]
    topology: String,
    /// What is broken, such as nic:b0g3 or link:a>b*1/2
    #[arg(value_name = "FAULT", required = true, value_parser = loss)]
    faults: Vec<Loss>,
    /// They are sound again, as far as this source knows
    #[arg(long)]
    cleared: bool,
    /// Who says so: each source clears only what it reported itself
    #[arg(long, value_name = "SOURCE", default_value = "operator")]
    source: String,
    /// Name of what happened, so that a second report of it changes nothing [default: by chance]
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// How long it is believed, such as 2h [default: until it is cleared]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

/// A fault as it is written on the command line.
pub(in crate::commands) fn loss(text: &str) -> Result<Loss, String> {
    text.parse().map_err(|error: canopy_faults::TargetError| error.to_string())
}

/// JSON object of the command.
#[derive(Serialize)]
struct Reported {
    canopy: u32,
    command: &'static str,
    topology: String,
    outcomes: Vec<Row>,
    active: u32,
    leases: u32,
}

/// What became of one fault.
#[derive(Serialize)]
struct Row {
    fault: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Reports the faults, and fails if any of them was refused.
pub(crate) async fn run(args: &ReportArgs) -> Result<(), Failure> {
    let network = Network::read(&args.topology, &args.common).await?;
    let named = network.named(&args.faults)?;
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
    let reply = network.report(&events, &args.common).await?;
    let rows: Vec<Row> = named
        .iter()
        .zip(&reply.outcomes)
        .map(|(loss, outcome)| Row {
            fault: loss.to_string(),
            outcome: wire::outcome_name(outcome.outcome()),
            problem: outcome.error.as_ref().map(|error| error.message.clone()),
        })
        .collect();
    let refused = reply.outcomes.iter().filter(|outcome| outcome.outcome() == ReportOutcome::Refused).count();
    let ReportFaultsReply { topology, active, leases, .. } = reply;
    if args.common.json {
        print_json(&Reported {
            canopy: FORMAT_VERSION,
            command: "faults report",
            topology,
            outcomes: rows,
            active,
            leases,
        })?;
    } else {
        let lines = rows.iter().map(|row| match &row.problem {
            Some(problem) => format!("{}  {}: {problem}", row.fault, row.outcome),
            None => format!("{}  {}", row.fault, row.outcome),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        print(&format!("{text}\n{topology}: broken or slow elements {active}, leases concerned {leases}"))?;
    }
    if refused > 0 {
        return Err(Failure::new(ErrorClass::Input, format!("faults that were refused: {refused}")));
    }
    Ok(())
}
