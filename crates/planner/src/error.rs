//! Why a request has no plan.

mod parts;

use canopy_faults::ResolveError;
use canopy_import::ImportError;
use canopy_plan::{TargetError, TargetReason, chain};
use canopy_schedule::{RootError, SharesError};
use canopy_synth::{BoundError, SynthesisError};
use canopy_topology::{ExpressionError, FaultError, GroupError, PlacementError, Topology, TopologyError};

pub use self::parts::Parts;

/// Why a request has no plan. The text of the library's error is kept word for word.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanError {
    #[error(transparent)]
    Expression(ExpressionError),
    #[error(transparent)]
    Document(ImportError),
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
    #[error("rank {root}, the root of the collective, is lost; choose another root among the surviving ranks")]
    RootLost { root: u32 },
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(transparent)]
    Bound(BoundError),
    #[error(transparent)]
    Synthesis(SynthesisError),
    #[error(
        "a network of {nodes} nodes, more than {limit}, is planned by a rule: allgather, reduce-scatter and \
         allreduce of equal shares by `auto`, `stages` or `orbits`; plan for a group of fewer ranks, or one of these"
    )]
    Scale { nodes: usize, limit: usize },
    /// One of several joint collectives has no plan.
    #[error("joint collective {position}: {}", chain(&**failure))]
    InJoint { position: usize, failure: Box<Self> },
    /// Ranks cannot reach each other.
    #[error("{parts}, so {}", chain(&**failure))]
    Apart { failure: Box<Self>, parts: Parts },
    #[error("{}", of_file(*output, error))]
    File { output: usize, error: TargetError },
    #[error("the plan failed the check `{check}`; this is a bug in canopy: please report it")]
    Rejected { check: &'static str, problem: String },
    /// No stored schedule fits, and the request allows no search.
    #[error("no stored schedule fits this request; allow a search")]
    NotKnown,
    #[error("the planner was stopped")]
    Stopped,
}

impl PlanError {
    /// Whether the planner was stopped rather than failed.
    pub fn is_cancellation(&self) -> bool {
        matches!(self, Self::Stopped | Self::Bound(BoundError::Stopped) | Self::Synthesis(SynthesisError::Stopped))
    }

    /// Whether another algorithm may succeed: the request itself is valid.
    pub fn may_be_stood_in(&self) -> bool {
        match self {
            Self::Synthesis(error) => !matches!(error, SynthesisError::Disconnected { .. } | SynthesisError::Stopped),
            Self::File { .. } | Self::Rejected { .. } => true,
            _ => false,
        }
    }

    /// What to investigate, if canopy itself is at fault.
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

    /// The check that rejected the plan, or `broken` if its search broke; `None` if canopy is not at fault.
    pub fn failed_check(&self) -> Option<&'static str> {
        match self {
            Self::Rejected { check, .. } => Some(check),
            Self::InJoint { failure, .. } => failure.failed_check(),
            _ => self.fault().map(|_| "broken"),
        }
    }

    /// The index of the output that cannot be made, if a file is at fault.
    pub fn output(&self) -> Option<usize> {
        match self {
            Self::File { output, .. } => Some(*output),
            _ => None,
        }
    }

    /// Whether it names parts of its network.
    pub(crate) const fn names_parts(&self) -> bool {
        match self {
            Self::Bound(error) => !matches!(error, BoundError::Stopped | BoundError::Broken { .. }),
            Self::Synthesis(error) => !matches!(error, SynthesisError::Stopped | SynthesisError::Broken { .. }),
            _ => false,
        }
    }

    /// Adds the components of the network, if it is disconnected.
    pub(crate) fn with_parts(self, topology: &Topology) -> Self {
        match self {
            Self::Bound(BoundError::Disconnected { .. }) | Self::Synthesis(SynthesisError::Disconnected { .. }) => {
                Self::Apart { failure: Box::new(self), parts: Parts::of(topology) }
            }
            other => other,
        }
    }

    /// Names the joint collective at fault, unless it is already named or the planner was stopped.
    pub fn of_one(self, position: usize) -> Self {
        if self.is_cancellation() || self.fault().is_some() || matches!(self, Self::InJoint { .. }) {
            return self;
        }
        Self::InJoint { position, failure: Box::new(self) }
    }

    /// Why a file cannot be made.
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
        TargetReason::TooLargeToRun => {
            format!("the file of outputs[{output}] cannot be checked, so it is not released: {error}")
        }
        _ => error.to_string(),
    }
}
