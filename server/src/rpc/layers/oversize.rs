//! Gives messages over the size limit the code that other limits have.
//!
//! The transport refuses such a message before the service sees it, as OUT_OF_RANGE without details. What the service itself
//! answers with that code has details.

use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Code, Status};

use crate::rpc::layers::answered::reworded;
use crate::rpc::shared::status::oversized;

/// The same answer, or the refusal of a message that has more than `limit` bytes.
pub(crate) fn oversize(
    limit: usize,
) -> impl Fn(&str, http::Response<Body>) -> http::Response<Body> + Clone + Send + Sync + 'static {
    move |path, response| {
        let is_transport = |status: &Status| status.code() == Code::OutOfRange && status.details().is_empty();
        reworded(path, response, |status| is_transport(status).then(|| oversized(limit, status.message())))
    }
}
