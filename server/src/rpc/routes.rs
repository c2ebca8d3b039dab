//! Everything that is served: the services of `canopy.v1` with their limits, and reflection.

use std::error::Error;
use std::sync::Arc;

use canopy_proto::FILE_DESCRIPTOR_SET;
use canopy_proto::v1::clusters_server::ClustersServer;
use canopy_proto::v1::faults_server::FaultsServer;
use canopy_proto::v1::leases_server::LeasesServer;
use canopy_proto::v1::operations_server::OperationsServer;
use canopy_proto::v1::plan_admin_server::PlanAdminServer;
use canopy_proto::v1::planner_server::PlannerServer;
use canopy_proto::v1::server_admin_server::ServerAdminServer;
use canopy_proto::v1::topologies_server::TopologiesServer;
use tonic::server::NamedService as _;
use tonic::service::Routes;

use crate::drain::DrainHandle;
use crate::jobs::answers::Answers;
use crate::jobs::workers::Jobs;
use crate::net::around::around;
use crate::ops::config::Options;
use crate::ops::reload::Reloads;
use crate::replan::Replanner;
use crate::rpc::layers::answered::Answered;
use crate::rpc::layers::gate::Gate;
use crate::rpc::layers::oversize::oversize;
use crate::rpc::layers::record::Methods;
use crate::rpc::services::archives::{Archives, PlanSpace};
use crate::rpc::services::clusters::ClustersService;
use crate::rpc::services::faults::FaultsService;
use crate::rpc::services::leases::LeasesService;
use crate::rpc::services::operations::OperationsService;
use crate::rpc::services::plan_admin::PlanAdminService;
use crate::rpc::services::planner::PlannerService;
use crate::rpc::services::server_admin::ServerAdminService;
use crate::rpc::services::topologies::TopologiesService;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::finds::Finds;
use crate::rpc::shared::learning::Learning;
use crate::rpc::shared::parts::in_parts;
use crate::rpc::shared::reading::Reader;
use crate::rpc::shared::resolve::Resolver;
use crate::rpc::shared::sources::StoredNetworks;
use crate::rpc::shared::store_check::AllSpaces;
use crate::store::receipts::Receipts;
use crate::store::topologies::TopologyStoreError;
use crate::store::{ArchiveKey, Others, Store};

/// Longest message to an operators' service.
const OPERATORS_BYTES_MAX: usize = 1 << 20;

/// Services that begin something, by name: a drain refuses their calls, waits for those inside, and health says so.
pub(crate) const GATED: [&str; 6] = [
    PlannerServer::<PlannerService>::NAME,
    FaultsServer::<FaultsService>::NAME,
    LeasesServer::<LeasesService>::NAME,
    PlanAdminServer::<PlanAdminService>::NAME,
    TopologiesServer::<TopologiesService>::NAME,
    ClustersServer::<ClustersService>::NAME,
];

/// Services that only watch and end, by name: those who follow the drain of a server need them.
pub(crate) const OPEN: [&str; 2] =
    [OperationsServer::<OperationsService>::NAME, ServerAdminServer::<ServerAdminService>::NAME];

/// Calls about topologies that read them at once; the others wait.
const TOPOLOGIES_AT_ONCE: usize = 2;
/// Calls about faults at once, which wait for the disk together.
const FAULTS_AT_ONCE: usize = 64;
/// Calls about leases at once.
const LEASES_AT_ONCE: usize = 8;
/// Calls that must not wait behind those that list and evict.
const URGENT_AT_ONCE: usize = 4;
/// Room in a message for everything but the topology.
const MESSAGE_SLACK_BYTES: usize = 1 << 20;

/// What the services share.
pub(crate) struct Shared {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) drain: DrainHandle,
    /// Plans as they are kept.
    pub(crate) plans: PlanSpace,
    pub(crate) networks: StoredNetworks,
    pub(crate) finds: Finds,
    pub(crate) receipts: Receipts,
    pub(crate) replanner: Replanner,
    pub(crate) reloads: Reloads,
    pub(crate) clusters: Arc<dyn Store>,
    /// Everything that is stored, for who checks it.
    pub(crate) spaces: AllSpaces,
    /// The other servers that use the same store.
    pub(crate) others: Option<Others>,
}

impl Shared {
    /// Has what is in memory follow what other servers have changed in the store.
    pub(crate) fn follow(&self) -> impl Fn() -> Result<(), TopologyStoreError> + Send + Sync + use<> {
        let (jobs, networks, replanner) = (Arc::clone(&self.jobs), self.networks.clone(), self.replanner.clone());
        move || {
            networks.follow()?;
            jobs.records.follow()?;
            // The schedules of shapes follow as they are counted.
            jobs.planner.kept()?;
            replanner.follow()?;
            Ok(())
        }
    }
}

/// How long calls may take.
pub(crate) fn deadlines(options: &Options) -> DeadlinePolicy {
    DeadlinePolicy { default: options.default_deadline, max: options.max_deadline }
}

/// Everything served but health, whose state changes.
///
/// # Errors
/// The services cannot be described for reflection, or the key of archives cannot be read.
pub(crate) fn routes(options: &Options, shared: Shared) -> Result<Routes, Box<dyn Error + Send + Sync>> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let deadlines = deadlines(options);
    let message_bytes_max = options.limits.bytes_max.saturating_add(MESSAGE_SLACK_BYTES);
    let pool = CallPool::new(&shared.jobs, shared.receipts.clone(), deadlines);
    let pool = match shared.others.clone() {
        Some(others) => {
            let (replanner, records) = (shared.replanner.clone(), shared.jobs.records.clone());
            pool.learning(Learning::new(others, replanner, records, shared.follow()))
        }
        None => pool,
    };
    let answers = Answers::new(shared.jobs.records.clone());
    let admission = Admission {
        resolver: Resolver {
            networks: shared.networks.clone(),
            replanner: shared.replanner.clone(),
            limits: options.limits,
        },
        jobs: Arc::clone(&shared.jobs),
        pool: pool.clone(),
        answers,
        reader: Reader {
            deadlines,
            isolated: options.isolated_tenants.as_slice().into(),
            replanner: shared.replanner.clone(),
        },
    };
    let planner =
        PlannerServer::new(PlannerService::new(admission, &shared.drain)).max_decoding_message_size(message_bytes_max);
    let planner = around(Answered(oversize(message_bytes_max)), around(Answered(in_parts), planner));
    let planner = around(Gate(shared.drain.clone()), planner);
    let key = Arc::new(ArchiveKey::of(&options.data_dir)?);
    let routes = operators(Routes::new(planner), (options, &key), shared, pool, message_bytes_max);
    if !options.has_reflection {
        return Ok(routes);
    }
    Ok(routes.add_service(reflection().build_v1()?).add_service(reflection().build_v1alpha()?))
}

/// Adds the operators' services.
fn operators(
    routes: Routes,
    (options, key): (&Options, &Arc<ArchiveKey>),
    shared: Shared,
    pool: CallPool,
    message_bytes_max: usize,
) -> Routes {
    let Shared { jobs, drain, plans, networks, finds, replanner, reloads, clusters, spaces, .. } = shared;
    let deadlines = deadlines(options);
    let urgent = pool.apart(URGENT_AT_ONCE);
    let operations = OperationsService::new(Arc::clone(&jobs), urgent.clone(), deadlines);
    let faults = FaultsService::new(
        pool.apart(FAULTS_AT_ONCE),
        (replanner.clone(), networks.clone()),
        drain.clone(),
        options.limits,
    );
    let parts = (jobs.queue.clone(), Arc::clone(&jobs.planner), networks.clone());
    let of_server = (networks.topologies.clone(), replanner.leases().clone());
    let of_archives = (networks.topologies.clone(), clusters, replanner.clone());
    let archives = Archives::new(pool.clone(), of_archives, plans, (&jobs.planner, options, key));
    let leases =
        LeasesService::new(pool.apart(LEASES_AT_ONCE), replanner, parts, &options.isolated_tenants, options.limits);
    let topologies_pool = pool.apart(TOPOLOGIES_AT_ONCE);
    let plans = PlanAdminService::new(pool, archives.clone(), &jobs);
    let server = ServerAdminService::new(
        jobs,
        urgent,
        of_server,
        (drain.clone(), reloads),
        (archives, spaces),
        (options, key.name()),
    );
    let clusters = ClustersService::new(topologies_pool.clone(), networks.clusters.clone(), options.limits);
    let topologies = TopologiesService::new(topologies_pool, networks, finds, options.limits);
    let limit = Answered(oversize(OPERATORS_BYTES_MAX));
    let operations = OperationsServer::new(operations).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let plans = PlanAdminServer::new(plans).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let server = ServerAdminServer::new(server).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let clusters = ClustersServer::new(clusters).max_decoding_message_size(message_bytes_max);
    let topologies = TopologiesServer::new(topologies).max_decoding_message_size(message_bytes_max);
    let faults = FaultsServer::new(faults).max_decoding_message_size(message_bytes_max);
    let leases = LeasesServer::new(leases).max_decoding_message_size(message_bytes_max);
    let large = Answered(oversize(message_bytes_max));
    let gate = Gate(drain);
    routes
        .add_service(around(gate.clone(), around(large.clone(), faults)))
        .add_service(around(gate.clone(), around(large.clone(), leases)))
        .add_service(around(limit.clone(), operations))
        .add_service(around(limit.clone(), server))
        .add_service(around(gate.clone(), around(limit, plans)))
        .add_service(around(gate.clone(), around(large.clone(), clusters)))
        .add_service(around(gate, around(large, topologies)))
}

/// Every method served, for the names in metrics.
pub(crate) fn methods() -> Methods {
    let reflection =
        [tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET, tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET];
    Methods::of(&[&[FILE_DESCRIPTOR_SET, tonic_health::pb::FILE_DESCRIPTOR_SET], &reflection[..]].concat())
}
