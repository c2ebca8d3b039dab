//! The cheapest hops that a rank can hang on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_topology::{LinkIndex, NodeIndex, Topology};

use super::super::prices::Prices;

/// A hop: where it starts, what it costs, and its links.
pub(super) struct Found {
    pub(super) from: u32,
    pub(super) cost: u64,
    pub(super) links: Vec<LinkIndex>,
}

/// Searches over the switches of a network.
pub(super) struct Search<'a> {
    topology: &'a Topology,
    rank_count: usize,
    /// By node: links from ranks, and links from switches.
    inward: Vec<[Vec<LinkIndex>; 2]>,
    /// By node: what a route over it costs, and the link from it, or to it.
    costs: Vec<Option<(u64, LinkIndex)>>,
    /// Nodes with a cost.
    seen: Vec<usize>,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Links that may still be looked at.
    pub(super) work_left: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(topology: &'a Topology, work_max: u64) -> Self {
        let node_count = topology.nodes().len();
        let mut inward = vec![[Vec::new(), Vec::new()]; node_count];
        for (index, link) in (0_u32..).map(LinkIndex::new).zip(topology.links()) {
            inward[link.to.index()][usize::from(topology.rank_of(link.from).is_none())].push(index);
        }
        Self {
            topology,
            rank_count: topology.rank_count() as usize,
            inward,
            costs: vec![None; node_count],
            seen: Vec::new(),
            queue: BinaryHeap::new(),
            work_left: work_max,
        }
    }

    /// The hop to a rank that is worth least, if that is less than `below`. `worth` says what a hop of some cost from a
    /// rank is worth, no less than its cost; `None` if the rank must not be its start.
    ///
    /// Dijkstra's algorithm against the links, over switches only. O(links between switches and to ranks).
    pub(super) fn cheapest(
        &mut self,
        to: usize,
        prices: &Prices,
        mut below: u64,
        worth: impl Fn(usize, u64) -> Option<u64>,
    ) -> Option<Found> {
        self.clear();
        let mut best = None;
        let mut next = Some((0_u64, to));
        while let Some((cost, node)) = next {
            let [from_ranks, from_switches] = &self.inward[node];
            // Of a large switch hardly any link is looked at.
            if node == to || cost.saturating_add(prices.floor(node)) < below {
                self.work_left = self.work_left.saturating_sub(from_ranks.len() as u64);
                for &link in from_ranks {
                    let cost = cost.saturating_add(prices.of(link));
                    let from = || self.topology.link(link).from.index();
                    if cost < below
                        && let Some(worth) = worth(from(), cost).filter(|&worth| worth < below)
                    {
                        (best, below) = (Some((link, cost)), worth);
                    }
                }
            }
            self.work_left = self.work_left.saturating_sub(from_switches.len() as u64);
            for &link in from_switches {
                let from = self.topology.link(link).from;
                let cost = cost.saturating_add(prices.of(link));
                if cost < below && self.costs[from.index()].is_none_or(|(least, _)| cost < least) {
                    if self.costs[from.index()].replace((cost, link)).is_none() {
                        self.seen.push(from.index());
                    }
                    self.queue.push(Reverse((cost, from.number())));
                }
            }
            next = self.next().filter(|&(cost, _)| cost < below);
        }
        let (first, cost) = best?;
        let mut links = vec![first];
        let mut at = self.topology.link(first).to.index();
        while at != to {
            let (_, link) = self.costs[at].expect("the route leads to the rank");
            links.push(link);
            at = self.topology.link(link).to.index();
        }
        Some(Found { from: self.topology.link(first).from.number(), cost, links })
    }

    /// Finds what it costs to get from a rank to every switch.
    pub(super) fn spread(&mut self, from: usize, prices: &Prices) {
        self.clear();
        let mut next = Some((0_u64, from));
        while let Some((cost, node)) = next {
            let node = NodeIndex::new(u32::try_from(node).expect("nodes are counted in u32"));
            self.spend(self.topology.links_from(node).len());
            for link in self.topology.links_from(node) {
                let to = self.topology.link(link).to;
                let cost = cost.saturating_add(prices.of(link));
                if to.index() >= self.rank_count && self.costs[to.index()].is_none_or(|(least, _)| cost < least) {
                    if self.costs[to.index()].replace((cost, link)).is_none() {
                        self.seen.push(to.index());
                    }
                    self.queue.push(Reverse((cost, to.number())));
                }
            }
            next = self.next();
        }
    }

    /// What a hop to a rank costs from the one that [`spread`](Self::spread) started at.
    pub(super) fn spread_to(&self, from: usize, to: usize, prices: &Prices) -> Option<u64> {
        let cost = |&link: &LinkIndex| {
            let node = self.topology.link(link).from.index();
            let before = if node == from { Some(0) } else { self.costs[node].map(|(cost, _)| cost) };
            before.map(|before| before.saturating_add(prices.of(link)))
        };
        self.inward[to].iter().flatten().filter_map(cost).min()
    }

    /// Counts so many links, or what takes as long.
    pub(super) fn spend(&mut self, links: usize) {
        self.work_left = self.work_left.saturating_sub(links as u64);
    }

    fn clear(&mut self) {
        for node in self.seen.drain(..) {
            self.costs[node] = None;
        }
        self.queue.clear();
    }

    /// The switch that is nearest of those not passed.
    fn next(&mut self) -> Option<(u64, usize)> {
        while let Some(Reverse((cost, node))) = self.queue.pop() {
            if self.costs[node as usize].is_some_and(|(least, _)| cost == least) {
                return Some((cost, node as usize));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};
    use proptest::prelude::*;

    use super::*;

    /// What a hop costs at least, by relaxing all links as long as anything changes.
    fn least(topology: &Topology, prices: &Prices, from: usize, to: usize) -> Option<u64> {
        let mut costs = vec![None; topology.nodes().len()];
        costs[from] = Some(0);
        loop {
            let before = costs.clone();
            for (index, link) in (0_u32..).map(LinkIndex::new).zip(topology.links()) {
                let is_passable = link.from.index() == from || topology.rank_of(link.from).is_none();
                if let Some(cost) = costs[link.from.index()].filter(|_| is_passable && link.to.index() != from) {
                    let there = &mut costs[link.to.index()];
                    *there =
                        Some(there.map_or(cost + prices.of(index), |known: u64| known.min(cost + prices.of(index))));
                }
            }
            if costs == before {
                return costs[to];
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Whatever links carry, the hop found is the cheapest from a rank that may be its start, and costs what it
        /// says.
        #[test]
        fn the_cheapest_hop_is_found(
            seed in 0..20_u64,
            loads in prop::collection::vec(0..9_u64, 8),
            barred in prop::collection::vec(any::<bool>(), 8),
        ) {
            let expression = format!("random-euler:n=8,switches=4,seed={seed}");
            let topology = generate(&expression, &TopologyLimits::STANDARD).unwrap();
            let mut prices = Prices::new(&topology);
            let indices = || (0_u32..).map(LinkIndex::new).take(topology.links().len());
            indices().zip(loads.iter().cycle()).for_each(|(link, &load)| prices.add(link, load));
            prices.set(1, 24);
            // Floors are to be low enough when links have become cheaper.
            indices().zip(loads.iter().cycle()).step_by(3).for_each(|(link, &load)| prices.give_back(link, load / 2));
            let mut search = Search::new(&topology, u64::MAX);
            for to in 0..8 {
                let candidates = (0..8).filter(|&from| from != to && !barred[from]);
                let best = candidates.filter_map(|from| least(&topology, &prices, from, to)).min();
                let worth = |from: usize, cost: u64| (from != to && !barred[from]).then_some(cost);
                let found = search.cheapest(to, &prices, u64::MAX, worth);
                prop_assert_eq!(found.as_ref().map(|found| found.cost), best);
                if let Some(found) = found {
                    prop_assert_eq!(prices.sum(&found.links), found.cost);
                    prop_assert!(search.cheapest(to, &prices, found.cost, worth).is_none());
                }
                for from in (0..8).filter(|&from| from != to) {
                    search.spread(from, &prices);
                    prop_assert_eq!(search.spread_to(from, to, &prices), least(&topology, &prices, from, to));
                }
            }
        }
    }
}
