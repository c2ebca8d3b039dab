//! Why no schedule is composed.

use canopy_direct::{Construction, ScheduleError};

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExpansionError {
    #[error(
        "expansion composes the schedule of a network from those of what it is made of, and neither is it told what that is nor is \
         the network known; give the topology as an expression of families without switches and operators, such as \
         line:2(bipartite:4x4), or use bfb"
    )]
    NoConstruction,
    #[error(
        "expansion composes a schedule for all of {construction}, and {what}; plan for that network without faults and with \
         all of its ranks, or use bfb"
    )]
    OtherNetwork { construction: Box<Construction>, what: String },
    #[error("expansion divides shares of one size; leave shares out, or use bfb")]
    UnequalShares,
    #[error("shares of {reduce_scatter} and of {allgather} chunks have no common division that 64 bits count; use bfb")]
    TooManyChunks { reduce_scatter: u64, allgather: u64 },
    #[error("the schedule of {construction} cannot be composed; bfb plans the network as it is, without")]
    NotComposed { construction: Box<Construction>, source: Box<ScheduleError> },
}
