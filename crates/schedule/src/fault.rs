//! What is wrong with a part of a schedule, in the words of both the compiler and the checker; each looks for itself.

/// Why a path of a flow cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PathFault {
    #[error(
        "no data goes from rank {source_rank} to rank {destination}, or the path is out of order; list paths by source, \
         then destination"
    )]
    Unexpected { source_rank: u32, destination: u32 },
    #[error("chunk_count is 0; remove the path")]
    NoChunks,
    #[error(
        "with this path, the paths from rank {source_rank} to rank {destination} carry more than the {limit} chunks to \
         send"
    )]
    TooManyChunks { source_rank: u32, destination: u32, limit: u64 },
    #[error("its range of hops is empty or lies outside the table of hops")]
    NoHops,
    #[error("its hop {hop} uses route {route}, which does not exist or does not lead from a rank to a rank")]
    Route { hop: usize, route: u32 },
    #[error("its hop {hop} starts at rank {found}, but the path is at rank {expected}")]
    Gap { hop: usize, found: u32, expected: u32 },
    #[error("its hop {hop} returns to rank {rank}")]
    Loop { hop: usize, rank: u32 },
    #[error("it ends at rank {found}, not at its destination, rank {expected}")]
    WrongEnd { found: u32, expected: u32 },
}
