//! The server: opens the store, starts the workers, serves gRPC, and shuts down in order.

mod parts;
mod upkeep;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use canopy_service::SocketPath;
use hyper::body::Incoming;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tonic_health::ServingStatus;

use self::parts::{aside, jobs_of, open, open_audit, warm_up};
use self::upkeep::{
    end_overlong_jobs, follow_others, keep_up, say_of_gated, say_that_all_serve, topologies_in_use, write_clock_down,
};
use crate::call::LineLimit;
use crate::clock;
use crate::credentials::{Credentials, CredentialsError};
use crate::drain::DrainHandle;
use crate::jobs::computing::Computing;
use crate::jobs::pipeline::Pipeline;
use crate::jobs::planner::Planner;
use crate::jobs::workers::{Jobs, Workers};
use crate::metrics::Metrics;
use crate::net::around::{Calls, around};
use crate::net::listener::{self, ConnectionLimits, Places, Tls};
use crate::net::socket;
use crate::ops::admin::{self, ConsoleCalls, Pages};
use crate::ops::audit::AuditLog;
use crate::ops::config::{ConfigError, Lifetime, Options, ServerRole};
use crate::ops::observed::ObservedStore;
use crate::ops::reload::Reloads;
use crate::ops::statistics::Statistics;
use crate::quota::Accounts;
use crate::replan::{Bases, ReplanSpaces, Replanner};
use crate::rpc::layers::answered::Answered;
use crate::rpc::layers::connection_threads::ConnectionThreads;
use crate::rpc::layers::guard::Guard;
use crate::rpc::layers::malformed::decodable;
use crate::rpc::layers::record::Record;
use crate::rpc::layers::timeout::Timeout;
use crate::rpc::layers::web::web;
use crate::rpc::shared::finds::Finds;
use crate::rpc::shared::store_check::AllSpaces;
use crate::rpc::{PlanSpace, Shared, StoredNetworks, deadlines, methods, routes};
use crate::store::receipts::{ReceiptOptions, Receipts};
use crate::store::schedules::ScheduleOptions;
use crate::store::topologies::{TopologyStore, TopologyStoreOptions};
use crate::store::{Others, Space, Store, StoreError, Upkeep};
use crate::tasks::{self, Task};
use crate::uploads::UploadBudget;

/// Longest time that a drain waits for plans without callers. New callers are refused meanwhile, and the next server
/// makes those plans.
const UNATTENDED_MAX: Duration = Duration::from_secs(1);
/// Longest time that work has to end once it was told to.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A server that is ready to serve: store open, workers running, sockets bound.
pub struct Server {
    options: Options,
    shared: Shared,
    workers: Workers,
    ports: Ports,
    metrics: Metrics,
    upkeep: Upkeep,
    credentials: Credentials,
    audit: Option<AuditLog>,
    accounts: Accounts,
    /// The other servers that use the same store.
    others: Option<Others>,
    /// Hears of what they change.
    _follower: Option<Task<()>>,
}

/// The addresses of a server.
#[derive(Debug)]
struct Ports {
    tcp: Option<TcpListener>,
    unix: UnixListener,
    /// For all users of the machine.
    users: Option<UnixListener>,
    admin: Option<TcpListener>,
    socket: Arc<SocketPath>,
}

impl Ports {
    async fn bind(options: &Options) -> Result<Self, StartError> {
        let listen_error = |address: String| move |source| StartError::Listen { address, source };
        let bind = async |address: Option<SocketAddr>| match address {
            Some(address) => TcpListener::bind(address).await.map(Some).map_err(listen_error(address.to_string())),
            None => Ok(None),
        };
        let (tcp, admin) = (bind(options.listen).await?, bind(options.admin_listen).await?);
        let socket_name = || canopy_service::socket_path(&options.data_dir).display().to_string();
        let socket = Arc::new(SocketPath::of(&options.data_dir).map_err(listen_error(socket_name()))?);
        let unix = socket::bind(&socket).map_err(listen_error(socket_name()))?;
        let for_users = |path: &PathBuf| socket::bind_for_users(path).map_err(listen_error(path.display().to_string()));
        let users = options.users_socket.as_ref().map(for_users).transpose()?;
        Ok(Self { tcp, unix, users, admin, socket })
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("cannot write the audit log in {folder}")]
    Audit {
        folder: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on {address}")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot start worker threads")]
    Threads(#[source] io::Error),
    #[error("cannot describe the service for reflection")]
    Reflection(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StartError {
    /// Whether another process serves this data directory; connect to its socket instead.
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Store(StoreError::InUse { .. }))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Opens everything; nothing is served before [`Server::run`].
    ///
    /// # Errors
    /// The options contradict each other, the data directory is in use or of a newer version, or an address is taken.
    pub async fn build(options: Options) -> Result<Self, StartError> {
        Self::assemble(options, |options, schedules| {
            let beside = ScheduleOptions::beside(options.store_bytes_max, options.limits);
            Arc::new(Pipeline::keeping(schedules, beside))
        })
        .await
    }

    /// As [`Server::build`], with another planner.
    ///
    /// # Errors
    /// As [`Server::build`].
    pub async fn build_with(options: Options, planner: Arc<dyn Planner>) -> Result<Self, StartError> {
        Self::assemble(options, |_, _| planner).await
    }

    /// Opens everything; the planner is created once there is a store for its schedules.
    async fn assemble(
        options: Options,
        planner: impl FnOnce(&Options, Arc<dyn Store>) -> Arc<dyn Planner>,
    ) -> Result<Self, StartError> {
        options.validate()?;
        let credentials = Credentials::read(options.access.clone(), options.tls.clone())?;
        clock::resume(&options.data_dir);
        let (opened, others) = open(&options).await?;
        let space = |space| Arc::clone(opened.space(space));
        let ports = Ports::bind(&options).await?;
        let metrics = if ports.admin.is_some() { Metrics::on() } else { Metrics::off() };
        let audit = open_audit(options.audit.clone(), metrics.clone()).await?;
        let accounts = Accounts::new(metrics.clone());
        let store: Arc<dyn Store> = Arc::new(ObservedStore { inner: space(Space::Plans), metrics: metrics.clone() });
        let topologies = TopologyStore::new(space(Space::Topologies), TopologyStoreOptions::STANDARD);
        let networks = StoredNetworks::new(&topologies, space(Space::Clusters), &options.family_rates);
        let plans = PlanSpace(Arc::clone(&store));
        let spaces =
            ReplanSpaces { faults: space(Space::Faults), leases: space(Space::Leases), replans: space(Space::Replans) };
        let planner = planner(&options, space(Space::Schedules));
        let jobs =
            jobs_of(&options, &opened, others.as_ref(), (store, planner), (&accounts, &credentials.access), &metrics)
                .await?;
        let replanner = {
            let bases = Bases::new(topologies.clone(), options.limits);
            let (queue, records) = (jobs.queue.clone(), jobs.records.clone());
            let parts = (queue, Arc::clone(&jobs.planner), records, topologies.clone(), bases);
            let (replans, of_replans) = (options.replans, metrics.clone());
            aside(move || Replanner::open(spaces, parts, of_replans, &replans)).await?
        };
        let (leases, fault_logs) = (replanner.leases().clone(), replanner.fault_logs().clone());
        let records = jobs.records.clone();
        topologies.ask_what_is_in_use(move || topologies_in_use(&leases, &fault_logs, &records));
        let shared = Shared {
            jobs: Arc::clone(&jobs),
            drain: DrainHandle::new(),
            plans,
            networks,
            finds: Finds::new(space(Space::Finds)),
            receipts: Receipts::new(space(Space::Requests), ReceiptOptions::STANDARD),
            replanner,
            reloads: Reloads::new(credentials.clone(), metrics.clone()),
            clusters: space(Space::Clusters),
            spaces: AllSpaces(Space::ALL.map(|one| (one, space(one))).into()),
            others: others.clone(),
        };
        if options.lifetime == Lifetime::Daemon {
            warm_up(&jobs).await;
        }
        let _follower = others.as_ref().map(|others| tasks::spawn("follower", follow_others(others.news(), &shared)));
        let planner_count = if options.role == ServerRole::Api { 0 } else { options.worker_count.get() };
        let workers = Workers::start(&jobs, planner_count).map_err(StartError::Threads)?;
        let upkeep = opened.upkeep;
        Ok(Self { options, shared, workers, ports, metrics, upkeep, credentials, audit, accounts, others, _follower })
    }

    /// The TCP address served, with the actual port if 0 was requested.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.ports.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The address of the operators' port, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.ports.admin.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// A path to the Unix socket served, usable in this process while the server lives.
    pub fn socket(&self) -> Arc<SocketPath> {
        Arc::clone(&self.ports.socket)
    }

    /// Starts the drain from anywhere, as a signal does.
    pub fn drain_handle(&self) -> DrainHandle {
        self.shared.drain.clone()
    }

    /// Who may call what, and the certificates: what can be read again while the server runs.
    pub(crate) fn credentials(&self) -> Credentials {
        self.credentials.clone()
    }

    /// What reads again what can change while it runs.
    pub(crate) fn reloads(&self) -> Reloads {
        self.shared.reloads.clone()
    }

    /// The metrics of the server.
    pub(crate) fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Counters of the server.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.shared.jobs)
    }

    /// Serves until `shutdown` is ready or its [`DrainHandle`] is used, then drains: new requests are refused as
    /// UNAVAILABLE, running ones may end within the drain time-out, and the rest are refused. Jobs without callers are
    /// left to the next server on the directory, unless they are running and end soon.
    ///
    /// # Errors
    /// The transport failed.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        let statistics = self.statistics().downgrade();
        let Self { options, shared, workers, ports, metrics, upkeep, credentials, audit, accounts, others, _follower } =
            self;
        let (jobs, drain) = (Arc::clone(&shared.jobs), shared.drain.clone());
        let mut pages = Pages {
            drain: drain.clone(),
            statistics,
            metrics: metrics.clone(),
            upkeep: upkeep.clone(),
            others: others.clone(),
            has_debug: options.has_debug_pages,
            calls: None,
            credentials: credentials.clone(),
        };
        let front = connection_threads(options.lifetime)?;
        let places = ConnectionLimits::of_process();
        let places_of = |name, most| Places::new(name, most, metrics.clone());
        let (health_reporter, health_service) = tonic_health::server::health_reporter();
        say_that_all_serve(&health_reporter).await;
        let topologies = shared.networks.topologies.clone();
        let keeper =
            keep_up((upkeep, others.clone()), topologies, metrics.clone(), health_reporter.clone(), drain.clone());
        let keeper = tasks::spawn("store-upkeep", keeper);
        // One inside a command has nobody who watches.
        let is_daemon = options.lifetime == Lifetime::Daemon;
        let replans =
            is_daemon.then(|| tasks::spawn("replanner", replan(shared.replanner.clone(), others, drain.clone())));
        let _clock = is_daemon.then(|| tasks::spawn("clock", write_clock_down(options.data_dir.clone())));
        let _limit = tasks::spawn("run-limit", end_overlong_jobs(jobs.queue.clone(), options.max_deadline));
        let routes = routes(&options, shared).map_err(RunError)?;
        let routes = routes.add_service(health_service).prepare();
        let uploads = UploadBudget::new(options.queue_bytes_max as u64);
        let record = Record { metrics: metrics.clone(), methods: methods(), uploads, lines: LineLimit::default() };
        // Inside the record, so that calls that end at their deadline are counted as such.
        let timeout = Timeout { policy: deadlines(&options), runtime: Handle::current() };
        let guard = Guard::new(credentials.access.clone(), audit, accounts, metrics.clone());
        let service = around(record, around(guard, around(timeout, around(Answered(decodable), routes))));
        let (stop, stopped) = watch::channel(false);
        let calls = options.has_console.then(|| Arc::new(web(service.clone(), credentials.access)));
        pages.calls = calls.as_ref().map(|calls| ConsoleCalls::of(calls, &stopped));
        // It stays to the very end: a server that drains is alive, and not ready.
        let admin = |listener| front.pages("admin", admin::serve(listener, places_of("admin", places.admin), pages));
        let _admin = ports.admin.map(admin);
        let unix = (ports.unix, ports.users, places_of("unix", places.unix));
        let tcp = ports.tcp.map(|port| (port, places_of("tcp", places.tcp), credentials.tls));
        let listeners = listen(&front, unix, tcp, service, stopped);
        tokio::select! {
            () = shutdown => {}
            () = drain.started() => {}
        }
        drain.start();
        // Nobody says that it serves from here on.
        let _ended = tokio::time::timeout(UNATTENDED_MAX, keeper.join()).await;
        say_of_gated(&health_reporter, ServingStatus::NotServing).await;
        jobs.queue.close();
        if let Some(replans) = replans {
            // It looks at the drain before all else.
            let _ended = replans.join().await;
        }
        // The listeners stay, so that whoever still comes is told when to try again.
        end_jobs(&jobs, &drain, options.drain_timeout).await;
        stop.send_replace(true);
        let ended = join(listeners).await.and(end_workers(workers, jobs.computing.clone()).await);
        save_clock(&options);
        // While the directory is still this process's, so that no successor loses its socket.
        remove_sockets(ports.socket.path(), options.users_socket.as_deref());
        drop((jobs, calls, ports.socket));
        ended
    }
}

/// The threads that serve connections; a server inside a command needs no others than it has.
fn connection_threads(lifetime: Lifetime) -> Result<ConnectionThreads, RunError> {
    match lifetime {
        Lifetime::Daemon => ConnectionThreads::start().map_err(|error| RunError(Box::new(error))),
        Lifetime::Command => Ok(ConnectionThreads::none()),
    }
}

/// Makes plans anew until the server drains: all the time, or when it is its turn among others.
async fn replan(replanner: Replanner, others: Option<Others>, drain: DrainHandle) {
    match others {
        None => replanner.run(drain).await,
        Some(others) => replanner.run_in_turn(others.replanner, drain).await,
    }
}

/// Begins to serve the ports, until told to stop.
fn listen<S>(
    front: &ConnectionThreads,
    (unix, users, unix_places): (UnixListener, Option<UnixListener>, Places),
    tcp: Option<(TcpListener, Places, Option<Tls>)>,
    service: S,
    stopped: watch::Receiver<bool>,
) -> Vec<Task<()>>
where
    S: Calls<Incoming> + Clone + Send + Sync + 'static,
{
    let mut listeners = Vec::new();
    for port in [Some(unix), users].into_iter().flatten() {
        let unix = listener::serve_calls(port, unix_places.clone(), service.clone(), stopped.clone());
        listeners.push(front.connections("unix-listener", unix));
    }
    if let Some((port, places, tls)) = tcp {
        let tcp = listener::serve_calls_over_tcp(port, places, service, tls, stopped);
        listeners.push(front.connections("tcp-listener", tcp));
    }
    listeners
}

fn remove_sockets(own: &Path, of_users: Option<&Path>) {
    for path in [Some(own), of_users].into_iter().flatten() {
        let _nothing_to_remove = std::fs::remove_file(path);
    }
}

/// Writes the clock down for the next server on the directory.
fn save_clock(options: &Options) {
    if options.lifetime == Lifetime::Daemon
        && let Err(error) = clock::write_down(&options.data_dir)
    {
        tracing::warn!(%error, "the clock could not be saved");
    }
}

/// Waits for workers and computations: solvers stop soon after a stop request, but a last write to the disk may take time. One
/// that does not stop is left to the end of the process: what it makes is asked for by nobody.
async fn end_workers(workers: Workers, computing: Computing) -> Result<(), RunError> {
    let ended = spawn_blocking(move || {
        let is_idle = computing.wait_until_idle(LAST_WAIT);
        workers.join();
        is_idle
    });
    match tokio::time::timeout(LAST_WAIT, ended).await {
        Ok(ended) => {
            if !ended.map_err(RunError::from)? {
                tracing::warn!("a computation did not stop in time");
            }
        }
        Err(_) => tracing::warn!("a worker did not stop in time"),
    }
    Ok(())
}

/// Lets running requests continue for a while, then stops all jobs and computations.
async fn end_jobs(jobs: &Jobs, drain: &DrainHandle, patience: Duration) {
    let queue = &jobs.queue;
    // Detached jobs have no call that is inside. Those that wait are on the disk for the next server.
    queue.set_aside();
    let _whether_all_left = tokio::time::timeout(patience, async {
        drain.empty().await;
        queue.set_aside();
        let _whether_all_ended = tokio::time::timeout(UNATTENDED_MAX, queue.idle()).await;
    })
    .await;
    queue.abort();
    jobs.computing.abort();
}

/// The transport failed while serving.
#[derive(Debug, thiserror::Error)]
#[error("the server ended with an error")]
pub struct RunError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<tokio::task::JoinError> for RunError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(Box::new(error))
    }
}

/// Waits until every listener has ended. Callers that do not accept a refusal are cut off soon: dropping the listeners
/// closes their connections.
async fn join(listeners: Vec<Task<()>>) -> Result<(), RunError> {
    /// Time for refusals to reach their callers.
    const FAREWELL: Duration = Duration::from_millis(500);
    let all = async {
        let mut result = Ok(());
        for listener in listeners {
            result = listener.join().await.map_err(RunError::from).and(result);
        }
        result
    };
    tokio::time::timeout(FAREWELL, all).await.unwrap_or(Ok(()))
}
