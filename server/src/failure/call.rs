//! Errors of calls that make no plan.

use std::sync::Arc;

use canopy_design::finder::FindError;
use canopy_direct::multiport::MultiPathError;
use canopy_order::OrderError;
use canopy_plan::{NoSuchRank, RankFileError};
use canopy_planner::{SimulationError, chain};
use canopy_service::ServiceError;
use canopy_topology::Slot;
use canopy_wire::Code;

use super::{ClusterFailure, GroupsFailure, MovingFailure, PlanFailure, call_refusal};
use crate::quota::OverQuota;
use crate::store::receipts::{NotAnId, ReceiptError};
use crate::store::topologies::TopologyStoreError;
use crate::store::{ArchiveError, DamagedRecord, MayBeOvertaken, StoreError};

/// Why a lease is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("the limit of {count} leases is reached; release some, or let them expire")]
    TooMany { count: usize },
    #[error("leases hold {held} bytes, and this one of {found} bytes would exceed the limit of {limit}; release some")]
    TooLarge { held: usize, found: usize, limit: usize },
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MayBeOvertaken for LeaseError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_overtaken())
    }
}

/// Describes a name that is missing, or that no resource of a kind, such as `a plan`, can have.
fn malformed(field: &str, name: &str, one: &str) -> String {
    if name.is_empty() { format!("{field} is missing") } else { format!("`{name}` is not the name of {one}") }
}

/// Errors of calls about cached plans, operations or the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error(transparent)]
    Plan(#[from] PlanFailure),
    #[error("plan `{name}` is not in the cache; request it again, or list the plans")]
    PlanUnknown { name: String },
    #[error("{}; list the {all}, whose names are such as `{such_as}`", malformed(field, name, one))]
    NameMalformed { field: &'static str, name: String, one: &'static str, all: &'static str, such_as: &'static str },
    #[error("the stored plan `{name}` is damaged and was quarantined: {damage}; request it again")]
    PlanDamaged { name: String, damage: DamagedRecord },
    #[error("plan `{plan}` has no file of format {}{}; name one that it lists", format, kind(profile, *instances))]
    ArtifactUnknown { plan: String, format: &'static str, profile: String, instances: u32 },
    #[error(
        "rank {rank} of plan `{plan}` is {}, but {} in the given placement; request a plan for this placement",
        place(has),
        place(wanted)
    )]
    RankMap { plan: String, rank: usize, has: Option<Slot>, wanted: Option<Slot> },
    #[error(
        "plan `{plan}` has no rank map, and the given placement has rank 0 on {wanted}; request a plan for this placement"
    )]
    NoRankMap { plan: String, wanted: Slot },
    #[error("offset {offset} is beyond the end of the file at byte {size}; use 0 to {size}")]
    Offset { offset: u64, size: u64 },
    #[error("files of format {} cannot be sliced by rank; fetch the whole file", format)]
    NotSliced { format: &'static str },
    #[error(transparent)]
    SliceRank(#[from] NoSuchRank),
    #[error(transparent)]
    RankFile(RankFileError),
    #[error("topology `{name}` is not stored; store it, or list the topologies")]
    TopologyUnknown { name: String },
    #[error(transparent)]
    TopologyStore(#[from] TopologyStoreError),
    #[error(transparent)]
    Cluster(#[from] ClusterFailure),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("{field}: rank {rank} is not in the topology; use a rank below {count}")]
    PathsRank { field: &'static str, rank: u32, count: u32 },
    #[error(transparent)]
    Paths(#[from] MultiPathError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error(transparent)]
    Groups(#[from] GroupsFailure),
    #[error(transparent)]
    Moving(#[from] MovingFailure),
    #[error("{}", chain(.0))]
    Simulation(#[from] SimulationError),
    #[error(
        "plan `{plan}` has no file of format OUTPUT_FORMAT_JSON, which simulation reads; request the plan with it among its outputs"
    )]
    NotSimulated { plan: String },
    #[error(
        "operation `{name}` does not exist or has expired{}; list the operations",
        elsewhere(*is_shared)
    )]
    OperationUnknown { name: String, is_shared: bool },
    #[error("the filter cannot be read at position {position}: {problem}")]
    Filter { position: usize, problem: String },
    #[error("the order cannot be read: {problem}")]
    OrderBy { problem: String },
    #[error("page size {found} exceeds the limit of {limit}; request smaller pages")]
    PageSize { found: u32, limit: u32 },
    #[error("the page token does not belong to this list; use the last token with the same filter and order, or none")]
    PageToken,
    #[error("`names` and `filter` exclude each other; set exactly one")]
    EvictionTarget,
    #[error("plan `{plan}` is shared by all tenants; only callers that act for no tenant may change it")]
    SharedPlan { plan: String },
    #[error("{what} belongs to tenant `{owner}`; act for that tenant (header x-canopy-tenant), or ask it")]
    NotOwner { what: String, owner: String },
    #[error("{found} plans are named, over the limit of {limit}; send several requests")]
    TooManyNames { found: usize, limit: usize },
    #[error("the time-out is negative; use a positive one, or leave it out")]
    Timeout,
    #[error("{found} faults in one message exceed the limit of {limit}; send several messages")]
    TooManyEvents { found: usize, limit: usize },
    #[error("a lease is planned around {faults}, and no such plan can be made: {}", chain(&**failure))]
    AroundFaults { failure: Arc<PlanFailure>, faults: String },
    #[error("{field}: {problem}")]
    Faults { field: &'static str, problem: String },
    #[error("job `{job}` holds no lease; list the leases, or name a topology or machines")]
    JobUnknown { job: String },
    #[error(
        "joint plans cannot be made around {faults}; wait until they are cleared, or ignore them with FAULT_POLICY_IGNORE"
    )]
    JointFaults { faults: String },
    #[error("faults[{position}]: {problem}")]
    FaultTarget { position: usize, problem: String },
    #[error(
        "the resume token is unknown to this server, or later events are no longer kept; list the leases and start a new watch"
    )]
    ResumeToken,
    #[error("the limit of {limit} watches per {of} is reached; end some, or watch all leases with one")]
    TooManyWatches { of: &'static str, limit: u64 },
    #[error(
        "lease `{name}` does not exist or has ended{}; acquire it again, or list the leases",
        elsewhere(*is_shared)
    )]
    LeaseUnknown { name: String, is_shared: bool },
    #[error("{field}: {problem}")]
    Lease { field: String, problem: String },
    #[error(transparent)]
    Leases(#[from] LeaseError),
    #[error(transparent)]
    RequestId(#[from] NotAnId),
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(
        "{record} of the archive is refused: {problem} (nothing was imported); \
         leave it out: delete it where it is from, with `canopy server plans evict` or `canopy network delete`, and export again"
    )]
    ArchiveRecord { record: String, problem: String },
    #[error("the piece of the archive at byte {offset} {problem} (nothing was imported)")]
    Piece { offset: u64, problem: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the server can be drained only over the Unix socket in its data directory{}; use `canopy server drain --server unix:…/canopy.sock`, or send SIGTERM",
        if *.is_here { ", unless allow_loopback_drain is set" } else { "" }
    )]
    DrainRefused { is_here: bool },
    #[error("this server is inside another program, which configures it; ask a server that runs by itself")]
    NoConfiguration,
    #[error("{problem}")]
    LogFilter { field: &'static str, problem: String },
    #[error("deadline exceeded ({deadline_ms} ms) before the answer; allow more time")]
    Late { deadline_ms: u64 },
    #[error("the request stalled: nothing arrived for {seconds} s; send it again")]
    Silence { seconds: u64 },
    #[error(
        "the request is too slow: {arrived} of {length} bytes arrived in time; send at least {rate} bytes per second"
    )]
    Slow { arrived: u64, length: u64, rate: u64 },
    #[error("the call failed inside the server; this is a bug in canopy: please report it")]
    Broken { what: String },
}

/// Where else something may be. Servers that share a database know the same.
const fn elsewhere(is_shared: bool) -> &'static str {
    if is_shared {
        ""
    } else {
        ", or is on another server behind this address (run one canopyd, or several on one database)"
    }
}

impl CallFailure {
    /// Whether it says that something is not there.
    pub(crate) fn is_of_absence(&self) -> bool {
        matches!(self, Self::ResumeToken) || call_refusal(self).code == Code::NotFound
    }
}

impl MayBeOvertaken for CallFailure {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_overtaken())
    }
}

/// Where a rank is, as text.
fn place(slot: &Option<Slot>) -> String {
    slot.as_ref().map_or_else(|| "not there".to_owned(), |slot| format!("on {slot}"))
}

/// What distinguishes a file from others of its format, as far as the request states it.
fn kind(profile: &str, instances: u32) -> String {
    let profile = if profile.is_empty() { String::new() } else { format!(" for profile `{profile}`") };
    if instances > 0 { format!("{profile} with {instances} instances") } else { profile }
}

impl From<ServiceError> for CallFailure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Request(error) => PlanFailure::Request(error).into(),
            ServiceError::Plan(error) => PlanFailure::from(error).into(),
            ServiceError::Store(error) => error.into(),
            ServiceError::Memory { needed, limit } => PlanFailure::JobMemory { needed, limit }.into(),
            ServiceError::Late => PlanFailure::Stopped.into(),
            ServiceError::Broken { what } => Self::Broken { what },
        }
    }
}
