//! Why a routing does not apply.

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AllToAllError {
    #[error(
        "ewsp divides each block equally among all shortest paths, here into more than the {limit} chunks that can be counted; \
         use sssp or direct, which take one path for each pair"
    )]
    TooManyParts { limit: u64 },
    #[error(
        "dor routes along the dimensions of a grid, and is not told of any; give the topology as an expression without host=, \
         such as torus:4x4x4, of ring, mesh, torus, hypercube, hamming, dfc2 and products of these, or use sssp or ewsp"
    )]
    NoGrid,
    #[error(
        "{algorithm} chooses among {needed} paths or more, over the limit of {limit}; use sssp or direct, or plan for fewer ranks"
    )]
    TooManyPaths { algorithm: &'static str, needed: u64, limit: u64 },
    #[error(
        "the linear program of {algorithm} was not solved: its numbers are too uneven; round the bandwidths, or use direct"
    )]
    NotSolved { algorithm: &'static str },
    #[error(
        "{algorithm} plans an all-to-all of equal blocks alone; use flow, tsmcf, pmcf, sssp, ewsp, dor, direct, ring, pairwise or bruck"
    )]
    UnequalBlocks { algorithm: &'static str },
    #[error("dor needs the whole grid, and {what}; use sssp or ewsp, which plan for what is left")]
    BrokenGrid { what: String },
}
