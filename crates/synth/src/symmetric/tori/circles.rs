//! Patches of one tree that hang each other up in a circle, and others in their place.

use std::collections::BTreeSet;

use super::faulty::{Extra, Faulty, STAYS, Touched};
use super::templates::{Templates, Time};
use crate::symmetric::torus::Grid;

/// A seat with another parent, as the root sees both.
#[derive(Clone, Copy, Debug)]
struct Rehung {
    child: u32,
    parent: u32,
    /// Which of the touched seats it is; `None` for another.
    place: Option<usize>,
}

/// Changes patches until all trees are trees; adds those that no other parents of touched seats mend to the torn ones.
///
/// Patches of a tree close a circle only if each hangs below the next, which is rare. Then one of them takes another
/// parent, over the link that is done first. O(ranks · trees · touched seats).
pub(super) fn untie(
    faulty: &Faulty<'_>,
    templates: &Templates,
    touched: &mut [Touched],
    extra: &Extra,
    torn: &mut BTreeSet<(usize, u32)>,
) {
    let grid = faulty.grid;
    let below: Vec<Below> = (0..templates.into.len()).map(|tree| Below::of(grid, templates, tree)).collect();
    let (mut seen, mut hops) = (vec![0; touched.len()], Vec::new());
    for root in (0..grid.seat_count()).filter(|&root| faulty.is_live(root)) {
        for (seen, of_seat) in seen.iter_mut().zip(touched.iter()) {
            *seen = grid.seen_from(of_seat.seat, root);
        }
        for (tree, below) in below.iter().enumerate() {
            faulty.of_tree(tree, root, touched, &seen, extra, &mut hops);
            if hops.len() < 2 || torn.contains(&(tree, root)) {
                continue;
            }
            // Each round opens a circle.
            for _ in 0..=hops.len() {
                let Some(circle) = below.circle(&hops) else { break };
                if below.open(faulty, templates, tree, &circle, touched, &mut hops).is_none() {
                    torn.insert((tree, root));
                    break;
                }
            }
            if below.circle(&hops).is_some() {
                torn.insert((tree, root));
            }
        }
    }
}

impl Faulty<'_> {
    /// Patches of one tree as its root sees them.
    fn of_tree(
        &self,
        tree: usize,
        root: u32,
        touched: &[Touched],
        seen: &[u32],
        extra: &Extra,
        hops: &mut Vec<Rehung>,
    ) {
        hops.clear();
        for (place, (of_seat, &child)) in touched.iter().zip(seen).enumerate() {
            let heading = of_seat.moved[tree * self.grid.seat_count() as usize + child as usize];
            if heading != STAYS {
                hops.push(Rehung { child, parent: self.grid.before(child, heading.into()), place: Some(place) });
            }
        }
        if let Some(of_tree) = extra.get(&(tree, root)) {
            let seen = |seat| self.grid.seen_from(seat, root);
            let more = of_tree.iter();
            hops.extend(more.map(|&(child, parent)| Rehung { child: seen(child), parent: seen(parent), place: None }));
        }
    }
}

/// Places of the seats of a tree in an order in which all that is below a seat follows it.
struct Below {
    firsts: Vec<u32>,
    sizes: Vec<u32>,
}

impl Below {
    fn of(grid: &Grid, templates: &Templates, tree: usize) -> Self {
        let seats = grid.seat_count();
        let parent = |seat| templates.parent(grid, tree, seat);
        // Seats by distance from the root: counted, then in turn.
        let mut order: Vec<u32> = (0..seats).collect();
        let distances = grid.distances();
        order.sort_by_key(|&seat| distances[seat as usize]);
        let mut sizes = vec![1_u32; seats as usize];
        for &seat in order.iter().skip(1).rev() {
            sizes[parent(seat) as usize] += sizes[seat as usize];
        }
        let mut firsts = vec![0_u32; seats as usize];
        let mut next: Vec<u32> = vec![1; seats as usize];
        for &seat in order.iter().skip(1) {
            let above = parent(seat) as usize;
            firsts[seat as usize] = next[above];
            next[above] += sizes[seat as usize];
            next[seat as usize] = firsts[seat as usize] + 1;
        }
        Self { firsts, sizes }
    }

    fn is_below(&self, seat: u32, above: u32) -> bool {
        let (first, of) = (self.firsts[above as usize], self.firsts[seat as usize]);
        of >= first && of - first < self.sizes[above as usize]
    }

    /// The patched seat that a walk from a patched seat to the root meets first.
    fn met(&self, hops: &[Rehung], from: &Rehung) -> Option<usize> {
        let above = (0..hops.len()).filter(|&at| self.is_below(from.parent, hops[at].child));
        above.min_by_key(|&at| self.sizes[hops[at].child as usize])
    }

    /// Patched seats on a walk that never ends, once round.
    fn circle(&self, hops: &[Rehung]) -> Option<Vec<usize>> {
        let walk = |first| std::iter::successors(Some(first), |&at: &usize| self.met(hops, &hops[at]));
        let inside = (0..hops.len()).find_map(|first| walk(first).nth(hops.len()))?;
        let round = std::iter::once(inside).chain(walk(inside).skip(1).take_while(|&at| at != inside));
        Some(round.collect())
    }

    /// Gives one seat of a circle another parent, from which the walk ends.
    fn open(
        &self,
        faulty: &Faulty<'_>,
        templates: &Templates,
        tree: usize,
        circle: &[usize],
        touched: &mut [Touched],
        hops: &mut [Rehung],
    ) -> Option<()> {
        let grid = faulty.grid;
        let mut best: Option<(Time, usize, usize)> = None;
        for &at in circle {
            let Some(of_seat) = hops[at].place.and_then(|place| touched.get(place)) else { continue };
            let before = hops[at];
            let old = usize::from(templates.into[tree][before.child as usize]);
            let places = faulty.places(of_seat, templates, tree, before.child, old);
            for heading in (0..of_seat.rates.len()).filter(|&heading| places >> heading & 1 == 1) {
                hops[at].parent = grid.before(before.child, heading);
                let mut walk = std::iter::successors(Some(at), |&at| self.met(hops, &hops[at]));
                let time = of_seat.time(heading);
                if walk.nth(hops.len()).is_none() && best.is_none_or(|(least, _, _)| least.is_more_than(time)) {
                    best = Some((time, at, heading));
                }
            }
            hops[at] = before;
        }
        let (_, at, heading) = best?;
        hops[at].parent = grid.before(hops[at].child, heading);
        let of_seat = touched.get_mut(hops[at].place?)?;
        let moved = &mut of_seat.moved[tree * grid.seat_count() as usize + hops[at].child as usize];
        of_seat.loads[usize::from(*moved)] -= 1;
        of_seat.loads[heading] += 1;
        *moved = u8::try_from(heading).ok()?;
        Some(())
    }
}
