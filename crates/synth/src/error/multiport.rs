//! Errors of the algorithms that send along trees of all roots.

/// What is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MultiportError {
    #[error("{algorithm} needs {networks}: {reason}; use multitree, bfb or tacos")]
    OtherNetwork { algorithm: &'static str, networks: &'static str, reason: String },
}
