//! What is found of a network, and what it makes of one.

use std::collections::BTreeMap;

use canopy_topology::{Capacity, Latency, Link, NodeIndex, Topology, TopologyError};

/// The greatest factor of a rate: links are not faster than described, and measurements not better than this.
pub const RATE_MAX: f64 = 1.05;

/// One thing that runs may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// What each message takes before its first byte is sent, in ns: α of the simulations.
    Message,
    /// What a link out of a box adds, in ns.
    AcrossLatency,
    /// By what rates of links inside boxes are multiplied.
    InsideRate,
    /// By what rates of all other links are multiplied.
    AcrossRate,
    /// What a call of a library takes once, in ns. No network has it: it is no part of the file.
    Launch,
}

impl Parameter {
    /// All that a network has.
    pub const ALL: [Self; 4] = [Self::Message, Self::AcrossLatency, Self::InsideRate, Self::AcrossRate];

    /// Its name: that of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::AcrossLatency => "across-latency",
            Self::InsideRate => "inside-rate",
            Self::AcrossRate => "across-rate",
            Self::Launch => "launch",
        }
    }

    /// Whether it is a time in ns, not a factor.
    pub const fn is_latency(self) -> bool {
        matches!(self, Self::Message | Self::AcrossLatency | Self::Launch)
    }

    /// Those that a network has: it may have no boxes, or one.
    pub fn of(topology: &Topology) -> Vec<Self> {
        let classes = classes(topology);
        let has = |class: Class| classes.contains(&class);
        let is_there = |parameter: &Self| match parameter {
            Self::Message => true,
            Self::InsideRate => has(Class::Inside),
            Self::AcrossLatency => has(Class::Leaving),
            Self::AcrossRate => has(Class::Leaving) || has(Class::Between),
            Self::Launch => false,
        };
        Self::ALL.into_iter().filter(is_there).collect()
    }
}

/// By link: whether it is inside a box, so that its rate is that of [`Parameter::InsideRate`]. O(links).
pub fn inside(topology: &Topology) -> Vec<bool> {
    classes(topology).into_iter().map(|class| class == Class::Inside).collect()
}

/// Where a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Both ends are in one box.
    Inside,
    /// It leads out of one.
    Leaving,
    /// It does not start in any.
    Between,
}

/// By link.
fn classes(topology: &Topology) -> Vec<Class> {
    let box_of = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    // Ranks may state boxes where the switches of these do not: what has links to one box alone is in it.
    let class = |link: &Link| match (box_of(link.from), box_of(link.to)) {
        (Some(from), Some(to)) if from == to => Class::Inside,
        (Some(name), None) if is_only_of(topology, link.to, name) => Class::Inside,
        (None, Some(name)) if is_only_of(topology, link.from, name) => Class::Inside,
        (Some(_), _) => Class::Leaving,
        (None, _) => Class::Between,
    };
    topology.links().iter().map(class).collect()
}

/// Whether all that a node leads to is in this box.
fn is_only_of(topology: &Topology, node: NodeIndex, name: &str) -> bool {
    let mut links = topology.links_from(node);
    links.all(|link| topology.node(topology.link(link).to).attributes.box_name.as_deref() == Some(name))
}

/// Values of all parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// See [`Parameter::Message`].
    pub message_ns: f64,
    /// See [`Parameter::AcrossLatency`].
    pub across_ns: f64,
    /// See [`Parameter::InsideRate`].
    pub inside: f64,
    /// See [`Parameter::AcrossRate`].
    pub across: f64,
    /// See [`Parameter::Launch`].
    pub launch_ns: f64,
}

impl Parameters {
    /// What a network is described as, if messages take so long.
    pub const fn described(message_ns: f64) -> Self {
        Self { message_ns, across_ns: 0.0, inside: 1.0, across: 1.0, launch_ns: 0.0 }
    }

    /// One of them.
    pub const fn get(&self, parameter: Parameter) -> f64 {
        match parameter {
            Parameter::Message => self.message_ns,
            Parameter::AcrossLatency => self.across_ns,
            Parameter::InsideRate => self.inside,
            Parameter::AcrossRate => self.across,
            Parameter::Launch => self.launch_ns,
        }
    }

    /// The same with another value of one.
    #[must_use]
    pub const fn with(mut self, parameter: Parameter, value: f64) -> Self {
        match parameter {
            Parameter::Message => self.message_ns = value,
            Parameter::AcrossLatency => self.across_ns = value,
            Parameter::InsideRate => self.inside = value,
            Parameter::AcrossRate => self.across = value,
            Parameter::Launch => self.launch_ns = value,
        }
        self
    }

    /// What each message takes.
    pub fn message(&self) -> Latency {
        Latency::from_nanos(rounded(self.message_ns))
    }

    /// What each call takes once.
    pub fn launch(&self) -> Latency {
        Latency::from_nanos(rounded(self.launch_ns))
    }

    /// A network as it is by these, and by the rates of single links, by ends. What a message takes is no part of it. O(links).
    ///
    /// # Errors
    /// As building any topology; rates below 1 B/s are 1 B/s.
    pub fn applied(
        &self,
        topology: &Topology,
        links: &BTreeMap<(String, String), Capacity>,
    ) -> Result<Topology, TopologyError> {
        let classes = classes(topology);
        let mut class = classes.iter();
        topology.remeasured(|link| {
            let class = class.next().copied().unwrap_or(Class::Between);
            let factor = if class == Class::Inside { self.inside } else { self.across };
            let stated = || links.get(&(topology.node(link.from).id.clone(), topology.node(link.to).id.clone()));
            let scaled = scaled(link.capacity, factor);
            let capacity = if links.is_empty() { scaled } else { stated().copied().unwrap_or(scaled) };
            let more = if class == Class::Leaving { rounded(self.across_ns) } else { 0 };
            (Some(capacity), Latency::from_nanos(link.latency.nanos().saturating_add(more)))
        })
    }
}

/// A rate times a factor, in whole parts per million of it.
fn scaled(capacity: Capacity, factor: f64) -> Capacity {
    let parts = u128::from(rounded(factor * 1e6));
    let bytes = u128::from(capacity.bytes_per_sec()) * parts / 1_000_000;
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).max(1);
    Capacity::from_bytes_per_sec(bytes).unwrap_or(capacity)
}

/// The nearest whole number, none below zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
pub(crate) fn rounded(value: f64) -> u64 {
    if value.is_nan() { 0 } else { value.round().clamp(0.0, 1e18) as u64 }
}
