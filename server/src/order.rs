//! A request once its form is known to be right: enums known, counts in range, nothing contradictory.
//!
//! Nothing here reads the topology: that may take long, and happens on a worker.

mod joint;

use std::num::NonZeroU32;

use bytes::Bytes;
use canopy_faults::Loss;
use canopy_plan::{ExecutorProfile, Instances, Profile};
use canopy_proto::v1;
use canopy_proto::v1::output_spec::Instancing;
use canopy_schedule::{AllreduceForm, CollectiveKind};
use canopy_synth::{Algorithm, Kept, RootPolicy, SumOptions, Tolerance, TreeLimits};
use canopy_topology::{DocumentFormat, Slot, Transit};
use prost::Message as _;

pub use self::joint::{JointOrder, JointTask};
use crate::losses::LossError;
use crate::tenant::{NotATenant, TenantName};

/// What is to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The network, unread; where there are faults, the sound one.
    pub topology: TopologyInput,
    /// What is broken or slow in it, rising, each once; whether it is there is not checked here.
    pub faults: Vec<Loss>,
    /// What to do on it.
    pub kind: CollectiveKind,
    /// The rank with a role of its own, as stated; whether the collective takes one is not checked here.
    pub root: Option<u32>,
    /// Sizes of the ranks' shares in proportion to each other; empty: all are of one size.
    pub shares: Vec<u64>,
    /// Who takes part; none: all ranks, or those that are placed.
    pub group: Option<Group>,
    /// Where the ranks are, as stated; whether they can be there is not checked here.
    pub placement: Option<Vec<Slot>>,
    /// Smallest message in bytes that files of runtimes are used for; 0: any.
    pub size_bytes_min: u64,
    /// Greatest message in bytes, inclusive.
    pub size_bytes_max: u64,
    /// Whether output and input share memory.
    pub in_place: bool,
    /// How to find the schedule.
    pub algorithm: Algorithm,
    /// What its trees must keep to.
    pub limits: TreeLimits,
    /// What is asked of the sums of an allreduce.
    pub sums: SumOptions,
    /// Where random choices begin; 0 where nothing is chosen at random.
    pub seed: u64,
    /// How its schedule is come by.
    pub making: Making,
    /// What it is planned in common with; none: nothing. Group, kind, root, size and chunks are those of its own task then.
    pub joint: Option<JointOrder>,
    /// Files to make: at least one, all different.
    pub outputs: Vec<Output>,
    /// Whose the plan is, where nobody else is to get it.
    pub tenant: Option<TenantName>,
}

impl Order {
    /// Orders whose plans can stand in for this one's, the best first: that of the sound network, or of one that this may be
    /// the rest of, made to fit; and the same by an algorithm that needs next to no time. None if this one is such already.
    pub(crate) fn stand_ins(&self) -> Vec<Self> {
        // Nothing else keeps out of the way of what runs at the same time.
        if self.is_quick() || self.joint.is_some() {
            return Vec::new();
        }
        let direct = Self {
            algorithm: Algorithm::Direct,
            limits: TreeLimits::NONE,
            sums: SumOptions::AUTO,
            seed: 0,
            ..self.clone()
        };
        let repaired = || Self { making: Making::Repaired, ..self.clone() };
        // Of others nothing is kept that could be repaired.
        let repaired = (self.algorithm.kept != Kept::No).then(repaired);
        repaired.into_iter().chain([direct]).collect()
    }

    /// The same order on the network as it was before anything broke.
    pub(crate) fn sound(&self) -> Self {
        Self { faults: Vec::new(), making: Making::Searched, ..self.clone() }
    }

    /// Bytes that waiting in the queue holds in memory, roughly.
    pub(crate) fn weight_bytes(&self) -> usize {
        let ranks = self.group.as_ref().map_or(0, |group| size_of_val(group.ranks.as_slice()));
        let slots = self.placement.iter().flatten().map(|slot| size_of_val(slot) + slot.node.len());
        let faults: usize = self.faults.iter().map(|fault| size_of_val(fault) + fault.to_string().len()).sum();
        let joint = self.joint.as_ref().map_or(0, JointOrder::weight_bytes);
        self.topology.weight_bytes()
            + faults
            + size_of_val(self.shares.as_slice())
            + ranks
            + slots.sum::<usize>()
            + joint
    }

    /// Whether its plan is one that others may need at once, so that it must not wait behind long searches.
    pub(crate) fn is_quick(&self) -> bool {
        self.algorithm == Algorithm::Direct || matches!(self.making, Making::Repaired)
    }
}

/// How the schedule of a plan is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Making {
    /// It is known for the network, or searched for.
    Searched,
    /// That of the sound network, where it is kept, is made to fit what faults leave: nothing is searched for. Without faults, that
    /// of a network that has all parts of this one and more.
    Repaired,
}

/// The ranks of the topology that take part, in the order in which they are numbered anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As stated; not checked here. None: those that are placed.
    pub ranks: Vec<u32>,
    /// What the other compute nodes do.
    pub transit: Transit,
}

/// Which of two waiting jobs goes first. Rising: the last one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Warming the cache.
    Prefetch,
    /// Somebody waits at a terminal.
    Interactive,
    /// A job is about to start.
    JobStart,
    /// A running job is halted.
    Repair,
}

impl Priority {
    /// Every priority, the one that goes first first.
    pub(crate) const ALL: [Self; 4] = [Self::Repair, Self::JobStart, Self::Interactive, Self::Prefetch];

    /// The name used in text.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Prefetch => "prefetch",
            Self::Interactive => "interactive",
            Self::JobStart => "job-start",
            Self::Repair => "repair",
        }
    }

    /// The value on the wire.
    pub(crate) const fn on_the_wire(self) -> v1::Priority {
        match self {
            Self::Prefetch => v1::Priority::Prefetch,
            Self::Interactive => v1::Priority::Interactive,
            Self::JobStart => v1::Priority::JobStart,
            Self::Repair => v1::Priority::Repair,
        }
    }
}

/// A topology as the caller sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum TopologyInput {
    /// A generator expression.
    Expression(String),
    /// The text of a file.
    Document {
        /// How to read it.
        format: DocumentFormat,
        /// The text.
        content: Bytes,
    },
    /// Nodes and links.
    Inline(v1::Topology),
}

/// A file to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// canopy's own plan file.
    Json,
    /// An MSCCL file for one runtime, with this many instances of the plan.
    MscclXml(Profile, Instances),
    /// A oneCCL plan.
    OnecclXml,
    /// An execution plan for one version of MSCCL++.
    MscclppJson(ExecutorProfile, SwitchUse),
    /// Routes for fabrics that forward by source routing, in at most so many layers.
    RoutesXml(Option<NonZeroU32>),
}

/// Whether an execution plan uses what the network's switches can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchUse {
    /// Whatever they say that they can.
    Offered,
    /// Nothing.
    None,
}

/// The only profile of oneCCL plans.
pub(crate) const ONECCL_PROFILE: &str = "oneccl";

/// The only profile of route plans.
pub(crate) const ROUTES_PROFILE: &str = "routes";

impl Output {
    /// The format on the wire.
    pub const fn format(self) -> v1::OutputFormat {
        match self {
            Self::Json => v1::OutputFormat::Json,
            Self::MscclXml(..) => v1::OutputFormat::MscclXml,
            Self::OnecclXml => v1::OutputFormat::OnecclXml,
            Self::MscclppJson(..) => v1::OutputFormat::MscclppJson,
            Self::RoutesXml(_) => v1::OutputFormat::RoutesXml,
        }
    }

    /// Name of the runtime profile; empty for formats without one.
    pub const fn profile_name(self) -> &'static str {
        match self {
            Self::Json => "",
            Self::MscclXml(profile, _) => profile.name(),
            Self::OnecclXml => ONECCL_PROFILE,
            Self::MscclppJson(profile, _) => profile.name(),
            Self::RoutesXml(_) => ROUTES_PROFILE,
        }
    }

    /// The same as the caller asks for it.
    pub(crate) fn on_the_wire(self) -> v1::OutputSpec {
        let instancing = match self {
            Self::Json
            | Self::OnecclXml
            | Self::MscclppJson(..)
            | Self::RoutesXml(_)
            | Self::MscclXml(_, Instances::ONE) => None,
            Self::MscclXml(_, Instances::Exactly(instances)) => Some(Instancing::Instances(instances.get())),
            Self::MscclXml(_, Instances::Auto) => Some(Instancing::AutomaticInstances(v1::AutomaticInstances {})),
        };
        let plain_channels = matches!(self, Self::MscclppJson(_, SwitchUse::None));
        let max_layers = match self {
            Self::RoutesXml(most) => most.map_or(0, NonZeroU32::get),
            _ => 0,
        };
        v1::OutputSpec {
            format: self.format().into(),
            profile: self.profile_name().to_owned(),
            instancing,
            plain_channels,
            max_layers,
        }
    }
}

/// How many instances a caller asks for; `None` for the number 0, which is none.
pub(crate) fn instances(asked: Option<Instancing>) -> Option<Instances> {
    match asked {
        None => Some(Instances::ONE),
        Some(Instancing::Instances(instances)) => NonZeroU32::new(instances).map(Instances::Exactly),
        Some(Instancing::AutomaticInstances(_)) => Some(Instances::Auto),
    }
}

/// Most ranks that a caller places: what a few bytes may stand for must end somewhere.
const SLOTS_MAX: u64 = 1 << 17;

/// The slots that a caller states, one for each rank.
pub(crate) fn slots(stated: &v1::Placement) -> Result<Vec<Slot>, RequestError> {
    let found = stated.slots.iter().map(|slot| u64::from(slot.count.max(1))).sum();
    if found > SLOTS_MAX {
        return Err(RequestError::TooManySlots { found, limit: SLOTS_MAX });
    }
    let mut slots = Vec::new();
    for (position, v1::RankSlot { node, device, count }) in stated.slots.iter().enumerate() {
        let last = device.checked_add((*count).max(1) - 1).ok_or(RequestError::SlotDevices { position })?;
        slots.extend((*device..=last).map(|device| Slot { node: node.clone(), device }));
    }
    Ok(slots)
}

/// Slots on the wire, those of devices in a row as one.
pub(crate) fn slots_on_the_wire(slots: &[Slot]) -> v1::Placement {
    let mut joined: Vec<v1::RankSlot> = Vec::new();
    for Slot { node, device } in slots {
        match joined.last_mut() {
            Some(last) if last.node == *node && last.device.checked_add(last.count) == Some(*device) => last.count += 1,
            _ => joined.push(v1::RankSlot { node: node.clone(), device: *device, count: 1 }),
        }
    }
    v1::Placement { slots: joined }
}

/// The tolerance that a caller states; `None` for one that is none.
pub(crate) fn tolerance(stated: v1::Ratio) -> Option<Tolerance> {
    Tolerance::new(u32::try_from(stated.numerator).ok()?, u32::try_from(stated.denominator).ok()?)
}

/// The same as the caller states it.
pub(crate) fn tolerance_on_the_wire(tolerance: Tolerance) -> v1::Ratio {
    let (numerator, denominator) = tolerance.parts();
    v1::Ratio { numerator: numerator.into(), denominator: denominator.into() }
}

/// The form of an allreduce that a caller asks for, none being the planner's choice; `None` for an unknown number.
pub(crate) fn form(number: i32) -> Option<Option<AllreduceForm>> {
    match v1::AllreduceForm::try_from(number).ok()? {
        v1::AllreduceForm::Unspecified => Some(None),
        v1::AllreduceForm::TwoPhase => Some(Some(AllreduceForm::TwoPhases)),
        v1::AllreduceForm::Trees => Some(Some(AllreduceForm::Trees)),
    }
}

/// A form on the wire.
pub(crate) const fn form_on_the_wire(form: AllreduceForm) -> v1::AllreduceForm {
    match form {
        AllreduceForm::TwoPhases => v1::AllreduceForm::TwoPhase,
        AllreduceForm::Trees => v1::AllreduceForm::Trees,
    }
}

/// Where a caller wants the roots of an allreduce; `None` for an unknown number.
pub(crate) fn roots(number: i32) -> Option<RootPolicy> {
    match v1::RootPolicy::try_from(number).ok()? {
        v1::RootPolicy::Unspecified | v1::RootPolicy::Centre => Some(RootPolicy::Centre),
        v1::RootPolicy::Spread => Some(RootPolicy::Spread),
    }
}

/// A policy on the wire.
pub(crate) const fn roots_on_the_wire(roots: RootPolicy) -> v1::RootPolicy {
    match roots {
        RootPolicy::Centre => v1::RootPolicy::Centre,
        RootPolicy::Spread => v1::RootPolicy::Spread,
    }
}

impl TopologyInput {
    /// Hands out the bytes that tell this input from any other, in length-delimited portions.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Expression(text) => {
                sink(b"expression");
                sink(text.as_bytes());
            }
            Self::Document { format, content } => {
                sink(format.name().as_bytes());
                sink(content);
            }
            Self::Inline(topology) => {
                sink(b"inline");
                sink(&topology.encode_to_vec());
            }
        }
    }

    /// Bytes that it holds in memory, roughly.
    fn weight_bytes(&self) -> usize {
        match self {
            Self::Expression(text) => text.len(),
            Self::Document { content, .. } => content.len(),
            // Decoded nodes and links are some five times as large as they are on the wire.
            Self::Inline(topology) => topology.encoded_len().saturating_mul(5),
        }
    }
}

/// Why a request is refused for its form. Each variant says where, what was found, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RequestError {
    #[error("{field} is missing; {remedy}")]
    Missing { field: &'static str, remedy: &'static str },
    #[error("{field} has the unknown value {number}; use {known}")]
    UnknownValue { field: String, number: i32, known: &'static str },
    #[error(transparent)]
    Algorithm(#[from] canopy_synth::UnknownAlgorithm),
    #[error(transparent)]
    Limits(#[from] canopy_synth::LimitsError),
    #[error(transparent)]
    Sums(#[from] canopy_synth::SumOptionsError),
    #[error("{error}")]
    Profile { output: usize, error: canopy_plan::ProfileError },
    #[error("format json takes no profile, found `{profile}`; leave it out or choose msccl-xml")]
    ProfileWithoutRuntime { output: usize, profile: String },
    #[error("{error}")]
    ExecutorProfile { output: usize, error: canopy_plan::UnknownExecutorProfile },
    #[error("format mscclpp-json repeats no plan, found {asked} instances; leave them out or choose msccl-xml")]
    NoInstancesThere { output: usize, asked: String },
    #[error("channels of switches are in mscclpp-json files alone; leave this out or choose that format")]
    NoChannelsThere { output: usize },
    #[error("format json has no instances of its plan, found {asked}; leave them out or choose msccl-xml")]
    InstancesWithoutRuntime { output: usize, asked: String },
    #[error(
        "format oneccl-xml has one profile, oneccl, and one instance of its plan; leave out {field}, found {found}"
    )]
    OnecclOption { output: usize, field: &'static str, found: String },
    #[error(
        "format routes-xml has one profile, routes, and one instance of its plan; leave out {field}, found {found}"
    )]
    RoutesOption { output: usize, field: &'static str, found: String },
    #[error("layers are in routes-xml files alone; leave max_layers out or choose that format")]
    NoLayersThere { output: usize },
    #[error("a file of 0 instances holds no plan; use 1 or more, or leave the number to the server")]
    NoInstances { output: usize },
    #[error("{found} outputs are asked for, over the limit of {limit}; send several requests")]
    TooManyOutputs { found: usize, limit: usize },
    #[error("outputs[{first}] and outputs[{second}] are the same; ask for each file once")]
    DuplicateOutput { first: usize, second: usize },
    #[error("the greatest message size is {found} bytes; use 1 to {limit}")]
    Size { found: u64, limit: u64 },
    #[error("{field} is {found}, over the limit of {limit}; use less")]
    TooMany { field: &'static str, found: u64, limit: u64 },
    #[error("{field} repeats {what}; name each once")]
    Repeated { field: String, what: String },
    #[error("{field} is `{found}`; use 1 to 63 letters, digits, `.`, `-` and `_`")]
    Name { field: String, found: String },
    #[error("the margin is {numerator}/{denominator}; use a fraction in numbers of 32 bits")]
    Margin { numerator: u64, denominator: u64 },
    #[error("{error}")]
    InBundle { field: String, error: Box<Self> },
    #[error("the smallest message size is {min} bytes and the greatest {max}; state a smaller one, or none")]
    EmptySizes { min: u64, max: u64 },
    #[error(
        "format json is for messages of all sizes, and no file is for those from {min} bytes on; leave the size out"
    )]
    SmallestWithoutRuntime { min: u64 },
    #[error("the base of a punctured topology is punctured itself; name the sound network and all faults at once")]
    TwicePunctured,
    #[error("{error}")]
    Fault { position: usize, error: LossError },
    #[error("topology.punctured is for requests of plans; name the base here")]
    PuncturedHere,
    #[error("{field} means nothing to {method}; leave it out")]
    NotApplicable { field: &'static str, method: &'static str },
    #[error("the tolerance is {numerator}/{denominator}; use a fraction between 0 and 1, in numbers of 32 bits")]
    Tolerance { numerator: u64, denominator: u64 },
    #[error("{found} ranks are placed, over the limit of {limit}; leave out placement")]
    TooManySlots { found: u64, limit: u64 },
    #[error("the devices of placement.slots[{position}] go on beyond the greatest number; begin lower or count less")]
    SlotDevices { position: usize },
    #[error(transparent)]
    Tenant(#[from] NotATenant),
    #[error("the least optimality is {numerator}/{denominator}; use a fraction from 0 to 1")]
    Optimality { numerator: u64, denominator: u64 },
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
            Self::Profile { output, .. }
            | Self::ExecutorProfile { output, .. }
            | Self::ProfileWithoutRuntime { output, .. } => {
                format!("outputs[{output}].profile")
            }
            Self::InstancesWithoutRuntime { output, .. }
            | Self::NoInstancesThere { output, .. }
            | Self::NoInstances { output } => {
                format!("outputs[{output}].instances")
            }
            Self::NoChannelsThere { output } => format!("outputs[{output}].plain_channels"),
            Self::OnecclOption { output, field, .. } | Self::RoutesOption { output, field, .. } => {
                format!("outputs[{output}].{field}")
            }
            Self::NoLayersThere { output } => format!("outputs[{output}].max_layers"),
            Self::TooManyOutputs { .. } => "outputs".to_owned(),
            Self::DuplicateOutput { second, .. } => format!("outputs[{second}]"),
            Self::Fault { position, error } => format!("topology.punctured.faults[{position}].{}", error.field()),
            Self::TwicePunctured => "topology.punctured.base".to_owned(),
            Self::PuncturedHere => "topology.punctured".to_owned(),
            Self::TooManySlots { .. } => "placement.slots".to_owned(),
            Self::SlotDevices { position } => format!("placement.slots[{position}].count"),
            Self::Tenant(_) => crate::tenant::HEADER.to_owned(),
            Self::Size { .. } => "size_bytes_max".to_owned(),
            Self::TooMany { field, .. } => (*field).to_owned(),
            Self::Repeated { field, .. } | Self::Name { field, .. } | Self::InBundle { field, .. } => field.clone(),
            Self::Margin { .. } => "margin".to_owned(),
            Self::EmptySizes { .. } | Self::SmallestWithoutRuntime { .. } => "size_bytes_min".to_owned(),
            Self::Tolerance { .. } => "tolerance".to_owned(),
            Self::Optimality { .. } => "quality.minimum_optimality".to_owned(),
        }
    }
}
