//! Makes the deepest trees less deep, at the expense of others that have levels to spare.
//!
//! How long small messages take is a matter of the deepest tree, however flat the others are; trees that were tested
//! edge by edge, or put together from pieces, are the deepest and few. Two trees may exchange the hops into a rank, routes
//! included, if they stand for as many: what every link carries stays the same, so nothing has to be tested.

mod table;

use std::ops::RangeInclusive;

use canopy_optimize::{Stop, Stopped};

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees, ask};
use crate::parts::HOPS_MAX;
use table::Table;

/// Pairs of a tree and a rank looked at for each hop, at most, about a nanosecond each: not more than other stages take.
const LOOKS_PER_HOP: u64 = 32;

/// The same for all hops of small and of large forests.
const LOOKS: RangeInclusive<u64> = 1 << 24..=1 << 27;

/// Of so many trees one may be divided, so that the parts can exchange hops with trees of another multiplicity.
const TREES_PER_DIVISION: usize = 8;

/// Depth at which a forest is left as it is.
const DEPTH_MIN: u16 = 3;

/// Takes one level after the other off the deepest trees, until there is one that keeps its depth.
///
/// A branch that goes too deep is hung nearer to the root with the hop of another tree, which gets the one given up and
/// must not go too deep by it. So the ranks below the level become fewer or less deep with every exchange, and the
/// method ends; it also ends after [`LOOKS_PER_HOP`] looks for each hop. Where multiplicities differ the greater one is divided.
///
/// * **In, out.** Trees that all reach `rank_count` ranks, by root, heaviest first. **Errors.** Stopped.
/// * **Cost.** O(hops) for a table of 6 bytes per hop; per exchange O(ranks + trees · depth).
pub(super) fn lower(routed: &mut RoutedTrees, rank_count: u32, stop: &dyn Stop) -> Result<(), SynthesisError> {
    let Some(table) = Table::new(routed, rank_count, DEPTH_MIN, stop)? else { return Ok(()) };
    let room = HOPS_MAX.saturating_sub(routed.hops.len() as u64) / u64::from(rank_count);
    let divisions_left = (routed.trees.len() / TREES_PER_DIVISION).min(usize::try_from(room).unwrap_or(usize::MAX));
    let looks_left = (routed.hops.len() as u64 * LOOKS_PER_HOP).clamp(*LOOKS.start(), *LOOKS.end());
    let mut lowering = Lowering { routed, table, divisions_left, looks_left, stop };
    loop {
        let depth = lowering.table.depth_max();
        if depth <= DEPTH_MIN || !lowering.lower_to(depth - 1)? {
            break;
        }
    }
    routed.trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.multiplicity)));
    Ok(())
}

/// Trees being changed.
struct Lowering<'a> {
    routed: &'a mut RoutedTrees,
    table: Table,
    divisions_left: usize,
    looks_left: u64,
    stop: &'a dyn Stop,
}

/// An exchange that takes a branch of a tree nearer to its root.
#[derive(Clone, Copy)]
struct Lift {
    rank: u32,
    /// The tree whose hop into the rank is wanted.
    other: usize,
    divides: bool,
}

impl Lowering<'_> {
    /// Lowers every tree to a level. Says whether that went well for all; if not, some may be lower all the same.
    fn lower_to(&mut self, level: u16) -> Result<bool, SynthesisError> {
        // A tree that is divided has its other part at the end.
        let mut tree = 0;
        while tree < self.routed.trees.len() {
            while self.table.depth_of(tree) > level {
                let Some(lift) = self.find_lift(tree, level)? else { return Ok(false) };
                if lift.divides {
                    self.divide(tree, lift.other)?;
                }
                self.table.exchange(self.routed, (tree, lift.other), lift.rank);
            }
            tree += 1;
        }
        Ok(true)
    }

    /// The first branch from the root outwards that goes below the level and can be lifted, with a tree of equal
    /// multiplicity if there is one.
    fn find_lift(&mut self, tree: usize, level: u16) -> Result<Option<Lift>, Stopped> {
        let depths = self.table.depths_in(tree);
        let deepest = Table::deepest_in_branches(self.routed, tree, &depths);
        for hop in table::hops(self.routed, tree) {
            let (parent, rank) = (self.routed.hops[hop].from, self.routed.hops[hop].to);
            if deepest[rank as usize] <= level {
                continue;
            }
            ask(self.stop)?;
            let looks = self.routed.trees.len() as u64;
            if self.looks_left < looks {
                return Ok(None);
            }
            self.looks_left -= looks;
            if let Some(lift) = self.find_lift_at(tree, parent, rank, &depths, level) {
                return Ok(Some(lift));
            }
        }
        Ok(None)
    }

    /// A tree to exchange the hop into a rank with: one in which it hangs on a rank that is nearer to the root of the tree
    /// at hand, and which stays above the level with the hop from `parent`.
    fn find_lift_at(&mut self, tree: usize, parent: u32, rank: u32, depths: &[u16], level: u16) -> Option<Lift> {
        let mut with_division = None;
        let multiplicity = self.routed.trees[tree].multiplicity;
        let candidates = self.table.parents_of(rank).iter().zip(self.table.depths_of(parent)).enumerate();
        let mut costly = 0;
        for (other, (&wanted, &below)) in candidates {
            if Table::is_none(wanted) || depths[wanted as usize] + 1 >= depths[rank as usize] || below >= level {
                continue;
            }
            let divides = self.routed.trees[other].multiplicity != multiplicity;
            if divides && (self.divisions_left == 0 || with_division.is_some()) {
                continue;
            }
            let depth = self.table.depths_of(rank)[other];
            let makes_loop =
                self.table.is_in_branch(tree, rank, wanted) || self.table.is_in_branch(other, rank, parent);
            // A branch that does not sink may end where it does.
            let mut sinks_too_deep = || {
                costly += 1;
                below + 1 > depth && below + 1 + self.table.height(self.routed, other, rank) > level
            };
            if makes_loop || sinks_too_deep() {
                continue;
            }
            let lift = Lift { rank, other, divides };
            if !divides {
                with_division = Some(lift);
                break;
            }
            with_division = Some(lift);
        }
        self.looks_left = self.looks_left.saturating_sub(costly * self.table.rank_count() as u64);
        with_division
    }

    /// Makes two trees stand for as many: what is more of one becomes a tree of its own, the last.
    fn divide(&mut self, first: usize, second: usize) -> Result<(), SynthesisError> {
        let [one, other] = [first, second].map(|tree| self.routed.trees[tree].multiplicity);
        let (tree, kept) = if one > other { (first, other) } else { (second, one) };
        let rest = one.abs_diff(other);
        let start = position(self.routed.hops.len())?;
        for hop in table::hops(self.routed, tree) {
            let RoutedHop { from, to, carriers } = self.routed.hops[hop].clone();
            let (mut first_part, mut last_part, mut missing) = (Vec::new(), Vec::new(), kept);
            for &(route, count) in &self.routed.carriers[carriers.start as usize..carriers.end as usize] {
                let part = count.min(missing);
                missing -= part;
                first_part.extend(Some((route, part)).filter(|_| part > 0));
                last_part.extend(Some((route, count - part)).filter(|_| part < count));
            }
            let [kept, rest] = [first_part, last_part].map(|part| {
                let begin = self.routed.carriers.len();
                self.routed.carriers.extend(part);
                Ok::<_, SynthesisError>(position(begin)?..position(self.routed.carriers.len())?)
            });
            self.routed.hops[hop].carriers = kept?;
            self.routed.hops.push(RoutedHop { from, to, carriers: rest? });
        }
        let hops = start..position(self.routed.hops.len())?;
        let root = self.routed.trees[tree].root;
        self.routed.trees[tree].multiplicity = kept;
        self.routed.trees.push(RoutedTree { root, multiplicity: rest, hops });
        self.table.push_last(self.routed);
        self.divisions_left = self.divisions_left.saturating_sub(1);
        Ok(())
    }
}
