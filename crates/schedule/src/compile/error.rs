//! Why a schedule has no transfer graph.

use std::fmt;

use crate::collective::CollectiveKind;
use crate::fault::PathFault;
use crate::orbits::ExpansionError;
use crate::stages::TreesError;
use crate::weights_error::SharesError;

/// Position of a tree in a forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePlace {
    /// Position of its phase.
    pub phase: usize,
    /// Its position in the phase.
    pub tree: usize,
}

impl fmt::Display for TreePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phases[{}].trees[{}]", self.phase, self.tree)
    }
}

/// Each variant says where, what was found, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum CompileError {
    #[error("{collective} cannot be written as a {shape}; use steps, which can express every collective")]
    Unsupported { collective: CollectiveKind, shape: &'static str },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(transparent)]
    Stages(#[from] TreesError),
    #[error(transparent)]
    Orbits(#[from] ExpansionError),
    #[error("stopped before the schedule was compiled")]
    Stopped,
    #[error(
        "the {found} phases do not match {collective}; use reduce, then copy for allreduce, and one phase for others"
    )]
    Phases { collective: CollectiveKind, found: usize },
    #[error("root {root} is not a rank; there are {rank_count}")]
    UnknownRoot { root: u32, rank_count: u32 },
    #[error("the trees have {found} hops in all, over the limit of {limit}; use fewer trees or higher multiplicities")]
    TooManyHops { found: usize, limit: usize },
    #[error("{place}.multiplicity is 0; remove the tree")]
    NoMultiplicity { place: TreePlace },
    #[error("{place}: with this tree, the trees of root {share} carry more than the {limit} chunks of a share")]
    TooManyTrees { place: TreePlace, share: u32, limit: u64 },
    #[error(
        "phases[{phase}]: the multiplicities of root {share} add up to {found}, not to the {expected} chunks of a share"
    )]
    TooFewTrees { phase: usize, share: u32, found: u64, expected: u64 },
    #[error("{place}.root is {root}, which has no share to move or is out of order; list trees by increasing root")]
    UnexpectedRoot { place: TreePlace, root: u32 },
    #[error("{place}.hops is empty or lies outside the table of hops")]
    NoHops { place: TreePlace },
    #[error("{place}.hops[{hop}].carriers lies outside the table of carriers")]
    NoCarriers { place: TreePlace, hop: usize },
    #[error("{place} has {found} hops, but a tree that reaches every rank has {expected}")]
    NotSpanning { place: TreePlace, found: usize, expected: usize },
    #[error("{place}.hops[{hop}]")]
    Hop { place: TreePlace, hop: usize, source: HopFault },
    #[error("the schedule has {found} sends, over the limit of {limit}; use fewer")]
    TooManySends { found: usize, limit: usize },
    #[error("sends[{send}]")]
    Send { send: usize, source: SendFault },
    #[error(
        "the chunk ranges of the sends overlap too often: ordering them takes more than {limit} steps of work; use \
         fewer sends, or ranges that do not overlap in part"
    )]
    TooTangled { limit: u64 },
    #[error("the paths have {found} hops in all, over the limit of {limit}; use fewer paths")]
    TooManyPathHops { found: usize, limit: usize },
    #[error("paths[{path}]")]
    Path { path: usize, source: PathFault },
    #[error("paths from rank {source_rank} to rank {destination} carry {found} chunks, but {expected} must be sent")]
    TooFewPaths { source_rank: u32, destination: u32, found: u64, expected: u64 },
}

/// Why a send of a stepped schedule cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SendFault {
    #[error("its step is {found}, after a send in step {before}; list sends by increasing step")]
    StepOrder { found: u32, before: u32 },
    #[error("rank {rank} does not exist; there are {rank_count}")]
    UnknownRank { rank: u32, rank_count: u32 },
    #[error("rank {rank} sends to itself")]
    ToItself { rank: u32 },
    #[error("chunks {start} to {end} are an empty range, or end beyond the {total} chunks of the vector")]
    ChunkRange { start: u64, end: u64, total: u64 },
    #[error("chunks {start} to {end} cross the end of a share or block at {limit}; split the send")]
    AcrossShares { start: u64, end: u64, limit: u64 },
    #[error("its range of carriers is empty or lies outside the table of carriers")]
    NoCarriers,
    #[error(
        "in step {step} it overwrites what rank {rank} still has to send, in a cycle of sends; put the sends into \
         different steps"
    )]
    Circular { step: u32, rank: u32 },
}

/// Why a hop does not fit into its tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum HopFault {
    #[error("rank {rank} does not exist; there are {rank_count}")]
    UnknownRank { rank: u32, rank_count: u32 },
    #[error("rank {rank} sends to itself")]
    ToItself { rank: u32 },
    #[error("rank {rank} sends before the tree reaches it; list the hop that reaches it first")]
    SenderNotReached { rank: u32 },
    #[error("rank {rank} receives, but is already in the tree")]
    ReachedTwice { rank: u32 },
    #[error("rank {rank} is the root or sends a second time; in a reduce tree every rank but the root sends once")]
    SendsTwice { rank: u32 },
    #[error("rank {rank} receives after it has sent; list its incoming hops first")]
    ReceivesLate { rank: u32 },
}
