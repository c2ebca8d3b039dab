//! `canopy.v1.Server`: the server as a whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use canopy_database::{ServerNow, Who};
use canopy_plan::Format;
use canopy_planner::TenantName;
use canopy_proto::v1::server_server::Server;
use canopy_proto::v1::{
    ArchiveEvent, BackUpRequest, CheckStoreEntry, CheckStoreRequest, DrainRequest, DrainResponse,
    ForgetRefusalsRequest, ForgetRefusalsResponse, FormatSupport, GetConfigRequest, GetConfigResponse,
    GetMetricsRequest, GetMetricsResponse, GetQueueRequest, GetQuotaRequest, GetStatusRequest, PriorityStatus,
    QueueStatus, QuotaStatus, QuotaUse, ReloadConfigRequest, ReloadConfigResponse, ReloadedConfig, ServerCounts,
    ServerLimits, ServerStatus, SetLogFilterRequest, SetLogFilterResponse, SharingServer,
};
use canopy_wire::format_on_the_wire;
use tonic::{Request, Response, Status};

use crate::call;
use crate::clock;
use crate::credentials::Reloaded;
use crate::drain::DrainHandle;
use crate::failure::CallFailure;
use crate::jobs::job::Job;
use crate::jobs::workers::Jobs;
use crate::net::peer::{Host, Peer};
use crate::ops::config::Options;
use crate::ops::reload::{Configured, Reloads};
use crate::ops::statistics::Statistics;
use crate::ops::telemetry::TelemetryError;
use crate::quota::Use;
use crate::replan::Leases;
use crate::rpc::EventStream;
use crate::rpc::services::archives::Archives;
use crate::rpc::shared::call_pool::{CallPool, Repeated, log};
use crate::rpc::shared::describe;
use crate::rpc::shared::status::{call_status, to_status};
use crate::rpc::shared::store_check::AllSpaces;
use crate::store::Records;
use crate::store::topologies::TopologyStore;
use crate::tenant::{Admitted, Viewer};

/// The service.
#[derive(Clone)]
pub(crate) struct ServerService {
    jobs: Arc<Jobs>,
    pool: CallPool,
    topologies: TopologyStore,
    leases: Leases,
    drain: DrainHandle,
    reloads: Reloads,
    archives: Archives,
    spaces: AllSpaces,
    limits: ServerLimits,
    archive_key: String,
    started: Instant,
    loopback_drain: bool,
}

impl ServerService {
    pub(crate) fn new(
        jobs: Arc<Jobs>,
        pool: CallPool,
        (topologies, leases): (TopologyStore, Leases),
        (drain, reloads): (DrainHandle, Reloads),
        (archives, spaces): (Archives, AllSpaces),
        (options, archive_key): (&Options, String),
    ) -> Self {
        let limits = ServerLimits {
            nodes_max: options.limits.nodes_max as u64,
            links_max: options.limits.links_max as u64,
            topology_bytes_max: options.limits.bytes_max as u64,
            queue_length_max: options.queue_length_max.get() as u64,
            queue_bytes_max: options.queue_bytes_max as u64,
            workers: u32::try_from(options.worker_count.get()).unwrap_or(u32::MAX),
            default_deadline: on_the_wire(options.default_deadline),
            max_deadline: on_the_wire(options.max_deadline),
        };
        let loopback_drain = options.loopback_drain;
        let started = clock::now();
        Self {
            jobs,
            pool,
            topologies,
            leases,
            drain,
            reloads,
            archives,
            spaces,
            limits,
            archive_key,
            started,
            loopback_drain,
        }
    }

    /// Whether whoever calls from there may end the server. Without identities, only the file system tells operators
    /// from others: the Unix socket is its owner's alone.
    fn may_drain(&self, host: Host) -> bool {
        host == Host::Local || (self.loopback_drain && host.is_here())
    }
}

#[tonic::async_trait]
impl Server for ServerService {
    async fn get_status(&self, request: Request<GetStatusRequest>) -> Result<Response<ServerStatus>, Status> {
        let (headers, ..) = request.into_parts();
        let (topologies, planner) = (self.topologies.clone(), Arc::clone(&self.jobs.planner));
        let table = self.jobs.table.clone();
        let usage = self.pool.run("GetStatus", &headers, move |records| {
            let servers = table.map_or_else(|| Ok(Vec::new()), |table| table.servers())?;
            Ok((records.usage()?, records.corruption_count(), topologies.usage()?, planner.kept()?, servers))
        });
        let (usage, corruptions, kept, (schedules, schedule_bytes), servers) = usage.await?;
        let (topologies, topology_bytes) = (kept.count, kept.bytes);
        let (queue, refusals) = (self.jobs.queue.counts(), self.jobs.refusals.counts());
        let counts = ServerCounts {
            plans: usage.records as u64,
            pinned_plans: usage.pinned as u64,
            plan_bytes: usage.bytes,
            syntheses: self.jobs.synthesis_count.load(Ordering::Relaxed),
            corruptions,
            waiting: queue.waiting as u64,
            running: queue.running as u64,
            topologies: topologies as u64,
            topology_bytes,
            refusals: refusals.kept as u64,
            refusals_served: refusals.served,
            schedules: schedules as u64,
            schedule_bytes,
        };
        Ok(Response::new(ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: self.drain.is_draining(),
            uptime: on_the_wire(clock::now().duration_since(self.started)),
            algorithms: canopy_baselines::algorithms().map(|algorithm| algorithm.name().to_owned()).collect(),
            formats: Format::ALL.map(supported).into(),
            limits: Some(self.limits),
            counts: Some(counts),
            archive_key: self.archive_key.clone(),
            servers: servers.into_iter().map(sharing).collect(),
        }))
    }

    async fn get_quota(&self, request: Request<GetQuotaRequest>) -> Result<Response<QuotaStatus>, Status> {
        let (headers, ..) = request.into_parts();
        let leases = self.leases.clone();
        let status = self.pool.run("GetQuota", &headers, move |_| {
            let bill = call::bill().ok_or(CallFailure::Broken { what: "the call has no accounts".to_owned() })?;
            let on_the_wire = |uses: Vec<Use>| {
                let row = |Use { quota, limit, used }| QuotaUse { quota: quota.name().to_owned(), limit, used };
                uses.into_iter().map(row).collect()
            };
            Ok(QuotaStatus {
                identity: bill.identity().to_owned(),
                tenant: bill.tenant().to_owned(),
                weight: bill.weight(),
                of_tenant: on_the_wire(bill.of_tenant(leases.owned_by(bill.tenant()))),
                of_identity: on_the_wire(bill.of_identity()),
            })
        });
        status.await.map(Response::new)
    }

    async fn get_queue(&self, request: Request<GetQueueRequest>) -> Result<Response<QueueStatus>, Status> {
        let arrived = clock::now();
        let viewer = Viewer::of(request.metadata()).map_err(|failure| to_status(&failure))?;
        let is_seen = |job: &Arc<Job>| viewer.sees(job.order.tenant.as_ref().map_or("", TenantName::as_str));
        let counts = self.jobs.queue.counts();
        let status = QueueStatus {
            waiting: counts.waiting as u64,
            length_max: counts.limits.length_max as u64,
            held_bytes: counts.held_bytes as u64,
            held_bytes_max: counts.limits.bytes_max as u64,
            priorities: counts
                .priorities
                .iter()
                .map(|&(priority, waiting, running)| PriorityStatus {
                    priority: priority.on_the_wire().into(),
                    waiting: waiting as u64,
                    running: running as u64,
                })
                .collect(),
            operations: counts
                .jobs
                .iter()
                .filter(|job| is_seen(job))
                .map(|job| job.describe())
                .filter(|operation| operation.result.is_none())
                .map(|operation| describe::operation(&operation))
                .collect(),
        };
        log("GetQueue", arrived, None);
        Ok(Response::new(status))
    }

    type BackUpStream = EventStream<ArchiveEvent>;

    async fn back_up(&self, request: Request<BackUpRequest>) -> Result<Response<Self::BackUpStream>, Status> {
        self.archives.back_up(request.metadata()).await.map(Response::new)
    }

    type CheckStoreStream = EventStream<CheckStoreEntry>;

    async fn check_store(
        &self,
        _request: Request<CheckStoreRequest>,
    ) -> Result<Response<Self::CheckStoreStream>, Status> {
        log("CheckStore", clock::now(), None);
        Ok(Response::new(self.spaces.check()))
    }

    async fn reload_config(
        &self,
        request: Request<ReloadConfigRequest>,
    ) -> Result<Response<ReloadConfigResponse>, Status> {
        let arrived = clock::now();
        let (headers, _, request) = request.into_parts();
        // Each server has settings of its own.
        let pool = self.pool.alone();
        let open = match pool.repeated("ReloadConfig", (&headers, &*request.request_id, &request)).await? {
            Repeated::Answered(answer) => return Ok(Response::new(answer)),
            Repeated::Open(open) => open,
        };
        let on_the_wire = |Reloaded { what, outcome }| ReloadedConfig {
            what: what.to_owned(),
            error: outcome.err().unwrap_or_default(),
        };
        let parts = self.reloads.now().await.into_iter().map(on_the_wire).collect();
        let answer = ReloadConfigResponse { parts };
        pool.keep(&headers, open, &answer).await;
        log("ReloadConfig", arrived, None);
        Ok(Response::new(answer))
    }

    async fn get_config(&self, _request: Request<GetConfigRequest>) -> Result<Response<GetConfigResponse>, Status> {
        let arrived = clock::now();
        let found = self.reloads.configured().await.ok_or(CallFailure::NoConfiguration);
        log("GetConfig", arrived, found.as_ref().err());
        let Configured { effective, log_filter, pending } = found.map_err(|failure| call_status(&failure))?;
        let (pending, pending_error) = match pending {
            Ok(keys) => (keys, String::new()),
            Err(error) => (Vec::new(), error),
        };
        Ok(Response::new(GetConfigResponse { toml: effective.to_string(), log_filter, pending, pending_error }))
    }

    async fn set_log_filter(
        &self,
        request: Request<SetLogFilterRequest>,
    ) -> Result<Response<SetLogFilterResponse>, Status> {
        let arrived = clock::now();
        let (headers, _, request) = request.into_parts();
        call::concerns(&request.filter);
        let pool = self.pool.alone();
        let open = match pool.repeated("SetLogFilter", (&headers, &*request.request_id, &request)).await? {
            Repeated::Answered(answer) => return Ok(Response::new(answer)),
            Repeated::Open(open) => open,
        };
        let lasts = match request.lasts.map(Duration::try_from) {
            None => Ok(None),
            Some(Ok(lasts)) if !lasts.is_zero() => Ok(Some(lasts)),
            Some(_) => {
                let problem = "lasts is not a duration above 0; use one such as 10 minutes, or leave it out".to_owned();
                Err(CallFailure::LogFilter { field: "lasts", problem })
            }
        };
        let changed = lasts.and_then(|lasts| {
            let changed = self.reloads.log(&request.filter, lasts).ok_or(CallFailure::NoConfiguration)?;
            changed.map_err(|error| match error {
                TelemetryError::OtherLog => CallFailure::NoConfiguration,
                error => CallFailure::LogFilter { field: "filter", problem: error.to_string() },
            })
        });
        log("SetLogFilter", arrived, changed.as_ref().err());
        let before = changed.map_err(|failure| call_status(&failure))?;
        let answer = SetLogFilterResponse { before };
        pool.keep(&headers, open, &answer).await;
        Ok(Response::new(answer))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        let (headers, _, GetMetricsRequest { prefixes }) = request.into_parts();
        let (metrics, statistics) = (self.jobs.metrics.clone(), Statistics::of(&self.jobs));
        let text = self.pool.run("GetMetrics", &headers, move |_| {
            statistics.show(&metrics);
            Ok(chosen(metrics.render(), &prefixes))
        });
        text.await.map(|text| Response::new(GetMetricsResponse { text }))
    }

    async fn forget_refusals(
        &self,
        request: Request<ForgetRefusalsRequest>,
    ) -> Result<Response<ForgetRefusalsResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let call = (&headers, &*request.request_id, &request);
        let jobs = Arc::clone(&self.jobs);
        let forget = move |_: &Records| Ok(ForgetRefusalsResponse { forgotten: jobs.forget_refusals()? });
        self.pool.once("ForgetRefusals", call, forget, || {}).await.map(Response::new)
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Result<Response<DrainResponse>, Status> {
        let arrived = clock::now();
        let (headers, extensions, request) = request.into_parts();
        let host = extensions.get::<Peer>().map_or(Host::Local, |peer| peer.host);
        // Who was asked for an identity is an admin here.
        if extensions.get::<Admitted>().is_none() && !self.may_drain(host) {
            let failure = CallFailure::DrainRefused { is_here: host.is_here() };
            log("Drain", arrived, Some(&failure));
            return Err(call_status(&failure));
        }
        let (jobs, drain) = (Arc::clone(&self.jobs), self.drain.clone());
        let count = move |_: &Records| {
            let counts = jobs.queue.counts();
            Ok(DrainResponse { unfinished: (counts.waiting + counts.running) as u64 })
        };
        let call = (&headers, &*request.request_id, &request);
        // Only once its receipt is on the disk: a repeat finds it at the successor.
        let begin = move || {
            drain.start();
        };
        self.pool.alone().once("Drain", call, count, begin).await.map(Response::new)
    }
}

/// The lines of metrics whose names begin with one of these; all if there are none of these.
fn chosen(page: String, prefixes: &[String]) -> String {
    if prefixes.is_empty() {
        return page;
    }
    let is_wanted = |line: &&str| {
        let name = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
        prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    page.lines().filter(is_wanted).flat_map(|line| [line, "\n"]).collect()
}

/// A duration on the wire; none beyond what the wire can say.
fn on_the_wire(duration: Duration) -> Option<prost_types::Duration> {
    duration.try_into().ok()
}

/// A server of those that share the database.
fn sharing(ServerNow { who, age, heard_ago, makes, is_this }: ServerNow) -> SharingServer {
    let Who { name, class, role } = who;
    let (age, heard_ago) = (on_the_wire(age), on_the_wire(heard_ago));
    SharingServer { name, class, role, age, heard_ago, running: makes, answers: is_this }
}

/// A format, and the profiles that are named for it.
fn supported(format: Format) -> FormatSupport {
    let profiles = match format {
        Format::MscclXml => vec![format.usual().profile],
        format => format.profiles(),
    };
    let profiles = profiles.into_iter().map(str::to_owned).collect();
    FormatSupport { format: format_on_the_wire(format).into(), profiles }
}
