//! Why weights of shares or blocks are rejected.

use crate::collective::CollectiveKind;

/// Why weights are no shares of a collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SharesError {
    #[error("{collective} has no shares to weigh; remove the weights{}", instead(*collective))]
    NotApplicable { collective: CollectiveKind },
    #[error("found {found} weights of shares for {rank_count} ranks; give one for each rank")]
    Count { found: usize, rank_count: u32 },
    #[error("all weights of shares are 0; give at least one rank a share")]
    Nothing,
    #[error("weights of blocks are for all-to-all, not for {collective}; remove them, or give weights of shares")]
    BlocksNotApplicable { collective: CollectiveKind },
    #[error(
        "found {found} weights of blocks for {rank_count} ranks; give {expected}, a row of {rank_count} for each rank"
    )]
    BlockCount { found: usize, rank_count: u32, expected: usize },
    #[error("blocks between {rank_count} ranks cannot be weighed one by one, which works for up to {limit} ranks")]
    TooManyBlocks { rank_count: u32, limit: u32 },
    #[error(
        "weights of blocks add up to more than 18446744073709551615 in row {row}, column {column}; scale the weights \
         down"
    )]
    BlockSum { row: u32, column: u32 },
    #[error("all blocks between different ranks have weight 0; give at least one a weight above 0")]
    NothingMoves,
    #[error("chunks_per_share is 0; use at least 1")]
    NoChunks,
    #[error(
        "{rank_count} shares of {chunks_per_share} chunks, times their weights, exceed 18446744073709551615 chunks; \
         scale the weights down, or use fewer chunks"
    )]
    TooManyChunks { chunks_per_share: u64, rank_count: u32 },
}

/// What can be weighed instead of shares, in words.
const fn instead(collective: CollectiveKind) -> &'static str {
    match collective {
        CollectiveKind::AllToAll => ", or weigh blocks",
        _ => "",
    }
}
