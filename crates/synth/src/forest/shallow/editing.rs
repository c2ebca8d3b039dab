//! Hanging ranks of a tree elsewhere, with the loads of links.

use canopy_schedule::RouteInterner;
use canopy_topology::LinkIndex;

use super::hanging::{Hanging, Hop, links};
use super::prices::Prices;

/// A tree whose ranks are being hung elsewhere, with the loads of all trees.
pub(super) struct Editing<'e> {
    pub(super) tree: &'e mut Hanging,
    pub(super) routes: &'e mut RouteInterner,
    pub(super) prices: &'e mut Prices,
}

impl Editing<'_> {
    /// The links of the hop to a rank; none for the root.
    pub(super) fn links(&self, rank: usize) -> &[LinkIndex] {
        links(self.routes, &self.tree.hops[rank])
    }

    /// Whether the hop to a rank runs over a link with more trees than allowed.
    pub(super) fn is_busy(&self, rank: usize, allowed: &[u64]) -> bool {
        self.links(rank).iter().any(|&link| self.prices.load(link) > allowed[link.index()])
    }

    /// What the hop to a rank costs at present.
    pub(super) fn cost(&self, rank: usize) -> u64 {
        self.prices.sum(self.links(rank))
    }

    /// Takes the load of the hop to a rank off its links. Returns what it would cost to put it back.
    pub(super) fn take_off(&mut self, rank: usize) -> u64 {
        let links = links(self.routes, &self.tree.hops[rank]);
        links.iter().for_each(|&link| self.prices.give_back(link, self.tree.weight));
        self.prices.sum(links)
    }

    /// Puts the load of the hop to a rank on its links.
    pub(super) fn put_on(&mut self, rank: usize) {
        let links = links(self.routes, &self.tree.hops[rank]);
        links.iter().for_each(|&link| self.prices.add(link, self.tree.weight));
    }

    /// Hangs a rank that was taken off on another one.
    pub(super) fn hang(&mut self, rank: usize, from: u32, links: &[LinkIndex]) {
        let depth = self.tree.hops[from as usize].depth + 1;
        self.tree.hops[rank] = Hop { depth, from, route: Some(self.routes.intern(links)) };
        self.put_on(rank);
    }

    /// Hangs ranks where they hung before, the last one first.
    pub(super) fn undo(&mut self, log: &[(usize, Hop)]) {
        for &(rank, hop) in log.iter().rev() {
            self.take_off(rank);
            self.tree.hops[rank] = hop;
            self.put_on(rank);
        }
    }
}
