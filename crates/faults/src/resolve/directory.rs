//! Finding nodes, machines, cards and planes of a network by name.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use canopy_topology::{Attributes, Node, NodeIndex, NodeKind, Topology, hosts_named};

use crate::resolve::MeaningError;
use crate::resolve::near::{beside, near};
use crate::target::{Device, TargetError};
use crate::text::shown;

/// Nodes by a name that several may share.
type Named<'t> = BTreeMap<&'t str, Vec<NodeIndex>>;

/// The names of a network, looked up in the time of a search in them. O(nodes + links) memory.
///
/// Names of a kind are read when one is asked for, as most faults are of few kinds.
#[derive(Clone, Debug)]
pub struct Directory<'t> {
    topology: &'t Topology,
    ids: OnceCell<HashMap<&'t str, NodeIndex>>,
    /// The same in order, for those who misspell one.
    sorted: OnceCell<BTreeMap<&'t str, ()>>,
    hosts: OnceCell<Named<'t>>,
    boxes: OnceCell<Named<'t>>,
    /// Switches by rail.
    planes: OnceCell<Named<'t>>,
    neighbours: OnceCell<Neighbours>,
}

impl<'t> Directory<'t> {
    /// Those of a network. At most O(nodes · log nodes + links · log links), as soon as they are needed.
    pub const fn new(topology: &'t Topology) -> Self {
        Self {
            topology,
            ids: OnceCell::new(),
            sorted: OnceCell::new(),
            hosts: OnceCell::new(),
            boxes: OnceCell::new(),
            planes: OnceCell::new(),
            neighbours: OnceCell::new(),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeIndex, &'t Node)> + use<'t> {
        (0_u32..).map(NodeIndex::new).zip(self.topology.nodes().iter().map(AsRef::as_ref))
    }

    fn ids(&self) -> &HashMap<&'t str, NodeIndex> {
        self.ids.get_or_init(|| self.nodes().map(|(index, node)| (node.id.as_str(), index)).collect())
    }

    fn hosts(&self) -> &Named<'t> {
        self.hosts.get_or_init(|| named(self.nodes(), |attributes| attributes.host.as_ref()))
    }

    fn boxes(&self) -> &Named<'t> {
        self.boxes.get_or_init(|| named(self.nodes(), |attributes| attributes.box_name.as_ref()))
    }

    fn planes(&self) -> &Named<'t> {
        let switches = || self.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::Switch { .. }));
        self.planes.get_or_init(|| named(switches(), |attributes| attributes.rail.as_ref()))
    }

    /// The network whose names these are.
    pub const fn topology(&self) -> &'t Topology {
        self.topology
    }

    pub(super) fn node(&self, id: &str) -> Result<NodeIndex, MeaningError> {
        let unknown = || {
            let sorted = self.sorted.get_or_init(|| self.ids().keys().map(|&id| (id, ())).collect());
            MeaningError::UnknownNode { id: shown(id), near: near(id, &beside(sorted, id)) }
        };
        self.ids().get(id).copied().ok_or_else(unknown)
    }

    pub(super) fn switch(&self, id: &str) -> Result<NodeIndex, MeaningError> {
        let node = self.node(id)?;
        match self.topology.node(node).kind {
            NodeKind::Switch { .. } => Ok(node),
            NodeKind::Compute | NodeKind::Forwarder => Err(MeaningError::NotASwitch { id: id.to_owned() }),
        }
    }

    /// The compute node of a device.
    pub(super) fn device(&self, device: &Device) -> Result<NodeIndex, MeaningError> {
        let (host, index) = match device {
            Device::Node { id } => {
                let node = self.node(id)?;
                return match self.topology.node(node).kind {
                    NodeKind::Switch { .. } => Err(MeaningError::NotADevice { id: id.clone() }),
                    NodeKind::Compute | NodeKind::Forwarder => Ok(node),
                };
            }
            Device::Nic { .. } => {
                return Err(TargetError::NotAGpu { found: shown(&device.to_string()) }.into());
            }
            Device::Slot { host, index } => (host, *index),
        };
        let (name, nodes) = self.machine(host)?;
        let mut ranks = nodes.iter().copied().filter(|&node| self.topology.rank_of(node).is_some());
        let devices = ranks.clone().count();
        let missing = || MeaningError::NoSuchDevice { host: name.to_owned(), index, devices };
        usize::try_from(index).ok().and_then(|index| ranks.nth(index)).ok_or_else(missing)
    }

    /// The machine of a name with all its nodes: a host, or else a box.
    pub(super) fn machine(&self, name: &str) -> Result<(&'t str, &[NodeIndex]), MeaningError> {
        let found = match hosts_named(self.hosts(), name) {
            hosts if hosts.is_empty() => self.boxes().get_key_value(name).map(|(&name, _)| name).into_iter().collect(),
            hosts => hosts,
        };
        match *found.as_slice() {
            [] => {
                let near = near(name, &[beside(self.hosts(), name), beside(self.boxes(), name)].concat());
                Err(MeaningError::UnknownHost { name: shown(name), near })
            }
            [name] => {
                let nodes = self.hosts().get(name).or_else(|| self.boxes().get(name));
                Ok((name, nodes.map(Vec::as_slice).unwrap_or_default()))
            }
            [first, second, ..] => {
                let (first, second) = (first.to_owned(), second.to_owned());
                Err(MeaningError::AmbiguousHost { name: shown(name), first, second })
            }
        }
    }

    /// All machines by name with their nodes: the hosts, or the boxes where nobody names a host.
    pub fn machines(&self) -> impl Iterator<Item = (&'t str, &[NodeIndex])> {
        let machines = if self.hosts().is_empty() { self.boxes() } else { self.hosts() };
        machines.iter().map(|(&name, nodes)| (name, nodes.as_slice()))
    }

    /// Whether switches say that they are of this plane.
    pub(super) fn has_plane(&self, name: &str) -> bool {
        self.planes().contains_key(name)
    }

    /// The switches of a plane.
    pub(super) fn plane(&self, name: &str) -> Result<Cow<'_, [NodeIndex]>, MeaningError> {
        if let Some(switches) = self.planes().get(name) {
            return Ok(Cow::Borrowed(switches));
        }
        let near = || near(name, &beside(self.planes(), name));
        self.switch(name)
            .map(|switch| Cow::Owned(vec![switch]))
            .map_err(|_| MeaningError::UnknownPlane { name: shown(name), near: near() })
    }

    /// The port of a node's card to a neighbour.
    pub(super) fn port(&self, node: NodeIndex, ports: &[NodeIndex], far_end: &str) -> Result<NodeIndex, MeaningError> {
        let id_of = |node: NodeIndex| self.topology.node(node).id.as_str();
        let missing = || {
            let ids: BTreeMap<&str, ()> = ports.iter().map(|&port| (id_of(port), ())).collect();
            let near = near(far_end, &beside(&ids, far_end));
            MeaningError::NoPort { id: id_of(node).to_owned(), port: shown(far_end), near }
        };
        self.ids().get(far_end).copied().filter(|found| ports.contains(found)).ok_or_else(missing)
    }

    /// Who has a link to or from a node, rising.
    pub(crate) fn neighbours(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + use<> {
        self.neighbours.get_or_init(|| Neighbours::of(self.topology)).of_node(node).into_iter()
    }

    pub(super) fn require_link(&self, (from, to): (NodeIndex, NodeIndex)) -> Result<(), MeaningError> {
        let id = |node: NodeIndex| self.topology.node(node).id.clone();
        self.topology
            .has_link(from, to)
            .then_some(())
            .ok_or_else(|| MeaningError::UnknownLink { from: id(from), to: id(to) })
    }
}

/// Nodes by a name of theirs, as far as they have one.
fn named<'t>(
    nodes: impl Iterator<Item = (NodeIndex, &'t Node)>,
    name: fn(&'t Attributes) -> Option<&'t String>,
) -> Named<'t> {
    let mut named = Named::new();
    for (index, node) in nodes {
        if let Some(name) = name(&node.attributes) {
            named.entry(name.as_str()).or_default().push(index);
        }
    }
    named
}

/// By node: who has a link to or from it.
#[derive(Clone, Debug)]
struct Neighbours {
    /// Those of node `v` are at `start[v] .. start[v + 1]`.
    start: Vec<usize>,
    nodes: Vec<NodeIndex>,
}

impl Neighbours {
    /// O(nodes + links).
    fn of(topology: &Topology) -> Self {
        let pairs = || topology.links().iter().flat_map(|link| [(link.from, link.to), (link.to, link.from)]);
        let mut start = vec![0; topology.nodes().len() + 1];
        pairs().for_each(|(node, _)| start[node.index()] += 1);
        let mut end = 0;
        for start in &mut start {
            end += *start;
            *start = end;
        }
        // Filled from the back, so that each start ends up where it belongs.
        let mut nodes = vec![NodeIndex::new(0); end];
        for (node, other) in pairs() {
            let at = &mut start[node.index()];
            *at -= 1;
            nodes[*at] = other;
        }
        Self { start, nodes }
    }

    /// Each once, rising.
    fn of_node(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let mut nodes = self.nodes[self.start[node.index()]..self.start[node.index() + 1]].to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
