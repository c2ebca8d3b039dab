//! Everything that is served: the services of `canopy.v1` with their limits, and reflection.

use std::error::Error;
use std::sync::Arc;

use canopy_proto::FILE_DESCRIPTOR_SET;
use canopy_proto::v1::analysis_server::AnalysisServer;
use canopy_proto::v1::faults_server::FaultsServer;
use canopy_proto::v1::leases_server::LeasesServer;
use canopy_proto::v1::networks_server::NetworksServer;
use canopy_proto::v1::operations_server::OperationsServer;
use canopy_proto::v1::planner_server::PlannerServer;
use canopy_proto::v1::plans_server::PlansServer;
use canopy_proto::v1::server_server::ServerServer;
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
use crate::rpc::services::analysis::AnalysisService;
use crate::rpc::services::archives::{Archives, PlanSpace};
use crate::rpc::services::faults::FaultsService;
use crate::rpc::services::leases::LeasesService;
use crate::rpc::services::networks::{Clusters, NetworksService, Topologies};
use crate::rpc::services::operations::OperationsService;
use crate::rpc::services::planner::PlannerService;
use crate::rpc::services::plans::PlansService;
use crate::rpc::services::server::ServerService;
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
    AnalysisServer::<AnalysisService>::NAME,
    PlansServer::<PlansService>::NAME,
    NetworksServer::<NetworksService>::NAME,
    FaultsServer::<FaultsService>::NAME,
    LeasesServer::<LeasesService>::NAME,
];

/// Services that only watch and end, by name: those who follow the drain of a server need them.
pub(crate) const OPEN: [&str; 2] = [OperationsServer::<OperationsService>::NAME, ServerServer::<ServerService>::NAME];

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
    let key = Arc::new(ArchiveKey::of(&options.data_dir)?);
    let routes = services(options, &key, shared, admission);
    if !options.has_reflection {
        return Ok(routes);
    }
    Ok(routes.add_service(reflection().build_v1()?).add_service(reflection().build_v1alpha()?))
}

/// The services of `canopy.v1`.
fn services(options: &Options, key: &Arc<ArchiveKey>, shared: Shared, admission: Admission) -> Routes {
    let Shared { jobs, drain, plans, networks, finds, replanner, reloads, clusters, spaces, .. } = shared;
    let deadlines = deadlines(options);
    let pool = admission.pool.clone();
    let urgent = pool.apart(URGENT_AT_ONCE);
    let reading = pool.apart(TOPOLOGIES_AT_ONCE);
    let operations = OperationsService::new(Arc::clone(&jobs), urgent.clone(), deadlines);
    let faults = FaultsService::new(pool.apart(FAULTS_AT_ONCE), replanner.clone(), networks.clone(), options.limits);
    let parts = (jobs.queue.clone(), Arc::clone(&jobs.planner), networks.clone());
    let of_server = (networks.topologies.clone(), replanner.leases().clone());
    let of_archives = (networks.topologies.clone(), clusters, replanner.clone());
    let archives = Archives::new(pool.clone(), of_archives, plans, (&jobs.planner, options, key));
    let leases = LeasesService::new(
        pool.apart(LEASES_AT_ONCE),
        replanner,
        drain.clone(),
        parts,
        &options.isolated_tenants,
        options.limits,
    );
    let plans = PlansService::new(pool, archives.clone(), Arc::clone(&jobs.planner), options.limits);
    let server = ServerService::new(
        jobs,
        urgent,
        of_server,
        (drain.clone(), reloads),
        (archives, spaces),
        (options, key.name()),
    );
    let analysis = AnalysisService::new(admission.clone(), reading.clone(), finds);
    let networks = NetworksService {
        clusters: Clusters::new(reading.clone(), networks.clusters.clone(), options.limits),
        topologies: Topologies::new(reading, networks, options.limits),
    };
    let planner = PlannerService::new(admission, &drain);
    let bytes_max = options.limits.bytes_max.saturating_add(MESSAGE_SLACK_BYTES);
    let planner = PlannerServer::new(planner).max_decoding_message_size(bytes_max);
    let analysis = AnalysisServer::new(analysis).max_decoding_message_size(bytes_max);
    let networks = NetworksServer::new(networks).max_decoding_message_size(bytes_max);
    let faults = FaultsServer::new(faults).max_decoding_message_size(bytes_max);
    let leases = LeasesServer::new(leases).max_decoding_message_size(bytes_max);
    let plans = PlansServer::new(plans).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let operations = OperationsServer::new(operations).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let server = ServerServer::new(server).max_decoding_message_size(OPERATORS_BYTES_MAX);
    let large = Answered(oversize(bytes_max));
    let small = Answered(oversize(OPERATORS_BYTES_MAX));
    let gate = Gate(drain);
    Routes::new(around(gate.clone(), around(large.clone(), around(Answered(in_parts), planner))))
        .add_service(around(gate.clone(), around(large.clone(), analysis)))
        .add_service(around(gate.clone(), around(large.clone(), networks)))
        .add_service(around(gate.clone(), around(large.clone(), faults)))
        .add_service(around(gate.clone(), around(large, leases)))
        .add_service(around(gate, around(small.clone(), around(Answered(in_parts), plans))))
        .add_service(around(small.clone(), operations))
        .add_service(around(small, server))
}

/// Every method served, for the names in metrics.
pub(crate) fn methods() -> Methods {
    let reflection =
        [tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET, tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET];
    Methods::of(&[&[FILE_DESCRIPTOR_SET, tonic_health::pb::FILE_DESCRIPTOR_SET], &reflection[..]].concat())
}
