//! Topologies as graphs.

use canopy_topology::{NodeKind, Topology};

use crate::graph::{Arc, Graph};

/// The graph of a topology, with the same numbers: what a schedule depends on, and nothing else.
///
/// A node's colour is its role above its kind and capabilities; an arc's weight is the capacity and latency of its link.
/// Ranks of different roles are not exchanged: the root of a broadcast, or a rank with a larger share.
///
/// * **In.** `roles`: by rank, where ranks differ in what is asked of them; ranks that are not named have role 0.
/// * **None.** Never for a topology that was built: a link is no loop and joins nodes that exist. O(nodes + links log links).
pub fn graph_of(topology: &Topology, roles: &[u32]) -> Option<Graph> {
    let roles = roles.iter().copied().chain(std::iter::repeat(0));
    let colour = |(kind, role): (NodeKind, u32)| match kind {
        // Ranks come first, whatever their roles.
        NodeKind::Compute => u64::from(role),
        NodeKind::Forwarder => 1 << 32,
        NodeKind::Switch { multicast, aggregate } => 2 << 32 | u64::from(multicast) << 1 | u64::from(aggregate),
    };
    let colours = topology.nodes().iter().map(|node| node.kind).zip(roles).map(colour).collect();
    let arc = |link: &canopy_topology::Link| Arc {
        from: link.from.number(),
        to: link.to.number(),
        weight: [link.capacity.bytes_per_sec(), link.latency.nanos()],
    };
    Graph::new(colours, topology.links().iter().map(arc).collect()).ok()
}
