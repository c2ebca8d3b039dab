//! Trees of limited depth, at the expense of the rate.
//!
//! How deep trees must be at the optimal rate is not known, so this is another method: each tree grows by the hop that
//! costs least, from ranks that are not too deep, where the price of a link rises with its load (`growth`, `prices`); then
//! trees are taken out and grown again, one after the other, as long as that helps. The rate is whatever the loads come
//! to, and exact. Any depth that the network allows is kept.

mod distances;
mod growth;
mod prices;

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::RouteInterner;
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::instance::Roots;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees, ask, packing};
use crate::progress::{Progress, Stage};
use distances::require_depth;
use growth::{Grower, Grown};
use prices::Prices;

/// Different trees per root, at most: more of them spread the load more evenly.
pub(super) const PARTS_MAX: u64 = 8;
/// How trees are grown, each time that all of them are: what flat trees are worth, then what an even load is worth,
/// decides between hops that are otherwise alike.
const ROUNDS: [HopCost; 17] = {
    const fn cost(bias: u128, steepness: u128) -> HopCost {
        HopCost { bias, steepness }
    }
    [
        cost(0, 10),
        cost(0, 10),
        cost(4, 10),
        cost(16, 10),
        cost(16, 10),
        cost(64, 10),
        cost(64, 10),
        cost(256, 10),
        cost(256, 10),
        cost(64, 16),
        cost(64, 16),
        cost(16, 16),
        cost(16, 16),
        cost(4, 16),
        cost(4, 16),
        cost(0, 16),
        cost(0, 16),
    ]
};
/// Joins times switches that may have been spent if trees are to be grown once more: some seconds.
const WORK_MAX: u64 = 1 << 28;

/// What a hop costs when a tree grows.
struct HopCost {
    /// By how many 16ths a hop is dearer for each hop that its start is away from the root.
    bias: u128,
    /// By how many powers of two a link is dearer once it is as busy as the busiest may be.
    steepness: u128,
}

/// Greatest number of hops between the root of a tree and a rank. O(hops).
pub(super) fn depth_max(solution: &RoutedTrees, rank_count: u32) -> u32 {
    let mut depths = vec![0; rank_count as usize];
    let mut most = 0;
    for tree in &solution.trees {
        depths[tree.root as usize] = 0;
        for hop in &solution.hops[tree.hops.start as usize..tree.hops.end as usize] {
            let depth = depths[hop.from as usize] + 1;
            depths[hop.to as usize] = depth;
            most = most.max(depth);
        }
    }
    most
}

/// Trees of at most so many hops from root to rank, of that of the numbers of trees per root that makes the fastest
/// schedule; the first of them among equals.
///
/// * **In.** A topology whose ranks reach each other, balanced or not. **Out.** The best schedule found.
/// * **Errors.** [`SynthesisError::TooShallow`] if no schedule is that flat; too many trees or hops, stopped.
/// * **Cost.** O(trees · ranks · (switches + links between them)) per round.
pub(super) fn shallow(
    topology: &Topology,
    roots: Roots<'_>,
    counts: &[u64],
    depth_max: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    require_depth(topology, roots, depth_max, stop)?;
    // Trees of all ranks may cross a link on the way to each rank.
    let rank_count = topology.rank_count();
    let weights = topology.ranks().map(|rank| u128::from(roots.weight(rank)));
    let units = weights.fold(0_u128, u128::saturating_add).max(rank_count.into());
    let most = counts.iter().copied().max().unwrap_or(0);
    let crossings = units.saturating_mul(rank_count.into()).saturating_mul(most.into());
    let (Ok(_), Ok(units)) = (u64::try_from(crossings), u64::try_from(units)) else {
        return Err(SynthesisError::TooManyTrees { trees_per_rank: most.into(), rank_count });
    };
    let mut packing = Packing { topology, roots, units, depth_max, work_left: WORK_MAX, stop, progress };
    let mut best: Option<(Fraction, u64, Vec<Grown>)> = None;
    for &count in counts {
        // The first number always has its trees; every other one only if there is time for a round of them.
        if best.is_some() && packing.work_of(count) > packing.work_left {
            break;
        }
        let (time, trees) = packing.pack(count)?;
        if best.as_ref().is_none_or(|&(known, ..)| time < known) {
            best = Some((time, count, trees));
        }
    }
    let (_, count, trees) = best.expect("a number of trees is given");
    lay(count, trees)
}

struct Packing<'a> {
    topology: &'a Topology,
    roots: Roots<'a>,
    /// Sum of their weights, at least one for each rank.
    units: u64,
    depth_max: u32,
    work_left: u64,
    stop: &'a dyn Stop,
    progress: &'a dyn Progress,
}

impl Packing<'_> {
    /// Ranks that have something to tell, with their weights.
    fn weighted_roots(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let weighted = self.topology.ranks().map(|rank| (rank.number(), self.roots.weight(rank)));
        weighted.filter(|&(_, weight)| weight > 0)
    }

    /// What growing all trees once takes.
    fn work_of(&self, count: u64) -> u64 {
        let switches = (self.topology.nodes().len() as u64).saturating_sub(self.topology.rank_count().into());
        let trees: u64 = self.weighted_roots().map(|(_, weight)| count.saturating_mul(weight).min(PARTS_MAX)).sum();
        trees.saturating_mul(self.topology.rank_count().into()).saturating_mul(switches + 8)
    }

    /// The best trees of some rounds, and the time they take per share.
    fn pack(&mut self, count: u64) -> Result<(Fraction, Vec<Grown>), SynthesisError> {
        let rank_count = self.topology.rank_count();
        let all: Vec<(u32, u64)> =
            self.weighted_roots().flat_map(|(root, weight)| parts(root, count * weight)).collect();
        packing::require_room(all.len(), rank_count as usize)?;
        let mut prices = Prices::new(self.topology, count, self.units, ROUNDS[0].steepness);
        let mut grower = Grower::new(self.topology, self.depth_max);
        let total = all.len() as u64;
        let mut trees: Vec<Grown> = Vec::with_capacity(all.len());
        for (done, &(root, weight)) in (0_u64..).zip(&all) {
            ask(self.stop)?;
            self.progress.report(Stage::Trees, done, total);
            prices.expect_share(done + 1, total);
            trees.push(grower.grow(&mut prices, root, weight, self.stop)?);
        }
        self.progress.report(Stage::Trees, total, total);
        self.work_left = self.work_left.saturating_sub(self.work_of(count));
        let mut best = (prices.time(self.topology, count), trees.clone());
        for &HopCost { bias, steepness } in &ROUNDS[1..] {
            (grower.bias, prices.steepness) = (bias, steepness);
            if self.work_left < self.work_of(count) {
                break;
            }
            for tree in &mut trees {
                ask(self.stop)?;
                prices.expect_less();
                prices.remove(tree);
                *tree = grower.grow(&mut prices, tree.root, tree.weight, self.stop)?;
            }
            self.work_left -= self.work_of(count);
            let time = prices.time(self.topology, count);
            if time < best.0 {
                best = (time, trees.clone());
            }
        }
        Ok(best)
    }
}

/// So many trees of a root in parts that differ by one tree at most, none of them empty.
fn parts(root: u32, trees: u64) -> impl Iterator<Item = (u32, u64)> {
    let parts = trees.min(PARTS_MAX);
    (0..parts).map(move |part| (root, trees / parts + u64::from(part < trees % parts)))
}

/// Writes trees down, equal ones once.
fn lay(count: u64, mut trees: Vec<Grown>) -> Result<RoutedTrees, SynthesisError> {
    trees.sort_by(|a, b| (a.root, &a.hops).cmp(&(b.root, &b.hops)));
    trees.dedup_by(|next, kept| {
        let are_equal = (next.root, &next.hops) == (kept.root, &kept.hops);
        if are_equal {
            kept.weight += next.weight;
        }
        are_equal
    });
    trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.weight)));
    let mut routes = RouteInterner::default();
    let (mut laid, mut hops, mut carriers) = (Vec::with_capacity(trees.len()), Vec::new(), Vec::new());
    for tree in trees {
        let start = position(hops.len())?;
        for hop in tree.hops {
            let first = position(carriers.len())?;
            carriers.push((routes.intern(&hop.links), tree.weight));
            hops.push(RoutedHop { from: hop.from, to: hop.to, carriers: first..first + 1 });
        }
        laid.push(RoutedTree { root: tree.root, multiplicity: tree.weight, hops: start..position(hops.len())? });
    }
    Ok(RoutedTrees { trees_per_root: count, trees: laid, hops, carriers, routes: routes.finish() })
}
