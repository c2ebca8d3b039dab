//! Errors of building a construction or predicting its cost.

use canopy_optimize::BfbError;

use crate::families::FamilyError;
use crate::prediction::RuleError;
use crate::size::TooLarge;

/// Errors of building the graph of a construction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the errors within say it")]
pub enum GraphError {
    #[error(transparent)]
    Family(#[from] FamilyError),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Errors of predicting a cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the errors within say it")]
pub enum PredictError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(
        "node {node} has {found} links in one direction while others have {degree}; use a graph in which every \
         node has the same number of links"
    )]
    NotRegular { node: u32, found: usize, degree: usize },
    #[error(transparent)]
    Bfb(#[from] BfbError),
    #[error("the exact cost overflows 128 bits; use a smaller graph")]
    Overflow,
}

impl From<FamilyError> for PredictError {
    fn from(error: FamilyError) -> Self {
        Self::Graph(error.into())
    }
}
