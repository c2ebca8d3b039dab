//! Limits on trees and chunks, and why they are refused.

use std::num::{NonZeroU32, NonZeroU64};

use canopy_schedule::CollectiveKind;

use crate::tolerance::Tolerance;

/// What the trees of a schedule must keep to, at the expense of its rate. Which of them
/// an algorithm heeds is said in its row; whatever else is stated is refused.
///
/// An allreduce whose sums are made anywhere has as many trees in all, however many of them are rooted at one rank; it is
/// planned that way where that is faster than two phases of as many trees per rank.
///
/// At most one of `trees_per_root`, `chunks` and `max_chunks` may be stated: the others say what the last leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeLimits {
    /// Trees rooted at each root, exactly: k. The rate is the best there is for it.
    pub trees_per_root: Option<NonZeroU64>,
    /// Chunks that a share is divided into, exactly, for schedules in steps, and blocks of an all-to-all for its paths: each
    /// of them moves whole.
    pub chunks: Option<NonZeroU64>,
    /// Most chunks that a share is divided into, which are as many as there are trees per root: the best k up to it.
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
    /// Nothing but the rate counts.
    pub const NONE: Self =
        Self { trees_per_root: None, chunks: None, max_chunks: None, max_depth: None, tolerance: None };

    /// The same without a tolerance.
    #[must_use]
    pub const fn without_tolerance(self) -> Self {
        Self { tolerance: None, ..self }
    }
}

/// Why limits on trees are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LimitsError {
    #[error(
        "{limit} limits trees, and {collective} by {algorithm} has none; leave it out, or plan allgather, reduce-scatter, \
         allreduce, broadcast and reduce by forest"
    )]
    NotApplicable { algorithm: &'static str, collective: CollectiveKind, limit: &'static str },
    #[error("trees_per_root {trees_per_root} says what max_chunks {max_chunks} leaves open; state one of them")]
    Contradiction { trees_per_root: u64, max_chunks: u64 },
    #[error(
        "chunks counts those of schedules in steps, and {collective} by {algorithm} has no choice of them; leave it out, plan by bfb or, all-to-all, tsmcf, \
         or state max_chunks"
    )]
    NoSteps { algorithm: &'static str, collective: CollectiveKind },
    #[error(
        "{algorithm} chooses nothing at random, and needs no seed; leave it out, or plan by tacos or tacos-published"
    )]
    NoSeed { algorithm: &'static str },
    #[error("chunks {chunks} says what max_chunks {max_chunks} leaves open; state one of them")]
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
