//! `sssp`: one shortest path for each pair, source after source, around what earlier sources use.

use std::cmp::Reverse;

use canopy_schedule::Flow;
use canopy_synth::components::{FlowParts, Heading, Network, ask, require_room};
use canopy_synth::{Stage, SynthesisError, Task};
use canopy_topology::{LinkIndex, NodeIndex};

use super::ASK_INTERVAL;

/// Routes all pairs on a tree of shortest paths for each source, the sources by rank.
///
/// A path has the fewest links, and of those that have the least sum of weights; how ties are broken says [`Tree::of`]. The weight of a link is what earlier sources send over it, their routes where blocks are equal, divided by its capacity, so the routes of one source
/// do not know of each other. Starting all weights at a constant that outweighs every load, as published, says the same.
///
/// * **Source.** Basu 2024 §5, `SSSP`. **Out.** k = 1. Depends on the order of the ranks.
/// * **Errors.** Too many hops, stopped.
/// * **Cost.** O(N · links + length of all routes).
pub(super) fn plan(task: &Task<'_>) -> Result<Flow, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let shares = &request.shares;
    let network = Network::new(topology, Heading::Along);
    let mut loads = vec![0_u64; topology.links().len()];
    let mut parts = FlowParts::new(topology, 1);
    let (mut hop_count, rank_count) = (0, u64::from(topology.rank_count()));
    let mut path = Vec::new();
    for source in topology.ranks() {
        ask(stop)?;
        let weight = |link: LinkIndex| {
            // Scaled by 2⁶⁴, so that rounding makes no difference to equal links. All blocks together have less than 2⁶⁴ chunks.
            (u128::from(loads[link.index()]) << 64) / u128::from(topology.link(link).capacity.bytes_per_sec())
        };
        let tree = Tree::of(&network, source.node(), weight);
        for (destination, position) in topology.ranks().zip(1_usize..).filter(|&(rank, _)| rank != source) {
            if position % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            let chunks = shares.block(source, destination);
            if chunks == 0 {
                continue;
            }
            tree.path_to(&network, destination.node(), &mut path);
            hop_count += path.len() as u64;
            require_room(hop_count)?;
            path.iter().for_each(|link| loads[link.index()] += chunks);
            parts.add_path(source, destination, chunks, &path)?;
        }
        progress.report(Stage::Routes, u64::from(source.number()) + 1, rank_count);
    }
    Ok(parts.finish())
}

/// Lightest of the shortest paths from a source.
struct Tree {
    source: NodeIndex,
    /// By node, the last link of its path; none at the source and where no path leads.
    last: Vec<Option<LinkIndex>>,
}

impl Tree {
    /// Dijkstra level by level: nodes of a level are left by rising weight, of equal ones the last first, and a path that is only
    /// as light as one found before does not replace it.
    fn of(network: &Network<'_>, source: NodeIndex, weight: impl Fn(LinkIndex) -> u128) -> Self {
        let node_count = network.topology.nodes().len();
        let mut last = vec![None; node_count];
        let mut weights: Vec<Option<u128>> = vec![None; node_count];
        weights[source.index()] = Some(0);
        let mut is_settled = vec![false; node_count];
        let mut level = vec![(0_u128, Reverse(source))];
        while !level.is_empty() {
            level.iter().for_each(|(_, node)| is_settled[node.0.index()] = true);
            let mut next = Vec::new();
            for &(own, Reverse(node)) in &level {
                for &link in network.leaving(node) {
                    let head = network.head(link);
                    let through = own.saturating_add(weight(link));
                    if is_settled[head.index()] || weights[head.index()].is_some_and(|known| known <= through) {
                        continue;
                    }
                    if weights[head.index()].replace(through).is_none() {
                        next.push(head);
                    }
                    last[head.index()] = Some(link);
                }
            }
            level = next.into_iter().map(|node| (weights[node.index()].unwrap_or_default(), Reverse(node))).collect();
            level.sort_unstable();
        }
        Self { source, last }
    }

    /// Links from the source to a node within its reach.
    fn path_to(&self, network: &Network<'_>, node: NodeIndex, path: &mut Vec<LinkIndex>) {
        path.clear();
        let mut at = node;
        while at != self.source {
            let link = self.last[at.index()]
                .expect("every rank was found to be within reach of those that have something for it");
            path.push(link);
            at = network.tail(link);
        }
        path.reverse();
    }
}
