//! Reasons why there is no answer.

use canopy_planner::{PlanError, chain};
use canopy_proto::v1;
use canopy_store::StoreError;
use canopy_wire::{Code, Detail, Refusal, RequestError, in_short, plan_refusal, request_refusal};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The planner has none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It needs too much memory.
    #[error(
        "this needs about {needed} bytes of memory, over the limit of {limit}; use a smaller network, fewer groups or \
         fewer outputs, or raise `job_memory_bytes`"
    )]
    Memory {
        /// Estimate in bytes.
        needed: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// The time is over.
    #[error("deadline exceeded; allow more time")]
    Late,
    /// What was made did not pass a check: a fault of canopy.
    #[error("{what}")]
    Broken {
        /// What is wrong.
        what: String,
    },
}

impl ServiceError {
    /// Whether it was stopped or late rather than refused.
    pub fn is_cancellation(&self) -> bool {
        match self {
            Self::Plan(error) => error.is_cancellation(),
            Self::Late => true,
            Self::Request(_) | Self::Store(_) | Self::Memory { .. } | Self::Broken { .. } => false,
        }
    }

    /// The refusal that stands for it.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Request(error) => request_refusal(error),
            Self::Plan(error) => plan_refusal(error),
            Self::Store(_) => Refusal::new(Code::Unavailable, "STORE_UNREACHABLE", Detail::None),
            Self::Memory { needed, limit } => {
                Refusal::limit("MEMORY_BUDGET", "topology").with("needed", needed).with("limit", limit)
            }
            Self::Late => Refusal::new(Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", Detail::None),
            Self::Broken { .. } => Refusal::fault("CALL_FAILED"),
        }
    }

    /// The failure of a part of an answer.
    pub(crate) fn operation_error(&self) -> v1::ErrorStatus {
        let Refusal { code, reason, .. } = self.refusal();
        canopy_wire::error_status(code.into(), &reason, in_short(&chain(self)))
    }
}
