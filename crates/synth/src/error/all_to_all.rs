//! Errors of the routings of an all-to-all.

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AllToAllError {
    #[error(
        "ewsp divides each block equally among all shortest paths, and needs more than {limit} chunks here; use sssp \
         or direct, which take one path per pair"
    )]
    TooManyParts { limit: u64 },
    #[error(
        "dor routes along the dimensions of a grid, and this topology names none; give an expression such as \
         `torus:4x4x4` (ring, mesh, torus, hypercube, hamming, dfc2 and their products, without `host=`), or use sssp \
         or ewsp"
    )]
    NoGrid,
    #[error(
        "{algorithm} chooses among at least {needed} paths, over the limit of {limit}; use sssp or direct, or plan for \
         fewer ranks"
    )]
    TooManyPaths { algorithm: &'static str, needed: u64, limit: u64 },
    #[error(
        "{algorithm} could not solve its linear program, whose numbers are too uneven; round the bandwidths, or use \
         direct"
    )]
    NotSolved { algorithm: &'static str },
    #[error(
        "{algorithm} plans an all-to-all of equal blocks only; use flow, tsmcf, pmcf, sssp, ewsp, dor, direct, ring, \
         pairwise or bruck"
    )]
    UnequalBlocks { algorithm: &'static str },
    #[error("dor needs the whole grid, and {what}; use sssp or ewsp, which plan for the rest of the network")]
    BrokenGrid { what: String },
}
