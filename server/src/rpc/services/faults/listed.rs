//! `Faults.ListFaults`: what is known, as it is listed.

use canopy_faults::{Record, Severity};
use canopy_proto::v1;
use canopy_proto::v1::{FaultScope, FaultState, KnownFault, ListFaultsRequest, ListFaultsResponse};
use canopy_wire as wire;
use canopy_wire::timestamp;

use super::scope_of;
use super::subject::audience;
use crate::clock;
use crate::failure::CallFailure;
use crate::replan::{Replanner, Scope};
use crate::rpc::shared::fields::{Field, Kind, unix_ms};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::store::clusters::FOLDER as CLUSTERS;
use crate::store::topologies::id_of;
use crate::tenant::Viewer;

const STATES: &[&str] = &["active", "clearing", "held"];
const SCOPES: &[&str] = &["topology", "placement", "host", "cluster"];
const SEVERITIES: &[&str] = &["fatal", "degraded"];

/// What faults are listed by.
const FIELDS: &[Field<KnownFault>] = &[
    Field { name: "topology", kind: Kind::Text(|fault| fault.topology.clone()) },
    Field { name: "scope", kind: Kind::Word(SCOPES, scope_name) },
    Field { name: "machines", kind: Kind::Text(|fault| fault.machines.clone()) },
    Field { name: "text", kind: Kind::Text(|fault| fault.text.clone()) },
    Field { name: "state", kind: Kind::Word(STATES, state_name) },
    Field { name: "severity", kind: Kind::Word(SEVERITIES, severity_name) },
    Field { name: "since", kind: Kind::Time(|fault| fault.since_time.and_then(unix_ms).unwrap_or(0)) },
    Field { name: "reported", kind: Kind::Time(|fault| fault.reported_time.and_then(unix_ms).unwrap_or(0)) },
];

/// A page of what is known.
///
/// A tenant sees what counts for its plans; a caller without one sees what all reporters say.
pub(super) fn list(
    replanner: &Replanner,
    viewer: &Viewer,
    request: &ListFaultsRequest,
) -> Result<ListFaultsResponse, CallFailure> {
    let ListFaultsRequest { page_size, page_token, filter, order_by } = request;
    let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
    let audience = audience(viewer);
    replanner.fault_logs().for_each(|scope, record| {
        if !audience.hears(scope) {
            return;
        }
        let fault = known_fault(replanner, scope, record);
        let place = [fault.topology.as_str(), fault.machines.as_str(), fault.text.as_str()].join("\n");
        let order = fault.scope.to_be_bytes();
        let id = [order.as_slice(), place.as_bytes(), scope.key_of("").as_bytes()].concat();
        listing.show(fault, id);
    });
    let page = listing.finish();
    Ok(ListFaultsResponse { faults: page.items, next_page_token: page.next_page_token, total_size: page.total })
}

fn known_fault(replanner: &Replanner, scope: &Scope, record: &Record) -> KnownFault {
    let loss = canopy_faults::Loss { target: record.target().clone(), remaining: record.counts_as() };
    let better_ms = record.better_at_ms(replanner.fault_logs().policy());
    let state = match (record.is_held(), better_ms.is_some()) {
        (true, _) => FaultState::Held,
        (false, true) => FaultState::Clearing,
        (false, false) => FaultState::Active,
    };
    let expires = || {
        let live: Vec<Option<u64>> =
            record.sources().filter(|(_, word)| word.is_live).map(|(_, word)| word.expires_ms).collect();
        live.iter().copied().collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max())
    };
    let severity = match record.severity() {
        Some(Severity::Fatal) => v1::Severity::Fatal,
        Some(Severity::Degraded) => v1::Severity::Degraded,
        None => v1::Severity::Unspecified,
    };
    let machines = match scope.place() {
        Scope::Placement { machines: name, .. } | Scope::Host(name) => name.clone(),
        _ => String::new(),
    };
    let topology = match scope.place() {
        Scope::Cluster(name) => format!("{CLUSTERS}{name}"),
        _ => scope.base().map(id_of).unwrap_or_default(),
    };
    KnownFault {
        topology,
        scope: scope_of(scope).into(),
        machines,
        fault: Some(wire::loss_on_the_wire(&loss)),
        state: state.into(),
        severity: severity.into(),
        sources: record.sources().map(|(name, _)| name.to_owned()).collect(),
        since_time: Some(timestamp(clock::shown_ms(record.since_ms()))),
        reported_time: Some(timestamp(clock::shown_ms(record.changed_ms()))),
        until_time: better_ms.or_else(expires).map(|ms| timestamp(clock::shown_ms(ms))),
        suppressed: record.flaps_suppressed(),
        text: loss.to_string(),
    }
}

fn state_name(fault: &KnownFault) -> &'static str {
    match fault.state() {
        FaultState::Clearing => "clearing",
        FaultState::Held => "held",
        FaultState::Active | FaultState::Unspecified => "active",
    }
}

fn scope_name(fault: &KnownFault) -> &'static str {
    match fault.scope() {
        FaultScope::Placement => "placement",
        FaultScope::Host => "host",
        FaultScope::Cluster => "cluster",
        FaultScope::Topology | FaultScope::Unspecified => "topology",
    }
}

fn severity_name(fault: &KnownFault) -> &'static str {
    match fault.severity() {
        v1::Severity::Degraded => "degraded",
        v1::Severity::Fatal | v1::Severity::Unspecified => "fatal",
    }
}
