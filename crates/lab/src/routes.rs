//! Routes of a plan as addresses: where each leads, and what the nodes on the way have to know.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, Rank, Topology};

use crate::address::route_address;
use crate::command::{Command, Program};
use crate::network::{Network, namespace};

/// A route of a plan, with an address at the rank where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRoute {
    /// The address.
    pub address: String,
    /// The nodes that it passes, both ends included, by their indices.
    pub nodes: Vec<usize>,
}

impl PlanRoute {
    /// The route over these links; `None` if they do not lead from the first rank to the second.
    pub(crate) fn new(topology: &Topology, links: &[LinkIndex], (from, to): (Rank, Rank), number: u32) -> Option<Self> {
        let mut nodes = vec![from.node().index()];
        for &link in links {
            let link = topology.links().get(link.index())?;
            if nodes.last() != Some(&link.from.index()) {
                return None;
            }
            nodes.push(link.to.index());
        }
        (nodes.last() == Some(&to.node().index()) && nodes.len() > 1)
            .then(|| Self { address: route_address(number), nodes })
    }
}

impl Network {
    /// What makes routes known to the nodes that they pass: one command for each of these nodes.
    pub fn route_commands(&self, routes: &[PlanRoute]) -> Vec<Command> {
        let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for PlanRoute { address, nodes } in routes {
            let mut line = |node: usize, text: String| lines.entry(node).or_default().push(text);
            if let Some(&end) = nodes.last() {
                line(end, format!("addr add {address}/32 dev lo"));
            }
            for (hop, ends) in nodes.windows(2).enumerate() {
                let &[here, next] = ends else { continue };
                // Answers come back to the name of the rank, by the shortest path.
                let source = if hop == 0 { self.source(here) } else { String::new() };
                let route = self.route_to(address, here, next, &source);
                line(here, format!("route add {route}"));
            }
        }
        lines.iter().filter_map(|(&node, lines)| Command::batch(Program::Ip, &namespace(node), lines)).collect()
    }
}
