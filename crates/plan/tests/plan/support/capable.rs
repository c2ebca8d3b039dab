//! Networks whose switches do more than forward, for tests.

use canopy_topology::{NodeIndex, NodeKind, Topology, TopologyDraft, TopologyLimits, generate};

/// The same network, all of whose switches multicast and, if so asked, aggregate.
pub(crate) fn capable(expression: &str, aggregate: bool) -> Topology {
    let plain = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let mut draft = TopologyDraft::default();
    for node in plain.nodes() {
        let kind = match node.kind {
            NodeKind::Switch { .. } => NodeKind::Switch { multicast: true, aggregate },
            kind => kind,
        };
        draft.add_node(node.id.clone(), kind, node.attributes.clone());
    }
    for link in plain.links() {
        let id = |node: NodeIndex| plain.node(node).id.clone();
        draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}
