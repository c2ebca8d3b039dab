//! `canopy.v1.Plans`: the plans of the store.

mod simulate;

use std::sync::Arc;

use canopy_planner::PlanKey;
use canopy_proto::v1;
use canopy_proto::v1::fetch_plan_file_event::Event;
use canopy_proto::v1::plans_server::Plans;
use canopy_proto::v1::{
    ArchiveEvent, Artifact, EvictPlansRequest, EvictPlansResponse, ExplainPlanRequest, ExportPlansRequest,
    FetchPlanFileEvent, FetchPlanFileRequest, GetPlanRequest, GetPlanSummaryRequest, ImportPlansRequest,
    ImportPlansResponse, ListPlansRequest, ListPlansResponse, PinPlanRequest, Plan, PlanExplanation,
    SimulatePlanRequest, SimulatePlanResponse, UnpinPlanRequest,
};
use canopy_topology::TopologyLimits;
use tokio::sync::mpsc;
use tokio::time;
use tonic::{Request, Response, Status, Streaming};

use self::simulate::Simulations;
use crate::call;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::planner::Planner;
use crate::rpc::EventStream;
use crate::rpc::services::archives::Archives;
use crate::rpc::shared::cached::{self, ChosenFile};
use crate::rpc::shared::call_pool::{self, CallPool, key_of};
use crate::rpc::shared::deliver::{STALL_MAX, pieces};
use crate::rpc::shared::events::STREAM_BUFFER;

use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::parts::{self, Parts};
use crate::rpc::shared::plan_summaries::{FIELDS, for_each_seen, on_the_wire};
use crate::rpc::shared::rank_map;
use crate::store::{Eviction, PlanSummary, Records, StoreError};
use crate::tasks;
use crate::tenant::Viewer;

/// Most plans named in one request.
const NAMES_MAX: usize = 1000;

/// The service.
#[derive(Clone)]
pub(crate) struct PlansService {
    pool: CallPool,
    archives: Archives,
    planner: Arc<dyn Planner>,
    simulations: Simulations,
    limits: TopologyLimits,
}

impl PlansService {
    pub(crate) fn new(pool: CallPool, archives: Archives, planner: Arc<dyn Planner>, limits: TopologyLimits) -> Self {
        Self { simulations: Simulations::new(&pool), pool, archives, planner, limits }
    }
}

#[tonic::async_trait]
impl Plans for PlansService {
    async fn get_plan(&self, request: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        let (headers, _, GetPlanRequest { name, placement }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let found = self.pool.run("GetPlan", &headers, move |records| {
            let plan = call_pool::plan_of(records, &viewer?, &name, false)?;
            rank_map::require(&plan.plan, placement)?;
            let successor = Plan { superseded_by: call_pool::successor(records, &plan)?, ..Plan::default() };
            Ok(Parts::plan(plan.header_sent(), &successor))
        });
        found.await.map(|found| parts::one(Plan::default(), found))
    }

    async fn explain_plan(&self, request: Request<ExplainPlanRequest>) -> Result<Response<PlanExplanation>, Status> {
        let (headers, _, ExplainPlanRequest { name, placement }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let explained = self.pool.run("ExplainPlan", &headers, move |records| {
            let plan = call_pool::plan_of(records, &viewer?, &name, false)?;
            rank_map::require(&plan.plan, placement)?;
            let mut explained = cached::explain(&plan)?;
            explained.plan.get_or_insert_default().superseded_by = call_pool::successor(records, &plan)?;
            Ok(explained)
        });
        explained.await.map(Response::new)
    }

    async fn simulate_plan(
        &self,
        request: Request<SimulatePlanRequest>,
    ) -> Result<Response<SimulatePlanResponse>, Status> {
        self.simulations.simulate_plan(request, self.limits).await.map(Response::new)
    }

    type FetchPlanFileStream = EventStream<FetchPlanFileEvent>;

    async fn fetch_plan_file(
        &self,
        request: Request<FetchPlanFileRequest>,
    ) -> Result<Response<Self::FetchPlanFileStream>, Status> {
        let (headers, _, request) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let chosen = self.pool.run("FetchPlanFile", &headers, move |records| {
            // A transfer that goes on is not another use.
            let plan = call_pool::plan_of(records, &viewer?, &request.name, request.offset == 0)?;
            rank_map::require(&plan.plan, request.placement.clone())?;
            Ok((cached::choose(&plan, &request)?, call_pool::successor(records, &plan)?))
        });
        let (chosen, superseded_by) = chosen.await?;
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("fetch-artifact", send_file(chosen, superseded_by, sender));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }

    async fn list_plans(&self, request: Request<ListPlansRequest>) -> Result<Response<ListPlansResponse>, Status> {
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

    async fn evict_plans(&self, request: Request<EvictPlansRequest>) -> Result<Response<EvictPlansResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let asked = request.clone();
        call::concerns(&request.filter);
        let call = (&headers, &*request.request_id, &request);
        let (viewer, planner) = (Viewer::of(&headers), Arc::clone(&self.planner));
        let evict = move |records: &Records| evict(records, planner.as_ref(), &viewer?, &asked);
        self.pool.once("EvictPlans", call, evict, || {}).await.map(Response::new)
    }

    type ExportPlansStream = EventStream<ArchiveEvent>;

    async fn export_plans(
        &self,
        request: Request<ExportPlansRequest>,
    ) -> Result<Response<Self::ExportPlansStream>, Status> {
        self.archives.export(request).await.map(Response::new)
    }

    async fn import_plans(
        &self,
        request: Request<Streaming<ImportPlansRequest>>,
    ) -> Result<Response<ImportPlansResponse>, Status> {
        self.archives.import(request).await.map(Response::new)
    }
}

/// Sends a file: what it is, then its pieces, which share its memory. A reader that takes nothing for a long time is given up.
async fn send_file(file: ChosenFile, superseded_by: String, sender: mpsc::Sender<Result<Parts, Status>>) {
    let ChosenFile { position, artifact, offset } = file;
    let content = artifact.content.clone().unwrap_or_default();
    let header = Event::Artifact(Artifact { content: None, ..artifact });
    let header = Parts::of(&FetchPlanFileEvent { event: Some(header), superseded_by });
    for event in std::iter::once(header).chain(pieces(position, content, offset).map(Parts::fetched_piece)) {
        if !matches!(time::timeout(STALL_MAX, sender.send(Ok(event))).await, Ok(Ok(()))) {
            return;
        }
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
        on_the_wire(records, summary.ok_or_else(|| CallFailure::no_plan(&name))?)
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
fn list(records: &Records, viewer: &Viewer, request: &ListPlansRequest) -> Result<ListPlansResponse, CallFailure> {
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
    Ok(ListPlansResponse {
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
) -> Result<EvictPlansResponse, CallFailure> {
    let EvictPlansRequest { names, filter, validate_only, request_id: _ } = request;
    if names.is_empty() == filter.trim().is_empty() {
        return Err(CallFailure::EvictionTarget);
    }
    if names.len() > NAMES_MAX {
        return Err(CallFailure::TooManyNames { found: names.len(), limit: NAMES_MAX });
    }
    let mut reply = EvictPlansResponse::default();
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
            let summary = summary.ok_or_else(|| CallFailure::no_plan(name))?;
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
