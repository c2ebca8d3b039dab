//! Everything that can end a request without a plan, and a call without an answer.

mod call;
mod parts;

use std::sync::Arc;
use std::time::Duration;

use canopy_faults::ResolveError;
use canopy_plan::{EmulationError, ExecutionLowerError, LowerError, oneccl, routes};
use canopy_schedule::{RootError, SharesError};
use canopy_synth::{BoundError, LayersError, SynthesisError};
use canopy_topology::{
    ExpressionError, FaultError, GroupError, PlacementError, Ratio, ReadError, Topology, TopologyError,
};

pub(crate) use self::call::{CallFailure, LeaseError};
pub(crate) use self::parts::Parts;
pub(crate) use crate::causes::chain;
use crate::key::RequestKey;
use crate::order::RequestError;

/// Why there is no plan. The text of the library that refused is kept word for word.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFailure {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Expression(ExpressionError),
    #[error(transparent)]
    Document(ReadError),
    #[error(transparent)]
    Inline(#[from] InlineError),
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
    #[error("{error}")]
    Lower { output: usize, error: LowerError },
    #[error("{error}")]
    LowerOneccl { output: usize, error: oneccl::LowerError },
    #[error("{error}")]
    Layers { output: usize, error: LayersError },
    #[error("{error}")]
    LowerRoutes { output: usize, error: routes::LowerError },
    #[error("{error}")]
    LowerExecution { output: usize, error: ExecutionLowerError },
    #[error(
        "the file of outputs[{output}] cannot be run in the emulator, and nothing unchecked is handed out: {error}"
    )]
    TooLargeToRun { output: usize, error: EmulationError },
    #[error(transparent)]
    BelowMinimum(Box<Shortfall>),
    #[error("a plan was found but failed its own check `{check}`; this is a bug in canopy, please report it")]
    Rejected { check: &'static str, problem: String },
    #[error("the job failed inside the server; this is a bug in canopy, please report it as request {request}")]
    Panicked { request: RequestKey },
    #[error(
        "the job was begun {starts} times, and each time the server ended before it did; it is not tried again, ask again if the plan is still wanted"
    )]
    Abandoned { starts: u32 },
    /// The same as was found before, given again without a search.
    #[error("{}", chain(&**failure))]
    Remembered { failure: Arc<Self>, age: Duration },
    #[error("the job was stopped because nobody waits for it")]
    Stopped,
    #[error("the job was cancelled by an operator; ask again if the plan is still wanted")]
    CancelledByOperator,
    #[error("there is no such plan in the cache; ask Plan or Prefetch for it")]
    NotCached,
    #[error("{waiting} requests wait, where {limit} may; try again later")]
    QueueFull { waiting: usize, limit: usize },
    #[error(
        "the waiting requests and their networks hold {held} bytes, and this one of {found} would exceed the limit of {limit}; try again later"
    )]
    QueueBudget { held: usize, found: usize, limit: usize },
    #[error(
        "making this plan would take about {needed} bytes of memory, over the limit of {limit}; ask for a smaller network or fewer outputs, or raise job_memory_bytes"
    )]
    JobMemory { needed: u64, limit: u64 },
    #[error("the server is shutting down; try again")]
    Draining,
    #[error("the deadline of {deadline_ms} ms was reached in stage `{stage}` with no plan; allow more time")]
    Deadline { deadline_ms: u64, stage: &'static str, operation: Option<String> },
}

impl PlanFailure {
    /// Whether the job was ended from outside, not by what it found.
    pub(crate) fn is_cancellation(&self) -> bool {
        matches!(
            self,
            Self::Stopped
                | Self::CancelledByOperator
                | Self::Bound(BoundError::Stopped)
                | Self::Synthesis(SynthesisError::Stopped)
        )
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
    pub(crate) fn of_one(self, position: usize) -> Self {
        if self.is_cancellation() || self.fault().is_some() || matches!(self, Self::InJoint { .. }) {
            return self;
        }
        Self::InJoint { position, failure: Box::new(self) }
    }

    /// Whether another algorithm may well do what could not be done: the request itself is right.
    pub(crate) fn may_be_stood_in(&self) -> bool {
        match self {
            Self::Remembered { failure, .. } => failure.may_be_stood_in(),
            Self::Synthesis(error) => !matches!(error, SynthesisError::Disconnected { .. } | SynthesisError::Stopped),
            Self::Lower { .. }
            | Self::LowerOneccl { .. }
            | Self::Layers { .. }
            | Self::LowerRoutes { .. }
            | Self::LowerExecution { .. }
            | Self::TooLargeToRun { .. }
            | Self::Rejected { .. }
            | Self::Panicked { .. }
            | Self::Abandoned { .. }
            | Self::JobMemory { .. }
            | Self::Deadline { .. } => true,
            _ => false,
        }
    }

    /// What a person must look at, where canopy itself is at fault.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Rejected { check, problem } => Some(format!("{check}: {problem}")),
            Self::InJoint { failure, .. } => failure.fault(),
            Self::Bound(BoundError::Broken { what }) | Self::Synthesis(SynthesisError::Broken { what }) => {
                Some(what.clone())
            }
            Self::Lower {
                error:
                    error @ (LowerError::Malformed { .. }
                    | LowerError::NotHeld { .. }
                    | LowerError::NotSent { .. }
                    | LowerError::Name { .. }),
                ..
            } => Some(error.to_string()),
            Self::LowerOneccl { error: error @ oneccl::LowerError::Malformed { .. }, .. } => Some(error.to_string()),
            Self::Layers { error: error @ LayersError::Malformed, .. } => Some(error.to_string()),
            Self::LowerRoutes { error: error @ routes::LowerError::Malformed { .. }, .. } => Some(error.to_string()),
            _ => None,
        }
    }
}

/// A plan that is not good enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the best plan found reaches {achieved} of the bound, below the least optimality asked for, {minimum}")]
pub struct Shortfall {
    /// Achieved ÷ bound.
    pub achieved: Ratio,
    /// What was asked for.
    pub minimum: Ratio,
}

/// What is wrong with a topology given as nodes and links.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum InlineError {
    #[error("nodes[{position}].kind is missing; use NODE_KIND_COMPUTE or NODE_KIND_SWITCH")]
    KindMissing { position: usize },
    #[error("nodes[{position}].kind has the unknown value {number}; use NODE_KIND_COMPUTE or NODE_KIND_SWITCH")]
    KindUnknown { position: usize, number: i32 },
    #[error("nodes[{position}].{capability} is set on a compute node; only switches have it")]
    CapableCompute { position: usize, capability: &'static str },
    #[error("nodes[{position}].forwards is set on a switch, which forwards anyway; leave it out")]
    ForwardingSwitch { position: usize },
    #[error("links[{position}].bandwidth is 0; give a positive number of bytes per second")]
    NoBandwidth { position: usize },
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl InlineError {
    /// Path of the field at fault within the topology, where one field is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::KindMissing { position } | Self::KindUnknown { position, .. } => {
                Some(format!("nodes[{position}].kind"))
            }
            Self::ForwardingSwitch { position } => Some(format!("nodes[{position}].forwards")),
            Self::CapableCompute { position, capability } => Some(format!("nodes[{position}].{capability}")),
            Self::NoBandwidth { position } => Some(format!("links[{position}].bandwidth")),
            Self::Topology(error) => error.field(),
        }
    }

    /// Whether the topology is refused for its size, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        matches!(self, Self::Topology(error) if error.is_over_limit())
    }
}
