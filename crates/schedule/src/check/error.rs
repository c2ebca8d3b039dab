//! Why a transfer graph was refused, by check.

use crate::collective::CollectiveKind;
use crate::fault::PathFault;
use crate::weights_error::SharesError;

/// It is not a well-formed graph on this topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StructureError {
    #[error("the graph is for {found} ranks, the topology has {expected}")]
    RankCount { found: u32, expected: u32 },
    #[error("root {root} is not a rank; there are {rank_count}")]
    UnknownRoot { root: u32, rank_count: u32 },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("route {route}")]
    Route { route: usize, source: RouteFault },
    #[error(
        "batch {batch} owns transfers {start} to {end}, but batches must own one or more each, from {expected} on, without gaps"
    )]
    BatchTransfers { batch: usize, start: u32, end: u32, expected: u32 },
    #[error("transfer {transfer} belongs to no batch")]
    NoBatch { transfer: u32 },
    #[error("batch {batch}: root {root} is not a rank")]
    BatchRoot { batch: usize, root: u32 },
    #[error("batch {batch}: {count} chunks from {first} on are none or not all among the {total} of the vector")]
    ChunkRange { batch: usize, first: u64, count: u64, total: u64 },
    #[error(
        "batch {batch}: its chunks from {first} on belong to several shares or blocks, the first of which ends at {limit}"
    )]
    AcrossShares { batch: usize, first: u64, limit: u64 },
    #[error("the graph has steps for {found} transfers, but {expected} transfers")]
    StepCount { found: usize, expected: usize },
    #[error("transfer {transfer} (rank {from} -> rank {to})")]
    Transfer { transfer: u32, from: u32, to: u32, source: TransferFault },
}

/// Why a list of links is no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RouteFault {
    #[error("it has no link")]
    Empty,
    #[error("its link {position} is {link}, but the topology has {link_count} links")]
    UnknownLink { position: usize, link: u32, link_count: usize },
    #[error("its link {position} does not start where the one before ends")]
    Gap { position: usize },
    #[error("before its link {position} it passes rank {rank}; only switches may lie between the ends")]
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
    #[error("it depends on transfer {dependency}, which is not an earlier one")]
    ForwardDependency { dependency: u32 },
    #[error("it is in step {step}, after one in step {before}")]
    StepOrder { step: u32, before: u32 },
    #[error("in step {step} it sends what transfer {dependency} has not brought before that step")]
    SameStep { dependency: u32, step: u32 },
    #[error("the tree has not reached the sender")]
    SenderNotReached,
    #[error("the tree has reached the receiver before, or starts there")]
    ReachedTwice,
    #[error("the sender has sent before, or is the root of the reduction")]
    SendsTwice,
    #[error("the receiver has sent its sum already")]
    ReceivesLate,
    #[error("the receiver is not the root and never sends on what it is given")]
    EndsEarly,
}

/// A flow is not well-formed, or does not bring every rank what the collective promises.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FlowError {
    #[error("the schedule has shape `{shape}`, and only flows are judged without their transfer graph; compile it")]
    NotAFlow { shape: &'static str },
    #[error("{collective} cannot be written as a flow; steps can express every collective")]
    Unsupported { collective: CollectiveKind },
    #[error("paths[{path}]")]
    Path { path: usize, source: PathFault },
    #[error(
        "paths from rank {source_rank} to rank {destination} take {found} chunks, but {expected} have to go that way"
    )]
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
    #[error("transfer {transfer}: rank {from} sends chunk {chunk} to rank {to}, but holds nothing of it")]
    NothingToSend { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error("transfer {transfer}: rank {to} reduces chunk {chunk} from rank {from} into a place that holds nothing")]
    NothingToReduceInto { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error(
        "transfer {transfer}: rank {to} reduces chunk {chunk} from rank {from}; it would hold rank {contribution}'s contribution twice"
    )]
    ReducedTwice { transfer: u32, from: u32, to: u32, chunk: u64, contribution: u32 },
    #[error(
        "transfer {transfer}: the copy of chunk {chunk} from rank {from} would destroy rank {contribution}'s contribution at rank {to}"
    )]
    Destroys { transfer: u32, from: u32, to: u32, chunk: u64, contribution: u32 },
    #[error("transfer {transfer}: rank {to} already holds the copy of chunk {chunk} that rank {from} sends")]
    Redundant { transfer: u32, from: u32, to: u32, chunk: u64 },
    #[error(
        "transfers {first} and {second} both touch chunk {chunk} at rank {rank}, one writes it, and no dependency orders them"
    )]
    Unordered { first: u32, second: u32, rank: u32, chunk: u64 },
    #[error("rank {rank} ends without rank {contribution}'s contribution to chunk {chunk}")]
    Missing { rank: u32, chunk: u64, contribution: u32 },
}

/// Its load has no exact value here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LoadError {
    #[error("no link carries anything, so there is no rate; at least one rank needs something from another")]
    NothingMoves,
    #[error("link {link} carries more than 2¹²⁸ chunks")]
    Overflow { link: u32 },
    #[error("all links together carry more than 2¹²⁸ chunks")]
    TooMuchTraffic,
    #[error(
        "the {routes} routes take times that have no common unit of less than 2¹²⁸ to all of them; let fewer routes share \
         each link, or let steps begin together"
    )]
    NoCommonUnit { routes: usize },
    #[error("the trees of one phase stand for {found} trees, more than 18446744073709551615")]
    TooManyTrees { found: u128 },
}
