//! Why a schedule has no transfer graph.

use std::fmt;

use crate::collective::CollectiveKind;
use crate::fault::PathFault;
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
    #[error("{collective} cannot be written as a {shape}; steps can express every collective")]
    Unsupported { collective: CollectiveKind, shape: &'static str },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("stopped before the schedule was compiled")]
    Stopped,
    #[error("the {found} phases are not those of {collective}; allreduce is reduce then copy, others have one phase")]
    Phases { collective: CollectiveKind, found: usize },
    #[error("root {root} is not a rank; there are {rank_count}")]
    UnknownRoot { root: u32, rank_count: u32 },
    #[error("the trees have {found} hops in all, over the limit of {limit}; use fewer trees or higher multiplicities")]
    TooManyHops { found: usize, limit: usize },
    #[error("{place}.multiplicity is 0; leave the tree out")]
    NoMultiplicity { place: TreePlace },
    #[error("{place}: with it, the trees of root {share} take more than the {limit} chunks of a share")]
    TooManyTrees { place: TreePlace, share: u32, limit: u64 },
    #[error(
        "phases[{phase}]: the multiplicities of root {share} add up to {found}, not to the {expected} chunks of a share"
    )]
    TooFewTrees { phase: usize, share: u32, found: u64, expected: u64 },
    #[error("{place}.root is {root}, which has no share to move or comes out of order; list trees by increasing root")]
    UnexpectedRoot { place: TreePlace, root: u32 },
    #[error("{place}.hops is empty or lies outside the table of hops")]
    NoHops { place: TreePlace },
    #[error("{place}.hops[{hop}].carriers lies outside the table of carriers")]
    NoCarriers { place: TreePlace, hop: usize },
    #[error("{place} has {found} hops; a tree that reaches every rank has {expected}")]
    NotSpanning { place: TreePlace, found: usize, expected: usize },
    #[error("{place}.hops[{hop}]")]
    Hop { place: TreePlace, hop: usize, source: HopFault },
    #[error("there are {found} sends, over the limit of {limit}; use fewer")]
    TooManySends { found: usize, limit: usize },
    #[error("sends[{send}]")]
    Send { send: usize, source: SendFault },
    #[error(
        "the sends meet in so many chunk ranges that ordering them takes more than {limit} steps of work; use fewer \
         sends, or ranges that do not overlap in part"
    )]
    TooTangled { limit: u64 },
    #[error("the paths have {found} hops in all, over the limit of {limit}; use fewer paths")]
    TooManyPathHops { found: usize, limit: usize },
    #[error("paths[{path}]")]
    Path { path: usize, source: PathFault },
    #[error(
        "paths from rank {source_rank} to rank {destination} take {found} chunks, but {expected} have to go that way"
    )]
    TooFewPaths { source_rank: u32, destination: u32, found: u64, expected: u64 },
}

/// Why a send of a stepped schedule cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SendFault {
    #[error("its step is {found}, after one of step {before}; list sends by increasing step")]
    StepOrder { found: u32, before: u32 },
    #[error("rank {rank} does not exist; there are {rank_count}")]
    UnknownRank { rank: u32, rank_count: u32 },
    #[error("rank {rank} sends to itself")]
    ToItself { rank: u32 },
    #[error("chunks {start} to {end} are none, or not all among the {total} chunks there are")]
    ChunkRange { start: u64, end: u64, total: u64 },
    #[error("chunks {start} to {end} belong to several shares or blocks, the first of which ends at {limit}; split it")]
    AcrossShares { start: u64, end: u64, limit: u64 },
    #[error("its carriers lie outside the table of carriers, or are none")]
    NoCarriers,
    #[error(
        "in step {step} it would overwrite at rank {rank} what that rank still has to send, and the same holds in a \
         circle; put the sends into different steps"
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
    #[error("rank {rank} sends before the tree has reached it; list the hop that reaches it first")]
    SenderNotReached { rank: u32 },
    #[error("rank {rank} receives, but the tree holds it already")]
    ReachedTwice { rank: u32 },
    #[error(
        "rank {rank} sends for a second time, or although it is the root; in a reduce tree every other rank sends once"
    )]
    SendsTwice { rank: u32 },
    #[error("rank {rank} receives after it has sent; list its incoming hops first")]
    ReceivesLate { rank: u32 },
}
