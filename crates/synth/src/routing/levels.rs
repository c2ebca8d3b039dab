//! How far every node is from one rank, and how wide the shortest way there is.

use canopy_topology::{LinkIndex, NodeIndex};

use super::Network;

/// What may lie on the way of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Switches, and ranks that store and forward.
    Anyone,
    /// Switches only: routes that one transfer can take.
    Switches,
}

/// Distances from a source to all nodes, in links, with the width of the widest of the shortest routes.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    source: NodeIndex,
    passing: Passing,
    /// By node; [`Levels::FAR`] where no route leads.
    distance: Vec<u32>,
    /// By node: the narrowest link of the widest shortest route; largest at the source.
    width: Vec<u64>,
    /// Nodes within reach, nearest first: the source is the first of them.
    order: Vec<NodeIndex>,
    /// Links on shortest routes, by their head, then by index, so that a search backwards meets no other ones.
    links: Vec<(NodeIndex, LinkIndex)>,
}

impl Levels {
    const FAR: u32 = u32::MAX;

    /// Breadth first from `source`. O(nodes + links · log links).
    pub(crate) fn new(network: &Network<'_>, source: NodeIndex, passing: Passing) -> Self {
        let mut links = Vec::new();
        let levels = Self::reached(network, source, passing, |head, link| links.push((head, link)));
        links.sort_unstable();
        Self { links, ..levels }
    }

    /// The same without links on shortest routes, of which [`links_into`](Self::links_into) knows none. O(nodes + links).
    pub(crate) fn without_links(network: &Network<'_>, source: NodeIndex, passing: Passing) -> Self {
        Self::reached(network, source, passing, |_, _| ())
    }

    /// All but links, which are handed out with their heads.
    ///
    /// All nodes of one level are taken from the queue before any of the next, so the width of a node is final when its
    /// links are looked at: the widest route to it runs over a widest route to the node before.
    fn reached(
        network: &Network<'_>,
        source: NodeIndex,
        passing: Passing,
        mut on_link: impl FnMut(NodeIndex, LinkIndex),
    ) -> Self {
        let node_count = network.topology.nodes().len();
        let mut levels = Self {
            source,
            passing,
            distance: vec![Self::FAR; node_count],
            width: vec![0; node_count],
            order: vec![source],
            links: Vec::new(),
        };
        levels.distance[source.index()] = 0;
        levels.width[source.index()] = u64::MAX;
        let mut next = 0;
        while let Some(&node) = levels.order.get(next) {
            next += 1;
            if !levels.passes(network, node) {
                continue;
            }
            for &link in network.leaving(node) {
                let (head, level) = (network.head(link), levels.distance[node.index()] + 1);
                let width = levels.width[node.index()].min(network.width(link));
                if levels.distance[head.index()] == Self::FAR {
                    levels.distance[head.index()] = level;
                    levels.order.push(head);
                }
                if levels.distance[head.index()] == level {
                    levels.width[head.index()] = levels.width[head.index()].max(width);
                    on_link(head, link);
                }
            }
        }
        levels
    }

    /// Whether data may leave this node on its way.
    pub(super) fn passes(&self, network: &Network<'_>, node: NodeIndex) -> bool {
        node == self.source || self.passing == Passing::Anyone || !network.is_rank(node)
    }

    /// Nodes within reach, nearest first: the source is the first of them.
    pub(super) fn order(&self) -> &[NodeIndex] {
        &self.order
    }

    /// Links into a node that lie on shortest routes to it, by index.
    pub(super) fn links_into(&self, node: NodeIndex) -> impl Iterator<Item = LinkIndex> {
        let first = self.links.partition_point(|&(head, _)| head < node);
        self.links[first..].iter().take_while(move |&&(head, _)| head == node).map(|&(_, link)| link)
    }

    /// Number of links of the shortest route to a node; `None` where none leads.
    pub(crate) fn distance(&self, node: NodeIndex) -> Option<u32> {
        Some(self.distance[node.index()]).filter(|&distance| distance != Self::FAR)
    }

    /// Bytes per second of the narrowest link on the way; 0 where none leads.
    pub(crate) fn width(&self, node: NodeIndex) -> u64 {
        self.width[node.index()]
    }
}
