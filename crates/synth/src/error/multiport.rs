//! Why there is no schedule on trees of all roots.

use crate::algorithm::Algorithm;

/// What was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MultiportError {
    #[error("{algorithm} plans {}, and this is none: {reason}; use multitree, bfb or tacos", plans(*algorithm))]
    OtherNetwork { algorithm: Algorithm, reason: String },
}

/// The networks an algorithm is for, in words.
const fn plans(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Kautz | Algorithm::KautzM => "Kautz networks",
        _ => "grids in which all ranks of every line are joined",
    }
}
