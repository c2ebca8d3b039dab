//! Failures as gRPC status: code, stable reason, and typed details.
//!
//! Messages are the words of the library that refused, so that every client shows the same ones.

use std::collections::HashMap;
use std::time::Duration;

use canopy_access::{Denied, JwtError, Refused, TokenError};
use canopy_planner::{PlanKey, chain};
use canopy_proto::v1;
use canopy_wire::{Code, DOMAIN, Detail, Refusal, component, error_status, in_short};
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::access::Stranger;
use crate::call;
use crate::failure::{CallFailure, KeptRefusal, PlanFailure, call_refusal, refusal};

/// When to try again to make a change that could not be written down.
const AUDIT_RETRY: Duration = Duration::from_secs(5);

/// The status of a failure.
pub(crate) fn to_status(failure: &PlanFailure) -> Status {
    status(refusal(failure), &chain(failure))
}

/// The status of the failure of a call that makes no plan.
pub(crate) fn call_status(failure: &CallFailure) -> Status {
    status(call_refusal(failure), &chain(failure))
}

/// The status of the plan of one of several groups, with the group's name in its words.
pub(crate) fn in_group(status: &Status, name: &str) -> Status {
    let (message, details) = (in_short(&format!("group {name}: {}", status.message())), status.details().to_vec());
    Status::with_details_and_metadata(status.code(), message, details.into(), status.metadata().clone())
}

/// The same as it is shown with an operation.
pub(crate) fn to_operation_error(failure: &PlanFailure) -> v1::ErrorStatus {
    operation_error(failure.into())
}

/// A refusal that was kept.
pub(crate) fn operation_error(KeptRefusal { code, reason, message }: KeptRefusal) -> v1::ErrorStatus {
    error_status(code, &reason, message)
}

/// The failure of a part of a call that goes on.
pub(crate) fn call_error(failure: &CallFailure) -> v1::ErrorStatus {
    let Refusal { code, reason, .. } = call_refusal(failure);
    error_status(code.into(), &reason, in_short(&chain(failure)))
}

/// The failure of a part of a call that goes on, from the status that it would have.
pub(crate) fn error_of(status: &Status) -> v1::ErrorStatus {
    let reason = status.get_details_error_info().map(|info| info.reason).unwrap_or_default();
    error_status(status.code().into(), &reason, in_short(status.message()))
}

/// The same as it is shown with a plan that stands in for the one that failed.
///
/// `operation` is the job that goes on making that one, and `wanted` its key, where they are known.
pub(crate) fn to_fallback(failure: &PlanFailure, operation: Option<String>, wanted: Option<&PlanKey>) -> v1::Fallback {
    let reason = match failure {
        PlanFailure::Deadline { .. } => "DEADLINE".to_owned(),
        _ => refusal(failure).reason.into_owned(),
    };
    let (text, operation) = (in_short(&chain(failure)), operation.unwrap_or_default());
    let plan = wanted.map(PlanKey::plan_id).unwrap_or_default();
    v1::Fallback { reason, text, operation, plan }
}

/// What is wrong with a topology, where that is the failure's cause; none for what is the server's affair.
pub(crate) fn to_topology_problem(failure: &PlanFailure) -> Option<v1::TopologyProblem> {
    let Refusal { code, reason, detail, .. } = refusal(failure);
    let (Detail::Field(field) | Detail::Limit(field)) = detail else { return None };
    let at_fault = matches!(code, Code::InvalidArgument | Code::ResourceExhausted);
    at_fault.then(|| v1::TopologyProblem { reason: reason.into_owned(), field, message: in_short(&chain(failure)) })
}

/// The status of a message over the limit of the transport, which is read no further.
pub(crate) fn oversized(limit: usize, words: &str) -> Status {
    status(Refusal::limit("REQUEST_TOO_LARGE", "request").with("limit", limit), words)
}

/// The status of a change that is not in the audit log.
pub(crate) fn unaudited() -> Status {
    let refusal = Refusal::new(Code::Unavailable, "AUDIT_UNWRITABLE", Detail::Retry(AUDIT_RETRY));
    status(refusal, "the audit log cannot be written, so nothing may be changed; make room on its disk and try again")
}

/// The status of a call whose caller is not known.
pub(crate) fn stranger(why: &Stranger) -> Status {
    let reason = match why {
        Stranger::Nothing => "IDENTITY_MISSING",
        Stranger::Refused(Refused::Unknown { .. }) => "IDENTITY_UNKNOWN",
        Stranger::Refused(
            Refused::Token(TokenError::Expired { .. }) | Refused::Jwt(JwtError::Expired | JwtError::NotYet),
        ) => "IDENTITY_EXPIRED",
        Stranger::Refused(Refused::Token(TokenError::Revoked { .. })) => "IDENTITY_REVOKED",
        Stranger::Header | Stranger::Refused(_) => "IDENTITY_INVALID",
    };
    status(Refusal::new(Code::Unauthenticated, reason, Detail::None), &why.to_string())
}

/// The status of a call of somebody who may not make it.
pub(crate) fn denied(why: &Denied) -> Status {
    let (code, reason) = match why {
        Denied::Expired { .. } => (Code::Unauthenticated, "IDENTITY_EXPIRED"),
        Denied::Method { .. } => (Code::PermissionDenied, "METHOD_NOT_ALLOWED"),
        Denied::Tenant { .. } => (Code::PermissionDenied, "TENANT_NOT_ALLOWED"),
        Denied::Shared { .. } => (Code::PermissionDenied, "NOT_OWNER"),
    };
    status(Refusal::new(code, reason, Detail::None), &why.to_string())
}

/// The status of a request that is no message: its bytes cannot be decoded.
pub(crate) fn malformed(words: &str) -> Status {
    let words = format!("the request cannot be decoded: {words}; send an uncompressed message of canopy.v1");
    status(Refusal::new(Code::InvalidArgument, "REQUEST_MALFORMED", Detail::Field("request".to_owned())), &words)
}

fn status(refusal: Refusal, words: &str) -> Status {
    let message = in_short(words);
    let mut details = ErrorDetails::new();
    let metadata: HashMap<String, String> =
        refusal.metadata.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
    details.set_error_info(refusal.reason.clone(), DOMAIN, metadata);
    match refusal.detail {
        Detail::None => {}
        Detail::Field(field) => {
            details.add_bad_request_violation(call::path_of(field), message.clone());
        }
        Detail::Precondition(subject) => {
            details.add_precondition_failure_violation(refusal.reason, subject, message.clone());
        }
        Detail::Components(subject, components) => {
            details.add_precondition_failure_violation(refusal.reason.clone(), subject, message.clone());
            for (position, ids) in components.into_iter().enumerate() {
                details.add_precondition_failure_violation(refusal.reason.clone(), component(position), ids);
            }
        }
        Detail::Limit(subject) => {
            details.add_quota_failure_violation(subject, message.clone());
        }
        Detail::Busy(subject, delay) => {
            details.add_quota_failure_violation(subject, message.clone()).set_retry_info(Some(delay));
        }
        Detail::Retry(delay) => {
            details.set_retry_info(Some(delay));
        }
        Detail::Resource(kind, name) => {
            details.set_resource_info(kind, name, "", message.clone());
        }
    }
    Status::with_error_details(tonic::Code::from_i32(refusal.code.into()), message, details)
}

#[cfg(test)]
mod tests;
