//! Other parents in the trees that met lost cables and ranks.

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::Patch;

use super::circles::untie;
use super::faulty::{Extra, Faulty, STAYS, Touched};
use super::regrow::{Loads, regrow};
use super::templates::{Templates, Time};
use super::transport::{Supply, transport};

/// Most seats of all trees of all touched seats: each takes a byte.
const MOVED_MAX: usize = 1 << 29;
/// The time that links into a seat are given grows by this part of the bound at a time.
const PARTS: u128 = 1 << 16;

/// Directions that may take a hop, as bits, and whether a child is turned round for it.
type Movable = (u32, bool);

/// What changes besides hops into touched seats.
#[derive(Default)]
struct Changes {
    extra: Extra,
    /// Trees, by root, that no change at one seat mends.
    torn: BTreeSet<(usize, u32)>,
}

impl Faulty<'_> {
    /// Patches for all trees. `None` where a seat has no parent left, or where faults are very many.
    ///
    /// Links into one seat share what must be moved so that they take equally long; seats do not depend on each other.
    pub(super) fn mend(mut self, templates: &Templates) -> Option<Vec<Patch>> {
        let target = if templates.time.is_more_than(self.bound) { templates.time } else { self.bound };
        let mut touched = std::mem::take(&mut self.touched);
        if touched.len() * templates.into.len() * self.ranks.len() > MOVED_MAX {
            return None;
        }
        let mut changes = Changes::default();
        for of_seat in &mut touched {
            self.move_hops(of_seat, templates, target, &mut changes)?;
        }
        let Changes { mut extra, mut torn } = changes;
        untie(&self, templates, &mut touched, &extra, &mut torn);
        let changed = touched.iter().map(|of_seat| (of_seat.seat, of_seat.loads.clone())).collect();
        let mut loads = Loads { rates: self.healthy, healthy: &templates.loads, changed };
        for tree in torn {
            regrow(&self, templates, tree, &mut touched, &mut extra, &mut loads)?;
        }
        Some(self.patches(templates, &touched, &extra))
    }

    /// Moves the hops over lost links into a seat, and those that are too many for slower links, to its other links.
    fn move_hops(
        &self,
        of_seat: &mut Touched,
        templates: &Templates,
        target: Time,
        changes: &mut Changes,
    ) -> Option<()> {
        let (seats, trees) = (self.grid.seat_count() as usize, templates.into.len());
        of_seat.loads.clone_from(&templates.loads);
        for &lost in &self.lost {
            let seen = self.grid.seen_from(of_seat.seat, lost);
            templates.into.iter().for_each(|into| of_seat.loads[usize::from(into[seen as usize])] -= 1);
        }
        let hops = self.hops_to_move(of_seat, templates, target, changes);
        let supplies: Vec<Supply> =
            hops.iter().map(|(&(places, _), hops)| Supply { places, count: hops.len() as u64 }).collect();
        let sent = self.share(&supplies, of_seat, target, trees as u64)?;
        for (heading, load) in of_seat.loads.iter_mut().enumerate() {
            *load += sent.iter().map(|of_class| of_class[heading]).sum::<u64>();
        }
        of_seat.moved = vec![STAYS; trees * seats];
        for ((&(_, is_turned), hops), of_class) in hops.iter().zip(sent) {
            let all = (0_u8..).zip(of_class);
            let headings = all.flat_map(|(heading, count)| {
                std::iter::repeat_n(heading, usize::try_from(count).unwrap_or(usize::MAX))
            });
            for (&(tree, seen), heading) in hops.iter().zip(headings) {
                if is_turned {
                    let hop = self.turned(of_seat, templates, (tree, seen), heading.into(), changes)?;
                    let root = self.grid.seen_from(of_seat.seat, seen);
                    changes.extra.entry((tree, root)).or_default().push(hop);
                }
                of_seat.moved[tree * seats + seen as usize] = heading;
            }
        }
        Some(())
    }

    /// Hops into a seat that are to be moved, by tree and by the seat as the root sees it; they leave the loads.
    fn hops_to_move(
        &self,
        of_seat: &mut Touched,
        templates: &Templates,
        target: Time,
        changes: &mut Changes,
    ) -> BTreeMap<Movable, Vec<(usize, u32)>> {
        let trees = templates.into.len();
        let excess = |(&load, &rate): (&u64, &u64)| load.saturating_sub(target.chunks(rate, trees as u64));
        let mut excess: Vec<u64> = of_seat.loads.iter().zip(&of_seat.rates).map(excess).collect();
        let mut hops: BTreeMap<Movable, Vec<(usize, u32)>> = BTreeMap::new();
        for seen in 1..self.grid.seat_count() {
            let root = self.grid.seen_from(of_seat.seat, seen);
            if !self.is_live(root) {
                continue;
            }
            for tree in 0..trees {
                let old = usize::from(templates.into[tree][seen as usize]);
                let places = if excess[old] > 0 { self.places(of_seat, templates, tree, seen, old) } else { 0 };
                if excess[old] == 0 || (places == 0 && of_seat.rates[old] > 0) {
                    continue;
                }
                excess[old] -= 1;
                of_seat.loads[old] -= 1;
                if places != 0 {
                    hops.entry((places, false)).or_default().push((tree, seen));
                    continue;
                }
                let may = |&heading: &usize| self.turned(of_seat, templates, (tree, seen), heading, changes).is_some();
                let places: u32 = (0..of_seat.rates.len()).filter(may).map(|heading| 1 << heading).sum();
                match places {
                    0 => drop(changes.torn.insert((tree, root))),
                    _ => hops.entry((places, true)).or_default().push((tree, seen)),
                }
            }
        }
        hops
    }

    /// How hops are divided among links that carry loads of other trees, in the least time from a target on.
    fn share(
        &self,
        supplies: &[Supply],
        of_seat: &Touched,
        target: Time,
        chunks_per_share: u64,
    ) -> Option<Vec<Vec<u64>>> {
        let sent_within = |more: u128| {
            let time = Time { shares: target.shares * (PARTS + more), rate: target.rate * PARTS };
            let room = of_seat.loads.iter().zip(&of_seat.rates);
            let room = room.map(|(&load, &rate)| time.chunks(rate, chunks_per_share).saturating_sub(load));
            transport(supplies, room.collect())
        };
        if let Some(sent) = sent_within(0) {
            return Some(sent);
        }
        let (mut low, mut high) = (0, PARTS * u128::from(self.grid.seat_count()));
        let mut sent = sent_within(high)?;
        while high - low > 1 {
            let middle = u128::midpoint(low, high);
            match sent_within(middle) {
                Some(found) => (high, sent) = (middle, found),
                None => low = middle,
            }
        }
        Some(sent)
    }

    /// Where all neighbours that a seat could get a tree from are below it, it gets the tree from a child, and that from
    /// a neighbour that is not below: the hop into the child that comes from this direction, by seats.
    fn turned(
        &self,
        of_seat: &Touched,
        templates: &Templates,
        (tree, seen): (usize, u32),
        heading: usize,
        changes: &Changes,
    ) -> Option<(u32, u32)> {
        let grid = self.grid;
        let root = grid.seen_from(of_seat.seat, seen);
        let child = grid.before(seen, heading);
        let of_child = grid.seen_as(child, root);
        // What is touched has patches of its own.
        let is_free = of_seat.rates[heading] > 0 && !self.is_touched[of_child as usize];
        if !is_free || child == 0 || templates.parent(grid, tree, child) != seen {
            return None;
        }
        if changes.extra.get(&(tree, root)).is_some_and(|hops| hops.iter().any(|&(other, _)| other == of_child)) {
            return None;
        }
        let is_below = |from: u32| {
            let up = |&at: &u32| (at != 0).then(|| templates.parent(grid, tree, at));
            std::iter::successors(Some(from), up).take(3).any(|at| at == seen)
        };
        let mut others = grid.around(child).iter().copied();
        let other = others.find(|&other| !is_below(other) && self.is_live(grid.seen_as(other, root)))?;
        Some((of_child, grid.seen_as(other, root)))
    }

    fn patches(&self, templates: &Templates, touched: &[Touched], extra: &Extra) -> Vec<Patch> {
        let (grid, seats) = (self.grid, self.grid.seat_count());
        let mut patches = Vec::new();
        for of_seat in touched {
            let mut roots = vec![vec![Vec::new(); of_seat.rates.len()]; templates.into.len()];
            for root in 0..seats {
                let seen = grid.seen_from(of_seat.seat, root) as usize;
                for (tree, of_tree) in roots.iter_mut().enumerate() {
                    let heading = of_seat.moved[tree * seats as usize + seen];
                    if heading != STAYS {
                        of_tree[usize::from(heading)].push(root);
                    }
                }
            }
            for (template, of_tree) in (0..).zip(roots) {
                for (heading, roots) in of_tree.into_iter().enumerate().filter(|(_, roots)| !roots.is_empty()) {
                    let parent = grid.before(of_seat.seat, heading);
                    patches.push(Patch { template, child: of_seat.seat, parent, roots });
                }
            }
        }
        let mut others: BTreeMap<(usize, u32, u32), Vec<u32>> = BTreeMap::new();
        for (&(tree, root), hops) in extra {
            hops.iter().for_each(|&(child, parent)| others.entry((tree, child, parent)).or_default().push(root));
        }
        let patch =
            |((tree, child, parent), roots)| Some(Patch { template: u32::try_from(tree).ok()?, child, parent, roots });
        patches.extend(others.into_iter().filter_map(patch));
        patches
    }
}
