//! Why traffic that changes is not planned.

use canopy_moving::{MatrixError, NetworkError, PlanError};

/// Why a stream of matrices ends, or a matrix has no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MovingFailure {
    #[error("the message says nothing; state `network` first, then `matrix`")]
    Empty,
    #[error("`{field}` is out of turn: {expected}")]
    NotFirst { field: &'static str, expected: &'static str },
    #[error("matrix.number {found} follows {last}; number matrices in ascending order")]
    Number { found: u64, last: u64 },
    #[error("the matrix does not fit")]
    Matrix(#[from] MatrixError),
    #[error("matrix.bytes: rank {rank} has bytes for itself; leave them out")]
    Itself { rank: usize },
    #[error("matrix.bytes: rank {rank} is lost and has bytes to send or receive; give its row and its column zeros")]
    Lost { rank: u32 },
    #[error("the network does not fit")]
    Network(#[from] NetworkError),
    #[error("the matrix has no routes")]
    NoWay(#[source] PlanError),
    #[error("the limit of {limit} such streams per {of} is reached; end some, or try again later")]
    Full { of: &'static str, limit: u64 },
}
