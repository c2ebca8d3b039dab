//! `canopy.v1.PlanAdmin`: the plans of the store.

use std::sync::Arc;

use canopy_planner::PlanKey;
use canopy_proto::v1;
use canopy_proto::v1::plan_admin_server::PlanAdmin;
use canopy_proto::v1::{
    EvictPlansReply, EvictPlansRequest, ExportPlansEvent, ExportPlansRequest, ForgetRefusalsReply,
    ForgetRefusalsRequest, GetPlanSummaryRequest, ImportPlansReply, ImportPlansRequest, ListPlansReply,
    ListPlansRequest, PinPlanRequest, UnpinPlanRequest,
};
use tonic::{Request, Response, Status, Streaming};

use crate::call;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::planner::Planner;
use crate::jobs::workers::Jobs;
use crate::rpc::EventStream;
use crate::rpc::services::archives::Archives;
use crate::rpc::shared::call_pool::{CallPool, key_of, shown};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::plan_summaries::{FIELDS, for_each_seen, on_the_wire};
use crate::store::{Eviction, PlanSummary, Records, StoreError};
use crate::tenant::Viewer;

/// Most plans named in one request.
const NAMES_MAX: usize = 1000;

/// The service.
#[derive(Clone)]
pub(crate) struct PlanAdminService {
    pool: CallPool,
    archives: Archives,
    jobs: Arc<Jobs>,
    planner: Arc<dyn Planner>,
}

impl PlanAdminService {
    pub(crate) fn new(pool: CallPool, archives: Archives, jobs: &Arc<Jobs>) -> Self {
        let planner = Arc::clone(&jobs.planner);
        Self { pool, archives, jobs: Arc::clone(jobs), planner }
    }
}

#[tonic::async_trait]
impl PlanAdmin for PlanAdminService {
    async fn list_plans(&self, request: Request<ListPlansRequest>) -> Result<Response<ListPlansReply>, Status> {
        let (headers, _, request) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let listed = self.pool.run("ListPlans", &headers, move |records| list(records, &viewer?, &request));
        listed.await.map(Response::new)
    }

    async fn get_plan_summary(
        &self,
        request: Request<GetPlanSummaryRequest>,
    ) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, GetPlanSummaryRequest { name }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let found = self.pool.run("GetPlanSummary", &headers, changed(viewer, name, Records::summary));
        found.await.map(Response::new)
    }

    async fn pin_plan(&self, request: Request<PinPlanRequest>) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, request) = request.into_parts();
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        let pin = changed(Viewer::of(&headers), request.name.clone(), Records::pin);
        self.pool.once("PinPlan", call, pin, || {}).await.map(Response::new)
    }

    async fn unpin_plan(&self, request: Request<UnpinPlanRequest>) -> Result<Response<v1::PlanSummary>, Status> {
        let (headers, _, request) = request.into_parts();
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        let unpin = changed(Viewer::of(&headers), request.name.clone(), Records::unpin);
        self.pool.once("UnpinPlan", call, unpin, || {}).await.map(Response::new)
    }

    async fn evict_plans(&self, request: Request<EvictPlansRequest>) -> Result<Response<EvictPlansReply>, Status> {
        let (headers, _, request) = request.into_parts();
        let asked = request.clone();
        call::concerns(&request.filter);
        let call = (&headers, &*request.request_id, &request);
        let (viewer, planner) = (Viewer::of(&headers), Arc::clone(&self.planner));
        let evict = move |records: &Records| evict(records, planner.as_ref(), &viewer?, &asked);
        self.pool.once("EvictPlans", call, evict, || {}).await.map(Response::new)
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
        let jobs = Arc::clone(&self.jobs);
        let forget = move |_: &Records| Ok(ForgetRefusalsReply { forgotten: jobs.forget_refusals()? });
        self.pool.once("ForgetRefusals", call, forget, || {}).await.map(Response::new)
    }
}

/// The summary of the plan of this name, once `change` is done to it.
fn changed(
    viewer: Result<Viewer, PlanFailure>,
    name: String,
    change: impl Fn(&Records, &PlanKey) -> Result<Option<PlanSummary>, StoreError>,
) -> impl FnOnce(&Records) -> Result<v1::PlanSummary, CallFailure> {
    move |records| {
        let viewer = viewer?;
        let key = key_of(records, &viewer, &name)?;
        if let Some(summary) = records.summary(&key)? {
            require_own(&viewer, &summary)?;
        }
        let summary = change(records, &key)?;
        on_the_wire(records, summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(&name) })?)
    }
}

/// Whether the caller may change a plan. Where callers are told apart, those of a tenant change its own plans alone; shared
/// ones are for callers that act for no tenant.
fn may_change(viewer: &Viewer, summary: &PlanSummary) -> bool {
    !call::is_guarded() || viewer.owns(Some(&summary.tenant))
}

fn require_own(viewer: &Viewer, summary: &PlanSummary) -> Result<(), CallFailure> {
    match may_change(viewer, summary) {
        true => Ok(()),
        false => Err(CallFailure::SharedPlan { plan: summary.id.clone() }),
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
            let id = summary.key().as_bytes().to_vec();
            listing.show(summary, id);
        }
        Some(records.usage()?.records as u64)
    } else {
        for_each_seen(records, viewer, |summary| {
            let id = summary.key().as_bytes().to_vec();
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
            false => records.evict(&summary.key())?,
        };
        match end {
            Eviction::Evicted => {
                if !*validate_only {
                    planner.forget(&summary.schedules());
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
            let summary = summary.ok_or_else(|| CallFailure::PlanUnknown { name: shown(name) })?;
            require_own(viewer, &summary)?;
            named.push(summary);
        }
        named.sort_by_key(|summary| summary.key());
        named.dedup_by_key(|summary| summary.key());
        named.into_iter().try_for_each(evict_one)?;
    } else {
        let filter = Listing::new(FIELDS, &ListRequest { filter, ..ListRequest::default() })?;
        for_each_seen(records, viewer, |summary| {
            if filter.accepts(&summary) && may_change(viewer, &summary) { evict_one(summary) } else { Ok(()) }
        })?;
    }
    Ok(reply)
}
