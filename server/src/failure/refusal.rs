//! The one place where failures become codes, stable reasons and details.
//!
//! `canopy-wire` decides for errors of the planner and of requests, and this module for what only a server fails at. The
//! matches are exhaustive on purpose: every new failure needs a decision here.

mod call;

use std::borrow::Cow;
use std::time::Duration;

use canopy_planner::{PlanError, chain};
use canopy_service::ServiceError;
use canopy_wire::{Code, Detail, Refusal, in_short, plan_refusal, request_refusal};

use super::PlanFailure;
use crate::quota::OverQuota;

pub(crate) use self::call::call_refusal;

/// Delay before a retry after a refusal because the server is busy.
const RETRY_BUSY: Duration = Duration::from_secs(1);
/// Delay before a retry at a server that shuts down; its successor needs a moment.
const RETRY_DRAINING: Duration = Duration::from_millis(200);

fn over_quota(over: &OverQuota) -> Refusal {
    let OverQuota { quota, limit, retry_after, .. } = over;
    Refusal::new(Code::ResourceExhausted, "QUOTA_EXCEEDED", Detail::Busy(Cow::Borrowed(quota.name()), *retry_after))
        .with("quota", quota)
        .with("limit", limit)
}

/// A stored refusal. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeptRefusal {
    /// Number of the gRPC code.
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    /// Stable, in capitals.
    #[prost(string, tag = "2")]
    pub(crate) reason: String,
    /// Text for people.
    #[prost(string, tag = "3")]
    pub(crate) message: String,
}

impl From<&PlanFailure> for KeptRefusal {
    fn from(failure: &PlanFailure) -> Self {
        let Refusal { code, reason, .. } = refusal(failure);
        Self { code: code.into(), reason: reason.into_owned(), message: in_short(&chain(failure)) }
    }
}

/// Whether a failure follows from the request alone, so that retrying is pointless until the planner changes.
pub(crate) fn follows_from_request(failure: &PlanFailure) -> bool {
    matches!(refusal(failure).code, Code::InvalidArgument | Code::FailedPrecondition)
}

/// The refusal for a failed plan request.
pub(crate) fn refusal(failure: &PlanFailure) -> Refusal {
    match failure {
        PlanFailure::Request(error) => request_refusal(error),
        PlanFailure::Planning(error) => plan_refusal(error),
        PlanFailure::BelowMinimum(shortfall) => Refusal::infeasible("QUALITY_BELOW_MINIMUM", "minimum_optimality")
            .with("achieved", &shortfall.achieved)
            .with("minimum", &shortfall.minimum),
        PlanFailure::Panicked { request } => Refusal::fault("JOB_FAILED").with("request", request),
        PlanFailure::Abandoned { starts } => Refusal::fault("JOB_ABANDONED").with("starts", starts),
        PlanFailure::Remembered { failure, age } => {
            refusal(failure).with("cache", "negative").with("age_s", age.as_secs())
        }
        PlanFailure::Stopped => plan_refusal(&PlanError::Stopped),
        PlanFailure::RunLimit { limit } => {
            Refusal::new(Code::DeadlineExceeded, "RUN_TIME_LIMIT", Detail::None).with("limit_s", limit.as_secs())
        }
        PlanFailure::CancelledByOperator => Refusal::new(Code::Aborted, "OPERATION_CANCELLED", Detail::None),
        PlanFailure::NotCached => plan_refusal(&PlanError::NotKnown),
        PlanFailure::OverQuota(over) => over_quota(over),
        PlanFailure::RepairWithoutLease => Refusal::new(Code::PermissionDenied, "REPAIR_WITHOUT_LEASE", Detail::None),
        PlanFailure::QueueFull { limit, .. } => {
            Refusal::new(Code::ResourceExhausted, "QUEUE_FULL", Detail::Busy(Cow::Borrowed("queue"), RETRY_BUSY))
                .with("limit", limit)
        }
        PlanFailure::QueueBudget { limit, .. } => {
            Refusal::new(Code::ResourceExhausted, "MEMORY_BUDGET", Detail::Busy(Cow::Borrowed("queue"), RETRY_BUSY))
                .with("limit", limit)
        }
        &PlanFailure::JobMemory { needed, limit } => ServiceError::Memory { needed, limit }.refusal(),
        PlanFailure::Draining => Refusal::new(Code::Unavailable, "DRAINING", Detail::Retry(RETRY_DRAINING)),
        PlanFailure::Elsewhere(kept) => kept.refusal(),
        PlanFailure::Unreadable => Refusal::fault("JOB_FAILED"),
        PlanFailure::Jobs(error) => call::store(error),
        PlanFailure::Deadline { deadline_ms, stage, operation } => {
            let refusal = Refusal::new(Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", Detail::None)
                .with("deadline_ms", deadline_ms)
                .with("stage", stage);
            match operation {
                Some(operation) => refusal.with("operation", operation),
                None => refusal,
            }
        }
    }
}
