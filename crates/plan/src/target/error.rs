//! Why a plan cannot be written as a file.

use std::error::Error;
use std::fmt;

use crate::need::Certainty;
use crate::proof::UNFOLLOWED;

/// Why a plan cannot be written for a target, in the words of its format.
#[derive(Debug)]
pub struct TargetError {
    /// What the error means, independent of the format.
    pub reason: TargetReason,
    error: Box<dyn Error + Send + Sync>,
}

/// What an error of a format means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetReason {
    /// The caller asked for that.
    Stopped,
    /// The format cannot express what the plan does.
    Unsupported,
    /// The format cannot express shares of different sizes.
    Shares,
    /// The plan exceeds a limit.
    OverLimit(Box<Limit>),
    /// The plan exceeds a limit, by an unknown amount.
    NoRoom,
    /// Routes need more layers than allowed.
    Layers {
        /// Layers needed.
        needed: u32,
        /// Layers allowed.
        limit: u32,
    },
    /// No message is of these sizes.
    Sizes,
    /// The file was made, but is too large to be proved or run.
    TooLargeToRun,
    /// The file was made, but is not right: a fault of canopy's own.
    Rejected,
    /// The plan is not what lowering relies on: a fault of canopy's own.
    Broken,
}

/// A limit that a plan exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the profile.
    pub profile: &'static str,
    /// What has the limit, in words.
    pub whose: String,
    /// What is limited, in words.
    pub what: &'static str,
    /// The limit.
    pub limit: u64,
    /// How much the plan needs.
    pub need: u64,
    /// The rank with the greatest need; `None` if the whole plan is over the limit.
    pub rank: Option<u32>,
    /// How the need is known; `None` if the format cannot tell.
    pub certainty: Option<Certainty>,
    /// What a plan with fewer trees needs.
    pub with_fewer: WithFewer,
}

/// How a need changes when a plan has fewer trees or chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithFewer {
    /// The same, as the format has no trees.
    Same,
    /// Less.
    Less,
    /// As much less as there are fewer.
    InProportion,
}

impl TargetError {
    /// An error of a format, and what it means.
    pub fn new(reason: TargetReason, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { reason, error: error.into() }
    }

    /// A file that is not right.
    pub fn rejected(problem: impl Into<String>) -> Self {
        Self::new(TargetReason::Rejected, problem.into())
    }

    /// The error of the format, if it is of this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// A file that is not proven right: it is wrong, or too large for a proof to follow.
    pub(super) fn unproved(problem: String) -> Self {
        let reason = if problem.contains(UNFOLLOWED) { TargetReason::TooLargeToRun } else { TargetReason::Rejected };
        Self::new(reason, problem)
    }

    /// The limit that is exceeded, where plans with fewer trees need less.
    pub const fn limit_by_trees(&self) -> Option<&Limit> {
        match &self.reason {
            TargetReason::OverLimit(limit) if !matches!(limit.with_fewer, WithFewer::Same) => Some(limit),
            _ => None,
        }
    }
}

/// In the words of the format.
impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for TargetError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Limit {
    /// The limit and the need in words.
    pub fn in_words(&self) -> String {
        let Self { whose, what, limit, need, certainty, .. } = self;
        let least = if *certainty == Some(Certainty::AtLeast) { "at least " } else { "" };
        format!("{whose} allows {limit} {what}, and the best plan needs {least}{need}")
    }
}

/// An error and all its sources, joined by `: `.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
