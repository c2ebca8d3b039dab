//! What is asked of the planner. Nothing here reads the topology: that may take long.

mod joint;

use bytes::Bytes;
use canopy_faults::Loss;
use canopy_plan::{Format, Target};
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, Kept, SumOptions, TreeLimits};
use canopy_topology::{DocumentFormat, NodeKind, Slot, TopologyDraft, Transit};

pub use self::joint::{JointRequest, JointTask};
use crate::tenant::TenantName;

/// What is to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
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
    pub joint: Option<JointRequest>,
    /// Files to make, all different; none: the plan alone.
    pub outputs: Vec<Target>,
    /// Whose the plan is, where nobody else is to get it.
    pub tenant: Option<TenantName>,
}

impl Request {
    /// Greatest message in bytes that a request which names none is for: 1 GiB.
    pub const SIZE_BYTES_MAX_DEFAULT: u64 = 1 << 30;

    /// A collective of all ranks of the network that a generator expression names, by any algorithm, as canopy's own plan file.
    pub fn on(expression: &str, kind: CollectiveKind) -> Self {
        Self::of(TopologyInput::Expression(expression.to_owned()), kind)
    }

    /// The same on a network that is said in any way.
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

    /// Requests whose plans can stand in for this one's, the best first: that of the sound network, or of one that this may be
    /// the rest of, made to fit; and the same by an algorithm that needs next to no time. None if this one is such already.
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

    /// The same order on the network as it was before anything broke.
    pub fn sound(&self) -> Self {
        Self { faults: Vec::new(), making: Making::Searched, ..self.clone() }
    }

    /// Bytes that waiting in the queue holds in memory, roughly.
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

    /// Whether its plan is one that others may need at once, so that it must not wait behind long searches.
    pub fn is_quick(&self) -> bool {
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
    /// Nodes and links, unchecked.
    Inline(TopologyDraft),
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
            Self::Inline(draft) => {
                sink(b"inline");
                feed_draft(draft, sink);
            }
        }
    }

    /// Bytes that it holds in memory, roughly.
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
