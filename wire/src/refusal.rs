//! The one place where errors of the planner and of requests become codes, stable reasons and details.
//!
//! Whoever answers a request takes them from here, a server or a command that plans by itself, so that both refuse in the
//! same way. The matches are exhaustive on purpose: every new error needs a decision here.

mod code;
mod files;

use std::borrow::Cow;
use std::time::Duration;

use canopy_import::ImportError;
use canopy_planner::PlanError;
use canopy_synth::{BoundError, LimitsError, SumOptionsError, SynthesisError};
use canopy_topology::{ExpressionError, FaultError, PlacementError, ReadError, TopologyError};

use crate::refused::{InlineError, RequestError};

pub use self::code::Code;

/// Longest message to send.
const MESSAGE_CHARACTERS_MAX: usize = 1500;

/// Code, stable reason and further values of an error, as a caller learns them beside its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of the error.
    pub code: Code,
    /// Stable, in capitals.
    pub reason: Cow<'static, str>,
    /// Names and values of the numbers in the words, for programs.
    pub metadata: Vec<(Cow<'static, str>, String)>,
    /// Place of the error, or time of the next try.
    pub detail: Detail,
}

/// The detail beside `ErrorInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    None,
    /// `BadRequest`: the path of the field.
    Field(String),
    /// `PreconditionFailure`: the failed condition; its type is the reason.
    Precondition(String),
    /// As `Precondition`, with the components of a disconnected network: `component 0` and the ids of its ranks.
    Components(String, Vec<String>),
    /// `QuotaFailure`: the limit; waiting does not help.
    Limit(String),
    /// `QuotaFailure` and `RetryInfo`: the limit; waiting helps.
    Busy(Cow<'static, str>, Duration),
    /// `RetryInfo`.
    Retry(Duration),
    /// `ResourceInfo`: the kind and name of the resource.
    Resource(Cow<'static, str>, String),
}

impl Refusal {
    /// Makes a refusal without metadata.
    pub fn new(code: Code, reason: &'static str, detail: Detail) -> Self {
        Self { code, reason: Cow::Borrowed(reason), metadata: Vec::new(), detail }
    }

    /// Refuses a field of a request.
    pub fn input(reason: &'static str, field: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, reason, Detail::Field(field.into()))
    }

    /// Refuses a valid request that has no answer.
    pub fn infeasible(reason: &'static str, subject: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, reason, Detail::Precondition(subject.into()))
    }

    /// Refuses more than a limit allows, for good.
    pub fn limit(reason: &'static str, subject: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, reason, Detail::Limit(subject.into()))
    }

    /// Blames canopy itself.
    pub fn fault(reason: &'static str) -> Self {
        Self::new(Code::Internal, reason, Detail::None)
    }

    /// Adds a value to the metadata.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.metadata.push((Cow::Borrowed(name), value.to_string()));
        self
    }

    /// Violated fields, preconditions and limits, in the order in which a caller is told of them: where, and what is
    /// wrong. The latter is `message` but for the components of a disconnected network.
    pub fn violations(&self, message: &str) -> Vec<(String, String)> {
        let at = |place: &str| (place.to_owned(), message.to_owned());
        match &self.detail {
            Detail::Field(place) | Detail::Precondition(place) | Detail::Limit(place) => vec![at(place)],
            Detail::Busy(place, _) => vec![at(place)],
            Detail::Components(place, components) => {
                let listed = components.iter().enumerate();
                let listed = listed.map(|(position, ids)| (component(position), ids.clone()));
                std::iter::once(at(place)).chain(listed).collect()
            }
            Detail::None | Detail::Retry(_) | Detail::Resource(..) => Vec::new(),
        }
    }

    /// Delay before a retry, where waiting helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.detail {
            Detail::Busy(_, delay) | Detail::Retry(delay) => Some(delay),
            Detail::None
            | Detail::Field(_)
            | Detail::Precondition(_)
            | Detail::Components(..)
            | Detail::Limit(_)
            | Detail::Resource(..) => None,
        }
    }
}

/// Name of a component of a disconnected network among the violations.
pub fn component(position: usize) -> String {
    format!("component {position}")
}

/// The part of a message that is sent: details travel in headers of limited length.
pub fn in_short(words: &str) -> String {
    words.chars().take(MESSAGE_CHARACTERS_MAX).collect()
}

/// The refusal for a request of a wrong form.
pub fn request_refusal(error: &RequestError) -> Refusal {
    Refusal::input(request_reason(error), error.field())
}

/// The refusal for a request that is not planned.
pub fn plan_refusal(error: &PlanError) -> Refusal {
    match error {
        PlanError::Expression(error) => expression(error),
        PlanError::Document(error) => document(error),
        PlanError::Inline(error) => inline(error),
        PlanError::Placement(error) => placement(error),
        PlanError::Group(error) => {
            let field = error.position().map_or("ranks".to_owned(), |position| format!("ranks[{position}]"));
            Refusal::input("GROUP_INVALID", field)
        }
        PlanError::FaultMeaning(error) => {
            Refusal::input("FAULT_UNKNOWN", format!("topology.punctured.faults[{}]", error.position))
        }
        PlanError::Fault(error) => match error {
            FaultError::TooFewRanks { left } => {
                Refusal::infeasible("TOO_FEW_RANKS", "topology.punctured.faults").with("left", left)
            }
            // What they mean on the network is known by then.
            _ => Refusal::input("FAULT_UNKNOWN", "topology.punctured.faults"),
        },
        PlanError::RootLost { root } => Refusal::infeasible("ROOT_LOST", "collective.root").with("root", root),
        PlanError::Root(_) => Refusal::input("ROOT_INVALID", "collective.root"),
        PlanError::Shares(_) => Refusal::input("SHARES_INVALID", "shares"),
        PlanError::Bound(error) => bound(error),
        PlanError::InJoint { position, failure } => {
            let mut refusal = plan_refusal(failure).with("collective", position);
            if let Detail::Field(field) = refusal.detail {
                refusal.detail = Detail::Field(format!("joint.collectives[{position}].{field}"));
            }
            refusal
        }
        PlanError::Synthesis(error) => synthesis(error),
        PlanError::Scale { limit, .. } => Refusal::limit("TOPOLOGY_TOO_LARGE", "topology").with("limit", limit),
        PlanError::Apart { failure, parts } => {
            let mut refusal = plan_refusal(failure).with("components", parts.count);
            if let Detail::Precondition(subject) = refusal.detail {
                refusal.detail = Detail::Components(subject, parts.listed.clone());
            }
            refusal
        }
        PlanError::File { output, error } => files::file(*output, error),
        PlanError::Rejected { check, .. } => Refusal::fault("VERIFIER_REJECTED").with("check", check),
        PlanError::NotKnown => not_cached(),
        PlanError::Stopped => stopped(),
    }
}

fn stopped() -> Refusal {
    Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None)
}

fn not_cached() -> Refusal {
    Refusal::new(Code::NotFound, "PLAN_NOT_CACHED", Detail::None)
}

fn placement(error: &PlacementError) -> Refusal {
    let reason = match error {
        PlacementError::Twice { .. } => "PLACEMENT_DUPLICATE",
        PlacementError::NoSuchNode { .. } | PlacementError::NoSuchDevice { .. } => "UNKNOWN_NODE",
        PlacementError::Disagree { .. } | PlacementError::Count { .. } | PlacementError::Boxes { .. } => {
            "PLACEMENT_DISAGREES"
        }
        PlacementError::Name { .. } | PlacementError::Ambiguous { .. } => "PLACEMENT_INVALID",
    };
    match error.rank() {
        Some(rank) => Refusal::input(reason, format!("placement.slots[{rank}]")).with("rank", rank),
        None => Refusal::input(reason, "placement"),
    }
}

fn request_reason(error: &RequestError) -> &'static str {
    match error {
        RequestError::Missing { .. } => "FIELD_MISSING",
        RequestError::Zero { .. } => "VALUE_ZERO",
        RequestError::UnknownValue { .. } => "ENUM_VALUE_UNKNOWN",
        RequestError::Algorithm(_) => "ALGORITHM_UNKNOWN",
        RequestError::Output { error, .. } => files::option(error),
        RequestError::TooManyOutputs { .. } | RequestError::DuplicateOutput { .. } => "OUTPUTS_INVALID",
        RequestError::Size { .. } | RequestError::EmptySizes { .. } | RequestError::SmallestWithoutRuntime { .. } => {
            "SIZE_INVALID"
        }
        RequestError::TooMany { field: "topology.punctured.faults", .. } => "TOO_MANY_FAULTS",
        RequestError::TooMany { .. } | RequestError::Repeated { .. } | RequestError::Name { .. } => "BUNDLE_INVALID",
        RequestError::Margin { .. } => "MARGIN_INVALID",
        RequestError::InBundle { error, .. } | RequestError::Running { error, .. } => request_reason(error),
        RequestError::Tolerance { .. } => "TOLERANCE_INVALID",
        RequestError::Fraction { .. } | RequestError::FractionValue { .. } => "FRACTION_INVALID",
        RequestError::TooManySlots { .. } | RequestError::SlotDevices { .. } => "PLACEMENT_INVALID",
        RequestError::Tenant(_) => "TENANT_INVALID",
        RequestError::Inline(InlineError::NoBandwidth { .. }) => "CAPACITY_NOT_POSITIVE",
        RequestError::Inline(_) => "TOPOLOGY_MALFORMED",
        RequestError::Fault { .. } | RequestError::Remaining(_) => "FAULT_INVALID",
        RequestError::Layout(_)
        | RequestError::Job(_)
        | RequestError::GroupSize { .. }
        | RequestError::Both { .. }
        | RequestError::Seconds { .. } => "GROUPS_INVALID",
        RequestError::TwicePunctured => "TOPOLOGY_MALFORMED",
        RequestError::PuncturedHere => "FIELD_NOT_APPLICABLE",
        RequestError::Optimality { .. } => "OPTIMALITY_INVALID",
        RequestError::NotApplicable { .. } => "FIELD_NOT_APPLICABLE",
        RequestError::Limits(error) => limits_reason(error),
        RequestError::Sums(error) => sums_reason(error),
    }
}

fn expression(error: &ExpressionError) -> Refusal {
    const FIELD: &str = "topology.expression";
    if error.is_over_limit() {
        return Refusal::limit("TOPOLOGY_TOO_LARGE", FIELD);
    }
    let refusal = Refusal::input("TOPOLOGY_MALFORMED", FIELD);
    match error.field() {
        Some(key) => refusal.with("key", key),
        None => refusal,
    }
}

fn document(error: &ImportError) -> Refusal {
    let field = nested("topology.document", error.field());
    if error.is_over_limit() {
        return Refusal::limit("TOPOLOGY_TOO_LARGE", field);
    }
    match error {
        ImportError::Topology(error) | ImportError::Document(ReadError::Topology(error)) => {
            Refusal::input(topology_reason(error), field)
        }
        _ => Refusal::input("TOPOLOGY_MALFORMED", field),
    }
}

fn inline(error: &TopologyError) -> Refusal {
    let field = nested("topology.inline", error.field());
    if error.is_over_limit() {
        return Refusal::limit("TOPOLOGY_TOO_LARGE", field);
    }
    Refusal::input(topology_reason(error), field)
}

fn topology_reason(error: &TopologyError) -> &'static str {
    match error {
        TopologyError::UnknownNode { .. } => "UNKNOWN_NODE",
        _ => "TOPOLOGY_MALFORMED",
    }
}

fn bound(error: &BoundError) -> Refusal {
    match error {
        BoundError::Disconnected { from, from_rank, to, to_rank } => disconnected(from, *from_rank, to, *to_rank),
        BoundError::TooLarge => Refusal::infeasible("CAPACITIES_TOO_LARGE", "topology"),
        BoundError::Shares(_) | BoundError::NothingToMove { .. } => Refusal::input("SHARES_INVALID", "shares"),
        BoundError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        BoundError::Broken { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}

fn synthesis(error: &SynthesisError) -> Refusal {
    match error {
        SynthesisError::Disconnected { from, from_rank, to, to_rank } => disconnected(from, *from_rank, to, *to_rank),
        SynthesisError::NotEulerian { node, entering, leaving } => {
            Refusal::infeasible("NOT_EULERIAN", format!("node {node}"))
                .with("node", node)
                .with("entering", entering)
                .with("leaving", leaving)
        }
        SynthesisError::Limits(error) => Refusal::input(limits_reason(error), error.limit()),
        SynthesisError::Sums(error) => Refusal::input(sums_reason(error), error.option()),
        SynthesisError::NoTrees => Refusal::infeasible("FORM_INFEASIBLE", "form"),
        SynthesisError::NotDirect { node, .. } => {
            Refusal::input("ALGORITHM_NOT_APPLICABLE", "algorithm").with("node", node)
        }
        SynthesisError::TooLargeForSteps { limit, .. } => {
            Refusal::input("ALGORITHM_NOT_APPLICABLE", "algorithm").with("limit", limit)
        }
        SynthesisError::TooManyChunks { limit, .. } => {
            Refusal::infeasible("TOO_MANY_CHUNKS", "chunks").with("limit", limit)
        }
        SynthesisError::Bfb(_) => Refusal::infeasible("TOO_MANY_CHUNKS", "topology"),
        SynthesisError::Unsupported { .. } => Refusal::input("ALGORITHM_NOT_APPLICABLE", "algorithm"),
        SynthesisError::NoRing { from_rank, to_rank, .. } => Refusal::input("ALGORITHM_NOT_APPLICABLE", "algorithm")
            .with("from_rank", from_rank)
            .with("to_rank", to_rank),
        SynthesisError::TooManyTrees { trees_per_rank, .. } => {
            Refusal::infeasible("TOO_MANY_TREES", "topology").with("trees_per_rank", trees_per_rank)
        }
        SynthesisError::TooManyHops { needed, limit } => {
            Refusal::infeasible("TOO_MANY_TREES", "topology").with("needed", needed).with("limit", limit)
        }
        SynthesisError::TooManyNeighbours { node, neighbours, limit } => {
            Refusal::infeasible("TOO_MANY_NEIGHBOURS", format!("node {node}"))
                .with("neighbours", neighbours)
                .with("limit", limit)
        }
        SynthesisError::Shares(_) | SynthesisError::NothingToMove { .. } => Refusal::input("SHARES_INVALID", "shares"),
        SynthesisError::TooShallow { max_depth, least, .. } => {
            Refusal::infeasible("DEPTH_INFEASIBLE", "max_depth").with("max_depth", max_depth).with("least", least)
        }
        SynthesisError::TooManyVariables { limit, .. } => {
            Refusal::infeasible("TOO_MANY_VARIABLES", "algorithm").with("limit", limit)
        }
        SynthesisError::TooUneven => Refusal::infeasible("CAPACITIES_TOO_LARGE", "topology"),
        SynthesisError::Expansion(_)
        | SynthesisError::AllToAll(_)
        | SynthesisError::Multiport(_)
        | SynthesisError::Stages(_)
        | SynthesisError::Orbits(_)
        | SynthesisError::Stepped(_) => Refusal::input("ALGORITHM_NOT_APPLICABLE", "algorithm"),
        SynthesisError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        SynthesisError::Broken { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}

const fn limits_reason(error: &LimitsError) -> &'static str {
    match error {
        LimitsError::NotApplicable { .. } | LimitsError::NoSteps { .. } | LimitsError::NoSeed { .. } => {
            "LIMIT_NOT_APPLICABLE"
        }
        LimitsError::Contradiction { .. } | LimitsError::TwiceChunks { .. } => "LIMITS_CONTRADICT",
    }
}

const fn sums_reason(error: &SumOptionsError) -> &'static str {
    match error {
        SumOptionsError::NotApplicable { .. } => "OPTION_NOT_APPLICABLE",
        SumOptionsError::NotByDepth | SumOptionsError::NothingToSpread => "OPTIONS_CONTRADICT",
    }
}

fn disconnected(from: &str, from_rank: u32, to: &str, to_rank: u32) -> Refusal {
    Refusal::infeasible("TOPOLOGY_DISCONNECTED", format!("rank {from_rank} to rank {to_rank}"))
        .with("from_rank", from_rank)
        .with("from_node", from)
        .with("to_rank", to_rank)
        .with("to_node", to)
}

/// The path of a nested field.
fn nested(outer: &str, inner: Option<String>) -> String {
    inner.map_or_else(|| outer.to_owned(), |inner| format!("{outer}.{inner}"))
}

#[cfg(test)]
mod tests;
