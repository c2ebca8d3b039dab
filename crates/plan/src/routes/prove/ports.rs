//! Nodes and ports of a program are those of a network.

use canopy_topology::{NodeIndex, NodeKind, Topology};

use crate::oneccl::{Findings, Place};
use crate::routes::program::{Program, Role};

/// Compares both, node by node.
pub(super) fn check(program: &Program, topology: &Topology, findings: &mut Findings<'_>) {
    let (found, expected) = (program.nodes.len(), topology.nodes().len());
    if found != expected || program.rank_count != topology.rank_count() {
        let (ranks, wanted) = (program.rank_count, topology.rank_count());
        let text = format!(
            "is for {found} nodes with {ranks} ranks, but the network has {expected} with {wanted}; use the network of \
             the file"
        );
        return findings.problem(Place::FILE, text);
    }
    for (index, node) in (0_u32..).map(NodeIndex::new).zip(&program.nodes) {
        let own = topology.node(index);
        let role = match own.kind {
            NodeKind::Compute => Role::Rank,
            NodeKind::Forwarder => Role::Forwarder,
            NodeKind::Switch { .. } => Role::Switch,
        };
        if node.role != role {
            let text = format!(
                "node {} is a {}, but `{}` in the network is a {}",
                node.id,
                node.role.name(),
                own.id,
                role.name()
            );
            findings.problem(Place::FILE, text);
        }
        let links = topology.links_from(index).map(|link| topology.link(link));
        if links.len() != node.ports.len() {
            let text = format!(
                "node {} has {} ports, but `{}` in the network has {}",
                node.id,
                node.ports.len(),
                own.id,
                links.len()
            );
            findings.problem(Place::FILE, text);
        }
        for (port, link) in node.ports.iter().zip(links) {
            let (to, rate) = (link.to.number(), link.capacity.bytes_per_sec());
            if (port.to, port.rate) != (to, rate) {
                let text = format!(
                    "port {} of node {} leads to node {} at {} bytes/s, but in the network to node {to} (`{}`) at \
                     {rate}",
                    port.id,
                    node.id,
                    port.to,
                    port.rate,
                    topology.node(link.to).id
                );
                findings.problem(Place::FILE, text);
            }
        }
        if findings.is_full() || findings.must_stop(1 + node.ports.len() as u64) {
            return;
        }
    }
}
