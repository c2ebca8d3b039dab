//! Failures within answers, as `google.rpc.Status` has them.

use std::collections::HashMap;

use canopy_proto::v1;
use prost::{Message, Name};
use prost_types::Any;

/// Domain of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "canopy";

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

impl Name for ErrorInfo {
    const NAME: &'static str = "ErrorInfo";
    const PACKAGE: &'static str = "google.rpc";

    fn full_name() -> String {
        "google.rpc.ErrorInfo".to_owned()
    }

    fn type_url() -> String {
        "type.googleapis.com/google.rpc.ErrorInfo".to_owned()
    }
}

/// A failure with this reason.
pub fn error_status(code: i32, reason: &str, message: String) -> v1::ErrorStatus {
    let info = ErrorInfo { reason: reason.to_owned(), domain: DOMAIN.to_owned(), metadata: HashMap::new() };
    let details = Any { type_url: ErrorInfo::type_url(), value: info.encode_to_vec() };
    v1::ErrorStatus { code, message, details: vec![details] }
}

/// The reason of a failure; empty if it states none.
pub fn reason_of(error: &v1::ErrorStatus) -> String {
    let infos = error.details.iter().filter_map(|detail| detail.to_msg::<ErrorInfo>().ok());
    infos.map(|info| info.reason).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    #[test]
    fn a_reason_is_read_as_it_is_written() {
        let error = error_status(Code::NotFound.into(), "PLAN_NOT_CACHED", "no such plan".to_owned());
        assert_eq!(reason_of(&error), "PLAN_NOT_CACHED");
        assert_eq!((error.code, error.message.as_str()), (5, "no such plan"));
        assert_eq!(reason_of(&v1::ErrorStatus::default()), "");
    }
}
