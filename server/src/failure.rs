//! Why a request ends without a plan, and a call without an answer.

mod call;
mod cluster;
mod groups;
mod kept;
mod moving;
mod names;
mod refusal;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use canopy_planner::{PlanError, RequestKey, chain};
use canopy_service::ServiceError;
use canopy_topology::Ratio;
use canopy_wire::RequestError;

pub(crate) use self::call::{CallFailure, LeaseError};
pub(crate) use self::cluster::ClusterFailure;
pub(crate) use self::groups::GroupsFailure;
pub(crate) use self::kept::KeptFailure;
pub(crate) use self::moving::MovingFailure;
pub(crate) use self::names::shown;
pub(crate) use self::refusal::{KeptRefusal, call_refusal, follows_from_request, refusal};
use crate::quota::OverQuota;
use crate::store::StoreError;

/// Why a request has no plan. The text of the original error is kept.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFailure {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Planning(PlanError),
    #[error(transparent)]
    BelowMinimum(Box<Shortfall>),
    #[error("the job failed inside the server; this is a bug in canopy: please report it with request {request}")]
    Panicked { request: RequestKey },
    #[error(
        "the job was started {starts} times, and the server ended each time before the job did; ask again if you still need the plan"
    )]
    Abandoned { starts: u32 },
    /// An earlier failure, repeated without a search.
    #[error("{}", chain(&**failure))]
    Remembered { failure: Arc<Self>, age: Duration },
    #[error("the job was stopped because all callers left")]
    Stopped,
    #[error(
        "the job was planned for {limit:?} while no call waited for it, and was ended; wait for it, or raise `max_deadline`"
    )]
    RunLimit { limit: Duration },
    #[error("the job was cancelled by an operator; ask again if you still need the plan")]
    CancelledByOperator,
    #[error("the plan is not cached; request it with Plan or Prefetch")]
    NotCached,
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    #[error("priority PRIORITY_REPAIR is for tenants that hold a lease; acquire one, or ask with PRIORITY_JOB_START")]
    RepairWithoutLease,
    #[error("the queue is full: {waiting} requests wait, at most {limit} may; try again later")]
    QueueFull { waiting: usize, limit: usize },
    #[error(
        "the queue is full: its requests hold {held} bytes, and this one of {found} bytes would exceed the limit of {limit}; try again later"
    )]
    QueueBudget { held: usize, found: usize, limit: usize },
    #[error("{}", ServiceError::Memory { needed: *needed, limit: *limit })]
    JobMemory { needed: u64, limit: u64 },
    #[error("the server is shutting down; try again")]
    Draining,
    /// On another server, where it was made.
    #[error("{}", .0.words())]
    Elsewhere(Box<KeptFailure>),
    #[error("the job has failed on another server, of a version that gives reasons which this one cannot read")]
    Unreadable,
    /// Where servers share their jobs.
    #[error("the plan is not cached, and it cannot be made now; try again")]
    Jobs(#[source] StoreError),
    #[error("deadline exceeded ({deadline_ms} ms) in stage `{stage}`; allow more time")]
    Deadline { deadline_ms: u64, stage: Cow<'static, str>, operation: Option<String> },
}

impl PlanFailure {
    /// Whether the job was cancelled rather than failed.
    pub(crate) fn is_cancellation(&self) -> bool {
        match self {
            Self::Stopped | Self::CancelledByOperator => true,
            Self::Planning(error) => error.is_cancellation(),
            Self::Elsewhere(kept) => kept.is_cancellation(),
            _ => false,
        }
    }

    /// Whether another algorithm may succeed: the request itself is valid.
    pub(crate) fn may_be_stood_in(&self) -> bool {
        match self {
            Self::Remembered { failure, .. } => failure.may_be_stood_in(),
            Self::Planning(error) => error.may_be_stood_in(),
            Self::Elsewhere(kept) => kept.may_be_stood_in(),
            Self::Panicked { .. } | Self::Abandoned { .. } | Self::JobMemory { .. } | Self::Deadline { .. } => true,
            Self::Jobs(_) | Self::Unreadable => true,
            _ => false,
        }
    }

    /// What to investigate, if canopy itself is at fault.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Planning(error) => error.fault(),
            _ => None,
        }
    }

    /// The check that rejected the plan, or `broken` if its search broke; `None` if canopy is not at fault.
    pub(crate) fn failed_check(&self) -> Option<&'static str> {
        match self {
            Self::Planning(error) => error.failed_check(),
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

/// A plan below the required quality.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the best plan found reaches {achieved} of the bound, below the required {minimum}")]
pub struct Shortfall {
    /// Achieved ÷ bound.
    pub achieved: Ratio,
    /// The required ratio.
    pub minimum: Ratio,
}
