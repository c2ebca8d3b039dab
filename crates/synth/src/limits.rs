//! Limits on trees and chunks, and their errors.

use std::num::{NonZeroU32, NonZeroU64};

use canopy_schedule::CollectiveKind;

use crate::tolerance::Tolerance;

/// Limits on the trees of a schedule, at the expense of its rate. The row of an algorithm states which limits it
/// supports; others are refused.
///
/// An allreduce whose sums are made anywhere has as many trees in all, however many of them are rooted at one rank; it is
/// planned that way where that is faster than two phases of as many trees per rank.
///
/// At most one of `trees_per_root`, `chunks` and `max_chunks` may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeLimits {
    /// Exact number of trees per root, k, at the best rate for it.
    pub trees_per_root: Option<NonZeroU64>,
    /// Chunks that a share is divided into, exactly, for schedules in steps, and blocks of an all-to-all for its paths: each
    /// of them moves whole.
    pub chunks: Option<NonZeroU64>,
    /// Most chunks per share, which equals the number of trees per root: the best k up to it.
    pub max_chunks: Option<NonZeroU64>,
    /// Most hops from rank to rank between the root of a tree and any rank. An allreduce passes two trees, one after the
    /// other. Where the trees of the best rate are deeper, it is the best rate found for flatter ones.
    pub max_depth: Option<NonZeroU32>,
    /// Part of the best rate within the other limits that may be given up for trees that are found sooner. A permission
    /// only: the rate may well be better. Trees flattened for `max_depth` make no use of it, nor does an allreduce whose
    /// sums are made anywhere.
    pub tolerance: Option<Tolerance>,
}

impl TreeLimits {
    /// No limits: only the rate counts.
    pub const NONE: Self =
        Self { trees_per_root: None, chunks: None, max_chunks: None, max_depth: None, tolerance: None };

    /// These limits without a tolerance.
    #[must_use]
    pub const fn without_tolerance(self) -> Self {
        Self { tolerance: None, ..self }
    }
}

/// Errors of limits on trees and chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LimitsError {
    #[error(
        "`{limit}` limits trees, and {algorithm} builds none for {collective}; leave it out, or use forest, which \
         plans allgather, reduce-scatter, allreduce, broadcast and reduce"
    )]
    NotApplicable { algorithm: &'static str, collective: CollectiveKind, limit: &'static str },
    #[error("`trees_per_root` {trees_per_root} and `max_chunks` {max_chunks} cannot be combined; set one")]
    Contradiction { trees_per_root: u64, max_chunks: u64 },
    #[error(
        "{algorithm} chooses the number of chunks of {collective} itself, so `chunks` does not apply; leave it out, \
         set `max_chunks`, or use bfb (tsmcf for all-to-all)"
    )]
    NoSteps { algorithm: &'static str, collective: CollectiveKind },
    #[error(
        "{algorithm} makes no random choices, so `seed` does not apply; leave it out, or use tacos or tacos-published"
    )]
    NoSeed { algorithm: &'static str },
    #[error("`chunks` {chunks} and `max_chunks` {max_chunks} cannot be combined; set one")]
    TwiceChunks { chunks: u64, max_chunks: u64 },
}

impl LimitsError {
    /// The limit at fault, as requests name it.
    pub const fn limit(&self) -> &'static str {
        match self {
            Self::NotApplicable { limit, .. } => limit,
            Self::NoSteps { .. } => "chunks",
            Self::NoSeed { .. } => "seed",
            Self::Contradiction { .. } | Self::TwiceChunks { .. } => "max_chunks",
        }
    }
}
