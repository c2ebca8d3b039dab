//! `canopy.v1.Faults`: broken or slow elements, and the plans made around them.

mod listed;
mod subject;
mod unmatched;

use std::collections::BTreeSet;
use std::time::Duration;

use canopy_faults::{Event, Outcome, Remaining, Severity, Target};
use canopy_planner::chain;
use canopy_proto::v1;
use canopy_proto::v1::faults_server::Faults;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    ClearFaultsRequest, ClearFaultsResponse, FaultEvent, FaultScope, ListFaultsRequest, ListFaultsResponse,
    ReportFaultsRequest, ReportFaultsResponse, ReportOutcome, ReportedFault, TopologySource,
};
use canopy_topology::TopologyLimits;
use canopy_wire as wire;
use canopy_wire::{FAULTS_MAX, RequestError};
use tonic::{Code, Request, Response, Status};

use self::listed::list;
use self::subject::{Subject, audience};
use self::unmatched::unmatched;
use crate::call;
use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::replan::{Entered, Replanner, ReportError, Scope};
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::fields::unix_ms;
use crate::rpc::shared::sources::{StoredNetworks, resolve_parts};
use crate::store::Records;
use crate::store::clusters::FOLDER as CLUSTERS;
use crate::store::receipts::Open;
use crate::tenant::Viewer;

/// Longest name of a source in bytes.
const SOURCE_BYTES_MAX: usize = 64;
/// Longest id of an event in bytes.
const EVENT_ID_BYTES_MAX: usize = 128;

/// The service.
#[derive(Clone)]
pub(crate) struct FaultsService {
    pool: CallPool,
    replanner: Replanner,
    networks: StoredNetworks,
    limits: TopologyLimits,
}

impl FaultsService {
    pub(crate) fn new(pool: CallPool, replanner: Replanner, networks: StoredNetworks, limits: TopologyLimits) -> Self {
        Self { pool, replanner, networks, limits }
    }
}

#[tonic::async_trait]
impl Faults for FaultsService {
    async fn report_faults(
        &self,
        request: Request<ReportFaultsRequest>,
    ) -> Result<Response<ReportFaultsResponse>, Status> {
        let (headers, _, mut request) = request.into_parts();
        let (replanner, limits, viewer) = (self.replanner.clone(), self.limits, Viewer::of(&headers));
        let networks = self.networks.clone();
        let reported = self.pool.change("ReportFaults", &headers, move |_| {
            request.topology = resolve_parts(&networks, request.topology, &limits, &|| false)?;
            report(&replanner, &networks, &viewer?, request, &limits)
        });
        reported.await.map(Response::new)
    }

    async fn list_faults(&self, request: Request<ListFaultsRequest>) -> Result<Response<ListFaultsResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (replanner, viewer) = (self.replanner.clone(), Viewer::of(&headers));
        self.pool.run("ListFaults", &headers, move |_| list(&replanner, &viewer?, &request)).await.map(Response::new)
    }

    async fn clear_faults(
        &self,
        request: Request<ClearFaultsRequest>,
    ) -> Result<Response<ClearFaultsResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (replanner, wanted, limits) = (self.replanner.clone(), request.clone(), self.limits);
        let (viewer, networks) = (Viewer::of(&headers), self.networks.clone());
        let clear = move |_: &Records, open: Option<&Open>| {
            let topology = resolve_parts(&networks, named(&wanted.topology), &limits, &|| false)?;
            clear(&replanner, &viewer?, (&wanted, topology, open), &limits)
        };
        let call = (&headers, &*request.request_id, &request);
        self.pool.once_marked("ClearFaults", call, clear, || {}).await.map(Response::new)
    }
}

/// What the names of a caller's sources begin with: where callers are told apart, tenants have sources of their own, and
/// neither take back nor clear what others report. Empty for a caller without a tenant, which may clear everything.
fn own_sources(viewer: &Viewer) -> String {
    if viewer.name().is_empty() || !call::is_guarded() { String::new() } else { format!("{}/", viewer.name()) }
}

fn report(
    replanner: &Replanner,
    networks: &StoredNetworks,
    viewer: &Viewer,
    request: ReportFaultsRequest,
    limits: &TopologyLimits,
) -> Result<ReportFaultsResponse, CallFailure> {
    let ReportFaultsRequest { topology, events, job } = request;
    if events.len() > FAULTS_MAX {
        return Err(CallFailure::TooManyEvents { found: events.len(), limit: FAULTS_MAX });
    }
    if events.is_empty() {
        let remedy = "list the events to report";
        return Err(PlanFailure::Request(RequestError::Missing { field: "events", remedy }).into());
    }
    let subject = Subject::of(replanner, viewer, (topology, &job), limits)?;
    let (names, now) = (subject.entries(), replanner.leases().now_ms());
    let (prefix, tenant) = (own_sources(viewer), call::tenant());
    let entries = |event| {
        let mut event = read_event(event, now)?;
        event.source.insert_str(0, &prefix);
        let entries = names.of_event(&event).map_err(|problem| refused("FAULT_UNKNOWN", &problem))?;
        Ok(entries.into_iter().map(|(scope, event)| (scope.by(&tenant), event)).collect())
    };
    let read: Vec<Result<Vec<(Scope, Event)>, ReportedFault>> = events.into_iter().map(entries).collect();
    let all: Vec<(Scope, Event)> = read.iter().flatten().flatten().cloned().collect();
    let named: Vec<Scope> = all.iter().map(|(scope, _)| scope.clone()).collect();
    call::concerns(&subject.object(&job, all.iter().map(|(_, event)| Some(&event.target))));
    let entered = replanner.fault_logs().report(all.clone())?;
    let is_new = |entered: &Result<Entered, ReportError>| matches!(entered, Ok(entered) if entered.changes);
    let new = all.into_iter().zip(entered.iter().map(is_new)).filter(|(_, is_new)| *is_new);
    let new = new.map(|((scope, event), _)| (scope, event.target)).collect();
    let unmatched = match subject {
        Subject::Machines => unmatched(replanner, networks, new, limits)?,
        Subject::Topology(_) | Subject::Job(_) => BTreeSet::new(),
    };
    let mut entered = entered.into_iter();
    let mut changed = Vec::new();
    let mut outcome = |read: Result<Vec<(Scope, Event)>, ReportedFault>| {
        let event = read.as_ref().ok().and_then(|entries| entries.first()).map(|(_, event)| event);
        let (kind, source) = event.map_or(("", String::new()), |event| (event.target.kind(), event.source.clone()));
        let reported = read
            .map_or_else(|refused| refused, |entries| outcome_of_all(entries, &mut entered, &unmatched, &mut changed));
        replanner.metrics().fault_event(outcome_name(reported.outcome()), kind, &source);
        reported
    };
    let outcomes: Vec<ReportedFault> = read.into_iter().map(&mut outcome).collect();
    let leases = if changed.is_empty() { 0 } else { replanner.concerned(&changed) };
    if !changed.is_empty() {
        replanner.stir_changed();
    }
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(ReportFaultsResponse {
        topology: subject.topology(),
        outcomes,
        active: number(subject.active(viewer, replanner.fault_logs(), &named)),
        leases: number(leases),
        placed_leases: number(subject.placed_leases(replanner)),
    })
}

/// What became of an event that was entered in one scope or several: what changed anything, else what became of it in the first.
fn outcome_of_all(
    entries: Vec<(Scope, Event)>,
    entered: &mut impl Iterator<Item = Result<Entered, ReportError>>,
    unmatched: &BTreeSet<(Scope, Target)>,
    changed: &mut Vec<Scope>,
) -> ReportedFault {
    let mut first = None;
    // There is an outcome for each that was entered.
    for ((scope, event), entered) in entries.into_iter().zip(entered) {
        let (changes, found) = match entered {
            Ok(entered) => {
                let element = event.target.to_string();
                let is_unmatched = entered.changes && unmatched.contains(&(scope.clone(), event.target));
                let outcome = if is_unmatched { ReportOutcome::Unmatched } else { outcome_of(entered) };
                let of = scope_of(&scope).into();
                (entered.changes, ReportedFault { outcome: outcome.into(), error: None, element, scope: of })
            }
            Err(error) => (false, refused_as(report_reason(&error), &chain(&error))),
        };
        if changes {
            changed.push(scope);
        }
        if changes || first.is_none() {
            first = Some(found);
        }
    }
    first.unwrap_or_else(|| refused("CALL_FAILED", "the event was lost"))
}

fn scope_of(scope: &Scope) -> FaultScope {
    match scope.place() {
        Scope::Topology(_) => FaultScope::Topology,
        Scope::Placement { .. } => FaultScope::Placement,
        Scope::Cluster(_) => FaultScope::Cluster,
        Scope::Host(_) => FaultScope::Host,
        // A place is by no one.
        Scope::Of { .. } => FaultScope::Unspecified,
    }
}

fn read_event(event: FaultEvent, now: u64) -> Result<Event, ReportedFault> {
    let bad = |field: &str, problem: String| refused("FAULT_INVALID", &format!("{field}: {problem}"));
    let stated = event.fault.unwrap_or_default();
    let loss = wire::loss(&stated).map_err(|error| bad(&format!("fault.{}", error.field()), chain(&error)))?;
    let observed_ms = match event.observed_time {
        None => now,
        Some(time) => {
            let stated = unix_ms(time);
            clock::meant_ms(
                stated.ok_or_else(|| bad("observed_time", "the time is before 1970; set the clock".to_owned()))?,
            )
        }
    };
    let expires_ms = match event.expires_after.map(Duration::try_from) {
        None => None,
        Some(Ok(after)) => Some(observed_ms.saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))),
        Some(Err(_)) => return Err(bad("expires_after", "the duration is negative; use a positive one".to_owned())),
    };
    let severity = match v1::Severity::try_from(event.severity) {
        Ok(v1::Severity::Fatal) => Severity::Fatal,
        Ok(v1::Severity::Degraded) => Severity::Degraded,
        Ok(v1::Severity::Unspecified) if loss.remaining == Remaining::GONE => Severity::Fatal,
        Ok(v1::Severity::Unspecified) => Severity::Degraded,
        Err(_) => return Err(bad("severity", "use SEVERITY_FATAL or SEVERITY_DEGRADED".to_owned())),
    };
    let FaultEvent { source, event_id, cleared, .. } = event;
    for (field, text, limit) in [("source", &source, SOURCE_BYTES_MAX), ("event_id", &event_id, EVENT_ID_BYTES_MAX)] {
        if text.is_empty() || text.len() > limit {
            return Err(bad(field, format!("it has {} bytes; use 1 to {limit}", text.len())));
        }
    }
    let canopy_faults::Loss { target, remaining } = loss;
    Ok(Event { source, event_id, target, remaining, severity, observed_ms, expires_ms, cleared })
}

const fn outcome_of(entered: Entered) -> ReportOutcome {
    match (entered.outcome, entered.changes) {
        (Outcome::New | Outcome::Updated | Outcome::Cleared, true) => ReportOutcome::Applied,
        (Outcome::New | Outcome::Updated | Outcome::Cleared | Outcome::NothingToClear, _) => ReportOutcome::Noted,
        (Outcome::Repeated, _) => ReportOutcome::Repeated,
        (Outcome::Stale, _) => ReportOutcome::Stale,
        (Outcome::ClearPending, _) => ReportOutcome::Clearing,
        (Outcome::Held, _) => ReportOutcome::Held,
    }
}

/// A word for the label of a metric.
const fn outcome_name(outcome: ReportOutcome) -> &'static str {
    match outcome {
        ReportOutcome::Applied => "applied",
        ReportOutcome::Noted => "noted",
        ReportOutcome::Repeated => "repeated",
        ReportOutcome::Stale => "stale",
        ReportOutcome::Clearing => "clearing",
        ReportOutcome::Held => "held",
        ReportOutcome::Unmatched => "unmatched",
        ReportOutcome::Refused | ReportOutcome::Unspecified => "refused",
    }
}

fn refused(reason: &str, message: &str) -> ReportedFault {
    refused_as((Code::InvalidArgument, reason), message)
}

fn refused_as((code, reason): (Code, &str), message: &str) -> ReportedFault {
    let (reason, message) = (reason.to_owned(), message.chars().take(500).collect());
    let error = canopy_wire::error_status(code.into(), &reason, message);
    ReportedFault { outcome: ReportOutcome::Refused.into(), error: Some(error), ..ReportedFault::default() }
}

const fn report_reason(error: &ReportError) -> (Code, &'static str) {
    use canopy_faults::FaultLogError;
    match error {
        ReportError::FaultLog(FaultLogError::Event(_) | FaultLogError::Future { .. }) => {
            (Code::InvalidArgument, "FAULT_INVALID")
        }
        ReportError::FaultLog(
            FaultLogError::TooManyElements { .. }
            | FaultLogError::TooManySources { .. }
            | FaultLogError::TooManyIds { .. },
        )
        | ReportError::TooManyBooks { .. } => (Code::ResourceExhausted, "TOO_MANY_FAULTS"),
        ReportError::OverQuota(_) => (Code::ResourceExhausted, "QUOTA_EXCEEDED"),
    }
}

/// The topology or cluster of this name; none if it is empty.
fn named(name: &str) -> Option<TopologySource> {
    let source = match name.starts_with(CLUSTERS) {
        true => Source::Cluster(v1::ClusterNodes { cluster: name.to_owned(), nodes: Vec::new() }),
        false => Source::Name(name.to_owned()),
    };
    (!name.is_empty()).then_some(TopologySource { source: Some(source) })
}

fn clear(
    replanner: &Replanner,
    viewer: &Viewer,
    (request, topology, open): (&ClearFaultsRequest, Option<TopologySource>, Option<&Open>),
    limits: &TopologyLimits,
) -> Result<ClearFaultsResponse, CallFailure> {
    if request.faults.len() > FAULTS_MAX {
        return Err(CallFailure::TooManyEvents { found: request.faults.len(), limit: FAULTS_MAX });
    }
    if request.all && !(request.topology.is_empty() && request.job.is_empty() && request.faults.is_empty()) {
        let problem = "`topology`, `job` or `faults` is given as well; set exactly one".to_owned();
        return Err(CallFailure::Faults { field: "all", problem });
    }
    let subject = Subject::of(replanner, viewer, (topology, &request.job), limits)?;
    let names = subject.entries();
    let mut wanted: Vec<(Scope, Option<Target>)> = Vec::new();
    for (position, fault) in request.faults.iter().enumerate() {
        let bad = |problem: String| CallFailure::FaultTarget { position, problem };
        let loss = wire::loss(fault).map_err(|error| bad(chain(&error)))?;
        let entries = names.of(&loss.target, Remaining::GONE).map_err(bad)?;
        wanted.extend(entries.into_iter().map(|(scope, target)| (scope, Some(target))));
    }
    if request.all {
        wanted.extend(replanner.fault_logs().places().into_iter().map(|scope| (scope, None)));
    } else if request.faults.is_empty() {
        wanted.extend(subject.scopes().into_iter().map(|scope| (scope, None)));
        if wanted.is_empty() {
            let problem = "name the faults, or a topology or job to clear all of its faults, or set `all`".to_owned();
            return Err(CallFailure::Faults { field: "faults", problem });
        }
    }
    call::concerns(&subject.object(&request.job, wanted.iter().map(|(_, target)| target.as_ref())));
    // A caller without a tenant clears what any tenant's reporters have said.
    let reporters = match call::tenant() {
        tenant if tenant.is_empty() => replanner.fault_logs().reporters(),
        tenant => vec![tenant],
    };
    let by_each = |(scope, target): (Scope, Option<Target>)| {
        let by = move |tenant: &String| (scope.clone().by(tenant), target.clone());
        reporters.iter().map(by).collect::<Vec<_>>()
    };
    let wanted: Vec<(Scope, Option<Target>)> = wanted.into_iter().flat_map(by_each).collect();
    // Done again after a crash, it must not take out what has broken since.
    let until_ms = open.map(|open| open.begin(replanner.leases().now_ms())).transpose()?.flatten();
    let own = own_sources(viewer);
    let is_own = |source: &str| source.starts_with(&own);
    let cleared = replanner.fault_logs().clear(&wanted, until_ms.unwrap_or(u64::MAX), is_own)?;
    replanner.stir_changed();
    let named: Vec<Scope> = wanted.into_iter().map(|(scope, _)| scope).collect();
    let fault_logs = replanner.fault_logs();
    let active = match request.all {
        true => fault_logs.active(&audience(viewer)),
        false => subject.active(viewer, fault_logs, &named),
    };
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(ClearFaultsResponse { cleared: number(cleared), active: number(active) })
}
