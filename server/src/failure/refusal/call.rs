//! Calls that make no plan.

use std::borrow::Cow;

use canopy_design::finder::FindError;
use canopy_direct::multiport::{MultiPathError, PATHS_MAX};
use canopy_order::OrderError;
use canopy_planner::SimulationError;
use canopy_topology::Slot;
use canopy_training::job::{BesideError, RatesError, ShareError};
use canopy_wire::{Code, Detail, Refusal};

use super::{RETRY_BUSY, over_quota, refusal};
use crate::failure::{CallFailure, ClusterFailure, GroupsFailure, LeaseError, MovingFailure};
use crate::store::clusters::ClusterStoreError;
use crate::store::receipts::ReceiptError;
use crate::store::topologies::TopologyStoreError;
use crate::store::{ArchiveError, StoreError};

/// Kinds of resources in `ResourceInfo`.
const PLAN: Cow<'static, str> = Cow::Borrowed("canopy.v1.Plan");
const ARTIFACT: Cow<'static, str> = Cow::Borrowed("canopy.v1.Artifact");
const OPERATION: Cow<'static, str> = Cow::Borrowed("canopy.v1.Operation");
const TOPOLOGY: Cow<'static, str> = Cow::Borrowed("canopy.v1.Topology");
const CLUSTER: Cow<'static, str> = Cow::Borrowed("canopy.v1.Cluster");
const LEASE: Cow<'static, str> = Cow::Borrowed("canopy.v1.Lease");
const JOB: Cow<'static, str> = Cow::Borrowed("canopy.v1.Lease.job");
const REQUEST_ID: Cow<'static, str> = Cow::Borrowed("canopy.v1.RequestId");

/// The refusal for such a call.
pub(crate) fn call_refusal(failure: &CallFailure) -> Refusal {
    match failure {
        CallFailure::Plan(failure) => refusal(failure),
        CallFailure::PlanUnknown { name } => missing("PLAN_UNKNOWN", PLAN, name),
        CallFailure::NameMalformed { field, .. } => Refusal::input("NAME_INVALID", *field),
        CallFailure::PlanDamaged { name, .. } => {
            Refusal::new(Code::DataLoss, "STORED_PLAN_CORRUPT", Detail::Resource(PLAN, name.clone()))
        }
        CallFailure::ArtifactUnknown { plan, .. } => missing("ARTIFACT_UNKNOWN", ARTIFACT, plan),
        CallFailure::RankMap { rank, has, wanted, .. } => rank_map(*rank, has.as_ref(), wanted.as_ref()),
        CallFailure::NoRankMap { wanted, .. } => rank_map(0, None, Some(wanted)),
        CallFailure::Offset { size, .. } => Refusal::input("OFFSET_INVALID", "offset").with("size", size),
        CallFailure::NotSliced { .. } => Refusal::input("SLICE_UNSUPPORTED", "ranks"),
        CallFailure::SliceRank(error) => {
            Refusal::input("SLICE_RANK_UNKNOWN", "ranks").with("rank_count", error.rank_count)
        }
        CallFailure::RankFile(error) if error.is_of_runtime() => Refusal::infeasible("RANK_FILE_INFEASIBLE", "format"),
        CallFailure::RankFile(_) => Refusal::input("SLICE_RANK_UNKNOWN", "ranks"),
        CallFailure::TopologyUnknown { name } => missing("TOPOLOGY_UNKNOWN", TOPOLOGY, name),
        CallFailure::TopologyStore(error) => topologies(error),
        CallFailure::Cluster(error) => cluster(error),
        CallFailure::Find(_)
        | CallFailure::PathsRank { .. }
        | CallFailure::Paths(_)
        | CallFailure::Order(_)
        | CallFailure::Groups(_)
        | CallFailure::Moving(_)
        | CallFailure::Simulation(_)
        | CallFailure::NotSimulated { .. } => of_question(failure),
        CallFailure::OperationUnknown { name, .. } => missing("OPERATION_UNKNOWN", OPERATION, name),
        CallFailure::Filter { position, .. } => Refusal::input("FILTER_SYNTAX", "filter").with("position", position),
        CallFailure::OrderBy { .. } => Refusal::input("ORDER_SYNTAX", "order_by"),
        CallFailure::PageSize { limit, .. } => Refusal::input("PAGE_SIZE_INVALID", "page_size").with("limit", limit),
        CallFailure::PageToken => Refusal::input("PAGE_TOKEN_INVALID", "page_token"),
        CallFailure::EvictionTarget => Refusal::input("EVICTION_TARGET_INVALID", "filter"),
        CallFailure::TooManyNames { limit, .. } => Refusal::input("TOO_MANY_NAMES", "names").with("limit", limit),
        CallFailure::Timeout => Refusal::input("TIMEOUT_INVALID", "timeout"),
        CallFailure::TooManyEvents { limit, .. } => Refusal::input("TOO_MANY_FAULTS", "events").with("limit", limit),
        CallFailure::AroundFaults { failure, .. } => refusal(failure),
        CallFailure::Faults { field, .. } => Refusal::input("FAULTS_INVALID", *field),
        CallFailure::JobUnknown { job } => missing("JOB_UNKNOWN", JOB, job),
        CallFailure::JointFaults { .. } => Refusal::infeasible("FAULTS_KNOWN", "fault_policy"),
        CallFailure::FaultTarget { position, .. } => Refusal::input("FAULT_UNKNOWN", format!("faults[{position}]")),
        CallFailure::ResumeToken => Refusal::new(Code::OutOfRange, "RESUME_TOKEN_EXPIRED", Detail::None),
        CallFailure::TooManyWatches { of, limit } => {
            Refusal::limit("WATCHES_FULL", "watches").with("of", of).with("limit", limit)
        }
        CallFailure::LeaseUnknown { name, .. } => missing("LEASE_UNKNOWN", LEASE, name),
        CallFailure::NotOwner { owner, .. } => not_owner().with("owner", owner),
        CallFailure::SharedPlan { .. } => not_owner(),
        CallFailure::Lease { field, .. } => Refusal::input("LEASE_INVALID", field.clone()),
        CallFailure::Leases(error) => lease(error),
        CallFailure::RequestId(_) => Refusal::input("REQUEST_ID_INVALID", "request_id"),
        CallFailure::Receipt(ReceiptError::Reused { id }) => {
            Refusal::new(Code::AlreadyExists, "REQUEST_ID_REUSED", Detail::Resource(REQUEST_ID, id.clone()))
        }
        CallFailure::Receipt(ReceiptError::Store(error)) | CallFailure::Store(error) => store(error),
        CallFailure::Archive(error) => archive(error),
        CallFailure::ArchiveRecord { record, .. } => Refusal::input("ARCHIVE_REJECTED", "piece").with("record", record),
        CallFailure::Piece { offset, .. } => Refusal::input("PIECE_INVALID", "piece").with("offset", offset),
        CallFailure::DrainRefused { .. }
        | CallFailure::NoConfiguration
        | CallFailure::LogFilter { .. }
        | CallFailure::Late { .. }
        | CallFailure::Silence { .. }
        | CallFailure::Slow { .. }
        | CallFailure::Broken { .. } => of_server(failure),
    }
}

fn not_owner() -> Refusal {
    Refusal::new(Code::PermissionDenied, "NOT_OWNER", Detail::None)
}

fn lease(error: &LeaseError) -> Refusal {
    match error {
        LeaseError::Store(error) => store(error),
        LeaseError::OverQuota(over) => over_quota(over),
        LeaseError::TooMany { .. } | LeaseError::TooLarge { .. } => Refusal::limit("LEASES_FULL", "leases"),
    }
}

/// Why a question is refused that is computed and makes no plan.
fn of_question(failure: &CallFailure) -> Refusal {
    match failure {
        CallFailure::Find(error) => find(error),
        CallFailure::PathsRank { field, count, .. } => {
            Refusal::input("PATHS_RANK_UNKNOWN", *field).with("rank_count", count)
        }
        CallFailure::Paths(error) => paths(error),
        CallFailure::Order(error) => order(error),
        CallFailure::Groups(error) => groups(error),
        CallFailure::Moving(error) => moving(error),
        CallFailure::Simulation(error) => simulation(error),
        CallFailure::NotSimulated { .. } => Refusal::infeasible("SIMULATION_NEEDS_JSON", "name"),
        _ => Refusal::fault("CALL_FAILED"),
    }
}

/// Why the groups of a job are not planned together.
fn groups(failure: &GroupsFailure) -> Refusal {
    match failure {
        GroupsFailure::Rates(RatesError::Ranks { .. }) => Refusal::input("GROUPS_INVALID", "layout"),
        GroupsFailure::Rates(RatesError::Switch { .. }) => Refusal::infeasible("GROUPS_SWITCHES", "topology"),
        GroupsFailure::Rates(RatesError::NoWay { .. }) => Refusal::infeasible("GROUPS_APART", "groups"),
        GroupsFailure::Rates(RatesError::Groups(_)) => Refusal::input("GROUPS_INVALID", "groups"),
        GroupsFailure::Rates(RatesError::Stopped) => {
            Refusal::new(Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", Detail::None)
        }
        GroupsFailure::Rates(RatesError::Broken { .. }) => Refusal::fault("CALL_FAILED"),
        GroupsFailure::Running { error: BesideError::TooFast { .. }, .. } => {
            Refusal::infeasible("GROUPS_TOO_FAST", "running")
        }
        GroupsFailure::Running { error: BesideError::Rates(RatesError::NoWay { .. }), .. } => {
            Refusal::infeasible("GROUPS_APART", "running")
        }
        GroupsFailure::Running { error: BesideError::Rates(RatesError::Stopped), .. } => {
            Refusal::new(Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", Detail::None)
        }
        GroupsFailure::Running { error: BesideError::Rates(_), .. } => Refusal::input("GROUPS_INVALID", "running"),
        GroupsFailure::Running { error: BesideError::Topology(_), .. } => Refusal::fault("CALL_FAILED"),
        GroupsFailure::Share(ShareError::Thin { .. }) => Refusal::infeasible("GROUPS_TOO_UNEQUAL", "groups"),
        GroupsFailure::Share(_) => Refusal::fault("CALL_FAILED"),
        GroupsFailure::Forwards { .. } => Refusal::infeasible("GROUPS_FORWARD", "members_only"),
    }
}

/// Why traffic that changes is not planned.
fn moving(failure: &MovingFailure) -> Refusal {
    let invalid = |field: &str| Refusal::input("MOVING_REQUEST_INVALID", field);
    match failure {
        MovingFailure::Empty => invalid("request"),
        MovingFailure::NotFirst { field, .. } => invalid(field),
        MovingFailure::Number { .. } => invalid("matrix.number"),
        MovingFailure::Matrix(_) | MovingFailure::Itself { .. } | MovingFailure::Lost { .. } => {
            Refusal::input("MOVING_MATRIX_INVALID", "matrix.bytes")
        }
        MovingFailure::Network(_) => Refusal::infeasible("MOVING_NETWORK", "network.topology"),
        MovingFailure::NoWay(_) => Refusal::infeasible("MOVING_APART", "matrix.bytes"),
        MovingFailure::Full { of, limit } => {
            Refusal::limit("MOVING_STREAMS_FULL", "streams").with("of", of).with("limit", limit)
        }
    }
}

/// Why the server as a whole refuses a call, or ends it.
fn of_server(failure: &CallFailure) -> Refusal {
    match failure {
        CallFailure::DrainRefused { .. } => Refusal::new(Code::PermissionDenied, "DRAIN_NOT_PERMITTED", Detail::None),
        CallFailure::NoConfiguration => Refusal::infeasible("NO_CONFIGURATION", ""),
        CallFailure::LogFilter { field, .. } => Refusal::input("LOG_FILTER_INVALID", *field),
        CallFailure::Late { deadline_ms } => late("CALL_TIME_LIMIT", "deadline_ms", deadline_ms),
        CallFailure::Silence { seconds } => late("REQUEST_STALLED", "silence_s", seconds),
        CallFailure::Slow { arrived, length, .. } => {
            late("REQUEST_TOO_SLOW", "arrived_bytes", arrived).with("length_bytes", length)
        }
        _ => Refusal::fault("CALL_FAILED"),
    }
}

/// A call that took too long, by this.
fn late(reason: &'static str, name: &'static str, value: impl ToString) -> Refusal {
    Refusal::new(Code::DeadlineExceeded, reason, Detail::None).with(name, value)
}

/// The first rank whose device differs from the caller's.
fn rank_map(rank: usize, has: Option<&Slot>, wanted: Option<&Slot>) -> Refusal {
    let refusal = Refusal::infeasible("RANK_MAP_MISMATCH", "placement").with("rank", rank);
    let slots = [("plan_slot", has), ("given_slot", wanted)].into_iter();
    slots.fold(refusal, |refusal, (name, slot)| match slot {
        Some(slot) => refusal.with(name, slot),
        None => refusal,
    })
}

fn cluster(error: &ClusterFailure) -> Refusal {
    match error {
        ClusterFailure::Unknown { name } => missing("CLUSTER_UNKNOWN", CLUSTER, name),
        ClusterFailure::Name { .. } => Refusal::input("CLUSTER_NAME_INVALID", "cluster"),
        ClusterFailure::Description(error) => Refusal::input("CLUSTER_INVALID", error.field.clone()),
        ClusterFailure::Machines(_) => Refusal::input("CLUSTER_INVALID", "description"),
        ClusterFailure::Part(_) | ClusterFailure::Hosts(_) => {
            Refusal::input("CLUSTER_NODES_INVALID", "topology.cluster.nodes")
        }
        ClusterFailure::Store(ClusterStoreError::TooMany | ClusterStoreError::TooLarge { .. }) => {
            Refusal::limit("CLUSTERS_FULL", "clusters")
        }
        ClusterFailure::Store(ClusterStoreError::Damaged { name, .. }) => {
            Refusal::new(Code::DataLoss, "STORED_CLUSTER_CORRUPT", Detail::Resource(CLUSTER, name.clone()))
        }
        ClusterFailure::Store(ClusterStoreError::Store(error)) => store(error),
    }
}

pub(super) fn store(error: &StoreError) -> Refusal {
    match error {
        StoreError::Full { limit, .. } => Refusal::limit("STORE_FULL", "store_bytes").with("limit", limit),
        StoreError::DiskFull { .. } => Refusal::limit("STORE_FULL", "disk"),
        StoreError::Engine { .. }
        | StoreError::Io { .. }
        | StoreError::Failing { .. }
        | StoreError::Unkept
        | StoreError::Away { .. }
        | StoreError::Database { .. }
        | StoreError::Overtaken
        | StoreError::Fenced
        | StoreError::InUse { .. }
        | StoreError::OpenToAll { .. }
        | StoreError::Version { .. }
        | StoreError::OfRedb { .. }
        | StoreError::OldRedb { .. } => Refusal::new(Code::Unavailable, "STORE_UNREACHABLE", Detail::Retry(RETRY_BUSY)),
    }
}

fn find(error: &FindError) -> Refusal {
    match error {
        FindError::Nodes { limit, .. } => Refusal::input("FIND_NODES_INVALID", "nodes").with("limit", limit),
        FindError::Degree { limit, .. } => Refusal::input("FIND_DEGREE_INVALID", "degree").with("limit", limit),
        // Only those who do not wait any more have their searches stopped.
        FindError::Stopped => Refusal::new(Code::Cancelled, "FIND_STOPPED", Detail::None),
    }
}

fn paths(error: &MultiPathError) -> Refusal {
    match error {
        MultiPathError::Node { count, .. } => {
            Refusal::input("PATHS_RANK_UNKNOWN", "target_rank").with("rank_count", count)
        }
        MultiPathError::Same { .. } => Refusal::input("PATHS_RANK_TWICE", "target_rank"),
        MultiPathError::Empty => Refusal::input("PATHS_SIZE_INVALID", "size_bytes"),
        MultiPathError::Count { .. } => Refusal::input("PATHS_MAX_INVALID", "paths_max").with("limit", PATHS_MAX),
        MultiPathError::Rates => Refusal::infeasible("PATHS_RATES", "topology"),
        MultiPathError::Unreachable { from, to } => {
            Refusal::infeasible("PATHS_UNREACHABLE", format!("rank {from} to rank {to}"))
        }
        // Only those who do not wait any more have their searches stopped.
        MultiPathError::Stopped(_) => Refusal::new(Code::Cancelled, "PATHS_STOPPED", Detail::None),
    }
}

fn order(error: &OrderError) -> Refusal {
    match error {
        OrderError::Machines(_) => Refusal::infeasible("ORDER_MACHINES_UNKNOWN", "topology"),
        OrderError::Hosts(_) | OrderError::Part(_) => Refusal::input("ORDER_NODES_INVALID", "nodes"),
        OrderError::Groups(_) => Refusal::input("ORDER_GROUPS_INVALID", "groups"),
        // Only those who do not wait any more have their searches stopped.
        OrderError::Stopped(_) => Refusal::new(Code::Cancelled, "ORDER_STOPPED", Detail::None),
    }
}

fn simulation(error: &SimulationError) -> Refusal {
    const LARGE: &str = "SIMULATION_TOO_LARGE";
    let invalid = |field: String| Refusal::input("SIMULATION_INVALID", field);
    match error {
        SimulationError::TooManySizes { limit, .. } => invalid("sizes_bytes".to_owned()).with("limit", limit),
        SimulationError::Alpha { limit, .. } => invalid("alpha_ns".to_owned()).with("limit", limit),
        SimulationError::Size { field, min, max, .. } => {
            invalid(field.to_string()).with("size_bytes_min", min).with("size_bytes_max", max)
        }
        SimulationError::Repeated { field, .. }
        | SimulationError::TooLong { field, .. }
        | SimulationError::NoTime { field, .. } => invalid(field.to_string()),
        SimulationError::FileTooLarge { found, limit } => {
            Refusal::infeasible(LARGE, "name").with("file_bytes", found).with("limit", limit)
        }
        SimulationError::TooManyHops { found, limit } => {
            Refusal::infeasible(LARGE, "name").with("hops", found).with("limit", limit)
        }
        SimulationError::TooMuchWork { field, messages, limit, .. } => {
            Refusal::infeasible(LARGE, field.to_string()).with("messages", messages).with("limit", limit)
        }
        SimulationError::NoTimeline { ranks } => Refusal::infeasible(LARGE, "timeline_size_bytes").with("ranks", ranks),
        // Of a plan that was judged before it was stored.
        SimulationError::File(_) | SimulationError::Compile(_) | SimulationError::Rule(_) | SimulationError::Run(_) => {
            Refusal::fault("CALL_FAILED")
        }
        // Only those who do not wait any more have their simulations stopped.
        SimulationError::Stopped => Refusal::new(Code::Cancelled, "SIMULATION_STOPPED", Detail::None),
    }
}

fn topologies(error: &TopologyStoreError) -> Refusal {
    match error {
        TopologyStoreError::TooMany { .. } | TopologyStoreError::TooLarge { .. } => {
            Refusal::limit("TOPOLOGIES_FULL", "topologies")
        }
        TopologyStoreError::Damaged { id, .. } => {
            Refusal::new(Code::DataLoss, "STORED_TOPOLOGY_CORRUPT", Detail::Resource(TOPOLOGY, id.clone()))
        }
        TopologyStoreError::OverQuota(over) => over_quota(over),
        TopologyStoreError::Store(error) => store(error),
    }
}

fn archive(error: &ArchiveError) -> Refusal {
    match error {
        ArchiveError::Store(error) => store(error),
        // Of the file that takes the archive while it comes in.
        ArchiveError::Io(_) => Refusal::new(Code::Unavailable, "STORE_UNREACHABLE", Detail::Retry(RETRY_BUSY)),
        ArchiveError::Magic => Refusal::input("ARCHIVE_DAMAGED", "piece"),
        ArchiveError::Damaged { offset, .. } => Refusal::input("ARCHIVE_DAMAGED", "piece").with("offset", offset),
        ArchiveError::Unsigned | ArchiveError::Signer { .. } => {
            Refusal::new(Code::PermissionDenied, "ARCHIVE_UNTRUSTED", Detail::None)
        }
        ArchiveError::Version(_) => Refusal::infeasible("ARCHIVE_VERSION", "archive"),
        ArchiveError::TooLarge { limit } => Refusal::limit("ARCHIVE_TOO_LARGE", "archive").with("limit", limit),
    }
}

fn missing(reason: &'static str, kind: Cow<'static, str>, name: &str) -> Refusal {
    Refusal::new(Code::NotFound, reason, Detail::Resource(kind, name.to_owned()))
}
