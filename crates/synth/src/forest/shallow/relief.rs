//! Ranks of finished trees hung up elsewhere, where that takes load off busy links.
//!
//! Three kinds of changes, each made only if the sum of prices falls: a rank moves with all that hang below it; a
//! branch is taken apart, and each rank of it hangs where it is cheapest (`branch`); a rank moves nearer to the root,
//! though that is dearer, so that others can hang on it (`promotion`).

mod below;
mod branch;
mod promotion;
mod search;

use canopy_optimize::{Stop, Stopped};
use canopy_schedule::RouteInterner;
use canopy_topology::Topology;

use super::editing::Editing;
use super::hanging::Hanging;
use super::prices::Prices;
use crate::forest::ask;
use below::Below;
use search::Search;

/// Ranks looked at between two looks at whether to stop.
const ASK_INTERVAL: u64 = 64;

/// Which changes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Ranks are moved with all that hang below them.
    Ranks,
    /// Where that does not help, branches are taken apart, and ranks are moved for others.
    Branches,
}

/// What a look at all ranks has led to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// Ranks on busy links.
    pub(super) looked: u64,
    /// Changes made.
    pub(super) moved: u64,
}

/// Moves ranks on one network.
pub(super) struct Relief<'a> {
    depth_max: u32,
    /// By how many 16ths a hop is worth more than it costs for each hop that its start is away from the root.
    pub(super) bias: u64,
    search: Search<'a>,
    /// What hangs on each rank in the tree at hand.
    below: Below,
    /// By rank: how far those are below it, where that is counted.
    heights: Vec<u32>,
    are_heights_counted: bool,
    /// By rank: whether it is being moved.
    is_moving: Vec<bool>,
    /// All of these ranks, what the others hang below first.
    moving: Vec<usize>,
}

impl<'a> Relief<'a> {
    /// `work_max`: links that searches may look at before no more changes are tried.
    pub(super) fn new(topology: &'a Topology, depth_max: u32, work_max: u64) -> Self {
        let rank_count = topology.rank_count() as usize;
        Self {
            depth_max,
            bias: 0,
            search: Search::new(topology, work_max),
            below: Below::new(rank_count),
            heights: vec![0; rank_count],
            are_heights_counted: false,
            is_moving: vec![false; rank_count],
            moving: Vec::new(),
        }
    }

    /// Whether no more changes are tried.
    pub(super) const fn is_over(&self) -> bool {
        self.search.work_left == 0
    }

    /// Looks once at every rank that hangs on a link with more trees than allowed, in all trees, and makes changes as
    /// deep as said.
    pub(super) fn pass(
        &mut self,
        trees: &mut [Hanging],
        routes: &mut RouteInterner,
        prices: &mut Prices,
        (allowed, depth): (&[u64], Depth),
        stop: &dyn Stop,
    ) -> Result<Pass, Stopped> {
        let mut pass = Pass { looked: 0, moved: 0 };
        for tree in trees {
            ask(stop)?;
            self.below.read(tree);
            self.are_heights_counted = false;
            prices.refresh_floors();
            let root = tree.root;
            let mut edit = Editing { tree, routes, prices };
            for rank in turned(root, self.heights.len()) {
                if !edit.is_busy(rank, allowed) {
                    continue;
                }
                if self.is_over() {
                    return Ok(pass);
                }
                pass.looked += 1;
                if pass.looked.is_multiple_of(ASK_INTERVAL) {
                    ask(stop)?;
                }
                self.mark(rank);
                let is_moved = self.move_rank(&mut edit, rank)
                    || depth == Depth::Branches
                        && (self.move_branch(&mut edit, rank) || self.promote(&mut edit, rank, allowed));
                self.unmark();
                self.are_heights_counted &= !is_moved;
                pass.moved += u64::from(is_moved);
            }
        }
        Ok(pass)
    }

    /// Hangs a rank with all that hang below it where it is cheapest; says whether that is elsewhere.
    fn move_rank(&mut self, edit: &mut Editing<'_>, rank: usize) -> bool {
        let present = edit.take_off(rank);
        let old = edit.tree.hops[rank];
        let height = self.height_of_moving(edit.tree);
        let Some(found) = self.cheapest(edit, rank, height, self.worth(old.depth - 1, present)) else {
            edit.put_on(rank);
            return false;
        };
        edit.hang(rank, found.from, &found.links);
        self.below.take_off(rank, old.from as usize);
        self.below.hang(rank, found.from as usize);
        for &below in &self.moving[1..] {
            let above = edit.tree.hops[below].from as usize;
            edit.tree.hops[below].depth = edit.tree.hops[above].depth + 1;
        }
        true
    }

    /// The hop that a rank should hang on, if it is worth less than `below`: not from ranks that are moving, and from
    /// no deeper than what hangs below it permits.
    fn cheapest(&mut self, edit: &Editing<'_>, rank: usize, height: u32, below: u64) -> Option<search::Found> {
        let (depth_max, bias, is_moving, hops) = (self.depth_max, self.bias, &self.is_moving, &edit.tree.hops);
        let worth = |from: usize, cost: u64| {
            let depth = hops[from].depth;
            (!is_moving[from] && depth + height < depth_max).then(|| biased(bias, depth, cost))
        };
        self.search.cheapest(rank, edit.prices, below, worth)
    }

    const fn worth(&self, depth: u32, cost: u64) -> u64 {
        biased(self.bias, depth, cost)
    }

    /// Marks a rank and all that hang below it as moving.
    fn mark(&mut self, rank: usize) {
        self.below.list(rank, &mut self.moving);
        self.moving.iter().for_each(|&rank| self.is_moving[rank] = true);
        self.search.spend(self.moving.len());
    }

    fn unmark(&mut self) {
        self.moving.iter().for_each(|&rank| self.is_moving[rank] = false);
    }

    /// Hops from the first of the ranks that are moving to the farthest of them.
    fn height_of_moving(&self, tree: &Hanging) -> u32 {
        let depths = self.moving.iter().map(|&rank| tree.hops[rank].depth);
        depths.clone().max().unwrap_or(0) - depths.min().unwrap_or(0)
    }
}

/// What a hop is worth whose start has this depth.
const fn biased(bias: u64, depth: u32, cost: u64) -> u64 {
    cost.saturating_add((cost / 16).saturating_mul(bias.saturating_mul(depth as u64)))
}

/// All ranks but the root, those after it first: trees of different roots look at them in different orders.
fn turned(root: u32, rank_count: usize) -> impl Iterator<Item = usize> {
    (1..rank_count).map(move |turn| (root as usize + turn) % rank_count)
}
