//! `canopy faults list`: what a server knows to be broken or slow.

use canopy_proto::v1::{KnownFault, ListFaultsRequest};
use serde::Serialize;

use crate::commands::operate::{ListArgs, Page, listed, say_rest};
use crate::exit::Failure;
use crate::fault_messages;
use crate::output::{print, print_json};
use crate::table::Table;

/// JSON object of the command.
#[derive(Serialize)]
struct Listed {
    faults: Vec<Row>,
    total: u64,
}

#[derive(Serialize)]
struct Row {
    fault: String,
    scope: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    topology: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    machines: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    sources: Vec<String>,
    since: Option<String>,
    reported: Option<String>,
    until: Option<String>,
    suppressed: u64,
}

impl Row {
    fn of(fault: KnownFault) -> Self {
        Self {
            state: fault_messages::state_name(fault.state()),
            severity: fault_messages::severity_name(fault.severity()),
            scope: fault_messages::scope_name(fault.scope()),
            fault: fault.text,
            topology: fault.topology,
            machines: fault.machines,
            sources: fault.sources,
            since: fault.since_time.map(|time| time.to_string()),
            reported: fault.reported_time.map(|time| time.to_string()),
            until: fault.until_time.map(|time| time.to_string()),
            suppressed: fault.suppressed,
        }
    }
}

/// Asks for as many pages as are wanted.
pub(crate) async fn run(args: &ListArgs) -> Result<(), Failure> {
    let (faults, total) = listed(args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page = client.list_faults(ListFaultsRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.faults, page.next_page_token, page.total_size))
    })
    .await?;
    let faults: Vec<Row> = faults.into_iter().map(Row::of).collect();
    if args.common.json {
        return print_json("faults list", &Listed { faults, total });
    }
    let count = faults.len();
    let head = ["FAULT", "STATE", "SEVERITY", "SINCE", "UNTIL", "FLAPS#", "SOURCES", "SCOPE", "OF"];
    let mut table = Table::new(&head);
    for row in faults {
        let (since, until) = (row.since.unwrap_or_default(), row.until.unwrap_or_default());
        let severity = row.severity.unwrap_or_default().to_owned();
        let (flaps, sources) = (row.suppressed.to_string(), row.sources.join(","));
        let of = match row.scope {
            "placement" => format!("{} on {}", row.topology, row.machines),
            "host" => row.machines,
            _ => row.topology,
        };
        let (state, scope) = (row.state.to_owned(), row.scope.to_owned());
        table.row([row.fault, state, severity, since, until, flaps, sources, scope, of]);
    }
    print(&table.text())?;
    say_rest(count, total, "faults");
    Ok(())
}
