//! `canopy faults list`: the faults that a server knows.

use canopy_proto::v1::{KnownFault, ListFaultsRequest};
use serde::Serialize;

use crate::commands::operate::{Entry, ListArgs, Page, list};
use crate::exit::Failure;
use crate::protocol_words::{stated, word};

#[derive(Serialize)]
struct Row {
    fault: String,
    scope: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    topology: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    machines: String,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<String>,
    sources: Vec<String>,
    since: Option<String>,
    reported: Option<String>,
    until: Option<String>,
    suppressed: u64,
}

impl Row {
    fn of(fault: KnownFault) -> Self {
        Self {
            state: word(fault.state().as_str_name(), "FAULT_STATE"),
            severity: stated(fault.severity().as_str_name(), "SEVERITY"),
            scope: word(fault.scope().as_str_name(), "FAULT_SCOPE"),
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

impl Entry for Row {
    const NAME: &'static str = "faults";
    const HEADING: &'static [&'static str] =
        &["FAULT", "STATE", "SEVERITY", "SINCE", "UNTIL", "FLAPS#", "SOURCES", "SCOPE", "OF"];

    fn cells(self) -> Vec<String> {
        let [severity, since, until] = [self.severity, self.since, self.until].map(Option::unwrap_or_default);
        let (flaps, sources) = (self.suppressed.to_string(), self.sources.join(","));
        let of = match self.scope.as_str() {
            "placement" => format!("{} on {}", self.topology, self.machines),
            "host" => self.machines,
            _ => self.topology,
        };
        vec![self.fault, self.state, severity, since, until, flaps, sources, self.scope, of]
    }
}

/// Asks for as many pages as are wanted.
pub(crate) async fn run(args: &ListArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let listed = list("faults list", args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page = client.list_faults(ListFaultsRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.faults.into_iter().map(Row::of).collect(), page.next_page_token, page.total_size))
    });
    listed.await
}
