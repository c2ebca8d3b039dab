//! Shortest physical routes, chosen so that links fill evenly.
//!
//! A route is *shortest* if it has the fewest links. Of several, the one whose narrowest link is widest is preferred;
//! of those that are left, the one that adds least to Σ load²/capacity over all links, which spreads what does not
//! care where it goes; of those, the one found first from links of small index. It knows nothing of collectives.

mod choice;
mod levels;
mod tree;

#[cfg(test)]
mod tests;

use canopy_topology::{LinkIndex, NodeIndex, Topology};

pub(crate) use choice::{Chooser, Loads, is_less};
pub(crate) use levels::{Levels, Passing};
pub(crate) use tree::RouteTrees;

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// From a link's start to its end.
    Along,
    /// From a link's end to its start, as in the transposed network: a tree found so, turned around, is a reduce tree.
    Against,
}

/// A topology seen in one direction, with the links of every node at hand.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// What is looked at.
    pub topology: &'a Topology,
    heading: Heading,
    leaving: Ports,
}

impl<'a> Network<'a> {
    /// Lists the links of every node. O(nodes + links).
    pub fn new(topology: &'a Topology, heading: Heading) -> Self {
        let leaving = Ports::new(topology, |link| match heading {
            Heading::Along => topology.link(link).from,
            Heading::Against => topology.link(link).to,
        });
        Self { topology, heading, leaving }
    }

    /// Links that data leaves a node on, by index.
    pub fn leaving(&self, node: NodeIndex) -> &[LinkIndex] {
        self.leaving.of(node)
    }

    /// Where data on this link comes from.
    pub fn tail(&self, link: LinkIndex) -> NodeIndex {
        let link = self.topology.link(link);
        if self.heading == Heading::Along { link.from } else { link.to }
    }

    /// Where data on this link goes.
    pub fn head(&self, link: LinkIndex) -> NodeIndex {
        let link = self.topology.link(link);
        if self.heading == Heading::Along { link.to } else { link.from }
    }

    /// Bytes per second of a link.
    fn width(&self, link: LinkIndex) -> u64 {
        self.topology.link(link).capacity.bytes_per_sec()
    }

    pub(crate) fn is_rank(&self, node: NodeIndex) -> bool {
        self.topology.rank_of(node).is_some()
    }
}

/// The links at one of their ends, by node.
#[derive(Clone, Debug)]
struct Ports {
    links: Vec<LinkIndex>,
    /// Those of node `v` are at `start[v] .. start[v + 1]`.
    start: Vec<usize>,
}

impl Ports {
    fn new(topology: &Topology, end: impl Fn(LinkIndex) -> NodeIndex) -> Self {
        let links = || (0_u32..).zip(topology.links()).map(|(index, _)| LinkIndex::new(index));
        let mut start = vec![0; topology.nodes().len() + 1];
        for link in links() {
            start[end(link).index() + 1] += 1;
        }
        for node in 1..start.len() {
            start[node] += start[node - 1];
        }
        let mut sorted: Vec<LinkIndex> = links().collect();
        // Stable, so that the links of one node stay in order.
        sorted.sort_by_key(|&link| end(link));
        Self { links: sorted, start }
    }

    fn of(&self, node: NodeIndex) -> &[LinkIndex] {
        &self.links[self.start[node.index()]..self.start[node.index() + 1]]
    }
}
