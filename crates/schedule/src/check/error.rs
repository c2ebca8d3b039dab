//! Why a transfer graph was refused, by check.

use crate::collective::CollectiveKind;
use crate::fault::PathFault;
use crate::weights_error::SharesError;

/// It is not a well-formed graph on this topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StructureError {
    #[error("the graph is for {found} ranks, but the topology has {expected}")]
    RankCount { found: u32, expected: u32 },
    #[error("root {root} is not a rank; there are {rank_count}")]
    UnknownRoot { root: u32, rank_count: u32 },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("route {route}")]
    Route { route: usize, source: RouteFault },
    #[error(
        "batch {batch} owns transfers {start} to {end}; batches own one or more transfers each, without gaps, here from \
         {expected} on"
    )]
    BatchTransfers { batch: usize, start: u32, end: u32, expected: u32 },
    #[error("transfer {transfer} belongs to no batch")]
    NoBatch { transfer: u32 },
    #[error("batch {batch}: root {root} is not a rank")]
    BatchRoot { batch: usize, root: u32 },
    #[error(
        "batch {batch}: {count} chunks from chunk {first} are an empty range, or end beyond the {total} chunks of the \
         vector"
    )]
    ChunkRange { batch: usize, first: u64, count: u64, total: u64 },
    #[error("batch {batch}: its chunks from chunk {first} cross the end of a share or block at {limit}")]
    AcrossShares { batch: usize, first: u64, limit: u64 },
    #[error("the graph has {found} steps for {expected} transfers")]
    StepCount { found: usize, expected: usize },
    #[error("transfer {transfer} (rank {from} -> rank {to})")]
    Transfer { transfer: u32, from: u32, to: u32, source: TransferFault },
}

/// Why a list of links is not a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RouteFault {
    #[error("it has no links")]
    Empty,
    #[error("its link {position} is {link}, but the topology has {link_count} links")]
    UnknownLink { position: usize, link: u32, link_count: usize },
    #[error("its link {position} does not start where the previous link ends")]
    Gap { position: usize },
    #[error("it passes rank {rank} before its link {position}, but only switches may lie between its ends")]
    ThroughRank { position: usize, rank: u32 },
}

/// Why a transfer is not well-formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TransferFault {
    #[error("rank {rank} does not exist")]
    UnknownRank { rank: u32 },
    #[error("a rank cannot send to itself")]
    ToItself,
    #[error("its carriers lie outside the table")]
    CarrierRange,
    #[error("route {route} does not exist")]
    UnknownRoute { route: u32 },
    #[error("route {route} leads from node {start} to node {end}")]
    RouteEnds { route: u32, start: u32, end: u32 },
    #[error("a carrier on route {route} carries no chunk")]
    EmptyCarrier { route: u32 },
    #[error("its carriers carry {found} chunks, its batch has {expected}")]
    CarrierSum { found: u128, expected: u64 },
    #[error("its dependencies lie outside the table")]
    DependencyRange,
    #[error("it depends on transfer {dependency}, which is not earlier")]
    ForwardDependency { dependency: u32 },
    #[error("it is in step {step}, after a transfer in step {before}")]
    StepOrder { step: u32, before: u32 },
    #[error("in step {step} it sends data that transfer {dependency} has not delivered before that step")]
    SameStep { dependency: u32, step: u32 },
    #[error("the tree has not reached the sender")]
    SenderNotReached,
    #[error("the tree has already reached the receiver, or starts there")]
    ReachedTwice,
    #[error("the sender has already sent, or is the root of the reduction")]
    SendsTwice,
    #[error("the receiver has already sent its sum")]
    ReceivesLate,
    #[error("the receiver is not the root and never forwards what it receives")]
    EndsEarly,
}

/// A flow is not well-formed, or does not bring every rank what the collective promises.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FlowError {
    #[error("the schedule has shape `{shape}`, but only flows are checked without their transfer graph; compile it")]
    NotAFlow { shape: &'static str },
    #[error("{collective} cannot be written as a flow; use steps, which can express every collective")]
    Unsupported { collective: CollectiveKind },
    #[error("paths[{path}]")]
    Path { path: usize, source: PathFault },
    #[error("paths from rank {source_rank} to rank {destination} carry {found} chunks, but {expected} must be sent")]
    TooFewPaths { source_rank: u32, destination: u32, found: u64, expected: u64 },
}

impl FlowError {
    /// Name of the check that failed: `meaning` where the numbers of chunks are wrong, else `structure`.
    pub const fn check(&self) -> &'static str {
        match self {
            Self::TooFewPaths { .. }
            | Self::Path { source: PathFault::Unexpected { .. } | PathFault::TooManyChunks { .. }, .. } => "meaning",
            Self::NotAFlow { .. } | Self::Unsupported { .. } | Self::Path { .. } => "structure",
        }
    }
}

/// It does not compute what the collective promises.
///
/// A *contribution* is what a rank puts in at the start; chunks are named by number. Where a fault concerns a range of
/// chunks, the first one is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MeaningError {
    #[error("transfer {transfer}: rank {from} sends chunk {chunk} to rank {to}, but does not hold it")]
    NothingToSend { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error("transfer {transfer}: rank {to} reduces chunk {chunk} from rank {from}, but holds nothing to add it to")]
    NothingToReduceInto { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error(
        "transfer {transfer}: rank {to} reduces chunk {chunk} from rank {from}, and would then hold rank \
         {contribution}'s contribution twice"
    )]
    ReducedTwice { transfer: u32, from: u32, to: u32, chunk: u64, contribution: u32 },
    #[error(
        "transfer {transfer}: the copy of chunk {chunk} from rank {from} would destroy rank {contribution}'s contribution at rank {to}"
    )]
    Destroys { transfer: u32, from: u32, to: u32, chunk: u64, contribution: u32 },
    #[error("transfer {transfer}: rank {to} already holds the copy of chunk {chunk} that rank {from} sends")]
    Redundant { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error(
        "transfers {first} and {second} both access chunk {chunk} at rank {rank}, at least one writes it, and no \
         dependency orders them"
    )]
    Unordered { first: u32, second: u32, rank: u32, chunk: u64 },
    #[error("rank {rank} ends without rank {contribution}'s contribution to chunk {chunk}")]
    Missing { rank: u32, chunk: u64, contribution: u32 },
}

/// Its load has no exact value here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LoadError {
    #[error("no link carries data, so the schedule has no rate; plan for at least two ranks that exchange data")]
    NothingMoves,
    #[error("link {link} carries more than 2¹²⁸ chunks")]
    Overflow { link: u32 },
    #[error("all links together carry more than 2¹²⁸ chunks")]
    TooMuchTraffic,
    #[error("the trees of one phase expand to {found} trees, more than 18446744073709551615")]
    TooManyTrees { found: u128 },
}
