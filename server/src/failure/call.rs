//! Why a call that makes no plan has no answer.

use std::sync::Arc;

use canopy_finder::FindError;
use canopy_multiport::MultiPathError;
use canopy_plan::NoSuchRank;
use canopy_planner::chain;
use canopy_topology::Slot;

use super::PlanFailure;
use crate::store::receipts::{NotAnId, ReceiptError};
use crate::store::topologies::TopologyStoreError;
use crate::store::{ArchiveError, DamagedRecord, StoreError};

/// Why a lease is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("{count} leases are held, as many as may be; release some, or let them expire")]
    TooMany { count: usize },
    #[error("leases hold {held} bytes, and this one of {found} would exceed the limit of {limit}; release some")]
    TooLarge { held: usize, found: usize, limit: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why there is no answer to a call about cached plans, operations or the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error(transparent)]
    Plan(#[from] PlanFailure),
    #[error("there is no plan `{name}` in the cache; ask for it again, or list the plans")]
    PlanUnknown { name: String },
    #[error("the stored plan `{name}` was damaged and is in quarantine: {damage}; ask for it again")]
    PlanDamaged { name: String, damage: DamagedRecord },
    #[error("plan `{plan}` has no file of format {}{}; ask for one that it lists", format, kind(profile, *instances))]
    ArtifactUnknown { plan: String, format: &'static str, profile: String, instances: u32 },
    #[error(
        "rank {rank} of plan `{plan}` is {}, and {} by the placement given; a plan holds for its own devices only, ask \
         for one with this placement",
        place(has),
        place(wanted)
    )]
    RankMap { plan: String, rank: usize, has: Option<Slot>, wanted: Option<Slot> },
    #[error(
        "plan `{plan}` was made without a rank map, and the placement given has rank 0 on {wanted}; ask for a plan with this placement"
    )]
    NoRankMap { plan: String, wanted: Slot },
    #[error("the file ends at byte {size}, and the offset is {offset}; use 0 to {size}")]
    Offset { offset: u64, size: u64 },
    #[error("files of format {} cannot be cut by ranks; fetch the whole file", format)]
    NotSliced { format: &'static str },
    #[error(transparent)]
    SliceRank(#[from] NoSuchRank),
    #[error("there is no topology `{name}`; put it, or list the topologies")]
    TopologyUnknown { name: String },
    #[error(transparent)]
    TopologyStore(#[from] TopologyStoreError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("{field}: rank {rank} is not in the topology, whose ranks are below {count}")]
    PathsRank { field: &'static str, rank: u32, count: u32 },
    #[error(transparent)]
    Paths(#[from] MultiPathError),
    #[error(
        "operation `{name}` does not exist or has expired, or another server behind this address has it; list the operations"
    )]
    OperationUnknown { name: String },
    #[error("the filter cannot be read at position {position}: {problem}")]
    Filter { position: usize, problem: String },
    #[error("the order cannot be read: {problem}")]
    OrderBy { problem: String },
    #[error("a page of {found} is asked for, over the limit of {limit}; ask for less, and for more pages")]
    PageSize { found: u32, limit: u32 },
    #[error("the page token is not one of this list; use the last one with the same filter and order, or none")]
    PageToken,
    #[error("names and a filter say what to evict; give one of them, and not both")]
    EvictionTarget,
    #[error("{found} plans are named, over the limit of {limit}; send several requests")]
    TooManyNames { found: usize, limit: usize },
    #[error("the time-out is negative; leave it out or give a positive one")]
    Timeout,
    #[error("{found} faults are in one message, over the limit of {limit}; send several")]
    TooManyEvents { found: usize, limit: usize },
    #[error("{}; a lease is planned around {faults}; clear those that are over", chain(&**failure))]
    AroundFaults { failure: Arc<PlanFailure>, faults: String },
    #[error("{field}: {problem}")]
    Faults { field: &'static str, problem: String },
    #[error("job `{job}` holds no lease; list the leases, or name a topology or machines")]
    JobUnknown { job: String },
    #[error("plans in common cannot be made around faults, and {faults}; wait until they are cleared, or ignore them")]
    JointFaults { faults: String },
    #[error("faults[{position}]: {problem}")]
    FaultTarget { position: usize, problem: String },
    #[error(
        "the resume token is none of this server, or events after it are kept no more; list the leases and watch from now on"
    )]
    ResumeToken,
    #[error("{limit} watches are open, as many as a {of} may have; end some, or watch all leases with one")]
    TooManyWatches { of: &'static str, limit: u64 },
    #[error(
        "lease `{name}` does not exist or has ended, or another server behind this address has it (canopyd runs as one replica); acquire it again, or list the leases"
    )]
    LeaseUnknown { name: String },
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
    #[error("{record} of the archive cannot be taken: {problem}; nothing was taken")]
    ArchiveRecord { record: String, problem: String },
    #[error("the piece of the archive at byte {offset} {problem}; nothing was taken")]
    Piece { offset: u64, problem: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "only the Unix socket in the data directory may drain the server{}; use `canopy drain --server unix:…/canopy.sock`, or send SIGTERM",
        if *.is_here { ", unless allow_loopback_drain is set" } else { "" }
    )]
    DrainRefused { is_here: bool },
    #[error("the deadline of {deadline_ms} ms was reached before the answer; allow more time")]
    Late { deadline_ms: u64 },
    #[error("nothing of the request has arrived for {seconds} s; send it again")]
    Silence { seconds: u64 },
    #[error(
        "only {arrived} of the {length} bytes of a message have arrived in time; send at least {rate} bytes per second"
    )]
    Slow { arrived: u64, length: u64, rate: u64 },
    #[error("the call failed inside the server; this is a bug in canopy, please report it")]
    Broken { what: String },
}

/// Where a rank is, in words.
fn place(slot: &Option<Slot>) -> String {
    slot.as_ref().map_or_else(|| "not there".to_owned(), |slot| format!("on {slot}"))
}

/// What tells a file from others of its format, as far as it was asked for.
fn kind(profile: &str, instances: u32) -> String {
    let profile = if profile.is_empty() { String::new() } else { format!(" for profile `{profile}`") };
    if instances > 0 { format!("{profile} with {instances} instances") } else { profile }
}
