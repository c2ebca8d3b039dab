//! Requests to the planner. Nothing here reads the topology, which may take long.

mod joint;

use bytes::Bytes;
use canopy_faults::Loss;
use canopy_import::FileKind;
use canopy_plan::{Format, Target};
use canopy_schedule::CollectiveKind;
use canopy_simulate::ALPHA_NS_USUAL;
use canopy_synth::{Algorithm, Kept, SumOptions, TreeLimits};
use canopy_topology::{NodeKind, Slot, Topology, TopologyDraft, Transit};

pub use self::joint::{JointRequest, JointTask};
use crate::tenant::TenantName;

/// What to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The network, unread; with faults, the healthy network.
    pub topology: TopologyInput,
    /// Its broken or slow elements, ascending, each once; not checked here.
    pub faults: Vec<Loss>,
    /// The collective.
    pub kind: CollectiveKind,
    /// The root, as stated; not checked here.
    pub root: Option<u32>,
    /// Relative sizes of the ranks' shares; empty: all are equal.
    pub shares: Vec<u64>,
    /// The participating ranks; `None`: all ranks, or those that are placed.
    pub group: Option<Group>,
    /// The placement of the ranks, as stated; not checked here.
    pub placement: Option<Vec<Slot>>,
    /// Smallest message in bytes that runtime files serve; 0: any size.
    pub size_bytes_min: u64,
    /// Largest message in bytes, inclusive.
    pub size_bytes_max: u64,
    /// Whether that was stated, where it is the default: then a plan is to be the fastest at it.
    pub states_default_size: bool,
    /// Start-up time of each message, in nanoseconds, with which plans are compared.
    pub alpha_ns: u64,
    /// Whether output and input share memory.
    pub in_place: bool,
    /// How to find the schedule.
    pub algorithm: Algorithm,
    /// Limits on its trees.
    pub limits: TreeLimits,
    /// Options for the reductions of an allreduce.
    pub sums: SumOptions,
    /// Seed of random choices; 0 if there are none.
    pub seed: u64,
    /// How to get its schedule.
    pub making: Making,
    /// Its joint collectives; `None`: it is planned alone. With joint collectives, group, kind, root, size and chunks
    /// are those of its own task.
    pub joint: Option<JointRequest>,
    /// Files to make, all different; empty: only the plan.
    pub outputs: Vec<Target>,
    /// The isolated tenant that owns the plan, if any.
    pub tenant: Option<TenantName>,
}

impl Request {
    /// Default for the start-up time of a message: 1 µs.
    pub const ALPHA_NS_DEFAULT: u64 = ALPHA_NS_USUAL;

    /// Default for the largest message in bytes: 1 GiB.
    pub const SIZE_BYTES_MAX_DEFAULT: u64 = 1 << 30;

    /// A collective of all ranks of the network of a generator expression, by any algorithm, as canopy's own plan file.
    pub fn on(expression: &str, kind: CollectiveKind) -> Self {
        Self::of(TopologyInput::Expression(expression.to_owned()), kind)
    }

    /// As [`Request::on`], for any form of topology.
    pub fn of(topology: TopologyInput, kind: CollectiveKind) -> Self {
        Self {
            topology,
            faults: Vec::new(),
            kind,
            root: None,
            shares: Vec::new(),
            group: None,
            placement: None,
            size_bytes_min: 0,
            size_bytes_max: Self::SIZE_BYTES_MAX_DEFAULT,
            states_default_size: false,
            alpha_ns: ALPHA_NS_USUAL,
            in_place: false,
            algorithm: Algorithm::Auto,
            limits: TreeLimits::NONE,
            sums: SumOptions::AUTO,
            seed: 0,
            making: Making::Searched,
            joint: None,
            outputs: vec![Format::Json.usual()],
            tenant: None,
        }
    }

    /// Whether the plan is to be the fastest at the size of the largest message, rather than at any large one.
    pub const fn is_size_stated(&self) -> bool {
        self.states_default_size || self.size_bytes_max != Self::SIZE_BYTES_MAX_DEFAULT
    }

    /// Whether its files state the devices of the ranks: a placement is given, and one of the formats has a word for it.
    pub(crate) fn states_devices(&self) -> bool {
        self.placement.is_some() && self.outputs.iter().any(|output| output.states_devices())
    }

    /// Requests for provisional plans in place of this one, the best first: a repair of the plan for the healthy
    /// network, or for one with fewer faults; then an algorithm that takes next to no time. Empty if this request is
    /// already provisional.
    pub fn stand_ins(&self) -> Vec<Self> {
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

    /// Options for the reductions on a network: trees may go through its switches where these replicate and add up and
    /// canopy's own file alone is asked for, as no runtime's file says of a switch of some ranks that it adds up.
    pub(crate) fn sums_on(&self, topology: &Topology) -> SumOptions {
        let in_network = self.kind == CollectiveKind::Allreduce
            && topology.has_capable_switch()
            && !self.outputs.is_empty()
            && self.outputs.iter().all(|target| target.format == Format::Json);
        SumOptions { in_network, ..self.sums }
    }

    /// The same request on the healthy network.
    pub fn sound(&self) -> Self {
        Self { faults: Vec::new(), making: Making::Searched, ..self.clone() }
    }

    /// Memory that it holds while it waits in the queue, in bytes, roughly.
    pub fn weight_bytes(&self) -> usize {
        let ranks = self.group.as_ref().map_or(0, |group| size_of_val(group.ranks.as_slice()));
        let slots = self.placement.iter().flatten().map(|slot| size_of_val(slot) + slot.node.len());
        let faults: usize = self.faults.iter().map(|fault| size_of_val(fault) + fault.to_string().len()).sum();
        let joint = self.joint.as_ref().map_or(0, JointRequest::weight_bytes);
        self.topology.weight_bytes()
            + faults
            + size_of_val(self.shares.as_slice())
            + ranks
            + slots.sum::<usize>()
            + joint
    }

    /// Whether others may need its plan at once, so that it must not wait behind long searches.
    pub fn is_quick(&self) -> bool {
        self.algorithm == Algorithm::Direct || matches!(self.making, Making::Repaired)
    }
}

/// How to get the schedule of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Making {
    /// Take a known schedule for the network, or search for one.
    Searched,
    /// Repair the stored schedule of the healthy network, without a search. Without faults: adapt that of a network
    /// which has everything this one has, and more.
    Repaired,
}

/// The participating ranks of the topology, in their new order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As stated; not checked here. `None`: those that are placed.
    pub ranks: Vec<u32>,
    /// What the other compute nodes do.
    pub transit: Transit,
}

/// A topology as sent by the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum TopologyInput {
    /// A generator expression.
    Expression(String),
    /// The text of a file.
    Document {
        /// What wrote it; `None` recognises it by its content.
        kind: Option<FileKind>,
        /// The text.
        content: Bytes,
    },
    /// Nodes and links, unchecked.
    Inline(TopologyDraft),
}

impl TopologyInput {
    /// Passes on the bytes that distinguish this input from any other, in length-delimited portions.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Expression(text) => {
                sink(b"expression");
                sink(text.as_bytes());
            }
            Self::Document { kind, content } => {
                sink(kind.map_or("any file", FileKind::name).as_bytes());
                sink(content);
            }
            Self::Inline(draft) => {
                sink(b"inline");
                feed_draft(draft, sink);
            }
        }
    }

    /// Memory that it holds, in bytes, roughly.
    fn weight_bytes(&self) -> usize {
        match self {
            Self::Expression(text) => text.len(),
            Self::Document { content, .. } => content.len(),
            Self::Inline(draft) => {
                let nodes = draft.nodes.iter().map(|node| size_of_val(node) + node.id.len());
                let links = draft.links.iter().map(|link| size_of_val(link) + link.from.len() + link.to.len());
                nodes.sum::<usize>() + links.sum::<usize>()
            }
        }
    }
}

/// Names, kinds, ranks and numbers of nodes and links, each with its own length. O(nodes + links).
fn feed_draft(draft: &TopologyDraft, sink: &mut dyn FnMut(&[u8])) {
    sink(draft.name.as_deref().unwrap_or_default().as_bytes());
    sink(&draft.nodes.len().to_le_bytes());
    for node in &draft.nodes {
        let kind = match node.kind {
            NodeKind::Compute => 0,
            NodeKind::Forwarder => 1,
            NodeKind::Switch { multicast, aggregate } => 2 | u8::from(multicast) << 2 | u8::from(aggregate) << 3,
        };
        sink(node.id.as_bytes());
        sink(&[kind]);
        sink(node.rank.map(u32::to_le_bytes).as_ref().map_or(&[], |rank| rank));
    }
    for link in &draft.links {
        sink(link.from.as_bytes());
        sink(link.to.as_bytes());
        for number in [link.capacity.bytes_per_sec(), link.latency.nanos(), link.count] {
            sink(&number.to_le_bytes());
        }
    }
}
