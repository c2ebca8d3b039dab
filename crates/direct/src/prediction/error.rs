//! Errors of rules that predict the cost of a construction.

/// Each variant names the operator, says what was found and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RuleError {
    #[error("{operator}:0 makes no network; use 1 or more")]
    Zero { operator: &'static str },
    #[error("{operator} makes a graph whose size overflows 64 bits; use a smaller one")]
    TooLarge { operator: &'static str },
    #[error("{operator} needs a graph with at least two nodes; use a larger one")]
    Trivial { operator: &'static str },
    #[error(
        "`degree` needs a graph without edges from a node to itself, so that copies of a node receive from others; use \
         another graph"
    )]
    Loops,
    #[error("a product needs at least two factors and has {found}; separate them by `;`")]
    FewFactors { found: usize },
    #[error(
        "no rule predicts the cost of this product, because factor {position} is not simple or not known to be \
         bandwidth-optimal by breadth-first broadcast; use bfb on the whole graph"
    )]
    Factor { position: usize },
    #[error(
        "`bidirect` reverses a schedule by an isomorphism of the graph and its reverse, and none is known; use bfb on \
         the graph with links in both directions"
    )]
    NotReverseSymmetric,
}
