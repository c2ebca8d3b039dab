//! Whether a plan's routes pass compute devices that run no program.

use canopy_schedule::TransferGraph;
use canopy_topology::{LinkIndex, NodeKind, Topology};

use super::LowerError;
use crate::msccl::profile::Profile;

/// Id of the first compute device without a program of its own that routes of a graph pass, if there is one.
/// O(carriers + links of routes).
pub fn forwarder_on_routes<'t>(topology: &'t Topology, graph: &TransferGraph) -> Option<&'t str> {
    topology.forwarders().next()?;
    let head = |link: LinkIndex| topology.node(topology.link(link).to);
    let mut is_known = vec![false; graph.routes.len()];
    for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
        if std::mem::replace(&mut is_known[carrier.route.index()], true) {
            continue;
        }
        let links = graph.routes.get(carrier.route).unwrap_or_default();
        if let Some(node) = links.iter().map(|&link| head(link)).find(|node| node.kind == NodeKind::Forwarder) {
            return Some(&node.id);
        }
    }
    None
}

/// Refuses transfers over routes that pass compute devices which are no ranks: a file has no program for them, so nothing
/// would forward there.
///
/// # Errors
/// [`LowerError::Forwarder`] with the first such device. O(carriers + links of routes).
pub fn require_own_routes(topology: &Topology, graph: &TransferGraph, profile: Profile) -> Result<(), LowerError> {
    match forwarder_on_routes(topology, graph) {
        Some(id) => Err(LowerError::Forwarder { profile, id: id.to_owned() }),
        None => Ok(()),
    }
}
