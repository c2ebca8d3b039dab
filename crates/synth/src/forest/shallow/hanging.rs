//! Trees by what each rank hangs on.

use std::cmp::Reverse;

use canopy_schedule::{RouteIndex, RouteInterner};
use canopy_topology::LinkIndex;

/// Equal trees from one root.
#[derive(Clone, Debug)]
pub(super) struct Hanging {
    pub(super) root: u32,
    /// How many of them there are.
    pub(super) weight: u64,
    /// By rank.
    pub(super) hops: Vec<Hop>,
}

/// What a rank hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hop {
    /// Hops from the root.
    pub(super) depth: u32,
    pub(super) from: u32,
    /// `None` for the root.
    pub(super) route: Option<RouteIndex>,
}

impl Hanging {
    /// Trees of ranks that hang as said; depths are counted.
    pub(super) fn new(root: u32, weight: u64, hops: Vec<Hop>) -> Self {
        let mut tree = Self { root, weight, hops };
        tree.count_depths();
        tree
    }

    /// Counts the hops from the root to each rank. O(ranks).
    pub(super) fn count_depths(&mut self) {
        let mut is_known = vec![false; self.hops.len()];
        let mut path = Vec::new();
        for rank in 0..self.hops.len() {
            let mut at = rank;
            while !is_known[at] && self.hops[at].route.is_some() {
                path.push(at);
                at = self.hops[at].from as usize;
            }
            let mut depth = if self.hops[at].route.is_some() { self.hops[at].depth } else { 0 };
            (self.hops[at].depth, is_known[at]) = (depth, true);
            for rank in path.drain(..).rev() {
                depth += 1;
                (self.hops[rank].depth, is_known[rank]) = (depth, true);
            }
        }
    }

    /// Counts the hops from each rank to the farthest one below it. O(ranks · log).
    pub(super) fn count_heights(&self, heights: &mut [u32]) {
        heights.fill(0);
        let mut order: Vec<usize> = (0..self.hops.len()).filter(|&rank| self.hops[rank].route.is_some()).collect();
        order.sort_unstable_by_key(|&rank| Reverse(self.hops[rank].depth));
        for rank in order {
            let above = self.hops[rank].from as usize;
            heights[above] = heights[above].max(heights[rank] + 1);
        }
    }

    /// Whether a rank is another one, or hangs below it. O(depth).
    pub(super) fn is_below(&self, rank: usize, above: usize) -> bool {
        let mut at = rank;
        while at != above && self.hops[at].route.is_some() {
            at = self.hops[at].from as usize;
        }
        at == above
    }
}

/// The links of a hop; none for the root.
pub(super) fn links<'r>(routes: &'r RouteInterner, hop: &Hop) -> &'r [LinkIndex] {
    hop.route.and_then(|route| routes.get(route)).unwrap_or_default()
}
