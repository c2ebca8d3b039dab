//! What a request says where its plan is made in common with those of others.

use std::num::NonZeroU64;

use canopy_schedule::CollectiveKind;

/// Collectives that run at the same time, and which of them a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointRequest {
    /// All of them, the one that is asked for too.
    pub tasks: Vec<JointTask>,
    /// The place of the one that is asked for.
    pub position: usize,
}

/// One of several collectives that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointTask {
    /// Its ranks in the topology, in the order of its own numbers, as stated; not checked here. Empty: all.
    pub ranks: Vec<u32>,
    /// What they do.
    pub kind: CollectiveKind,
    /// By its number among the ranks, as stated; whether the collective takes one is not checked here.
    pub root: Option<u32>,
    /// Size of the message.
    pub size_bytes: NonZeroU64,
    /// Chunks of a share.
    pub chunks: NonZeroU64,
}

impl JointRequest {
    /// Bytes that it holds in memory, roughly.
    pub(super) fn weight_bytes(&self) -> usize {
        self.tasks.iter().map(|task| size_of_val(task) + size_of_val(task.ranks.as_slice())).sum()
    }
}
