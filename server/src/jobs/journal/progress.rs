//! What is known of a job beside its request: the payload of its summary.

use canopy_planner::RequestKey;

use crate::store::encode_message;

/// The layout: what changes while it is unfinished, and what must be known before it is read.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Progress {
    /// How often a worker has begun to make its plan.
    #[prost(uint32, tag = "1")]
    pub(crate) starts: u32,
    /// The key of its request.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) request: Vec<u8>,
}

/// The summary of a job that was begun so often.
pub(crate) fn encode_progress(starts: u32, request: &RequestKey) -> Vec<u8> {
    encode_message(&Progress { starts, request: request.as_bytes().to_vec() })
}
