//! Why a rule says nothing about what a construction costs.

/// Each variant says which operator, what was found, and what would be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RuleError {
    #[error("{operator}:0 makes nothing; use 1 or more")]
    Zero { operator: &'static str },
    #[error("{operator} makes a graph whose numbers do not fit 64 bits; use a smaller one")]
    TooLarge { operator: &'static str },
    #[error("{operator} of a graph with a single node says nothing; use one with at least two")]
    Trivial { operator: &'static str },
    #[error(
        "degree needs a graph without edges from a node to itself, for copies of a node to receive from others; use another"
    )]
    Loops,
    #[error("a product of {found} factors is none; state at least two, separated by `;`")]
    FewFactors { found: usize },
    #[error(
        "factor {position} of the product is not simple or not known to be bandwidth-optimal by breadth-first broadcast, so no \
         rule says what the product costs; use bfb on the whole graph"
    )]
    Factor { position: usize },
    #[error(
        "bidirect turns a schedule around by an isomorphism of the graph and its reverse, and none is known; use bfb on the \
         graph with its links both ways"
    )]
    NotReverseSymmetric,
}
