//! `canopy.v1.Leases`: which job uses which plans.

mod around;
mod describe;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use canopy_access::Quota;
use canopy_planner::{PlanKey, Request as Order};
use canopy_proto::v1;
use canopy_proto::v1::leases_server::Leases;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, GetLeaseRequest, Lease as WireLease, ListLeasesRequest, ListLeasesResponse, PlanSpec,
    ReleaseLeaseRequest, ReleaseLeaseResponse, RenewLeaseRequest, ReplanEvent, TopologySource, WatchLeasesRequest,
};
use canopy_synth::Never;
use canopy_topology::{TopologyLimits, is_invisible};
use canopy_wire::Priority;
use prost::Message as _;
use tokio::runtime::Handle;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use self::watch::Watches;
use crate::call;
use crate::drain::DrainHandle;
use crate::failure::shown;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::planner::Planner;
use crate::jobs::queue::Queue;
use crate::replan::{
    Audience, Base, Item, Lease, LeaseState, LeaseTerms, Network, Placed, Replanner, ValidPlan, number_of,
};
use crate::rpc::EventStream;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::decode::{Decoded, Method, decode};
use crate::rpc::shared::fields::{Field, Kind, unix_ms};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::sources::StoredNetworks;
use crate::rpc::shared::sources::{read_base, resolve_id, resolve_parts};
use crate::store::Records;
use crate::store::receipts::Open;
use crate::store::topologies::id_of;
use crate::tenant::{IsolatedTenant, Viewer};

/// Most plans of one lease.
const SPECS_MAX: usize = 64;
/// Longest name of a job in bytes.
const JOB_BYTES_MAX: usize = 128;
/// How long a lease may last without being renewed, and how long it does where nothing is said.
const TTL_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(7 * 24 * 3600));
const TTL_DEFAULT: Duration = Duration::from_secs(3600);
/// Longest expression that is kept with a lease; longer texts are topologies of their own.
const EXPRESSION_BYTES_MAX: usize = 4096;

const PRIORITIES: &[&str] = &["prefetch", "interactive", "job-start", "repair"];

/// What leases are listed by.
const FIELDS: &[Field<WireLease>] = &[
    Field { name: "name", kind: Kind::Text(|lease| lease.name.clone()) },
    Field { name: "job", kind: Kind::Text(|lease| lease.job.clone()) },
    Field { name: "topology", kind: Kind::Text(|lease| lease.topology.clone()) },
    Field { name: "priority", kind: Kind::Word(PRIORITIES, priority_name) },
    Field { name: "replanned", kind: Kind::Flag(|lease| lease.plans.iter().any(|plan| plan.current != plan.original)) },
    Field { name: "created", kind: Kind::Time(|lease| lease.create_time.and_then(unix_ms).unwrap_or(0)) },
    Field { name: "expires", kind: Kind::Time(|lease| lease.expire_time.and_then(unix_ms).unwrap_or(0)) },
];

/// The service.
#[derive(Clone)]
pub(crate) struct LeasesService {
    pool: CallPool,
    replanner: Replanner,
    queue: Queue,
    planner: Arc<dyn Planner>,
    networks: StoredNetworks,
    isolated: Arc<[IsolatedTenant]>,
    limits: TopologyLimits,
    watches: Watches,
}

impl LeasesService {
    pub(crate) fn new(
        pool: CallPool,
        replanner: Replanner,
        drain: DrainHandle,
        (queue, planner, networks): (Queue, Arc<dyn Planner>, StoredNetworks),
        isolated: &[IsolatedTenant],
        limits: TopologyLimits,
    ) -> Self {
        let watches = Watches::new(pool.clone(), replanner.clone(), drain);
        Self { pool, replanner, queue, planner, networks, isolated: isolated.into(), limits, watches }
    }

    /// The lease that this very request has acquired already, its answer having been lost; else a new one. Runs where it may block.
    fn acquire_once(
        &self,
        headers: &MetadataMap,
        runtime: &Handle,
        request: AcquireLeaseRequest,
        open: Option<&Open>,
    ) -> Result<WireLease, CallFailure> {
        let Some(open) = open else { return self.acquire(headers, runtime, request, LeaseTerms::default()) };
        let (key, digest) = open.marks();
        match self.replanner.leases().of_request(key) {
            Some(lease) if lease.terms.request_digest == digest => Ok(self.describe(&lease)),
            Some(_) => Err(open.reused().into()),
            None => {
                let (request_key, request_digest) = (key.as_bytes().to_vec(), digest.to_vec());
                self.acquire(
                    headers,
                    runtime,
                    request,
                    LeaseTerms { request_key, request_digest, ..LeaseTerms::default() },
                )
            }
        }
    }

    /// Looks the plans of a lease up, and keeps it with what the terms says already.
    fn acquire(
        &self,
        headers: &MetadataMap,
        runtime: &Handle,
        request: AcquireLeaseRequest,
        marked: LeaseTerms,
    ) -> Result<WireLease, CallFailure> {
        let viewer = Viewer::of(headers)?;
        let bill = call::bill();
        let may = |held| bill.as_ref().map_or(Ok(()), |bill| bill.admits(Quota::Leases, held));
        // PlanQuery again as the lease is kept: this spares the work of one that is over the quota.
        may(self.replanner.leases().owned_by(viewer.name())).map_err(PlanFailure::from)?;
        let (ttl_ms, priority) = checked(&request)?;
        let AcquireLeaseRequest { job, specs, .. } = request;
        let mut network: Option<(PlanKey, Arc<Base>)> = None;
        let (mut items, mut valid) = (Vec::with_capacity(specs.len()), Vec::with_capacity(specs.len()));
        let mut tenant = String::new();
        for (position, mut spec) in specs.into_iter().enumerate() {
            call::has_fields_in(format!("specs[{position}]"));
            spec.topology = resolve_parts(&self.networks, spec.topology.take(), &self.limits, &|| false)?;
            let (key, base) = read_base(self.replanner.bases(), spec.topology.clone(), &self.limits)?;
            if network.get_or_insert_with(|| (key, Arc::clone(&base))).0 != key {
                let field = format!("specs[{position}].topology");
                return Err(bad(&field, "a lease covers one topology; acquire one lease per topology".to_owned()));
            }
            spec.topology = Some(kept_source(spec.topology.take(), &key));
            if spec.fault_policy == i32::from(v1::FaultPolicy::Ignore) {
                let field = format!("specs[{position}].fault_policy");
                let problem = "leases are planned around faults; leave out `fault_policy`, or acquire no lease";
                return Err(bad(&field, problem.to_owned()));
            }
            let source = resolve_id(&self.networks, spec.topology.clone())?;
            let asked = PlanQuery::from(PlanSpec { topology: source, ..spec.clone() });
            let Decoded { mut order, .. } = decode(asked, Method::Plan).map_err(PlanFailure::Request)?;
            order.tenant = viewer.owner(&self.isolated);
            tenant = order.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()).unwrap_or_default();
            let network =
                Network::new(key, base, canopy_wire::placed(&spec).map(Placed::new).as_ref(), Audience::of_call());
            let (item, first) = self.item(runtime, spec, &order, &network)?;
            items.push(item);
            valid.push(first);
        }
        let Some((key, _)) = network else { return Err(bad("specs", "send at least one".to_owned())) };
        let state = LeaseState {
            expire_ms: self.replanner.leases().now_ms().saturating_add(ttl_ms),
            ttl_ms,
            items: valid,
            is_ending: false,
        };
        let owner = Some(viewer.name().to_owned());
        let terms = LeaseTerms {
            job,
            tenant,
            owner,
            priority: priority.into(),
            base: key.as_bytes().to_vec(),
            items,
            ..marked
        };
        let lease = self.replanner.leases().acquire(terms, state, may)?;
        self.replanner.stir(key);
        Ok(self.describe(&lease))
    }

    /// A plan that is held, and the one that is valid first: it must be there, but where known faults are on its way.
    fn item(
        &self,
        runtime: &Handle,
        spec: PlanSpec,
        order: &Order,
        network: &Network,
    ) -> Result<(Item, ValidPlan), CallFailure> {
        let prepared = self.planner.prepare(order, &Never)?;
        let count = network.count(self.replanner.fault_logs());
        let found = match self.cached(runtime, order) {
            Ok(found) => Some(found),
            Err(failure) if !count.losses.is_empty() && matches!(*failure, PlanFailure::NotCached) => None,
            // Somebody else may have asked the same.
            Err(failure) => {
                return Err(CallFailure::Plan(Arc::try_unwrap(failure).unwrap_or(PlanFailure::NotCached)));
            }
        };
        let links = self.links(&network.base, (&prepared.topology, order), found.as_ref()).into_bytes();
        let ranks = prepared.topology.rank_count();
        let valid = match network.touches(&count, &links) {
            true => self.around(runtime, order, (&count, ranks))?,
            false if found.is_some() => ValidPlan { plan: prepared.key.plan_id(), ..ValidPlan::default() },
            false => return Err(CallFailure::Plan(PlanFailure::NotCached)),
        };
        let original = prepared.key.as_bytes().to_vec().into();
        Ok((Item { request: spec.encode_to_vec().into(), original, links, ranks }, valid))
    }

    fn describe(&self, lease: &Lease) -> WireLease {
        let number = lease.terms.number;
        describe::lease(lease, |item| self.replanner.is_replanning(number, item))
    }

    /// The lease of this name, unless it is another tenant's.
    fn find(&self, viewer: &Viewer, name: &str) -> Result<Lease, CallFailure> {
        let found = number_of(name).and_then(|number| self.replanner.leases().get(number));
        let found = found.filter(|lease| viewer.sees(&lease.terms.tenant));
        found.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> CallFailure {
        CallFailure::no_lease(name, self.pool.is_shared())
    }

    /// The same for a caller that would change it.
    fn find_own(&self, viewer: &Viewer, name: &str) -> Result<Lease, CallFailure> {
        let lease = self.find(viewer, name)?;
        match &lease.terms.owner {
            Some(owner) if !viewer.owns(Some(owner)) => {
                Err(CallFailure::NotOwner { what: format!("lease `{}`", shown(name)), owner: owner.clone() })
            }
            _ => Ok(lease),
        }
    }

    fn renew(&self, headers: &MetadataMap, request: &RenewLeaseRequest) -> Result<WireLease, CallFailure> {
        let lease = self.find_own(&Viewer::of(headers)?, &request.name)?;
        let ttl_ms = ttl_of(request.ttl)?.map(millis);
        let renewed = self.replanner.leases().renew(lease.terms.number, ttl_ms)?;
        let lease = renewed.ok_or_else(|| self.unknown(&request.name))?;
        Ok(self.describe(&lease))
    }

    fn release(
        &self,
        headers: &MetadataMap,
        request: &ReleaseLeaseRequest,
        open: Option<&Open>,
    ) -> Result<ReleaseLeaseResponse, CallFailure> {
        let viewer = Viewer::of(headers)?;
        let leases = self.replanner.leases();
        let released = match (request.name.as_str(), request.job.as_str()) {
            ("", "") => return Err(bad("name", "name a lease, or a job to release all of its leases".to_owned())),
            (name, "") => match self.find_own(&viewer, name) {
                Ok(lease) => leases.release(&[lease.terms.number])?,
                // Released twice, or expired.
                Err(CallFailure::LeaseUnknown { .. }) if number_of(name).is_some() => 0,
                Err(failure) => return Err(failure),
            },
            ("", job) => {
                // Done again after a crash, it must not end what the job has acquired since.
                let last = open.map(|open| open.begin(leases.last_number())).transpose()?.flatten();
                leases.release_of_all(|all| own_of_job(all, &viewer, job, last.unwrap_or(u64::MAX)))?
            }
            _ => return Err(bad("job", "set `name` or `job`, not both".to_owned())),
        };
        Ok(ReleaseLeaseResponse { released: u32::try_from(released).unwrap_or(u32::MAX) })
    }

    fn list(&self, headers: &MetadataMap, request: &ListLeasesRequest) -> Result<ListLeasesResponse, CallFailure> {
        let viewer = Viewer::of(headers)?;
        let ListLeasesRequest { page_size, page_token, filter, order_by } = request;
        // Before the leases are read: what happens meanwhile is watched from there.
        let events = self.replanner.events();
        let resume_token = events.token(events.position("")?);
        let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
        for lease in self.replanner.leases().select(|lease| viewer.sees(&lease.terms.tenant)) {
            // Newest first.
            listing.show(self.describe(&lease), (u64::MAX - lease.terms.number).to_be_bytes().to_vec());
        }
        let page = listing.finish();
        Ok(ListLeasesResponse {
            leases: page.items,
            next_page_token: page.next_page_token,
            total_size: page.total,
            resume_token,
        })
    }
}

#[tonic::async_trait]
impl Leases for LeasesService {
    async fn acquire_lease(&self, request: Request<AcquireLeaseRequest>) -> Result<Response<WireLease>, Status> {
        let (headers, _, request) = request.into_parts();
        let (service, of, wanted, runtime) = (self.clone(), headers.clone(), request.clone(), Handle::current());
        let acquire = move |_: &Records, open: Option<&Open>| service.acquire_once(&of, &runtime, wanted, open);
        call::concerns(&request.job);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once_marked("AcquireLease", call, acquire, || {}).await.map(Response::new)
    }

    async fn renew_lease(&self, request: Request<RenewLeaseRequest>) -> Result<Response<WireLease>, Status> {
        let (headers, _, request) = request.into_parts();
        let (service, of, wanted) = (self.clone(), headers.clone(), request.clone());
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("RenewLease", call, move |_| service.renew(&of, &wanted), || {}).await.map(Response::new)
    }

    async fn release_lease(
        &self,
        request: Request<ReleaseLeaseRequest>,
    ) -> Result<Response<ReleaseLeaseResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (service, of, wanted) = (self.clone(), headers.clone(), request.clone());
        let release = move |_: &Records, open: Option<&Open>| service.release(&of, &wanted, open);
        call::concerns(if request.name.is_empty() { &request.job } else { &request.name });
        let call = (&headers, &*request.request_id, &request);
        self.pool.once_marked("ReleaseLease", call, release, || {}).await.map(Response::new)
    }

    async fn get_lease(&self, request: Request<GetLeaseRequest>) -> Result<Response<WireLease>, Status> {
        let (headers, _, GetLeaseRequest { name }) = request.into_parts();
        let (service, of) = (self.clone(), headers.clone());
        let got = self.pool.run("GetLease", &headers, move |_| {
            service.find(&Viewer::of(&of)?, &name).map(|lease| service.describe(&lease))
        });
        got.await.map(Response::new)
    }

    async fn list_leases(&self, request: Request<ListLeasesRequest>) -> Result<Response<ListLeasesResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (service, of) = (self.clone(), headers.clone());
        self.pool.run("ListLeases", &headers, move |_| service.list(&of, &request)).await.map(Response::new)
    }

    type WatchLeasesStream = EventStream<ReplanEvent>;

    async fn watch_leases(
        &self,
        request: Request<WatchLeasesRequest>,
    ) -> Result<Response<Self::WatchLeasesStream>, Status> {
        self.watches.watch(request).await.map(Response::new)
    }
}

/// The leases of a job up to this number that a caller may end; a refusal where there are only others' leases of it.
fn own_of_job(
    all: &mut dyn Iterator<Item = &Lease>,
    viewer: &Viewer,
    job: &str,
    last: u64,
) -> Result<Vec<u64>, CallFailure> {
    let (mut own, mut another) = (Vec::new(), None);
    for lease in all {
        let LeaseTerms { number, job: of, tenant, owner, .. } = &*lease.terms;
        if *number > last || of != job || !viewer.sees(tenant) {
            continue;
        }
        if viewer.owns(owner.as_deref()) {
            own.push(*number);
        } else {
            another = another.or(owner.clone());
        }
    }
    match another {
        Some(owner) if own.is_empty() => Err(CallFailure::NotOwner { what: format!("job `{}`", shown(job)), owner }),
        _ => Ok(own),
    }
}

/// How long a lease that is asked for lasts, and how urgent it is.
fn checked(request: &AcquireLeaseRequest) -> Result<(u64, v1::Priority), CallFailure> {
    let AcquireLeaseRequest { job, specs, ttl, priority, .. } = request;
    let is_plain = (1..=JOB_BYTES_MAX).contains(&job.len()) && !job.contains(is_invisible);
    if !is_plain {
        return Err(bad("job", format!("use 1 to {JOB_BYTES_MAX} bytes without characters that are not shown")));
    }
    if specs.is_empty() || specs.len() > SPECS_MAX {
        return Err(bad("specs", format!("found {} specs; send 1 to {SPECS_MAX}", specs.len())));
    }
    let ttl_ms = millis(ttl_of(*ttl)?.unwrap_or(TTL_DEFAULT));
    match v1::Priority::try_from(*priority) {
        Ok(v1::Priority::Unspecified) => Ok((ttl_ms, v1::Priority::JobStart)),
        Ok(priority) => Ok((ttl_ms, priority)),
        Err(_) => Err(bad("priority", "use PRIORITY_PREFETCH to PRIORITY_REPAIR".to_owned())),
    }
}

/// How the topology of a request is kept: a short expression as it is, as some algorithms plan by it; all else by its id.
fn kept_source(source: Option<TopologySource>, key: &PlanKey) -> TopologySource {
    match source {
        Some(TopologySource { source: Some(Source::Expression(text)) }) if text.len() <= EXPRESSION_BYTES_MAX => {
            TopologySource { source: Some(Source::Expression(text)) }
        }
        _ => TopologySource { source: Some(Source::Name(id_of(key))) },
    }
}

/// How long a lease lasts, if that is said.
fn ttl_of(stated: Option<prost_types::Duration>) -> Result<Option<Duration>, CallFailure> {
    let Some(stated) = stated else { return Ok(None) };
    let (least, most) = TTL_RANGE;
    let ttl = Duration::try_from(stated).ok().filter(|ttl| (least..=most).contains(ttl));
    ttl.map(Some).ok_or_else(|| bad("ttl", format!("use {least:?} to {most:?}")))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn bad(field: &str, problem: String) -> CallFailure {
    CallFailure::Lease { field: field.to_owned(), problem }
}

fn priority_name(lease: &WireLease) -> &'static str {
    let stated = lease.priority();
    let known = Priority::ALL.into_iter().find(|priority| priority.on_the_wire() == stated);
    known.unwrap_or(Priority::JobStart).name()
}
