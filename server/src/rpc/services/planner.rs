//! The service `Planner`: decode, call one method, encode. No policy of planning lives here.

mod bound;
mod bundle;
mod groups;
mod lasting;
mod moving;
mod order;
mod paths;
mod session;
mod simulate;
mod stream;
mod what_if;

use std::sync::Arc;
use std::time::Duration;

use canopy_planner::{Request as Order, RequestKey};
use canopy_proto::v1::fetch_artifact_event::Event;
use canopy_proto::v1::planner_server::Planner;
use canopy_proto::v1::{
    Artifact, BoundReply, ExplainPlanRequest, FetchArtifactEvent, FetchArtifactRequest, GetPlanRequest, Operation,
    OrderMachinesReply, OrderMachinesRequest, PathsReply, PathsRequest, Plan, PlanBundleReply, PlanBundleRequest,
    PlanEvent, PlanExplanation, PlanGroupsEvent, PlanGroupsRequest, PlanMovingEvent, PlanMovingRequest, PlanReply,
    PlanRequest, SimulatePlanReply, SimulatePlanRequest, WhatIfEvent, WhatIfRequest,
};
use canopy_topology::TopologyLimits;
use canopy_wire::Priority;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};

use self::lasting::Lasting;
use crate::call;
use crate::clock;
use crate::drain::DrainHandle;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::answers::{Answers, Found};
use crate::jobs::job::{Goal, Terms};
use crate::jobs::stand_in::StandIn;
use crate::jobs::workers::Jobs;
use crate::replan::Replanner;
use crate::rpc::layers::guard::Admitted;
use crate::rpc::shared::cached;
use crate::rpc::shared::cached::ChosenFile;
use crate::rpc::shared::call_pool::{self, CallPool};
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::decode::{Decoded, Method, decode};
use crate::rpc::shared::deliver::{Answer, Call, CallTerms, INLINE_BYTES_MAX, STALL_MAX, Sink, pieces};
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::known_faults;
use crate::rpc::shared::known_faults::AppliedFaults;
use crate::rpc::shared::parts::{self, Parts};
use crate::rpc::shared::rank_map;
use crate::rpc::shared::request_log::RequestLog;
use crate::rpc::shared::sources::StoredNetworks;
use crate::rpc::shared::sources::{Presence, resolve_id, resolve_parts};
use crate::rpc::shared::status::{call_status, to_status};
use crate::store::StoreError;
use crate::store::receipts::{Claim, Open, Repeatable};
use crate::tasks;
use crate::tenant::{IsolatedTenant, Viewer};

/// Events a stream holds before the one who fills it waits for its reader.
pub(in crate::rpc) const STREAM_BUFFER: usize = 2;

/// The service.
#[derive(Clone)]
pub(crate) struct PlannerService {
    jobs: Arc<Jobs>,
    pool: CallPool,
    /// Jobs whose groups are planned again when faults come.
    following: Lasting,
    /// Streams of traffic that changes.
    moving: Lasting,
    simulations: simulate::Simulations,
    networks: StoredNetworks,
    answers: Answers,
    deadlines: DeadlinePolicy,
    /// What a topology may be like.
    limits: TopologyLimits,
    /// Tenants whose plans nobody else gets.
    isolated: Arc<[IsolatedTenant]>,
    /// Shortest time between two reports of progress of one stream.
    progress_interval: Duration,
    /// Whose book of faults requests may ask for.
    replanner: Option<Replanner>,
}

impl PlannerService {
    pub(crate) fn new(
        jobs: Arc<Jobs>,
        pool: CallPool,
        networks: StoredNetworks,
        answers: Answers,
        deadlines: DeadlinePolicy,
    ) -> Self {
        let simulations = simulate::Simulations::new(&pool);
        Self {
            jobs,
            pool,
            following: Lasting::new(),
            moving: Lasting::new(),
            simulations,
            networks,
            answers,
            deadlines,
            limits: TopologyLimits::STANDARD,
            isolated: Arc::from([]),
            progress_interval: Duration::from_millis(100),
            replanner: None,
        }
    }

    /// The same for requests that ask for the faults that were reported.
    pub(crate) fn reporting(self, replanner: Replanner) -> Self {
        Self { replanner: Some(replanner), ..self }
    }

    /// The same with streams that end when this drain begins.
    pub(crate) fn draining(self, drain: DrainHandle) -> Self {
        Self { following: self.following.draining(drain.clone()), moving: self.moving.draining(drain), ..self }
    }

    /// The same for topologies within these limits.
    pub(crate) fn reading(self, limits: TopologyLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same with tenants whose plans nobody else gets.
    pub(crate) fn isolating(self, tenants: &[IsolatedTenant]) -> Self {
        Self { isolated: tenants.into(), ..self }
    }

    /// Puts the text of a stored topology in place of its id, and the faults that are known of it beside it, so that from here on a request
    /// says all it means, whatever becomes of the topology and the faults. Where no fault is known and no id is named, it is left as it is.
    async fn resolve(&self, mut request: Request<PlanRequest>, method: Method) -> Result<Request<PlanRequest>, Status> {
        self.networks.complete(&mut request.get_mut().topology);
        if let Some(matter) = known_faults::matter(request.get_ref(), method == Method::LookupPlan) {
            self.pool.learn(matter).await;
        }
        let at_once = match &self.replanner {
            Some(replanner) => known_faults::apply_at_once(replanner, request.get_mut()),
            None => (!known_faults::is_stored(request.get_ref())).then_some(None),
        };
        if let Some(applied) = at_once {
            if let Some(applied) = applied {
                request.extensions_mut().insert(applied);
            }
            return Ok(request);
        }
        let arrived = clock::now();
        let (headers, mut extensions, mut request) = request.into_parts();
        let (networks, replanner, limits) = (self.networks.clone(), self.replanner.clone(), self.limits);
        let caller = Presence::default();
        let gone = caller.ended();
        let resolved = self.pool.work(&headers, move |_| {
            request.topology = resolve_parts(&networks, request.topology.take(), &limits, &gone)?;
            let applied = known_faults::apply(replanner.as_ref(), &mut request, &limits)?;
            request.topology = resolve_id(&networks, request.topology.take())?;
            Ok((request, applied))
        });
        let (request, applied) = resolved.await.map_err(|failure| {
            call_pool::log(method.name(), arrived, Some(&failure));
            call_status(&failure)
        })?;
        if let Some(applied) = applied {
            extensions.insert(applied);
        }
        Ok(Request::from_parts(headers, extensions, request))
    }

    /// A refusal, but for one by what only the database can say while that cannot be asked.
    fn certain(&self, status: Status) -> Status {
        match self.replanner.as_ref().and_then(Replanner::unlearned) {
            Some(reason) if status.code() == Code::NotFound => call_status(&StoreError::Away { reason }.into()),
            _ => status,
        }
    }

    /// Looks for the answer that a prefetch of this id got before. None: it is to be done, and its answer kept.
    async fn repeated(&self, request: &Request<PlanRequest>) -> Result<Result<Operation, Option<Open>>, Status> {
        let wanted = Viewer::of(request.metadata()).map_err(CallFailure::from).and_then(|viewer| {
            let (method, request) = (viewer.method(Method::Prefetch.name()), request.get_ref());
            Ok(Repeatable::new(&method, &request.request_id, request)?)
        });
        let receipts = self.pool.receipts().clone();
        let arrived = clock::now();
        let claimed = self.pool.work(request.metadata(), move |_| match wanted? {
            None => Ok(Err(None)),
            Some(wanted) => match receipts.claim(&wanted)? {
                Claim::Answered(answer) => call_pool::read_answer(&answer).map(Ok),
                Claim::Open(open) => Ok(Err(Some(open))),
            },
        });
        claimed.await.map_err(|failure| {
            call_pool::log(Method::Prefetch.name(), arrived, Some(&failure));
            call_status(&failure)
        })
    }

    /// Decodes a request.
    fn read(&self, request: Request<PlanRequest>, method: Method) -> Result<(CallTerms, Order, Terms), Status> {
        let arrived = clock::now();
        let deadline = self.deadlines.apply(request.metadata());
        let mut log = RequestLog::new(method.name(), arrived);
        let applied = request.extensions().get::<AppliedFaults>().cloned();
        let is_guarded = request.extensions().get::<Admitted>().is_some();
        let decoded = Viewer::of(request.metadata()).and_then(|viewer| {
            let Decoded { mut order, quality, terms } = decode(request.into_inner(), method)?;
            order.tenant = viewer.owner(&self.isolated);
            let is_repair = terms.priority == Priority::Repair && method.goal() == Goal::Plan;
            if is_repair && is_guarded && !self.holds_leases(&viewer) {
                return Err(PlanFailure::RepairWithoutLease);
            }
            Ok(Decoded { order, quality, terms })
        });
        match decoded {
            Ok(Decoded { order, quality, terms }) => {
                let key = RequestKey::of(&order);
                log.describe(&key, &order);
                Ok((CallTerms { arrived, deadline, key, quality, applied, log }, order, terms))
            }
            Err(error) => {
                let status = to_status(&error);
                log.failed(&status);
                Err(status)
            }
        }
    }

    /// Whether a tenant has leases, whose plans may have to be repaired.
    fn holds_leases(&self, viewer: &Viewer) -> bool {
        self.replanner.as_ref().is_some_and(|replanner| replanner.leases().owned_by(viewer.name()) > 0)
    }

    /// Puts a request in line.
    fn submit(&self, mut call: CallTerms, order: Order, terms: Terms, goal: Goal) -> Result<Call, Status> {
        let wanted = (call.quality.on_miss, terms.priority, call.deadline.work);
        let stand_in = StandIn::submit(&self.jobs.queue, &order, wanted);
        match self.jobs.queue.submit(call.key, order, goal, terms) {
            Ok(subscription) => {
                // The queue counts what it holds, and holds equal requests once.
                call::hands_on();
                Ok(Call { terms: call, answers: self.answers.clone(), subscription, stand_in })
            }
            Err(failure) => {
                let status = to_status(&failure);
                call.log.failed(&status);
                Err(status)
            }
        }
    }

    /// Decodes a request and puts it in line.
    fn admit(&self, request: Request<PlanRequest>, method: Method) -> Result<Call, Status> {
        let (call, order, terms) = self.read(request, method)?;
        self.submit(call, order, terms, method.goal())
    }

    /// Has the job of a call written down before its caller is told that it goes on alone.
    async fn write_down(&self, headers: &MetadataMap, call: &Call) -> Result<(), Status> {
        if self.jobs.table.is_none() && self.answers.find(&call.terms.key).is_some() {
            // It ends at once, with a plan that is stored. Other servers would not know of it.
            return Ok(());
        }
        let (queue, job) = (self.jobs.queue.clone(), Arc::clone(call.subscription.job()));
        let written = self.pool.work(headers, move |_| Ok(queue.write_down(&job)?));
        written.await.map_err(|failure| call_status(&failure))
    }

    /// Admits a prefetch and leaves its job alone.
    async fn leave(&self, request: Request<PlanRequest>) -> Result<Operation, Status> {
        let headers = request.metadata().clone();
        let call = self.admit(request, Method::Prefetch)?;
        self.write_down(&headers, &call).await?;
        let operation = call.leave();
        call::concerns(&operation.name);
        Ok(operation)
    }

    /// Answers a request at once if its plan is known, else when its job has ended.
    async fn answer(&self, request: Request<PlanRequest>, method: Method) -> Result<Answer, Status> {
        let (call, order, terms) = self.read(request, method)?;
        let Some(Found { delivery, write_back }) = self.answers.find(&call.key) else {
            return self.submit(call, order, terms, method.goal())?.reply().await;
        };
        if write_back {
            self.pool.write_back().await;
        }
        call.reply_at_once(delivery)
    }
}

#[tonic::async_trait]
impl Planner for PlannerService {
    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        let request = self.resolve(request, Method::Plan).await?;
        let answer = self.answer(request, Method::Plan).await?;
        Ok(one(PlanReply::default(), answer.parts(INLINE_BYTES_MAX)))
    }

    type PlanStreamStream = EventStream<PlanEvent>;

    async fn plan_stream(&self, request: Request<PlanRequest>) -> Result<Response<Self::PlanStreamStream>, Status> {
        let request = self.resolve(request, Method::PlanStream).await?;
        let (headers, detached) = (request.metadata().clone(), request.get_ref().detached);
        let call = self.admit(request, Method::PlanStream)?;
        if detached {
            self.write_down(&headers, &call).await?;
        }
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("plan-stream", call.stream(Sink::new(sender), self.progress_interval));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }

    async fn lookup_plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        let request = self.resolve(request, Method::LookupPlan).await?;
        let answer = self.answer(request, Method::LookupPlan).await.map_err(|status| self.certain(status))?;
        Ok(one(PlanReply::default(), answer.parts(0)))
    }

    async fn prefetch(&self, request: Request<PlanRequest>) -> Result<Response<Operation>, Status> {
        call::has_request_id(&request.get_ref().request_id);
        if request.get_ref().request_id.is_empty() {
            let request = self.resolve(request, Method::Prefetch).await?;
            return self.leave(request).await.map(Response::new);
        }
        let open = match self.repeated(&request).await? {
            Ok(operation) => return Ok(Response::new(operation)),
            Err(open) => open,
        };
        let headers = request.metadata().clone();
        let request = self.resolve(request, Method::Prefetch).await?;
        let operation = self.leave(request).await?;
        let answer = operation.encode_to_vec();
        let kept = self.pool.work(&headers, move |_| {
            if let Some(open) = open {
                open.keep(answer);
            }
            Ok(())
        });
        // The job is there whether its receipt is or not; a repeat joins it, or finds its plan.
        let _kept = kept.await;
        Ok(Response::new(operation))
    }

    async fn get_plan(&self, request: Request<GetPlanRequest>) -> Result<Response<Plan>, Status> {
        let (headers, _, GetPlanRequest { name, placement }) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let found = self.pool.run("GetPlan", &headers, move |records| {
            let plan = call_pool::plan_of(records, &viewer?, &name, false)?;
            rank_map::require(&plan.plan, placement)?;
            let successor = Plan { superseded_by: call_pool::successor(records, &plan)?, ..Plan::default() };
            Ok(Parts::plan(plan.header_sent(), &successor))
        });
        found.await.map(|found| one(Plan::default(), found))
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
    ) -> Result<Response<SimulatePlanReply>, Status> {
        self.simulations.simulate_plan(request, self.limits).await.map(Response::new)
    }

    async fn plan_bundle(&self, request: Request<PlanBundleRequest>) -> Result<Response<PlanBundleReply>, Status> {
        bundle::plan_bundle(self, request).await.map(Response::new)
    }

    async fn bound(&self, request: Request<PlanRequest>) -> Result<Response<BoundReply>, Status> {
        bound::bound(self, request).await.map(Response::new)
    }

    async fn paths(&self, request: Request<PathsRequest>) -> Result<Response<PathsReply>, Status> {
        paths::paths(self, request).await.map(Response::new)
    }

    async fn order_machines(
        &self,
        request: Request<OrderMachinesRequest>,
    ) -> Result<Response<OrderMachinesReply>, Status> {
        order::order_machines(self, request).await.map(Response::new)
    }

    type WhatIfStream = EventStream<WhatIfEvent>;

    async fn what_if(&self, request: Request<WhatIfRequest>) -> Result<Response<Self::WhatIfStream>, Status> {
        what_if::what_if(self, request).await.map(Response::new)
    }

    type PlanGroupsStream = EventStream<PlanGroupsEvent>;

    async fn plan_groups(
        &self,
        request: Request<PlanGroupsRequest>,
    ) -> Result<Response<Self::PlanGroupsStream>, Status> {
        groups::plan_groups(self, request).map(Response::new)
    }

    type FollowGroupsStream = EventStream<PlanGroupsEvent>;

    async fn follow_groups(
        &self,
        request: Request<PlanGroupsRequest>,
    ) -> Result<Response<Self::FollowGroupsStream>, Status> {
        groups::follow_groups(self, request).map(Response::new)
    }

    type PlanMovingStream = EventStream<PlanMovingEvent>;

    async fn plan_moving(
        &self,
        request: Request<Streaming<PlanMovingRequest>>,
    ) -> Result<Response<Self::PlanMovingStream>, Status> {
        let events = moving::plan_moving(self, request)?;
        Ok(parts::respond(EventStream::empty(), events))
    }

    type FetchArtifactStream = EventStream<FetchArtifactEvent>;

    async fn fetch_artifact(
        &self,
        request: Request<FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        let (headers, _, request) = request.into_parts();
        let viewer = Viewer::of(&headers);
        let chosen = self.pool.run("FetchArtifact", &headers, move |records| {
            // A transfer that goes on is not another use.
            let plan = call_pool::plan_of(records, &viewer?, &request.plan, request.offset == 0)?;
            rank_map::require(&plan.plan, request.placement.clone())?;
            Ok((cached::choose(&plan, &request)?, call_pool::successor(records, &plan)?))
        });
        let (chosen, superseded_by) = chosen.await?;
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let task = tasks::spawn("fetch-artifact", send_file(chosen, superseded_by, sender));
        Ok(parts::respond(EventStream::empty(), EventStream::new(receiver, task)))
    }
}

/// Sends a file: what it is, then its pieces, which share its memory. A reader that takes nothing for a long time is given up.
async fn send_file(file: ChosenFile, superseded_by: String, sender: mpsc::Sender<Result<Parts, Status>>) {
    let ChosenFile { position, artifact, offset } = file;
    let content = artifact.content.clone().unwrap_or_default();
    let header = Event::Artifact(Artifact { content: None, ..artifact });
    let header = Parts::of(&FetchArtifactEvent { event: Some(header), superseded_by });
    for event in std::iter::once(header).chain(pieces(position, content, offset).map(Parts::fetched_piece)) {
        if !matches!(time::timeout(STALL_MAX, sender.send(Ok(event))).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// A response that is one message, in parts.
fn one<T>(shell: T, message: Parts) -> Response<T> {
    parts::respond(shell, tokio_stream::once(Ok(message)))
}
