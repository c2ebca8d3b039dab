//! Everything that can end a request without a plan, and a call without an answer.

mod call;
mod refusal;

use std::sync::Arc;
use std::time::Duration;

use canopy_planner::{PlanError, RequestKey, chain};
use canopy_topology::Ratio;
use canopy_wire::RequestError;

pub(crate) use self::call::{CallFailure, LeaseError};
pub(crate) use self::refusal::{Detail, KeptRefusal, Refusal, call_refusal, follows_from_request, in_short, refusal};

/// Why there is no plan. The words of whoever refused are kept.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFailure {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Planning(PlanError),
    #[error(transparent)]
    BelowMinimum(Box<Shortfall>),
    #[error("the job failed inside the server; this is a bug in canopy, please report it as request {request}")]
    Panicked { request: RequestKey },
    #[error(
        "the job was begun {starts} times, and each time the server ended before it did; it is not tried again, ask again if the plan is still wanted"
    )]
    Abandoned { starts: u32 },
    /// The same as was found before, given again without a search.
    #[error("{}", chain(&**failure))]
    Remembered { failure: Arc<Self>, age: Duration },
    #[error("the job was stopped because nobody waits for it")]
    Stopped,
    #[error("the job was cancelled by an operator; ask again if the plan is still wanted")]
    CancelledByOperator,
    #[error("there is no such plan in the cache; ask Plan or Prefetch for it")]
    NotCached,
    #[error("{waiting} requests wait, where {limit} may; try again later")]
    QueueFull { waiting: usize, limit: usize },
    #[error(
        "the waiting requests and their networks hold {held} bytes, and this one of {found} would exceed the limit of {limit}; try again later"
    )]
    QueueBudget { held: usize, found: usize, limit: usize },
    #[error(
        "making this plan would take about {needed} bytes of memory, over the limit of {limit}; ask for a smaller network or fewer outputs, or raise job_memory_bytes"
    )]
    JobMemory { needed: u64, limit: u64 },
    #[error("the server is shutting down; try again")]
    Draining,
    #[error("the deadline of {deadline_ms} ms was reached in stage `{stage}` with no plan; allow more time")]
    Deadline { deadline_ms: u64, stage: &'static str, operation: Option<String> },
}

impl PlanFailure {
    /// Whether the job was ended from outside, not by what it found.
    pub(crate) fn is_cancellation(&self) -> bool {
        match self {
            Self::Stopped | Self::CancelledByOperator => true,
            Self::Planning(error) => error.is_cancellation(),
            _ => false,
        }
    }

    /// Whether another algorithm may well do what could not be done: the request itself is right.
    pub(crate) fn may_be_stood_in(&self) -> bool {
        match self {
            Self::Remembered { failure, .. } => failure.may_be_stood_in(),
            Self::Planning(error) => error.may_be_stood_in(),
            Self::Panicked { .. } | Self::Abandoned { .. } | Self::JobMemory { .. } | Self::Deadline { .. } => true,
            _ => false,
        }
    }

    /// What a person must look at, where canopy itself is at fault.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Planning(error) => error.fault(),
            _ => None,
        }
    }
}

impl From<PlanError> for PlanFailure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Stopped => Self::Stopped,
            PlanError::NotKnown => Self::NotCached,
            error => Self::Planning(error),
        }
    }
}

/// A plan that is not good enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the best plan found reaches {achieved} of the bound, below the least optimality asked for, {minimum}")]
pub struct Shortfall {
    /// Achieved ÷ bound.
    pub achieved: Ratio,
    /// What was asked for.
    pub minimum: Ratio,
}
