//! Capacities between nodes, whatever faults have left of them, by the nodes of the healthy network.

use std::collections::{BTreeMap, HashMap};

use canopy_topology::Topology;

/// Capacities in bytes per second from node to node, parallel links together.
pub(super) struct Capacities {
    from: Vec<BTreeMap<usize, u128>>,
    into: Vec<BTreeMap<usize, u128>>,
}

impl Capacities {
    /// Those of a network, or of what faults have left of it, by the nodes of `healthy`.
    pub(super) fn new(healthy: &Topology, network: &Topology) -> Self {
        let ids = healthy.nodes().iter().enumerate().map(|(index, node)| (node.id.as_str(), index));
        let ids: HashMap<&str, usize> = ids.collect();
        let none = || vec![BTreeMap::new(); healthy.nodes().len()];
        let (mut from, mut into) = (none(), none());
        for link in network.links() {
            let end = |node| ids.get(network.node(node).id.as_str()).copied();
            // Faults add no nodes.
            let (Some(start), Some(end)) = (end(link.from), end(link.to)) else { continue };
            let capacity = u128::from(link.capacity.bytes_per_sec());
            *from[start].entry(end).or_default() += capacity;
            *into[end].entry(start).or_default() += capacity;
        }
        Self { from, into }
    }

    /// What leads from a node to another.
    pub(super) fn get(&self, from: usize, to: usize) -> u128 {
        self.from[from].get(&to).copied().unwrap_or_default()
    }

    /// Where links of a node lead.
    pub(super) fn targets(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.from[node].keys().copied()
    }

    /// Nodes at the other ends of a node's links, in both directions; some twice.
    pub(super) fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.from[node].keys().chain(self.into[node].keys()).copied()
    }
}
