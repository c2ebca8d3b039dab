//! Why a request is refused for its form: unknown enum values, counts out of range, contradictory fields.

use canopy_plan::OptionError;
use canopy_planner::NotATenant;

use crate::losses::LossError;

/// The header that names the tenant of a call.
pub const TENANT_HEADER: &str = "x-canopy-tenant";

/// Says what is wrong with the number of an enum, of which 0 states nothing.
fn unknown_value(number: i32) -> String {
    if number == 0 { "is missing".to_owned() } else { format!("has the unknown value {number}") }
}

/// Why a request is refused for its form. Each variant says where, what was found, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RequestError {
    #[error("{field} is missing; {remedy}")]
    Missing { field: &'static str, remedy: &'static str },
    #[error("{field} {}; use {known}", unknown_value(*number))]
    UnknownValue { field: String, number: i32, known: &'static str },
    #[error(transparent)]
    Algorithm(#[from] canopy_baselines::UnknownAlgorithm),
    #[error(transparent)]
    Limits(#[from] canopy_synth::LimitsError),
    #[error(transparent)]
    Sums(#[from] canopy_synth::SumOptionsError),
    #[error("{error}")]
    Output { output: usize, error: OptionError },
    #[error("{found} outputs are requested, over the limit of {limit}; send several requests")]
    TooManyOutputs { found: usize, limit: usize },
    #[error("outputs[{first}] and outputs[{second}] are equal; request each file once")]
    DuplicateOutput { first: usize, second: usize },
    #[error("the largest message size is {found} bytes; use 1 to {limit}")]
    Size { found: u64, limit: u64 },
    #[error("{field} is {found}, over the limit of {limit}; use less")]
    TooMany { field: &'static str, found: u64, limit: u64 },
    #[error("{field} is 0; use a number above 0, or leave it out")]
    Zero { field: &'static str },
    #[error("{field} repeats {what}; name each once")]
    Repeated { field: String, what: String },
    #[error("{field} is `{found}`; use 1 to 63 letters, digits, `.`, `-` and `_`")]
    Name { field: String, found: String },
    #[error("the margin is {found}; use a fraction in numbers of 32 bits")]
    Margin { found: String },
    #[error("{error}")]
    InBundle { field: String, error: Box<Self> },
    #[error(
        "the smallest message size of {min} bytes exceeds the largest of {max}; use a smaller one, or leave it out"
    )]
    EmptySizes { min: u64, max: u64 },
    #[error(
        "no runtime file uses the smallest message size of {min} bytes, as format json serves all sizes; leave the size out"
    )]
    SmallestWithoutRuntime { min: u64 },
    #[error("the base of a punctured topology is itself punctured; name the healthy network and all faults at once")]
    TwicePunctured,
    #[error(transparent)]
    Inline(#[from] InlineError),
    #[error("{error}")]
    Fault { position: usize, error: LossError },
    #[error("topology.punctured is for plan requests only; name the base here")]
    PuncturedHere,
    #[error("{field} does not apply to {method}; leave it out")]
    NotApplicable { field: &'static str, method: &'static str },
    #[error("the tolerance is {found}; use a fraction between 0 and 1, in numbers of 32 bits")]
    Tolerance { found: String },
    #[error("{found} ranks are placed, over the limit of {limit}; leave out placement")]
    TooManySlots { found: u64, limit: u64 },
    #[error(
        "placement.slots[{position}] has no devices, or more than there are indices; use another `device` or `count`"
    )]
    SlotDevices { position: usize },
    #[error(transparent)]
    Tenant(#[from] NotATenant),
    #[error("the minimum optimality is {found}; use a fraction from 0 to 1")]
    Optimality { found: String },
    #[error("{field} is `{found}`; write an exact fraction such as 3/50 of whole numbers")]
    Fraction { field: &'static str, found: String },
    #[error("{field} is {exact} and {value} at once; leave out `value`")]
    FractionValue { field: &'static str, exact: String, value: String },
    #[error(transparent)]
    Remaining(#[from] canopy_faults::RemainingError),
    #[error("layout: {0}")]
    Layout(canopy_training::job::LayoutError),
    #[error(transparent)]
    Job(#[from] canopy_training::job::JobError),
    #[error("running[{position}]: {error}")]
    Running { position: usize, error: Box<Self> },
    #[error("{field} is `{found}`, and no fraction such as 3/50 that is more than 0")]
    Seconds { field: &'static str, found: String },
    #[error("{field} is {found} bytes; use 1 to {limit}")]
    GroupSize { field: String, found: u64, limit: u64 },
    #[error("{field} is given beside `{other}`; give one of them")]
    Both { field: String, other: &'static str },
}

impl RequestError {
    /// Path of the field at fault.
    pub fn field(&self) -> String {
        match self {
            Self::Missing { field, .. } | Self::NotApplicable { field, .. } => (*field).to_owned(),
            Self::UnknownValue { field, .. } => field.clone(),
            Self::Algorithm(_) => "algorithm".to_owned(),
            Self::Limits(error) => error.limit().to_owned(),
            Self::Sums(error) => error.option().to_owned(),
            Self::Output { output, error } => format!("outputs[{output}].{}", error.field().name()),
            Self::TooManyOutputs { .. } => "outputs".to_owned(),
            Self::DuplicateOutput { second, .. } => format!("outputs[{second}]"),
            Self::Inline(error) => format!("topology.inline.{}", error.field()),
            Self::Fault { position, error } => format!("topology.punctured.faults[{position}].{}", error.field()),
            Self::TwicePunctured => "topology.punctured.base".to_owned(),
            Self::PuncturedHere => "topology.punctured".to_owned(),
            Self::TooManySlots { .. } => "placement.slots".to_owned(),
            Self::SlotDevices { position } => format!("placement.slots[{position}].count"),
            Self::Tenant(_) => TENANT_HEADER.to_owned(),
            Self::Size { .. } => "size_bytes_max".to_owned(),
            Self::TooMany { field, .. } | Self::Zero { field } => (*field).to_owned(),
            Self::Repeated { field, .. } | Self::Name { field, .. } | Self::InBundle { field, .. } => field.clone(),
            Self::Margin { .. } => "margin".to_owned(),
            Self::EmptySizes { .. } | Self::SmallestWithoutRuntime { .. } => "size_bytes_min".to_owned(),
            Self::Tolerance { .. } => "tolerance".to_owned(),
            Self::Optimality { .. } => "minimum_optimality".to_owned(),
            Self::Remaining(_) => "remaining".to_owned(),
            Self::Layout(_) => "layout".to_owned(),
            Self::Job(error) => error.field(),
            Self::Running { position, error } => format!("running[{position}].{}", error.field()),
            Self::Seconds { field, .. } | Self::Fraction { field, .. } | Self::FractionValue { field, .. } => {
                (*field).to_owned()
            }
            Self::GroupSize { field, .. } | Self::Both { field, .. } => field.clone(),
        }
    }
}

/// Number that must be above 0 if it is given.
///
/// # Errors
/// It is 0.
pub fn above_zero<N, Z: TryFrom<N>>(field: &'static str, stated: Option<N>) -> Result<Option<Z>, RequestError> {
    stated.map(|stated| Z::try_from(stated).map_err(|_| RequestError::Zero { field })).transpose()
}

/// Why an inline topology is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum InlineError {
    #[error("nodes[{position}].kind is missing; use NODE_KIND_COMPUTE or NODE_KIND_SWITCH")]
    KindMissing { position: usize },
    #[error("nodes[{position}].kind has the unknown value {number}; use NODE_KIND_COMPUTE or NODE_KIND_SWITCH")]
    KindUnknown { position: usize, number: i32 },
    #[error("nodes[{position}].{capability} is set on a compute node; set it on switches only")]
    CapableCompute { position: usize, capability: &'static str },
    #[error("nodes[{position}].forwards is set on a switch, which forwards anyway; leave it out")]
    ForwardingSwitch { position: usize },
    #[error("links[{position}].bandwidth is 0; use a positive number of bytes per second")]
    NoBandwidth { position: usize },
}

impl InlineError {
    /// Path of the field at fault within the topology.
    pub fn field(&self) -> String {
        match self {
            Self::KindMissing { position } | Self::KindUnknown { position, .. } => {
                format!("nodes[{position}].kind")
            }
            Self::ForwardingSwitch { position } => format!("nodes[{position}].forwards"),
            Self::CapableCompute { position, capability } => format!("nodes[{position}].{capability}"),
            Self::NoBandwidth { position } => format!("links[{position}].bandwidth"),
        }
    }
}
