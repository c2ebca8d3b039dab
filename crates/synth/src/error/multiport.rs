//! Why there is no schedule on trees of all roots.

/// What was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MultiportError {
    #[error("{algorithm} plans {networks}, and this is none: {reason}; use multitree, bfb or tacos")]
    OtherNetwork { algorithm: &'static str, networks: &'static str, reason: String },
}
