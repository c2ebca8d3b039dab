//! Routes from one source to all targets at once, as a tree: for networks with too many pairs to look for each route alone.

use canopy_topology::{LinkIndex, NodeIndex};

use super::choice::{Loads, mixed};
use super::{Levels, Network, Ports};

/// Finds trees of shortest and widest routes; keeps its tables from one to the next.
#[derive(Clone, Debug)]
pub(crate) struct RouteTrees {
    /// Links by where data on them goes.
    entering: Ports,
    /// By node: the least growth of a way from the source, for each chunk.
    costs: Vec<u128>,
    /// By node: chunks that pass it or end there.
    chunks: Vec<u64>,
    /// By node: the last link of its route; none at the source and out of its reach.
    links: Vec<Option<LinkIndex>>,
}

impl RouteTrees {
    /// With tables for the nodes of a network.
    pub(crate) fn new(network: &Network<'_>) -> Self {
        let node_count = network.topology.nodes().len();
        let entering = Ports::new(network.topology, |link| network.head(link));
        Self { entering, costs: vec![0; node_count], chunks: vec![0; node_count], links: vec![None; node_count] }
    }

    /// Chooses routes from the source of `levels` to targets with so many chunks each, and adds these to the loads.
    ///
    /// A first pass from the source says what a way to each node costs, as links are used so far. A second one, from the
    /// farthest node on, takes the cheapest last link for all chunks that meet at a node. `seed` breaks ties.
    ///
    /// * **Source.** Our own. **In.** The network that `self` is for; links of the levels are not needed.
    /// * **Cost.** O(nodes + links).
    pub(crate) fn choose(
        &mut self,
        network: &Network<'_>,
        levels: &Levels,
        targets: impl Iterator<Item = (NodeIndex, u64)>,
        loads: &mut Loads,
        seed: u64,
    ) {
        self.chunks.fill(0);
        self.links.fill(None);
        targets.for_each(|(target, chunks)| self.chunks[target.index()] += chunks);
        let Some((source, others)) = levels.order().split_first() else { return };
        self.costs[source.index()] = 0;
        for &node in others {
            let ways = self.widest(network, levels, node);
            let costs = ways.map(|link| self.cost(network, loads, link, 1));
            self.costs[node.index()] = costs.min().expect("some link into a node is on its widest route");
        }
        for &node in others.iter().rev() {
            let chunks = self.chunks[node.index()];
            if chunks == 0 {
                continue;
            }
            let by_cost = |&link: &LinkIndex| {
                (self.cost(network, loads, link, chunks), mixed(seed.rotate_left(32) ^ u64::from(link.number())))
            };
            let link = self.widest(network, levels, node).min_by_key(by_cost);
            let link = link.expect("some link into a node is on its widest route");
            loads.add_chunks(link, chunks);
            self.chunks[network.tail(link).index()] += chunks;
            self.links[node.index()] = Some(link);
        }
    }

    /// What a way that ends with this link costs each of so many chunks.
    fn cost(&self, network: &Network<'_>, loads: &Loads, link: LinkIndex, chunks: u64) -> u128 {
        self.costs[network.tail(link).index()].saturating_add(loads.growth(network, link, chunks))
    }

    /// Writes the chosen route to a target, in the direction of the data. `route` has its length.
    pub(crate) fn write(&self, network: &Network<'_>, target: NodeIndex, route: &mut [LinkIndex]) {
        let mut node = target;
        for place in route.iter_mut().rev() {
            let link = self.links[node.index()].expect("targets were chosen routes of their distance");
            *place = link;
            node = network.tail(link);
        }
    }

    /// Last links of widest routes to a node.
    fn widest<'a>(
        &'a self,
        network: &'a Network<'_>,
        levels: &'a Levels,
        node: NodeIndex,
    ) -> impl Iterator<Item = LinkIndex> + 'a {
        let (before, width) = (levels.distance(node).map(|distance| distance - 1), levels.width(node));
        self.entering.of(node).iter().copied().filter(move |&link| {
            let tail = network.tail(link);
            levels.distance(tail) == before
                && levels.passes(network, tail)
                && levels.width(tail).min(network.width(link)) >= width
        })
    }
}
