//! Why there is no plan.

mod parts;

use canopy_faults::ResolveError;
use canopy_plan::{TargetError, TargetReason, chain};
use canopy_schedule::{RootError, SharesError};
use canopy_synth::{BoundError, SynthesisError};
use canopy_topology::{ExpressionError, FaultError, GroupError, PlacementError, ReadError, Topology, TopologyError};

pub use self::parts::Parts;

/// Why there is no plan. The text of the library that refused is kept word for word.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanError {
    #[error(transparent)]
    Expression(ExpressionError),
    #[error(transparent)]
    Document(ReadError),
    #[error(transparent)]
    Inline(TopologyError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    FaultMeaning(ResolveError),
    #[error(transparent)]
    Fault(FaultError),
    #[error("rank {root}, the root of the collective, is lost; choose another root among the ranks that are left")]
    RootLost { root: u32 },
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(transparent)]
    Bound(BoundError),
    #[error(transparent)]
    Synthesis(SynthesisError),
    /// Of one of several collectives that are planned in common.
    #[error("collective {position} of those planned in common: {}", chain(&**failure))]
    InJoint { position: usize, failure: Box<Self> },
    /// Ranks cannot reach each other.
    #[error("{}; {parts}", chain(&**failure))]
    Apart { failure: Box<Self>, parts: Parts },
    #[error("{}", of_file(*output, error))]
    File { output: usize, error: TargetError },
    #[error("a plan was found but failed its own check `{check}`; this is a bug in canopy, please report it")]
    Rejected { check: &'static str, problem: String },
    /// Nothing is kept that the plan could be made of, and nothing was to be searched for.
    #[error("nothing is known that the plan could be made of; ask for a search")]
    NotKnown,
    #[error("the planner was asked to stop")]
    Stopped,
}

impl PlanError {
    /// Whether it was ended from outside, not by what it found.
    pub fn is_cancellation(&self) -> bool {
        matches!(self, Self::Stopped | Self::Bound(BoundError::Stopped) | Self::Synthesis(SynthesisError::Stopped))
    }

    /// Whether another algorithm may well do what could not be done: the request itself is right.
    pub fn may_be_stood_in(&self) -> bool {
        match self {
            Self::Synthesis(error) => !matches!(error, SynthesisError::Disconnected { .. } | SynthesisError::Stopped),
            Self::File { .. } | Self::Rejected { .. } => true,
            _ => false,
        }
    }

    /// What a person must look at, where canopy itself is at fault.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Rejected { check, problem } => Some(format!("{check}: {problem}")),
            Self::InJoint { failure, .. } => failure.fault(),
            Self::Bound(BoundError::Broken { what }) | Self::Synthesis(SynthesisError::Broken { what }) => {
                Some(what.clone())
            }
            Self::File { error, .. } if error.reason == TargetReason::Broken => Some(error.to_string()),
            _ => None,
        }
    }

    /// The place among the outputs of the file that cannot be made, where that is it.
    pub fn output(&self) -> Option<usize> {
        match self {
            Self::File { output, .. } => Some(*output),
            _ => None,
        }
    }

    /// Whether it names parts of the network that it was found on.
    pub(crate) const fn names_parts(&self) -> bool {
        match self {
            Self::Bound(error) => !matches!(error, BoundError::Stopped | BoundError::Broken { .. }),
            Self::Synthesis(error) => !matches!(error, SynthesisError::Stopped | SynthesisError::Broken { .. }),
            _ => false,
        }
    }

    /// The same with what the network falls into, if it is that ranks cannot reach each other.
    pub(crate) fn with_parts(self, topology: &Topology) -> Self {
        match self {
            Self::Bound(BoundError::Disconnected { .. }) | Self::Synthesis(SynthesisError::Disconnected { .. }) => {
                Self::Apart { failure: Box::new(self), parts: Parts::of(topology) }
            }
            other => other,
        }
    }

    /// The same, said of one of several collectives that are planned in common, unless it says so already or nobody asked for it.
    pub fn of_one(self, position: usize) -> Self {
        if self.is_cancellation() || self.fault().is_some() || matches!(self, Self::InJoint { .. }) {
            return self;
        }
        Self::InJoint { position, failure: Box::new(self) }
    }

    /// Why there is no file.
    pub(crate) fn of_file(output: usize, error: TargetError) -> Self {
        match error.reason {
            TargetReason::Stopped => Self::Stopped,
            TargetReason::Rejected => Self::Rejected { check: "file", problem: error.to_string() },
            _ => Self::File { output, error },
        }
    }

    /// A plan or file that fails one of its checks.
    pub(crate) const fn rejected(check: &'static str, problem: String) -> Self {
        Self::Rejected { check, problem }
    }
}

fn of_file(output: usize, error: &TargetError) -> String {
    match error.reason {
        TargetReason::TooLargeToRun => format!(
            "the file of outputs[{output}] cannot be run in the emulator, and nothing unchecked is handed out: {error}"
        ),
        _ => error.to_string(),
    }
}
