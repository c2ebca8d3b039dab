//! One tree as a whole, where other parents of single seats do not mend it.

use std::collections::BTreeMap;

use super::faulty::{Extra, Faulty, STAYS, Touched};
use super::templates::{Templates, Time};
use crate::symmetric::torus::Grid;

/// A seat that gets the tree from nowhere.
const NOWHERE: u32 = u32::MAX;
/// So many seats whose hops turn round are as good as one.
const FEW: usize = 3;

/// What links carry in all trees.
pub(super) struct Loads<'a> {
    /// Bytes per second, by direction, of links that are as they were.
    pub(super) rates: &'a [u64],
    /// Chunks over links into a seat, by direction, where no tree has changed.
    pub(super) healthy: &'a [u64],
    /// By seat, where some have.
    pub(super) changed: BTreeMap<u32, Vec<u64>>,
}

impl Loads<'_> {
    fn of(&mut self, seat: u32, heading: usize) -> Option<&mut u64> {
        self.changed.entry(seat).or_insert_with(|| self.healthy.to_vec()).get_mut(heading)
    }

    /// When a link is done with one chunk more.
    fn time(&self, seat: u32, heading: usize) -> Time {
        let load = self.changed.get(&seat).map_or(self.healthy[heading], |loads| loads[heading]);
        Time { shares: u128::from(load) + 1, rate: self.rates[heading].into() }
    }
}

/// A tree while its parts are joined again: seats as the root sees them.
struct Torn<'a> {
    grid: &'a Grid,
    /// By seat; the root's is itself.
    parents: Vec<u32>,
    /// By seat: directions, as bits, of links that lead to it.
    open: Vec<u32>,
    root: u32,
}

/// Hangs what a tree has lost to its rest, part by part, each where few hops are turned round, over the link that is
/// done first. `None` where a part has no links to others. O(seats · parts).
pub(super) fn regrow(
    faulty: &Faulty<'_>,
    templates: &Templates,
    (tree, root): (usize, u32),
    touched: &mut [Touched],
    extra: &mut Extra,
    loads: &mut Loads<'_>,
) -> Option<()> {
    let grid = faulty.grid;
    let seats = grid.seat_count();
    let template = |seat: u32| if seat == 0 { 0 } else { templates.parent(grid, tree, seat) };
    let all = (1_u32 << grid.headings.len()) - 1;
    let is_live = |seat: u32| faulty.is_live(grid.seen_as(seat, root));
    let open = (0..seats).map(|seat| if is_live(seat) { all } else { 0 }).collect();
    let mut torn = Torn { grid, parents: (0..seats).map(template).collect(), open, root };
    for of_seat in touched.iter_mut() {
        let seen = grid.seen_from(of_seat.seat, root);
        let links = (0..).zip(&of_seat.rates).filter(|(_, rate)| **rate > 0);
        torn.open[seen as usize] = links.map(|(heading, _)| 1 << heading).sum();
        let moved = &mut of_seat.moved[tree * seats as usize + seen as usize];
        if *moved != STAYS {
            torn.parents[seen as usize] = grid.before(seen, usize::from(*moved));
            *loads.of(of_seat.seat, usize::from(*moved))? -= 1;
            *moved = STAYS;
        }
    }
    for (child, parent) in extra.remove(&(tree, root)).unwrap_or_default() {
        torn.parents[grid.seen_from(child, root) as usize] = grid.seen_from(parent, root);
    }
    torn.join(loads)?;
    let mut hops: BTreeMap<u32, u32> = BTreeMap::new();
    for seat in 1..seats {
        let (old, new) = (template(seat), torn.parents[seat as usize]);
        if torn.open[seat as usize] == 0 || old == new {
            continue;
        }
        let child = grid.seen_as(seat, root);
        let heading = (0..grid.headings.len()).find(|&heading| grid.before(seat, heading) == new)?;
        *loads.of(child, heading)? += 1;
        hops.insert(child, grid.seen_as(new, root));
    }
    extra.insert((tree, root), hops.into_iter().collect());
    Some(())
}

impl Torn<'_> {
    fn join(&mut self, loads: &Loads<'_>) -> Option<()> {
        for seat in 1..self.grid.seat_count() {
            let parent = self.parents[seat as usize];
            if self.links(seat).all(|(_, from)| from != parent) {
                self.parents[seat as usize] = NOWHERE;
            }
        }
        loop {
            let reached = self.reached();
            let hanging =
                (1..self.grid.seat_count()).filter(|&seat| !reached[seat as usize] && self.open[seat as usize] != 0);
            let mut best: Option<(usize, Time, u32, u32)> = None;
            let mut is_whole = true;
            for seat in hanging {
                is_whole = false;
                for (heading, from) in self.links(seat).filter(|&(_, from)| reached[from as usize]) {
                    let turned = self.above(seat).len().saturating_sub(FEW);
                    let time = loads.time(self.grid.seen_as(seat, self.root), heading);
                    let is_better = |&(most, latest, _, _): &(usize, Time, u32, u32)| {
                        turned < most || turned == most && latest.is_more_than(time)
                    };
                    if best.as_ref().is_none_or(is_better) {
                        best = Some((turned, time, seat, from));
                    }
                }
            }
            if is_whole {
                return Some(());
            }
            let (_, _, seat, from) = best?;
            let above = self.above(seat);
            for pair in above.windows(2) {
                self.parents[pair[1] as usize] = pair[0];
            }
            self.parents[seat as usize] = from;
        }
    }

    /// Directions of links that lead to a seat, and the seats from which they do.
    fn links(&self, seat: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let open = self.open[seat as usize];
        let headings = (0..self.grid.headings.len()).filter(move |heading| open >> heading & 1 == 1);
        headings.map(move |heading| (heading, self.grid.before(seat, heading)))
    }

    /// A hanging seat and those above it, up to the top of its part, or once round a circle.
    fn above(&self, seat: u32) -> Vec<u32> {
        let mut all = vec![seat];
        let mut at = self.parents[seat as usize];
        while at != NOWHERE && !all.contains(&at) {
            all.push(at);
            at = self.parents[at as usize];
        }
        all
    }

    /// By seat: whether a walk from it ends at the root.
    fn reached(&self) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; self.parents.len()];
        known[0] = Some(true);
        for first in 1..self.grid.seat_count() {
            let (mut walk, mut at) = (Vec::new(), first);
            // A seat that was met on this walk is in a circle.
            let end = loop {
                if at == NOWHERE {
                    break false;
                }
                if let Some(end) = known[at as usize] {
                    break end;
                }
                known[at as usize] = Some(false);
                walk.push(at);
                at = self.parents[at as usize];
            };
            walk.into_iter().for_each(|seat| known[seat as usize] = Some(end));
        }
        known.into_iter().map(|end| end == Some(true)).collect()
    }
}
