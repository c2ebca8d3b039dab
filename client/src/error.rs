//! Why a call failed; in the server's words if it sent any.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::address::ServerAddress;
use crate::assembly::ContentError;
use crate::class::ErrorClass;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ClientError {
    #[error("cannot reach the server at {address}: {}", in_short(.cause))]
    Unreachable { address: ServerAddress, cause: tonic::transport::Error },
    #[error("the token would go to {address} as plain text; use https://, or a Unix socket")]
    PlainToken { address: ServerAddress },
    #[error("the server speaks TLS, and was called without; write https:// before its address")]
    SpeaksTls,
    #[error("the path of the socket {address} is not UTF-8; use a path in UTF-8")]
    PathNotText { address: ServerAddress },
    #[error("{0}")]
    Refused(Box<Refusal>),
    #[error("the connection to the server was lost: {message}")]
    Lost { message: String },
    #[error("deadline exceeded ({limit:?}) before an answer came")]
    Deadline { limit: Duration },
    #[error("the server sent a damaged file")]
    Content(#[from] ContentError),
    #[error("the server broke the protocol: {what}")]
    Protocol { what: &'static str },
    #[error("cannot write the received data")]
    Write(#[source] std::io::Error),
    #[error("cannot read the data to send")]
    Read(#[source] std::io::Error),
}

impl ClientError {
    /// Reads the status of a call that had no deadline.
    pub fn of_status(status: &Status) -> Self {
        from_status(status, None)
    }

    /// Who has to act: the class of the error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => ErrorClass::Busy,
            Self::Refused(refusal) => refusal.class,
            Self::Deadline { .. } => ErrorClass::Deadline,
            Self::PlainToken { .. } | Self::PathNotText { .. } | Self::SpeaksTls => ErrorClass::Input,
            Self::Write(_) | Self::Read(_) => ErrorClass::Input,
            Self::Content(_) | Self::Protocol { .. } => ErrorClass::Fault,
        }
    }
}

impl ClientError {
    /// Whether the same call may succeed later.
    pub fn may_be_retried(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => true,
            Self::Refused(refusal) => refusal.may_be_retried,
            Self::PlainToken { .. }
            | Self::PathNotText { .. }
            | Self::SpeaksTls
            | Self::Deadline { .. }
            | Self::Content(_)
            | Self::Protocol { .. }
            | Self::Write(_)
            | Self::Read(_) => false,
        }
    }

    /// The delay before a retry, if the server states one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }
}

/// A server's refusal of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Who has to act: the class of the error.
    pub class: ErrorClass,
    /// The server's message.
    pub message: String,
    /// Stable reason in capitals, such as `TOPOLOGY_DISCONNECTED`; `None` from servers other than canopy.
    pub reason: Option<String>,
    /// Violated fields, preconditions or limits: where, and what is wrong.
    pub violations: Vec<(String, String)>,
    /// Delay before a retry.
    pub retry_after: Option<Duration>,
    /// For how long the server has remembered the refusal, if it did not find it for this call.
    pub known_for: Option<Duration>,
    /// Whether the same call may succeed later: UNAVAILABLE, ABORTED, or RESOURCE_EXHAUSTED with a delay.
    pub may_be_retried: bool,
}

impl Refusal {
    /// Makes the refusal that a server says with a status of this `code`, the number of a gRPC code.
    pub fn new(
        code: i32,
        reason: Option<String>,
        message: String,
        violations: Vec<(String, String)>,
        retry_after: Option<Duration>,
    ) -> Self {
        let code = Code::from_i32(code);
        let may_be_retried = match code {
            Code::Unavailable => true,
            // Somebody did not want it: who asks again at once gets in the way.
            Code::Aborted => reason.as_deref() != Some("OPERATION_CANCELLED"),
            Code::ResourceExhausted => retry_after.is_some(),
            _ => false,
        };
        let class = class_of(code, retry_after.is_some());
        let message = if message.is_empty() { code.description().to_owned() } else { message };
        Self { class, message, reason, violations, retry_after, known_for: None, may_be_retried }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Why there is no connection, in the words of people where the reason is a common one; else those of the transport,
/// which wraps an error in several others that repeat its text.
fn in_short(cause: &(dyn Error + 'static)) -> String {
    let causes: Vec<&(dyn Error + 'static)> = std::iter::successors(Some(cause), |&cause| cause.source()).collect();
    let kind = causes.iter().rev().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    match kind {
        Some(ErrorKind::ConnectionRefused) => return "connection refused, no server listens there".to_owned(),
        Some(ErrorKind::NotFound) => return "the socket does not exist".to_owned(),
        Some(ErrorKind::TimedOut) => return "the connection timed out".to_owned(),
        _ => {}
    }
    let mut texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
    // The failure of a look-up has no kind of its own.
    if let Some(text) = texts.iter().find_map(|text| text.strip_prefix("failed to lookup address information: ")) {
        return format!("host not found ({text})");
    }
    if texts.iter().any(|text| text.contains("UnknownIssuer")) {
        return "its certificate is signed by none that is trusted here; name the signer with `--ca` (CANOPY_CA)"
            .to_owned();
    }
    texts.dedup();
    texts.retain(|text| text != "transport error");
    if texts.is_empty() { cause.to_string() } else { texts.join(": ") }
}

/// Whether the answer was none of HTTP/2. Servers with TLS send an alert, which reads as a frame of more than a megabyte.
fn is_tls_record(cause: &dyn Error) -> bool {
    cause.to_string().contains("frame with invalid size")
}

/// Reads a status: a refusal if the server sent it, otherwise the state of the connection.
///
/// `limit` is the deadline sent with the call. The transport enforces it on both sides while the call opens, and then
/// reports "cancelled" where canopy's own server would report the deadline.
pub(crate) fn from_status(status: &Status, limit: Option<Duration>) -> ClientError {
    let causes: Vec<&dyn Error> = std::iter::successors(status.source(), |&cause| cause.source()).collect();
    // Only a status made on this side of the connection has a cause.
    if let Some(last) = causes.last() {
        return match limit {
            Some(limit) if causes.iter().any(|cause| cause.is::<tonic::TimeoutExpired>()) => {
                ClientError::Deadline { limit }
            }
            _ if is_tls_record(*last) => ClientError::SpeaksTls,
            _ => ClientError::Lost { message: last.to_string() },
        };
    }
    let details = status.get_error_details();
    if let (Some(limit), Code::Cancelled, None) = (limit, status.code(), details.error_info()) {
        return ClientError::Deadline { limit };
    }
    let fields = details.bad_request().into_iter().flat_map(|request| &request.field_violations);
    let fields = fields.map(|found| (&found.field, &found.description));
    let preconditions = details.precondition_failure().into_iter().flat_map(|failure| &failure.violations);
    let preconditions = preconditions.map(|found| (&found.subject, &found.description));
    let quotas = details.quota_failure().into_iter().flat_map(|failure| &failure.violations);
    let quotas = quotas.map(|found| (&found.subject, &found.description));
    let violations = fields.chain(preconditions).chain(quotas).map(|(place, what)| (place.clone(), what.clone()));
    let metadata = |name: &str| details.error_info().and_then(|info| info.metadata.get(name));
    let known_for =
        metadata("cache").filter(|cache| *cache == "negative").and_then(|_| metadata("age_s")?.parse().ok());
    let retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
    let reason = details.error_info().map(|info| info.reason.clone());
    let message = status.message().to_owned();
    let refusal = Refusal::new(status.code().into(), reason, message, violations.collect(), retry_after);
    ClientError::Refused(Box::new(Refusal { known_for: known_for.map(Duration::from_secs), ..refusal }))
}

/// The class of a status. A temporarily exhausted resource is worth a retry; a limit is not.
fn class_of(code: Code, comes_back: bool) -> ErrorClass {
    match code {
        Code::InvalidArgument
        | Code::OutOfRange
        | Code::NotFound
        | Code::AlreadyExists
        | Code::Unauthenticated
        | Code::PermissionDenied
        | Code::Unimplemented => ErrorClass::Input,
        Code::FailedPrecondition => ErrorClass::Infeasible,
        Code::ResourceExhausted if !comes_back => ErrorClass::Input,
        Code::ResourceExhausted | Code::Unavailable | Code::Aborted | Code::Cancelled => ErrorClass::Busy,
        Code::DeadlineExceeded => ErrorClass::Deadline,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => ErrorClass::Fault,
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn every_code_has_a_class() {
        for (code, class) in [
            (Code::InvalidArgument, ErrorClass::Input),
            (Code::FailedPrecondition, ErrorClass::Infeasible),
            (Code::Unavailable, ErrorClass::Busy),
            (Code::DeadlineExceeded, ErrorClass::Deadline),
            (Code::Internal, ErrorClass::Fault),
            (Code::Unknown, ErrorClass::Fault),
            (Code::ResourceExhausted, ErrorClass::Input),
        ] {
            assert_eq!(from_status(&Status::new(code, "words"), None).class(), class, "{code:?}");
        }
    }

    #[test]
    fn the_servers_words_and_details_survive() {
        let mut details = ErrorDetails::new();
        details.set_error_info("QUEUE_FULL", "canopy", std::collections::HashMap::new());
        details.add_quota_failure_violation("queue", "64 jobs wait");
        details.set_retry_info(Some(Duration::from_secs(2)));
        let status = Status::with_error_details(Code::ResourceExhausted, "the queue is full", details);
        let ClientError::Refused(refusal) = from_status(&status, None) else { panic!("a refusal") };
        assert_eq!(
            *refusal,
            Refusal {
                class: ErrorClass::Busy,
                message: "the queue is full".to_owned(),
                reason: Some("QUEUE_FULL".to_owned()),
                violations: vec![("queue".to_owned(), "64 jobs wait".to_owned())],
                retry_after: Some(Duration::from_secs(2)),
                known_for: None,
                may_be_retried: true,
            }
        );
    }

    #[test]
    fn what_an_operator_cancels_is_not_asked_for_again() {
        let aborted = |reason: &str| {
            let details = ErrorDetails::with_error_info(reason, "canopy", []);
            from_status(&Status::with_error_details(Code::Aborted, "words", details), None).may_be_retried()
        };
        assert!(aborted("PLAN_CHANGED") && !aborted("OPERATION_CANCELLED"));
    }

    /// An error of the transport around another one, as the channel wraps them.
    #[derive(Debug, thiserror::Error)]
    #[error("transport error")]
    struct Around(#[source] std::io::Error);

    #[test]
    fn why_no_server_is_reached_is_said_once() {
        let said = |error| in_short(&Around(error));
        let of_kind = |kind: ErrorKind| said(std::io::Error::from(kind));
        assert_eq!(of_kind(ErrorKind::ConnectionRefused), "connection refused, no server listens there");
        assert_eq!(of_kind(ErrorKind::NotFound), "the socket does not exist");
        assert_eq!(of_kind(ErrorKind::TimedOut), "the connection timed out");
        let look_up = "failed to lookup address information: Name or service not known";
        assert_eq!(said(std::io::Error::other(look_up)), "host not found (Name or service not known)");
        assert_eq!(said(std::io::Error::other("tls: no certificate")), "tls: no certificate");
    }

    /// The transport's words for it, from this side (wrapped as the channel wraps them) and from the other.
    #[test]
    fn the_transports_own_timeout_is_the_deadline() {
        #[derive(Debug, thiserror::Error)]
        #[error("transport error")]
        struct Wrapped(#[source] tonic::TimeoutExpired);

        let limit = Duration::from_secs(1);
        for status in
            [Status::from_error(Box::new(Wrapped(tonic::TimeoutExpired(())))), Status::cancelled("Timeout expired")]
        {
            assert!(matches!(from_status(&status, Some(limit)), ClientError::Deadline { .. }), "{status:?}");
            assert_eq!(from_status(&status, None).class(), ErrorClass::Busy, "no deadline was sent");
        }
    }

    #[test]
    fn a_broken_connection_is_no_refusal() {
        let broken = std::io::Error::new(ErrorKind::ConnectionReset, "reset by peer");
        let status = Status::from_error(Box::new(broken));
        let error = from_status(&status, None);
        assert!(matches!(&error, ClientError::Lost { message } if message == "reset by peer"), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Busy);
    }
}
