//! Errors of synthesis.

mod all_to_all;
mod expansion;
mod multiport;
mod orbits;
mod stages;
mod stepped;

use canopy_optimize::ConcurrentError;
use canopy_schedule::{CollectiveKind, SharesError};

use crate::limits::LimitsError;
use crate::sum_options::SumOptionsError;

pub use self::all_to_all::AllToAllError;
pub use self::expansion::ExpansionError;
pub use self::multiport::MultiportError;
pub use self::orbits::OrbitsNetworkError;
pub use self::stages::StagesNetworkError;
pub use self::stepped::SteppedError;

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SynthesisError {
    #[error("no path leads from rank {from_rank} ({from}) to rank {to_rank} ({to}); add links that connect them")]
    Disconnected { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error(
        "forest found no part of the network in which every switch receives as much as it sends (switch {node} \
         receives {entering} bytes/s and sends {leaving} bytes/s); use direct, or give its links in both directions"
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
        "form `trees` needs links in both directions between all ranks, and some links here lead one way only; leave \
         the form out, or use `two-phase`"
    )]
    NoTrees,
    #[error(
        "the schedule needs {trees_per_rank} trees for each of {rank_count} ranks, which is too many to count in 64 \
         bits; round bandwidths to multiples of a common unit, such as 1GB/s, and weights of shares to fewer digits, \
         or ask for fewer trees"
    )]
    TooManyTrees { trees_per_rank: u128, rank_count: u32 },
    #[error(
        "the schedule has at least {needed} hops, over the limit of {limit}; plan for fewer ranks or with fewer \
         chunks, or, for forest, round bandwidths to multiples of a common unit, such as 1GB/s, to need fewer trees"
    )]
    TooManyHops { needed: u64, limit: u64 },
    #[error(
        "switch {node} connects {neighbours} neighbours, over the limit of {limit}; give ranks that share a faster \
         switch one `box`, or plan for fewer ranks"
    )]
    TooManyNeighbours { node: String, neighbours: usize, limit: usize },
    #[error(
        "ring needs a path between any two ranks, and none leads from rank {from_rank} ({from}) to rank {to_rank} \
         ({to}); use direct or forest, or add links"
    )]
    NoRing { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error("only rank {root}, the root, has a share, so nothing has to move; give another rank a weight above 0")]
    NothingToMove { root: u32 },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(
        "`max_depth` is {max_depth}, but the path from rank {from_rank} to rank {to_rank} takes at least {least} hops \
         between ranks; allow at least {least}"
    )]
    TooShallow { max_depth: u32, least: u32, from_rank: u32, to_rank: u32 },
    #[error("{algorithm} needs direct links between ranks, and {node} {what}; use forest, direct or ring")]
    NotDirect { algorithm: &'static str, node: String, what: &'static str },
    #[error(
        "{ranks} ranks with {links} links are too many for tsmcf, whose linear program has a variable for each rank, \
         link and step, at most {limit}; use flow, direct or ring, or plan for fewer ranks"
    )]
    TooLargeForSteps { ranks: u32, links: usize, limit: u64 },
    #[error(
        "{needed} chunks per share are too many to count, over the limit of {limit}; set `chunks` or `max_chunks` to \
         fewer, such as 12, or give weights of shares with fewer digits"
    )]
    TooManyChunks { needed: u64, limit: u128 },
    #[error(
        "flow needs {ranks} · {links} variables for an all-to-all of {ranks} ranks over {links} links, over the limit \
         of {limit}; use direct, or plan for fewer ranks"
    )]
    TooManyVariables { ranks: u32, links: usize, limit: u64 },
    #[error(
        "the capacities and chunks of this all-to-all overflow 128 bits; round bandwidths to multiples of a common \
         unit, such as 1GB/s, and weights of blocks to fewer digits, ask for fewer chunks, or use direct"
    )]
    TooUneven,
    #[error(transparent)]
    Bfb(canopy_optimize::BfbError),
    #[error(transparent)]
    Expansion(#[from] ExpansionError),
    #[error(transparent)]
    Multiport(#[from] MultiportError),
    #[error(transparent)]
    Stages(#[from] StagesNetworkError),
    #[error(transparent)]
    Orbits(#[from] OrbitsNetworkError),
    #[error(transparent)]
    Stepped(SteppedError),
    #[error(transparent)]
    AllToAll(#[from] AllToAllError),
    #[error("stopped before a schedule was found")]
    Stopped,
    #[error("this is a bug in canopy: {what}; report it with the topology")]
    Broken { what: String },
}

/// A list of collectives in words.
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
