//! What is unusual about a topology.

use crate::model::Topology;

/// What is unusual about a topology, though legal. O(nodes + links).
pub fn observations(topology: &Topology) -> Vec<String> {
    let mut observations = Vec::new();
    if let Some((node, entering, leaving)) = topology.first_unbalanced() {
        let id = &topology.node(node).id;
        observations.push(format!(
            "node `{id}` receives {entering} bytes/s and sends {leaving} bytes/s; algorithms that need both to be \
             equal refuse it"
        ));
    }
    if let Some((from, to)) = topology.first_unreachable() {
        let (start, end) = (&topology.node(from.node()).id, &topology.node(to.node()).id);
        let (from, to) = (from.number(), to.number());
        observations.push(format!(
            "no path leads from rank {from} (`{start}`) to rank {to} (`{end}`); add links that connect them"
        ));
    }
    observations
}
