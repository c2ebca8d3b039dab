//! A plan's graph on another network than it was made for: one whose links are slower, say, or whose latencies differ.

use std::collections::HashMap;

use canopy_schedule::{RouteTable, TransferGraph};
use canopy_topology::{Latency, LinkIndex, NodeIndex, Topology};

/// Why a plan cannot run on another network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ElsewhereError {
    #[error("the network has {found} ranks, but the plan is for {expected}")]
    RankCount { found: u32, expected: u32 },
    #[error(
        "rank {rank} is `{found}` on the network, but `{expected}` in the plan; use the plan's node ids and rank order"
    )]
    Rank { rank: u32, found: String, expected: String },
    #[error("the plan uses link {from} -> {to}, which the network does not have")]
    Link { from: String, to: String },
    #[error("route {route} does not exist on the network of the plan; check the graph first")]
    Route { route: u32 },
}

/// Moves a graph to another network: equal transfers between equal nodes, on the links of the other network.
///
/// Where that has several links of different latencies between two nodes, the one of the plan's latency is taken, else
/// the one of the least.
///
/// * **In.** A graph that [`check`](canopy_schedule::check) accepted for `planned`; any other topology, with nodes of the same
///   ids where the plan's routes lead. Capacities, latencies, and links that the plan does not use, may differ.
/// * **Errors.** The first rank or link that is missing.
/// * **Cost.** O(nodes + links of all routes · links of a node).
pub fn elsewhere(
    graph: &TransferGraph,
    planned: &Topology,
    actual: &Topology,
) -> Result<TransferGraph, ElsewhereError> {
    let (found, expected) = (actual.rank_count(), planned.rank_count());
    if found != expected {
        return Err(ElsewhereError::RankCount { found, expected });
    }
    for rank in planned.ranks() {
        let [found, expected] = [actual, planned].map(|topology| &topology.node(rank.node()).id);
        if found != expected {
            let (found, expected) = (found.clone(), expected.clone());
            return Err(ElsewhereError::Rank { rank: rank.number(), found, expected });
        }
    }
    let nodes: HashMap<&str, u32> = actual.nodes().iter().map(|node| node.id.as_str()).zip(0..).collect();
    let mut is_used = vec![false; graph.routes.len()];
    for carrier in &graph.carriers {
        let route = carrier.route.number();
        *is_used.get_mut(carrier.route.index()).ok_or(ElsewhereError::Route { route })? = true;
    }
    let mut routes = RouteTable::default();
    for ((number, links), used) in (0..).zip(graph.routes.iter()).zip(is_used) {
        let mut moved = Vec::with_capacity(links.len());
        // Routes that nobody takes keep their places only.
        for link in links.iter().filter(|_| used) {
            let link = planned.links().get(link.index()).ok_or(ElsewhereError::Route { route: number })?;
            let [from, to] = [link.from, link.to].map(|node| planned.node(node).id.as_str());
            let ends = nodes.get(from).zip(nodes.get(to)).map(|(&from, &to)| [from, to].map(NodeIndex::new));
            let found = ends.and_then(|[from, to]| between(actual, from, to, link.latency));
            let missing = || ElsewhereError::Link { from: from.to_owned(), to: to.to_owned() };
            moved.push(found.ok_or_else(missing)?);
        }
        routes.push(&moved);
    }
    Ok(TransferGraph { routes, ..graph.clone() })
}

/// The link between two nodes that has this latency, else the one of the least.
fn between(topology: &Topology, from: NodeIndex, to: NodeIndex, latency: Latency) -> Option<LinkIndex> {
    let leads_there = |link: &LinkIndex| topology.link(*link).to == to;
    let mut links = topology.links_from(from).filter(leads_there).peekable();
    let least = links.peek().copied();
    links.find(|&link| topology.link(link).latency == latency).or(least)
}
