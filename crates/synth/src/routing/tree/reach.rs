//! The nodes that a source reaches, each with all ways there that are shortest and widest.

use canopy_topology::{LinkIndex, NodeIndex};

use super::{Levels, Network, Passing};
use crate::routing::Ports;

/// Nodes in reach of a source, and the last links of their routes.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// All but the source, nearest first, each with its distance in links.
    nodes: Vec<(NodeIndex, u32)>,
    /// Those of the node at `i` are at `starts[i] .. starts[i + 1]` of `ways`.
    starts: Vec<usize>,
    ways: Vec<LinkIndex>,
}

impl Reach {
    /// Nodes but the source, nearest first, each with the last links of its shortest and widest routes, at least one.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeIndex, &[LinkIndex])> {
        let ends = self.starts.windows(2);
        self.nodes.iter().zip(ends).map(|(&(node, _), ends)| (node, &self.ways[ends[0]..ends[1]]))
    }

    /// Links of the routes to these nodes together.
    pub(super) fn length(&self, is_target: impl Fn(NodeIndex) -> bool) -> u64 {
        self.nodes.iter().filter(|&&(node, _)| is_target(node)).map(|&(_, distance)| u64::from(distance)).sum()
    }

    /// Whether some node may be reached in more than one way.
    pub(super) fn has_choice(&self) -> bool {
        self.ways.len() > self.nodes.len()
    }
}

/// Finds what sources reach.
#[derive(Debug)]
pub(super) struct ReachFinder {
    /// Links by where data on them goes.
    entering: Ports,
}

impl ReachFinder {
    pub(super) fn new(network: &Network<'_>) -> Self {
        Self { entering: Ports::new(network.topology, |link| network.head(link)) }
    }

    /// What a source reaches. O(nodes + links).
    pub(super) fn find(&self, network: &Network<'_>, source: NodeIndex) -> Reach {
        let levels = Levels::without_links(network, source, Passing::Anyone);
        let mut reach = Reach { nodes: Vec::with_capacity(levels.order().len()), starts: vec![0], ways: Vec::new() };
        for &node in levels.order().iter().skip(1) {
            let (distance, width) = (levels.distance(node).unwrap_or_default(), levels.width(node));
            let is_widest = |link: LinkIndex| {
                let tail = network.tail(link);
                levels.distance(tail).is_some_and(|before| before + 1 == distance)
                    && levels.width(tail).min(network.width(link)) >= width
            };
            reach.ways.extend(self.entering.of(node).iter().copied().filter(|&link| is_widest(link)));
            reach.nodes.push((node, distance));
            reach.starts.push(reach.ways.len());
        }
        reach
    }
}
