//! The part of a request about joint planning.

use std::num::NonZeroU64;

use canopy_schedule::CollectiveKind;

/// Concurrent collectives, and which of them a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointRequest {
    /// All of them, including the requested one.
    pub tasks: Vec<JointTask>,
    /// The index of the requested one.
    pub position: usize,
}

/// One of several concurrent collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointTask {
    /// Its ranks in the topology, in the order of its own ranks, as stated; not checked here. Empty: all ranks.
    pub ranks: Vec<u32>,
    /// The collective.
    pub kind: CollectiveKind,
    /// The root as an index into the ranks, as stated; not checked here.
    pub root: Option<u32>,
    /// Size of the message.
    pub size_bytes: NonZeroU64,
    /// Chunks per share.
    pub chunks: NonZeroU64,
}

impl JointRequest {
    /// Memory that it holds, in bytes, roughly.
    pub(super) fn weight_bytes(&self) -> usize {
        self.tasks.iter().map(|task| size_of_val(task) + size_of_val(task.ranks.as_slice())).sum()
    }
}
