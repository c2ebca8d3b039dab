//! Errors of composing the schedule of a construction.

use canopy_optimize::BfbError;

use crate::error::GraphError;
use crate::error::PredictError;
use crate::prediction::RuleError;

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ScheduleError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Shape(#[from] PredictError),
    #[error(transparent)]
    Bfb(#[from] BfbError),
    #[error("the schedule divides shares into over 2^32 chunks; use fewer or smaller expansions")]
    TooManyChunks,
    #[error("the schedule has over 2^32 steps; use fewer or smaller expansions")]
    TooManySteps,
}
