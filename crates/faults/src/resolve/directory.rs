//! Finding nodes, machines, cards and planes of a network by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use canopy_topology::{Attributes, NodeIndex, NodeKind, Topology, hosts_named};

use crate::resolve::MeaningError;
use crate::resolve::near::{beside, near};
use crate::target::Device;
use crate::text::shown;

/// Nodes by a name that several may share.
type Named<'t> = BTreeMap<&'t str, Vec<NodeIndex>>;

/// The names of a network, looked up in the time of a search in them. O(nodes + links) memory.
#[derive(Clone, Debug)]
pub struct Directory<'t> {
    topology: &'t Topology,
    ids: BTreeMap<&'t str, NodeIndex>,
    hosts: Named<'t>,
    boxes: Named<'t>,
    /// Switches by rail.
    planes: Named<'t>,
    /// By node: who has a link to or from it, each once, rising.
    neighbours: Vec<Vec<NodeIndex>>,
}

impl<'t> Directory<'t> {
    /// Reads all names once. O(nodes · log nodes + links · log links).
    pub fn new(topology: &'t Topology) -> Self {
        let nodes = || (0_u32..).map(NodeIndex::new).zip(topology.nodes());
        let named = |name: fn(&Attributes) -> Option<&String>, is_meant: fn(NodeKind) -> bool| {
            let mut named = Named::new();
            for (index, node) in nodes().filter(|(_, node)| is_meant(node.kind)) {
                if let Some(name) = name(&node.attributes) {
                    named.entry(name.as_str()).or_default().push(index);
                }
            }
            named
        };
        let mut neighbours = vec![Vec::new(); topology.nodes().len()];
        for link in topology.links() {
            neighbours[link.from.index()].push(link.to);
            neighbours[link.to.index()].push(link.from);
        }
        for around in &mut neighbours {
            around.sort_unstable();
            around.dedup();
        }
        Self {
            topology,
            ids: nodes().map(|(index, node)| (node.id.as_str(), index)).collect(),
            hosts: named(|attributes| attributes.host.as_ref(), |_| true),
            boxes: named(|attributes| attributes.box_name.as_ref(), |_| true),
            planes: named(|attributes| attributes.rail.as_ref(), |kind| matches!(kind, NodeKind::Switch { .. })),
            neighbours,
        }
    }

    /// The network whose names these are.
    pub const fn topology(&self) -> &'t Topology {
        self.topology
    }

    pub(super) fn node(&self, id: &str) -> Result<NodeIndex, MeaningError> {
        let unknown = || MeaningError::UnknownNode { id: shown(id), near: near(id, &beside(&self.ids, id)) };
        self.ids.get(id).copied().ok_or_else(unknown)
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
        let found = match hosts_named(&self.hosts, name) {
            hosts if hosts.is_empty() => self.boxes.get_key_value(name).map(|(&name, _)| name).into_iter().collect(),
            hosts => hosts,
        };
        match *found.as_slice() {
            [] => {
                let near = near(name, &[beside(&self.hosts, name), beside(&self.boxes, name)].concat());
                Err(MeaningError::UnknownHost { name: shown(name), near })
            }
            [name] => {
                let nodes = self.hosts.get(name).or_else(|| self.boxes.get(name));
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
        let machines = if self.hosts.is_empty() { &self.boxes } else { &self.hosts };
        machines.iter().map(|(&name, nodes)| (name, nodes.as_slice()))
    }

    /// Whether switches say that they are of this plane.
    pub(super) fn has_plane(&self, name: &str) -> bool {
        self.planes.contains_key(name)
    }

    /// The switches of a plane.
    pub(super) fn plane(&self, name: &str) -> Result<Cow<'_, [NodeIndex]>, MeaningError> {
        if let Some(switches) = self.planes.get(name) {
            return Ok(Cow::Borrowed(switches));
        }
        let near = || near(name, &beside(&self.planes, name));
        self.switch(name)
            .map(|switch| Cow::Owned(vec![switch]))
            .map_err(|_| MeaningError::UnknownPlane { name: shown(name), near: near() })
    }

    /// The far ends of a node's links that leave its machine, rising; of a node without a machine, of all its links.
    ///
    /// # Errors
    /// No link leaves it.
    pub fn ports(&self, node: NodeIndex) -> Result<Vec<NodeIndex>, MeaningError> {
        let far_ends = self.neighbours(node).filter(|&far_end| !self.topology.share_machine(node, far_end));
        let ports: Vec<NodeIndex> = far_ends.collect();
        match ports.is_empty() {
            true => Err(MeaningError::NoCard { id: self.topology.node(node).id.clone() }),
            false => Ok(ports),
        }
    }

    /// The port of a node's card to a neighbour.
    pub(super) fn port(&self, node: NodeIndex, ports: &[NodeIndex], far_end: &str) -> Result<NodeIndex, MeaningError> {
        let id_of = |node: NodeIndex| self.topology.node(node).id.as_str();
        let missing = || {
            let ids: BTreeMap<&str, ()> = ports.iter().map(|&port| (id_of(port), ())).collect();
            let near = near(far_end, &beside(&ids, far_end));
            MeaningError::NoPort { id: id_of(node).to_owned(), port: shown(far_end), near }
        };
        self.ids.get(far_end).copied().filter(|found| ports.contains(found)).ok_or_else(missing)
    }

    /// Who has a link to or from a node, rising.
    pub(crate) fn neighbours(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.neighbours[node.index()].iter().copied()
    }

    pub(super) fn require_link(&self, (from, to): (NodeIndex, NodeIndex)) -> Result<(), MeaningError> {
        let id = |node: NodeIndex| self.topology.node(node).id.clone();
        self.topology
            .has_link(from, to)
            .then_some(())
            .ok_or_else(|| MeaningError::UnknownLink { from: id(from), to: id(to) })
    }
}
