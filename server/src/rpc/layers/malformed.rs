//! Reports requests that cannot be decoded as the caller's mistakes.
//!
//! The transport refuses bytes that it cannot decode before a service sees them: as INTERNAL, without details and
//! without a line in the log. INTERNAL is for faults of the server, which raise alarms; its own have details.

use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Code, Status};

use crate::rpc::layers::answered::reworded;
use crate::rpc::shared::status::malformed;

/// The same answer, or the refusal of a request that cannot be decoded.
pub(crate) fn decodable(path: &str, response: http::Response<Body>) -> http::Response<Body> {
    reworded(path, response, undecodable)
}

/// The status of a request that the transport could not decode; none if that is not what a status says.
fn undecodable(status: &Status) -> Option<Status> {
    // What cannot be encoded is the server's own answer.
    let is_transport = status.code() == Code::Internal && status.details().is_empty();
    (is_transport && !status.message().starts_with("Error encoding")).then(|| malformed(status.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_transport_says_without_details_is_the_callers_mistake() {
        let refused = undecodable(&Status::internal("failed to decode Protobuf message: no")).unwrap();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("no") && !refused.details().is_empty(), "{refused:?}");
        let own = Status::with_details(Code::Internal, "a bug", vec![1].into());
        for other in [own, Status::internal("Error encoding: x"), Status::invalid_argument("x"), Status::ok("")] {
            assert!(undecodable(&other).is_none(), "{other:?}");
        }
    }
}
