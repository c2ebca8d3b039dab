//! Errors of the algorithm `expansion`.

use canopy_direct::{Construction, ScheduleError};

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExpansionError {
    #[error(
        "expansion composes a schedule from those of smaller networks, and this topology neither names them nor is a \
         known composition; give an expression without switches, such as `line:2(bipartite:4x4)`, or use bfb"
    )]
    NoConstruction,
    #[error(
        "expansion composes a schedule for the whole of {construction}, and {what}; plan for that network without \
         faults and with all ranks, or use bfb"
    )]
    OtherNetwork { construction: Box<Construction>, what: String },
    #[error("expansion needs equal shares; leave shares out, or use bfb")]
    UnequalShares,
    #[error("the common multiple of {reduce_scatter} and {allgather} chunks per share overflows 64 bits; use bfb")]
    TooManyChunks { reduce_scatter: u64, allgather: u64 },
    #[error("expansion cannot compose the schedule of {construction}")]
    NotComposed { construction: Box<Construction>, source: Box<ScheduleError> },
}
