//! `canopy.v1.PlanAdmin`: the plans of the store.

use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1;
use canopy_proto::v1::plan_admin_server::PlanAdmin;
use canopy_proto::v1::{
    EvictPlansReply, EvictPlansRequest, ExportPlansEvent, ExportPlansRequest, ForgetRefusalsReply,
    ForgetRefusalsRequest, GetPlanSummaryRequest, ImportPlansReply, ImportPlansRequest, ListPlansReply,
    ListPlansRequest, PinPlanRequest, UnpinPlanRequest,
};
use canopy_schedule::CollectiveKind;
use canopy_topology::Ratio;
use tonic::{Request, Response, Status, Streaming};

use super::desk::{Desk, key_of, shown};
use super::fields::{COLLECTIVES, Field, Kind, Value};
use super::listing::{ListRequest, Listing};
use super::{EventStream, archives::Archives};
use crate::clock;
use crate::failure::CallFailure;
use crate::key::PlanKey;
use crate::planner::Planner;
use crate::refusals::Refusals;
use crate::store::{Eviction, PlanSummary, Records};
use crate::tenant::Viewer;
use crate::workers::Workshop;
use canopy_wire::collective_on_the_wire;
use canopy_wire::timestamp;

/// Summaries read at once.
const BATCH: usize = 1000;
/// Most plans named in one request.
const NAMES_MAX: usize = 1000;

/// What plans are listed by.
const FIELDS: &[Field<PlanSummary>] = &[
    Field { name: "id", kind: Kind::Id, get: |plan| Value::Text(plan.id.clone()) },
    Field {
        name: "collective",
        kind: Kind::Word(COLLECTIVES),
        get: |plan| Value::Text(collective_name(Some(&plan.collective)).to_owned()),
    },
    Field { name: "algorithm", kind: Kind::Text, get: |plan| Value::Text(plan.algorithm.clone()) },
    Field { name: "topology", kind: Kind::Text, get: |plan| Value::Text(plan.topology_hash.clone()) },
    Field { name: "ranks", kind: Kind::Number, get: |plan| Value::Number(plan.ranks.into()) },
    Field { name: "optimality", kind: Kind::Ratio, get: |plan| Value::Ratio(ratio(&plan.optimality)) },
    Field { name: "size_bytes", kind: Kind::Number, get: |plan| Value::Number(plan.size_bytes) },
    Field { name: "created", kind: Kind::Time, get: |plan| Value::Time(plan.created_ms) },
    Field { name: "last_used", kind: Kind::Time, get: |plan| Value::Time(plan.last_used_ms) },
    Field { name: "hits", kind: Kind::Number, get: |plan| Value::Number(plan.hits) },
    Field { name: "tenant", kind: Kind::Text, get: |plan| Value::Text(plan.tenant.clone()) },
    Field { name: "pinned", kind: Kind::Flag, get: |plan| Value::Flag(plan.pinned) },
];

/// The service.
#[derive(Clone)]
pub(crate) struct PlanAdminService {
    desk: Desk,
    archives: Archives,
    refusals: Refusals,
    planner: Arc<dyn Planner>,
}

impl PlanAdminService {
    pub(crate) fn new(desk: Desk, archives: Archives, workshop: &Workshop) -> Self {
        let (refusals, planner) = (workshop.refusals.clone(), Arc::clone(&workshop.planner));
        Self { desk, archives, refusals, planner }
    }
}

#[tonic::async_trait]
impl PlanAdmin for PlanAdminService {
    async fn list_plans(&self, request: Request<ListPlansRequest>) -> Result<Response<ListPlansReply>, Status> {
        let (headers, _, request) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let listed = self.desk.run("ListPlans", &headers, move |records| list(records, &viewer?, &request));
        listed.await.map(Response::new)
    }

    async fn get_plan_summary(
        &self,
        request: Request<GetPlanSummaryRequest>,
    ) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, GetPlanSummaryRequest { name }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let found = self.desk.run("GetPlanSummary", &headers, move |records| {
            let summary = records.summary(&key_of(records, &viewer?, &name)?)?;
            on_the_wire(records, summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(&name) })?)
        });
        found.await.map(Response::new)
    }

    async fn pin_plan(&self, request: Request<PinPlanRequest>) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, request) = request.into_parts();
        let call = (&headers, &*request.request_id, &request);
        let name = request.name.clone();
        let viewer = Viewer::of(&headers);
        let pin = move |records: &Records| {
            let summary = records.pin(&key_of(records, &viewer?, &name)?)?;
            on_the_wire(records, summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(&name) })?)
        };
        self.desk.once("PinPlan", call, pin, || {}).await.map(Response::new)
    }

    async fn unpin_plan(&self, request: Request<UnpinPlanRequest>) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, request) = request.into_parts();
        let call = (&headers, &*request.request_id, &request);
        let name = request.name.clone();
        let viewer = Viewer::of(&headers);
        let unpin = move |records: &Records| {
            let summary = records.unpin(&key_of(records, &viewer?, &name)?)?;
            on_the_wire(records, summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(&name) })?)
        };
        self.desk.once("UnpinPlan", call, unpin, || {}).await.map(Response::new)
    }

    async fn evict_plans(&self, request: Request<EvictPlansRequest>) -> Result<Response<EvictPlansReply>, Status> {
        let (headers, _, request) = request.into_parts();
        let asked = request.clone();
        let call = (&headers, &*request.request_id, &request);
        let (viewer, planner) = (Viewer::of(&headers), Arc::clone(&self.planner));
        let evict = move |records: &Records| evict(records, planner.as_ref(), &viewer?, &asked);
        self.desk.once("EvictPlans", call, evict, || {}).await.map(Response::new)
    }

    type ExportPlansStream = EventStream<ExportPlansEvent>;

    async fn export_plans(
        &self,
        request: Request<ExportPlansRequest>,
    ) -> Result<Response<Self::ExportPlansStream>, Status> {
        self.archives.export(request).await.map(Response::new)
    }

    async fn import_plans(
        &self,
        request: Request<Streaming<ImportPlansRequest>>,
    ) -> Result<Response<ImportPlansReply>, Status> {
        self.archives.import(request).await.map(Response::new)
    }

    async fn forget_refusals(
        &self,
        request: Request<ForgetRefusalsRequest>,
    ) -> Result<Response<ForgetRefusalsReply>, Status> {
        let (headers, _, request) = request.into_parts();
        let call = (&headers, &*request.request_id, &request);
        let refusals = self.refusals.clone();
        let forget = move |_: &Records| Ok(ForgetRefusalsReply { forgotten: refusals.clear() as u64 });
        self.desk.once("ForgetRefusals", call, forget, || {}).await.map(Response::new)
    }
}

/// One page of what the caller sees. With a filter or an order, and where plans are one tenant's alone, reads every
/// summary; O(page) otherwise.
fn list(records: &Records, viewer: &Viewer, request: &ListPlansRequest) -> Result<ListPlansReply, CallFailure> {
    let ListPlansRequest { page_size, page_token, filter, order_by } = request;
    let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
    let plain_total = if listing.is_plain() && records.usage()?.owned == 0 {
        let after = match listing.after_id() {
            Some(id) => Some(PlanKey::from_bytes(id.try_into().map_err(|_| CallFailure::PageToken)?)),
            None => None,
        };
        for summary in records.list(after, listing.needed())? {
            let id = summary.key.as_bytes().to_vec();
            listing.show(summary, id);
        }
        Some(records.usage()?.records as u64)
    } else {
        for_each_seen(records, viewer, |summary| {
            let id = summary.key.as_bytes().to_vec();
            listing.show(summary, id);
            Ok(())
        })?;
        None
    };
    let page = listing.finish();
    Ok(ListPlansReply {
        plans: page.items.into_iter().map(|summary| on_the_wire(records, summary)).collect::<Result<_, _>>()?,
        next_page_token: page.next_page_token,
        total_size: plain_total.unwrap_or(page.total),
    })
}

/// Removes plans, and the schedules they were made of: what an operator no longer wants is not made again of what it was
/// made of.
fn evict(
    records: &Records,
    planner: &dyn Planner,
    viewer: &Viewer,
    request: &EvictPlansRequest,
) -> Result<EvictPlansReply, CallFailure> {
    let EvictPlansRequest { names, filter, validate_only, request_id: _ } = request;
    if names.is_empty() == filter.trim().is_empty() {
        return Err(CallFailure::EvictionTarget);
    }
    if names.len() > NAMES_MAX {
        return Err(CallFailure::TooManyNames { found: names.len(), limit: NAMES_MAX });
    }
    let mut reply = EvictPlansReply::default();
    let mut evict_one = |summary: PlanSummary| -> Result<(), CallFailure> {
        let end = match *validate_only {
            true if summary.pinned => Eviction::Pinned,
            true => Eviction::Evicted,
            false => records.evict(&summary.key)?,
        };
        match end {
            Eviction::Evicted => {
                if !*validate_only {
                    planner.forget(&summary.schedules);
                }
                reply.evicted += 1;
                reply.freed_bytes += summary.size_bytes;
            }
            Eviction::Pinned => reply.pinned += 1,
            // Somebody else was faster.
            Eviction::Missing => {}
        }
        Ok(())
    };
    if filter.is_empty() {
        // Every name is known before anything is removed.
        let mut named = Vec::with_capacity(names.len());
        for name in names {
            let summary = records.summary(&key_of(records, viewer, name)?)?;
            named.push(summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(name) })?);
        }
        named.sort_by_key(|summary| summary.key);
        named.dedup_by_key(|summary| summary.key);
        named.into_iter().try_for_each(evict_one)?;
    } else {
        let filter = Listing::new(FIELDS, &ListRequest { filter, ..ListRequest::default() })?;
        for_each_seen(records, viewer, |summary| if filter.accepts(&summary) { evict_one(summary) } else { Ok(()) })?;
    }
    Ok(reply)
}

/// The keys of all plans that a filter wants, in their order, and what they come to.
pub(super) fn chosen(
    records: &Records,
    viewer: &Viewer,
    filter: &str,
) -> Result<(Vec<PlanKey>, v1::ArchiveContents), CallFailure> {
    let filter = Listing::new(FIELDS, &ListRequest { filter, ..ListRequest::default() })?;
    let (mut keys, mut contents) = (Vec::new(), v1::ArchiveContents::default());
    for_each_seen(records, viewer, |summary| {
        if filter.accepts(&summary) {
            keys.push(summary.key);
            contents.plans += 1;
            contents.pinned_plans += u64::from(summary.pinned);
            contents.record_bytes += summary.size_bytes;
        }
        Ok(())
    })?;
    Ok((keys, contents))
}

/// Shows every summary that the caller sees to `take`, in order of the keys.
fn for_each_seen(
    records: &Records,
    viewer: &Viewer,
    mut take: impl FnMut(PlanSummary) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    for_each(records, |summary| if viewer.sees(&summary.tenant) { take(summary) } else { Ok(()) })
}

/// Shows every summary to `take`, in order of the keys. What is removed meanwhile may or may not be shown.
pub(super) fn for_each(
    records: &Records,
    mut take: impl FnMut(PlanSummary) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    let mut after = None;
    loop {
        let batch = records.list(after, BATCH)?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = Some(last.key);
        batch.into_iter().try_for_each(&mut take)?;
    }
}

fn on_the_wire(records: &Records, summary: PlanSummary) -> Result<v1::PlanSummary, CallFailure> {
    let age = Duration::from_millis(clock::unix_ms().saturating_sub(summary.created_ms));
    Ok(v1::PlanSummary {
        superseded_by: records.successor(&summary)?.unwrap_or_default(),
        age: age.try_into().ok(),
        id: summary.id,
        content_key: summary.key.to_string(),
        collective: Some(summary.collective),
        algorithm: summary.algorithm,
        topology_hash: summary.topology_hash,
        ranks: summary.ranks,
        optimality: summary.optimality,
        size_bytes: summary.size_bytes,
        create_time: Some(timestamp(summary.created_ms)),
        last_use_time: Some(timestamp(summary.last_used_ms)),
        hits: summary.hits,
        pinned: summary.pinned,
        tenant: summary.tenant,
    })
}

/// The name of a collective in text; empty for none.
pub(super) fn collective_name(spec: Option<&v1::CollectiveSpec>) -> &'static str {
    let kinds = CollectiveKind::ALL.into_iter();
    let is_meant = |kind: &CollectiveKind| spec.is_some_and(|spec| spec.kind() == collective_on_the_wire(*kind));
    kinds.filter(is_meant).map(CollectiveKind::name).next().unwrap_or_default()
}

/// achieved ÷ bound of a stored plan, which was written by this server's kind.
fn ratio(text: &str) -> Ratio {
    text.parse().or_else(|_| "0".parse()).expect("zero is a ratio")
}
