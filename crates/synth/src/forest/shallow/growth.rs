//! One tree of limited depth, grown by the cheapest hop at a time.
//!
//! Prim's algorithm on hops. A hop runs over switches only, so the cheapest one is found by way of what it costs to
//! reach each switch from the tree. Prices rise while the tree grows, since a link may be crossed by several of its
//! hops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::{Stop, Stopped};
use canopy_schedule::RouteInterner;
use canopy_topology::{LinkIndex, NodeIndex, Topology};

use super::distances::Distances;
use super::hanging::{Hanging, Hop};
use super::prices::Prices;
use crate::forest::ask;

/// Links on offer, cheapest first.
type Offers = BinaryHeap<Reverse<(u128, LinkIndex)>>;

/// Grows trees on one network.
pub(super) struct Grower<'a> {
    topology: &'a Topology,
    depth_max: u32,
    /// By how many 16ths a hop is dearer for each hop that its start is away from the root.
    pub(super) bias: u128,
    rank_count: usize,
    /// Links between switches.
    between: Vec<LinkIndex>,
    /// By rank: depth in the tree, and the hop that leads there.
    depths: Vec<Option<u32>>,
    parents: Vec<Option<(u32, Vec<LinkIndex>)>>,
    /// Links from the tree to ranks, which never change their price before they are used.
    to_ranks: Offers,
    /// By switch: links from the tree to it.
    into: Vec<Offers>,
    /// By switch: links from it to ranks, dearest first; those to ranks of the tree are dropped when they come up.
    out_of: Vec<Vec<(u128, LinkIndex)>>,
    /// By switch: what it costs to get there from the tree, and the last link.
    reach: Vec<Option<(u128, LinkIndex)>>,
}

impl<'a> Grower<'a> {
    pub(super) fn new(topology: &'a Topology, depth_max: u32) -> Self {
        let rank_count = topology.rank_count() as usize;
        let switches = topology.nodes().len() - rank_count;
        let is_switch = |node: NodeIndex| node.index() >= rank_count;
        let indices = (0_u32..).map(LinkIndex::new).zip(topology.links());
        let between = indices.filter(|(_, link)| is_switch(link.from) && is_switch(link.to)).map(|(index, _)| index);
        Self {
            topology,
            depth_max,
            bias: 0,
            rank_count,
            between: between.collect(),
            depths: vec![None; rank_count],
            parents: vec![None; rank_count],
            to_ranks: Offers::new(),
            into: vec![Offers::new(); switches],
            out_of: vec![Vec::new(); switches],
            reach: vec![None; switches],
        }
    }

    /// Grows a tree and puts its load on the links.
    ///
    /// Where nothing cheap leads on because all that is near is too deep, ranks are hung on shortest ways from the
    /// root, which are no deeper than the network needs.
    pub(super) fn grow(
        &mut self,
        prices: &mut Prices,
        routes: &mut RouteInterner,
        root: u32,
        weight: u64,
        stop: &dyn Stop,
    ) -> Result<Hanging, Stopped> {
        self.clear(prices);
        self.join(prices, root, 0);
        let mut joined = 1;
        while joined < self.rank_count {
            if joined.is_multiple_of(64) {
                ask(stop)?;
            }
            let Some(links) = self.cheapest(prices) else { break };
            let (from, to) =
                (self.topology.link(links[0]).from.number(), self.topology.link(links[links.len() - 1]).to.number());
            let depth = self.depths[from as usize].expect("offers start in the tree") + 1;
            for &link in &links {
                prices.add(link, weight);
            }
            self.parents[to as usize] = Some((from, links));
            self.join(prices, to, depth);
            joined += 1;
        }
        if joined < self.rank_count {
            self.hang_the_rest(prices, root, weight);
        }
        Ok(self.tree(root, weight, routes))
    }

    fn clear(&mut self, prices: &Prices) {
        self.depths.fill(None);
        self.parents.fill(None);
        self.to_ranks.clear();
        self.into.iter_mut().for_each(BinaryHeap::clear);
        for (switch, links) in (self.rank_count..).zip(&mut self.out_of) {
            let node = NodeIndex::new(u32::try_from(switch).expect("nodes are counted in u32"));
            let to_ranks =
                self.topology.links_from(node).filter(|&link| self.topology.link(link).to.index() < self.rank_count);
            links.clear();
            links.extend(to_ranks.map(|link| (u128::from(prices.of(link)), link)));
            links.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Adds a rank to the tree and offers the links that leave it, unless it is as deep as may be.
    fn join(&mut self, prices: &Prices, rank: u32, depth: u32) {
        self.depths[rank as usize] = Some(depth);
        if depth >= self.depth_max {
            return;
        }
        for link in self.topology.links_from(NodeIndex::new(rank)) {
            let to = self.topology.link(link).to.index();
            let offer = Reverse((self.offer(prices, link, depth), link));
            match to.checked_sub(self.rank_count) {
                Some(switch) => self.into[switch].push(offer),
                None if self.depths[to].is_none() => self.to_ranks.push(offer),
                None => {}
            }
        }
    }

    /// What a link costs that leaves a rank at this depth: flat trees have room for more.
    fn offer(&self, prices: &Prices, link: LinkIndex, depth: u32) -> u128 {
        u128::from(prices.of(link)) * (16 + self.bias * u128::from(depth))
    }

    /// The links of the cheapest hop to a rank outside the tree.
    fn cheapest(&mut self, prices: &Prices) -> Option<Vec<LinkIndex>> {
        self.reach_switches(prices);
        let is_in_tree = |link: LinkIndex| self.depths[self.topology.link(link).to.index()].is_some();
        while self.to_ranks.peek().is_some_and(|&Reverse((_, link))| is_in_tree(link)) {
            self.to_ranks.pop();
        }
        let mut best = self.to_ranks.peek().map(|&Reverse(offer)| offer);
        for (reach, links) in self.reach.iter().zip(&mut self.out_of) {
            let Some((cost, _)) = reach else { continue };
            while links.last().is_some_and(|&(_, link)| is_in_tree(link)) {
                links.pop();
            }
            if let Some(&(price, link)) = links.last() {
                let offer = (cost.saturating_add(price * 16), link);
                best = Some(best.map_or(offer, |known| known.min(offer)));
            }
        }
        let (_, last) = best?;
        let mut links = vec![last];
        let mut from = self.topology.link(last).from.index();
        while let Some(switch) = from.checked_sub(self.rank_count) {
            let (_, link) = self.reach[switch].expect("only switches that are reached offer links");
            links.push(link);
            from = self.topology.link(link).from.index();
        }
        links.reverse();
        Some(links)
    }

    /// Finds the cheapest way from the tree to every switch.
    fn reach_switches(&mut self, prices: &Prices) {
        for switch in 0..self.reach.len() {
            let mut offers = std::mem::take(&mut self.into[switch]);
            // Links that were used are dearer than when they were offered.
            while let Some(&Reverse((cost, link))) = offers.peek() {
                let from = self.topology.link(link).from.index();
                let present = self.offer(prices, link, self.depths[from].expect("offers start in the tree"));
                if present <= cost {
                    break;
                }
                offers.pop();
                offers.push(Reverse((present, link)));
            }
            self.reach[switch] = offers.peek().map(|&Reverse(offer)| offer);
            self.into[switch] = offers;
        }
        // Bellman's relaxation: networks have few levels of switches.
        let mut changed = !self.between.is_empty();
        while changed {
            changed = false;
            for &index in &self.between {
                let link = self.topology.link(index);
                let Some((cost, _)) = self.reach[link.from.index() - self.rank_count] else { continue };
                let cost = cost.saturating_add(u128::from(prices.of(index)) * 16);
                let known = &mut self.reach[link.to.index() - self.rank_count];
                if known.is_none_or(|(least, _)| cost < least) {
                    *known = Some((cost, index));
                    changed = true;
                }
            }
        }
    }

    /// Hangs every rank outside the tree on its shortest way from the root, and what is on that way as well, if it is
    /// deeper than there.
    fn hang_the_rest(&mut self, prices: &mut Prices, root: u32, weight: u64) {
        let distances = Distances::from(self.topology, root, |link| prices.of(link));
        for rank in 0..u32::try_from(self.rank_count).expect("ranks are counted in u32") {
            if self.depths[rank as usize].is_some() {
                continue;
            }
            let mut way = Vec::new();
            let mut end = rank;
            while let Some((from, links)) = distances.last_hop(self.topology, end) {
                way.push((from, end, links));
                end = from;
            }
            // From the root outwards: who hangs at his distance from the root is below no one further out.
            for (from, to, links) in way.into_iter().rev() {
                let least = distances.to(to).expect("a way leads there");
                if self.depths[to as usize].is_some_and(|depth| depth <= least) {
                    continue;
                }
                if let Some((_, given_up)) = self.parents[to as usize].take() {
                    given_up.iter().for_each(|&link| prices.give_back(link, weight));
                }
                links.iter().for_each(|&link| prices.add(link, weight));
                self.parents[to as usize] = Some((from, links));
                self.depths[to as usize] = Some(least);
            }
        }
    }

    fn tree(&mut self, root: u32, weight: u64, routes: &mut RouteInterner) -> Hanging {
        let hops = self.parents.iter_mut().map(|parent| match parent.take() {
            Some((from, links)) => Hop { depth: 0, from, route: Some(routes.intern(&links)) },
            None => Hop { depth: 0, from: root, route: None },
        });
        Hanging::new(root, weight, hops.collect())
    }
}
