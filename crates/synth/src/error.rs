//! Why there is no schedule.

mod all_to_all;
mod expansion;
mod multiport;
mod stepped;

use canopy_optimize::ConcurrentError;
use canopy_schedule::{CollectiveKind, SharesError};

use crate::limits::LimitsError;
use crate::sum_options::SumOptionsError;

pub use self::all_to_all::AllToAllError;
pub use self::expansion::ExpansionError;
pub use self::multiport::MultiportError;
pub use self::stepped::SteppedError;

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SynthesisError {
    #[error(
        "rank {to_rank} ({to}) cannot be reached from rank {from_rank} ({from}); no schedule exists, add links that \
         connect them"
    )]
    Disconnected { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error(
        "switch {node}: {entering} bytes/s enter and {leaving} bytes/s leave, and no part of the network was found in \
         which both are equal at every switch, as forest schedules need; use direct, or state its links in both directions"
    )]
    NotEulerian { node: String, entering: u128, leaving: u128 },
    #[error(
        "{algorithm} does not plan {collective}; it plans {}, and direct and ring plan all collectives",
        listed(plans)
    )]
    Unsupported { algorithm: &'static str, plans: &'static [CollectiveKind], collective: CollectiveKind },
    #[error(transparent)]
    Limits(#[from] LimitsError),
    #[error(transparent)]
    Sums(#[from] SumOptionsError),
    #[error(
        "form trees needs links that lead both ways between all ranks, and here some lead one way only; leave the form out, \
         or use two-phase"
    )]
    NoTrees,
    #[error(
        "the schedule needs {trees_per_rank} trees for each of {rank_count} ranks, more than 64 bits count; round the \
         bandwidths to multiples of a common unit, such as 1GB/s, and weights of shares to fewer digits, or ask for fewer \
         trees"
    )]
    TooManyTrees { trees_per_rank: u128, rank_count: u32 },
    #[error(
        "the schedule has at least {needed} hops in all, over the limit of {limit}; plan for fewer ranks or with fewer chunks, or, \
         for forest, round the bandwidths to multiples of a common unit, such as 1GB/s, so that fewer different trees are \
         needed"
    )]
    TooManyHops { needed: u64, limit: u64 },
    #[error(
        "switch {node} joins {neighbours} neighbours that all talk to each other through it, over the limit of {limit}; \
         give ranks that share a faster switch the same `box`, or plan for fewer ranks"
    )]
    TooManyNeighbours { node: String, neighbours: usize, limit: usize },
    #[error(
        "ring needs every rank to reach every other, but rank {to_rank} ({to}) cannot be reached from rank {from_rank} \
         ({from}); use direct or forest, or add links"
    )]
    NoRing { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error(
        "rank {root} is the root and alone has a share, so nothing has to move; give another rank a weight above 0"
    )]
    NothingToMove { root: u32 },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(
        "max_depth is {max_depth}, but from rank {from_rank} to rank {to_rank} no plan needs fewer than {least} hops from rank \
         to rank; allow at least that many"
    )]
    TooShallow { max_depth: u32, least: u32, from_rank: u32, to_rank: u32 },
    #[error(
        "{algorithm} plans networks whose ranks are linked with each other, and {node} {what}; use forest, direct or ring"
    )]
    NotDirect { algorithm: &'static str, node: String, what: &'static str },
    #[error(
        "tsmcf solves a linear program of at most {limit} variables, one for each rank, link and step, and counts few chunks; \
         {ranks} ranks with {links} links are beyond it; use flow, direct or ring, or plan for fewer ranks"
    )]
    TooLargeForSteps { ranks: u32, links: usize, limit: u64 },
    #[error(
        "{needed} chunks for each share are more than can be counted, at most {limit}; state fewer by chunks or max_chunks, such as \
         12, or weights of shares with fewer digits"
    )]
    TooManyChunks { needed: u64, limit: u128 },
    #[error(
        "an all-to-all of {ranks} ranks over {links} links by flow has {ranks} · {links} variables, over the limit of {limit}; use \
         direct, or plan for fewer ranks"
    )]
    TooManyVariables { ranks: u32, links: usize, limit: u64 },
    #[error(
        "capacities and chunks of this all-to-all go beyond what 128 bits can add up; round the bandwidths to multiples of a \
         common unit, such as 1GB/s, and weights of blocks to fewer digits, state fewer chunks, or use direct"
    )]
    TooUneven,
    #[error(transparent)]
    Bfb(canopy_optimize::BfbError),
    #[error(transparent)]
    Expansion(#[from] ExpansionError),
    #[error(transparent)]
    Multiport(#[from] MultiportError),
    #[error(transparent)]
    Stepped(SteppedError),
    #[error(transparent)]
    AllToAll(#[from] AllToAllError),
    #[error("stopped before a schedule was found")]
    Stopped,
    #[error("this is a bug in canopy, please report it with the topology: {what}")]
    Broken { what: String },
}

/// Collectives in words.
fn listed(collectives: &[CollectiveKind]) -> String {
    match collectives {
        _ if collectives.len() == CollectiveKind::ALL.len() => "all collectives".to_owned(),
        [] => String::new(),
        [one] => one.name().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(|kind| kind.name()).collect();
            format!("{} and {last}", first.join(", "))
        }
    }
}

impl From<canopy_optimize::Stopped> for SynthesisError {
    fn from(_: canopy_optimize::Stopped) -> Self {
        Self::Stopped
    }
}

impl From<ConcurrentError> for SynthesisError {
    fn from(error: ConcurrentError) -> Self {
        match error {
            ConcurrentError::Stopped => Self::Stopped,
            ConcurrentError::TooLarge => Self::TooUneven,
            error => Self::Broken { what: format!("concurrent flows: {error}") },
        }
    }
}
