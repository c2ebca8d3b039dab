//! Errors of exchanges in stages.

use canopy_schedule::CollectiveKind;

/// Why there is no exchange in stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StagesNetworkError {
    #[error("stages needs boxes of ranks that switches join, and finds none in this network; use forest")]
    NoBoxes,
    #[error("stages plans equal shares; use forest for shares of different sizes")]
    Shares,
    #[error("{chunks} chunks for each share of {rank_count} ranks are more than {max}, the limit; state fewer")]
    Chunks { chunks: u64, rank_count: u32, max: u64 },
    #[error(
        "{rank_count} ranks have too many trees to write down: {collective} on more than {max} ranks needs boxes of ranks \
         that switches join, or a torus; plan for a group of fewer ranks"
    )]
    TooManyRanks { rank_count: u32, collective: CollectiveKind, max: u32 },
}
